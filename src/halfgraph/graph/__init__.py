"""What is known: a typed, split knowledge graph, from a file to memory-mapped arrays."""

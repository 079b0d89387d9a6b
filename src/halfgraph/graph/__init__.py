"""Knowledge graphs: import, types, splits, memory-mapped folders and their RDF store."""

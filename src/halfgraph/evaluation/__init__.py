"""How well: the paper's measures and the field's, by query type, with their spread."""

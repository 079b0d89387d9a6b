"""The use of it: exact answers first, then the likely ones."""

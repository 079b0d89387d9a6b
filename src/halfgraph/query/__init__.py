"""Queries as small trees with shared variables, one walk over them, and exact answers."""

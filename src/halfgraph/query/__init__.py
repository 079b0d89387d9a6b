"""What can be asked: queries as small graphs, walked in one way, with several meanings."""

"""The same queries in the user's words: SPARQL in and, where it cannot be read, why not."""

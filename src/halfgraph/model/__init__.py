"""The model: entity look-up, projection and intersection as modules, and the encoder that walks queries with them."""

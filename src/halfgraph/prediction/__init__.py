"""Prediction: a score for every entity, by links (a probability) or by embedding (a cosine)."""

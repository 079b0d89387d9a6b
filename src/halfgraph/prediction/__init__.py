"""Prediction: a score for every entity, by embedding, by links, or by an ensemble of both, with its confidence."""

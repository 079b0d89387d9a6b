"""Sampled and imported questions: sampling, negatives, files and their verification."""

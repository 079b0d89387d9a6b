"""Everything that gives entities a score: embeddings, links, the ensemble, calibration."""

"""Evaluation: the paper's measures and filtered ranks, tables, reports, and the paper's Table 2."""

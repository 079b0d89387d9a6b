"""Workloads: sampled and imported questions, with answers and negatives."""

"""Training: batches, losses, optimiser, loop, checkpoints and the run folder."""

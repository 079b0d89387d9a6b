"""How it is learnt: batches of fresh questions, the two phases and one loss, the loop, and the run folder."""

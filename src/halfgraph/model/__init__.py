"""What is learnt: the operators of the paper as modules, walked over queries."""

"""Compiled loops of training."""
# numba infers these types
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

import numpy as np

from halfgraph.model._kernels import compiled


@compiled
def adam_step(values, gradient, first, second, rates, size, scale, epsilon, begin, end):
    """Nothing; a step of Adam on some of the values, in one pass over memory; gradients are set to zero.

    The moments go by their rates towards the gradient and its square; `size` and `scale` make up for their beginning
    at zero.
    """
    of_first, of_second = rates
    values, gradient = values[begin:end], gradient[begin:end]
    first, second = first[begin:end], second[begin:end]
    for place in range(len(values)):
        slope = gradient[place]
        first[place] = mean = first[place] + of_first * (slope - first[place])
        second[place] = spread = second[place] + of_second * (slope * slope - second[place])
        values[place] -= size * mean / (np.sqrt(spread) * scale + epsilon)
        gradient[place] = 0

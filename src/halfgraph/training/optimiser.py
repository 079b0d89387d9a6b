"""Adam: in one pass for what changes as a whole, row by row for a table of which a step touches little."""

import numpy as np
import torch
from torch import Tensor, nn

from halfgraph.model.threads import cuts, in_threads
from halfgraph.training.kernels import adam_step


class Optimiser:
    """Adam over the parameters of a model; parameters with sparse gradients are updated by rows ("lazy" Adam)."""

    def __init__(self, parameters: dict[str, nn.Parameter], sparse: set[str]) -> None:
        self.parameters, self.sparse = parameters, sparse
        self.step_count = 0
        self.first = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
        self.second = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
        for name, parameter in parameters.items():
            if name not in sparse:
                parameter.grad = torch.zeros_like(parameter)  # kept: grouped products add to it in place

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Nothing; the parameters are moved and their gradients cleared."""
        self.step_count += 1
        for name, parameter in self.parameters.items():
            if parameter.grad is not None:
                adam = _row_adam if name in self.sparse else _whole_adam
                adam(parameter, self.first[name], self.second[name], self.step_count, learning_rate)

    def state(self) -> dict[str, Tensor]:
        """What is needed to go on."""
        moments = {f"first.{name}": tensor for name, tensor in self.first.items()}
        return moments | {f"second.{name}": tensor for name, tensor in self.second.items()}

    @torch.no_grad()
    def load(self, state: dict[str, Tensor], step_count: int) -> None:
        """Nothing; goes on from a state."""
        self.step_count = step_count
        for name in self.parameters:
            self.first[name].copy_(state[f"first.{name}"])
            self.second[name].copy_(state[f"second.{name}"])


BETAS = (0.9, 0.999)
EPSILON = 1e-8
NUMBERS = 128  # that count as a row


def _whole_adam(parameter: nn.Parameter, first: Tensor, second: Tensor, step: int, learning_rate: float) -> None:
    """Nothing; Adam on all of a parameter; its gradient is set to zero."""
    assert parameter.grad is not None
    rates = 1 - BETAS[0], 1 - BETAS[1]
    size, scale = learning_rate / (1 - BETAS[0] ** step), (1 - BETAS[1] ** step) ** -0.5
    if parameter.device.type == "cpu":
        numbers = np.dtype(str(parameter.dtype).removeprefix("torch.")).type
        with np.errstate(over="ignore"):  # a rate that is too large makes weights infinite, which the loop tells
            constants = (tuple(map(numbers, rates)), numbers(size), numbers(scale), numbers(EPSILON))
        flat = [tensor.view(-1) for tensor in (parameter.data, parameter.grad, first, second)]
        in_threads(
            adam_step,
            *flat,
            shares=[(*constants, *some) for some in cuts(parameter.numel(), parameter.numel() // NUMBERS)],
        )
        return
    first.lerp_(parameter.grad, rates[0])
    second.lerp_(parameter.grad.square(), rates[1])
    parameter.data.addcdiv_(first, second.sqrt().mul_(scale).add_(EPSILON), value=-size)
    parameter.grad.zero_()


def _row_adam(parameter: nn.Parameter, first: Tensor, second: Tensor, step: int, learning_rate: float) -> None:
    """Nothing; Adam on the rows that have a gradient, as if the others had not been asked; the gradient is gone."""
    # Departs from the paper's Adam: rows without a gradient would move on by their moments, which costs a pass over
    # the whole table at each step.
    assert parameter.grad is not None
    gradient = parameter.grad.coalesce()
    rows, values = gradient.indices()[0], gradient.values()
    mean = first.index_select(0, rows).lerp_(values, 1 - BETAS[0])
    spread = second.index_select(0, rows).mul_(BETAS[1]).addcmul_(values, values, value=1 - BETAS[1])
    first.index_copy_(0, rows, mean)
    second.index_copy_(0, rows, spread)
    size = learning_rate / (1 - BETAS[0] ** step)
    moved = mean.div_(spread.div_(1 - BETAS[1] ** step).sqrt_().add_(EPSILON)).mul_(-size)
    parameter.data.index_add_(0, rows, moved)
    parameter.grad = None

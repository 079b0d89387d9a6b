"""Adam: fused for what changes as a whole, row by row for a table of which a step touches little."""

import torch
from torch import Tensor, nn


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
        dense = [name for name in self.parameters if name not in self.sparse]
        _fused_adam(
            [self.parameters[name] for name in dense],
            [self.first[name] for name in dense],
            [self.second[name] for name in dense],
            self.step_count,
            learning_rate,
        )
        for name in self.sparse:
            parameter = self.parameters[name]
            if parameter.grad is not None:
                _row_adam(parameter, self.first[name], self.second[name], self.step_count, learning_rate)
                parameter.grad = None

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


def _fused_adam(
    parameters: list[nn.Parameter], first: list[Tensor], second: list[Tensor], step: int, learning_rate: float
) -> None:
    """Nothing; Adam in one pass over each parameter; gradients are set to zero."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    steps = [torch.tensor(float(step), device=parameter.device) for parameter in parameters]
    torch._fused_adam_(
        [parameter.data for parameter in parameters],
        gradients,
        first,
        second,
        [],
        steps,
        lr=learning_rate,
        beta1=BETAS[0],
        beta2=BETAS[1],
        weight_decay=0.0,
        eps=EPSILON,
        amsgrad=False,
        maximize=False,
    )
    for gradient in gradients:
        gradient.zero_()


def _row_adam(parameter: nn.Parameter, first: Tensor, second: Tensor, step: int, learning_rate: float) -> None:
    """Nothing; Adam on the rows that have a gradient, as if the others had not been asked."""
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

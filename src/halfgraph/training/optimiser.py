"""Adam, with updates of single rows for a large entity table."""

from typing import Any

import torch
from torch import Tensor, nn


class Optimiser:
    """Adam over a model's parameters; those with sparse gradients are updated in the rows that have a gradient."""

    # Departs from the paper's Adam for large tables: the other rows would move on by their moments, which would cost a
    # pass over the whole table at every step.
    def __init__(self, parameters: dict[str, nn.Parameter], sparse: set[str]) -> None:
        self.parameters, self.sparse = parameters, sparse
        self._dense = torch.optim.Adam([p for name, p in parameters.items() if name not in sparse], fused=True)
        self._by_row = torch.optim.SparseAdam([parameters[name] for name in sparse]) if sparse else None
        zeros = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
        self._clear_gradients()
        self.load({f"{moment}.{name}": zero for name, zero in zeros.items() for moment in ("first", "second")}, 0)

    def step(self, learning_rate: float) -> None:
        """Update the parameters and clear their gradients."""
        for name, parameter in self.parameters.items():
            if parameter.grad is None and name not in self.sparse:
                parameter.grad = torch.zeros_like(parameter)  # it still moves on by its moments
        for optimiser in filter(None, (self._dense, self._by_row)):
            optimiser.param_groups[0]["lr"] = learning_rate
            optimiser.step()
        self._clear_gradients()

    def _clear_gradients(self) -> None:
        for parameter in self.parameters.values():
            if parameter.dim() != 3:
                parameter.grad = None
            elif parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)  # one matrix a group: `grouped_matmul` adds in place
            else:
                parameter.grad.zero_()

    def state(self) -> dict[str, Tensor]:
        """Return the first and second moments by parameter, as `load` takes them."""
        states = {name: self._states(name)[parameter] for name, parameter in self.parameters.items()}
        first = {f"first.{name}": state["exp_avg"] for name, state in states.items()}
        return first | {f"second.{name}": state["exp_avg_sq"] for name, state in states.items()}

    def load(self, state: dict[str, Tensor], step_count: int) -> None:
        """Continue from the state that was saved after so many steps."""
        for name, parameter in self.parameters.items():
            moments = (state[f"{moment}.{name}"].to(parameter, copy=True) for moment in ("first", "second"))
            # SparseAdam counts in a number, the fused Adam in a tensor.
            step = step_count if name in self.sparse else torch.tensor(float(step_count), device=parameter.device)
            self._states(name)[parameter] = {"step": step, **dict(zip(("exp_avg", "exp_avg_sq"), moments, strict=True))}

    def _states(self, name: str) -> dict[Tensor, dict[str, Any]]:
        optimiser = self._by_row if name in self.sparse else self._dense
        assert optimiser is not None
        return optimiser.state

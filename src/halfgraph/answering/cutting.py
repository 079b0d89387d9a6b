"""LIMIT and OFFSET over known answers and then predicted ones."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Cut:
    """How many predicted answers to skip, and then how many to take."""

    skip: int
    take: int

    @classmethod
    def of(cls, known: int, limit: int | None, top: int) -> "Cut":
        """The cut after `known` answers from OFFSET on, which is negative where OFFSET goes beyond them."""
        skip = max(0, -known)
        left = top if limit is None else max(0, limit - max(0, known))
        return cls(skip, min(top, left))

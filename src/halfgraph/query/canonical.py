"""When two small graphs are the same: colours of their nodes, refined by their neighbours, as a text."""

import hashlib
from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True)
class Colouring:
    """Colours of the nodes of a query, refined by their neighbours until they tell the query from any other.

    Once all shared variables differ in colour the colours tell everything: from the target on, each node's colour says
    those below it, and a node with one user needs no telling apart. Shared variables that refinement leaves alike are
    told apart by marking one after another, each that could be first, and the least text is taken.
    """

    below: list[list[int]]
    above: list[list[int]]
    variables: list[int]

    def text(self, colours: list[str]) -> str:
        """The least text over the ways to tell alike variables apart."""
        colours = self.refined(colours)
        alike = self.alike(colours)
        if not alike:
            return self.as_is(colours)
        # Equal first-come texts mean that the query looks the same from both: one of them is enough.
        choices = {self.first_come(marked): marked for marked in (_marked(colours, place) for place in alike)}
        return min(map(self.text, choices.values()))

    def first_come(self, colours: list[str]) -> str:
        """The text when the first of those alike is marked each time."""
        colours = self.refined(colours)
        while alike := self.alike(colours):
            colours = self.refined(_marked(colours, alike[0]))
        return self.as_is(colours)

    def refined(self, colours: list[str]) -> list[str]:
        """The colours told by those below and above, round after round until no two more differ."""
        while True:
            old, colours = colours, list(colours)
            for place in self.variables:
                lower, upper = (sorted(old[other] for other in ends[place]) for ends in (self.below, self.above))
                colours[place] = digest(old[place], *lower, "|", *upper)
            if len(set(colours)) == len(set(old)):
                return colours

    def alike(self, colours: list[str]) -> list[int]:
        """The shared variables of the least colour that several have; none if all differ."""
        shared = [place for place in self.variables if len(self.above[place]) > 1]
        counts = Counter(colours[place] for place in shared)
        least = min((colour for colour, count in counts.items() if count > 1), default=None)
        return [place for place in shared if colours[place] == least]

    def as_is(self, colours: list[str]) -> str:
        """The text of the colours; the target's, the last, comes first."""
        return digest(colours[-1], *sorted(colours[place] for place in self.variables))


def _marked(colours: list[str], place: int) -> list[str]:
    """The colours with one made unlike any other."""
    return [*colours[:place], digest(colours[place], "this"), *colours[place + 1 :]]


def digest(*texts: str) -> str:
    """A short text that stands for several."""
    return hashlib.blake2b("\x00".join(texts).encode(), digest_size=12).hexdigest()

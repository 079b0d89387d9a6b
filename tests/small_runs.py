"""Small graphs with something to learn, and training runs of them that take a second."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from halfgraph.graph.folder import Graph
from halfgraph.graph.splitting import Shares
from halfgraph.model.architecture import Architecture
from halfgraph.model.encoder import Encoder
from halfgraph.query.structures import STRUCTURES, Structure
from halfgraph.training.batches import Batches, FromWorkload, OnTheFly, Source
from halfgraph.training.checkpoint import TrainingState
from halfgraph.training.loop import Budget, Progress, Validate, train
from halfgraph.training.recipe import Recipe
from halfgraph.training.run import new_encoder
from halfgraph.training.run_folder import METRICS, MODEL, STATE, load_tensors
from halfgraph.workload.folder import Workload
from halfgraph.workload.sampling import Questions, Sampler
from imported_graphs import made, tsv
from oracles import Named

SMALL = Recipe(
    one_edge=16, longer=4, neighbourhoods=2, type_negatives=6, other_negatives=6, learning_rate=0.05, hard_negatives=1
)
HINGE = replace(SMALL, loss="hinge", type_negatives=2, other_negatives=0)
TINY = Architecture(dim=4, heads=2)
TWENTY = Budget(steps=20, validations=5, patience=99, checkpoint_seconds=0.0)
FEW = tuple(structure for structure in STRUCTURES if structure.name in ("1-chain", "2-inter"))


def people(folder: Path, count: int = 80, seed: int = 0, split: str | None = "80/10/10") -> Graph:
    """A graph of people, cities, countries and languages, in which what is missing follows from the rest."""
    rng = random.Random(seed)
    triples: list[Named] = []
    homes = {city: f"country{city % 4}" for city in range(16)}
    triples += [(f"city{city}", "inCountry", country) for city, country in homes.items()]
    triples += [(f"language{number}", "spokenIn", f"country{number}") for number in range(4)]
    for person in range(count):
        city, name = rng.randrange(16), f"person{person}"
        triples += [(name, "livesIn", f"city{city}"), (name, "citizenOf", homes[city])]
        triples += [(name, "speaks", f"language{city % 4}"), (name, "roots", f"city{rng.choice(alike(city))}")]
    names = {name for head, _, tail in triples for name in (head, tail)}
    return typed(folder, triples, {name: name.rstrip("0123456789") for name in names}, split)


def alike(city: int) -> list[int]:
    """The cities of a city's country."""
    return [other for other in range(16) if other % 4 == city % 4]


def chance(folder: Path, entities: int = 150, triples: int = 1500, seed: int = 0) -> Graph:
    """A graph whose answers are drawn by lot, so that nothing held out follows from the rest."""
    rng = random.Random(seed)
    names = [f"e{number}" for number in range(entities)]
    drawn = {(rng.choice(names), f"r{rng.randrange(3)}", rng.choice(names)) for _ in range(triples)}
    return typed(folder, sorted(drawn), dict.fromkeys(names, "thing"), "80/15/5")


def typed(folder: Path, triples: Sequence[Named], types: dict[str, str], split: str | None) -> Graph:
    """The graph of some triples with the types of its entities, perhaps split."""
    path = folder / f"types{len(list(folder.iterdir()))}.tsv"
    path.write_text("".join(f"{name}\t{type_id}\n" for name, type_id in sorted(types.items())))
    return made(folder, tsv(triples), types_file=path, split=split and Shares.parse(split))


def training_questions(graph: Graph, shapes: Sequence[Structure] = STRUCTURES, count: int = 200) -> list[Questions]:
    """Questions on the training graph, with a negative and a hard negative each."""
    sampler = Sampler(graph.train, threads=1)
    return [sampler.draw(structure, count, 99).questions for structure in shapes]


@dataclass(frozen=True)
class Setting:
    """A training run that can be begun, interrupted and resumed."""

    graph: Graph
    recipe: Recipe = SMALL
    architecture: Architecture = TINY
    budget: Budget = TWENTY
    workload: Workload | None = None
    structures: tuple[Structure, ...] = FEW
    seed: int = 3

    def encoder(self) -> Encoder:
        """A model with fresh weights."""
        return new_encoder(self.architecture, self.graph, self.seed, "cpu")

    def batches(self) -> Batches:
        """Its batches."""
        on_the_fly = OnTheFly(Sampler(self.graph.train, self.recipe.uniform, threads=1))
        source: Source = on_the_fly if self.workload is None else FromWorkload(self.workload)
        return Batches(self.graph.train, source, self.recipe, self.seed, self.structures)

    def go(self, run: Path, progress: Progress = lambda *_: None, validate: Validate | None = None) -> TrainingState:
        """Where the run ended; it goes on where an earlier one stopped."""
        run.mkdir(exist_ok=True)
        return train(self.encoder(), self.batches(), self.budget, run, validate or any_score, progress)


def any_score(encoder: Encoder) -> dict[str, Any]:
    """A score that goes up and down with the weights, so that the best of a run is somewhere in it."""
    return {"score": float(torch.sin(1000 * encoder.entities.table.detach().sum())), "auc": 0.5}


@dataclass(frozen=True)
class Result:
    """Files of a run without its times: the bytes of the best weights, the last state, the metrics."""

    model: bytes
    state: dict[str, bytes]
    progress: dict[str, Any]
    metrics: list[dict[str, Any]]


TIMES = ("seconds", "warm", "questions_per_second")


def result(run: Path) -> Result:
    """Files of a run."""
    tensors, about = load_tensors(run / STATE)
    state = {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}
    progress = untimed(json.loads(about["progress"]))
    progress["history"] = [untimed(row) for row in progress["history"]]
    lines = (run / METRICS).read_text(encoding="utf-8").splitlines()
    return Result((run / MODEL).read_bytes(), state, progress, [untimed(json.loads(line)) for line in lines])


def untimed(row: dict[str, Any]) -> dict[str, Any]:
    """The row without times."""
    return {name: value for name, value in row.items() if name not in TIMES}


# Before a script: makes its link models small, so that a run of the demo takes seconds.
SMALL_LINKS = (
    "from halfgraph.training import link_training as links; links.EPOCHS, links.RANK, links.LEAST_RANK = 1, 8, 8"
)


class Killed(BaseException):
    """As sudden as kill -9: nothing in the house catches it."""


def killing_at(step: int) -> Progress:
    """Callback that kills a run after a step."""

    def kill(state: TrainingState, _: float) -> None:
        if state.step == step:
            raise Killed

    return kill

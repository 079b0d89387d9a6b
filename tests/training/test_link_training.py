"""Training of ComplEx: the loss by complex numbers, what it learns, and that it can be interrupted."""

from math import exp, log

import numpy as np
import pytest
import torch

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.model.complex import ComplEx
from halfgraph.training import link_training
from halfgraph.training.link_training import STATE, LinkBatch, LinkPairs, LinkTraining, train_links
from query_oracles import graph_of
from small_runs import Killed, chance, people


@pytest.fixture(autouse=True)
def few_and_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors and batches as small as the graphs."""
    for name, value in {"RANK": 16, "LEAST_RANK": 4, "PAIRS": 100, "UNIFORM": 50, "EPOCHS": 60}.items():
        monkeypatch.setattr(link_training, name, value)


def reciprocal_ranks(model: ComplEx, graph: KnowledgeGraph, held_out: KnowledgeGraph) -> float:
    """Mean reciprocal rank of held-out tails among the entities that are not known tails."""
    found = []
    for head, relation, tail in held_out.triples().tolist():
        scores = (model.tail_queries(torch.tensor([head]), relation) @ model.entities.t())[0]
        others = np.setdiff1d(np.arange(graph.entity_count), [*graph.tails_of(head, relation), tail])
        found.append(1 / (1 + int((scores[others] >= scores[tail]).sum())))
    return float(np.mean(found))


def by_chance(count: int) -> float:
    """Mean reciprocal rank of a tail drawn by lot among some entities."""
    return sum(1 / rank for rank in range(1, count + 1)) / count


def test_held_out_links_that_follow_from_the_rest_rank_far_above_chance(tmp_path):
    graph = people(tmp_path, count=120)
    model = train_links(graph.train, 0)
    assert reciprocal_ranks(model, graph.train, graph.test) > 10 * by_chance(graph.train.entity_count)


def test_the_rate_falls_from_first_to_last_also_before_the_number_of_batches_is_known(tmp_path, monkeypatch):
    rates, update = [], link_training._update
    monkeypatch.setattr(link_training, "_update", lambda *given: (rates.append(given[-1]), update(*given)))
    train_links(people(tmp_path, count=20).train, 0, seconds=1e6)
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == link_training.RATE
    assert link_training.LAST_RATE <= rates[-1] < 2 * link_training.LAST_RATE


def test_held_out_links_drawn_by_lot_rank_as_by_chance(tmp_path):
    graph = chance(tmp_path)
    model = train_links(graph.train, 0)
    assert reciprocal_ranks(model, graph.train, graph.train) > 10 * by_chance(graph.train.entity_count)  # by heart
    assert reciprocal_ranks(model, graph.train, graph.test) < 2 * by_chance(graph.train.entity_count)


def same(one: ComplEx, other: ComplEx) -> bool:
    return torch.equal(one.entities, other.entities) and torch.equal(one.relations, other.relations)


def test_the_same_seed_gives_the_same_model_and_another_seed_another_one(tmp_path):
    graph = people(tmp_path, count=20).train
    assert same(train_links(graph, 1), train_links(graph, 1))
    assert not same(train_links(graph, 1), train_links(graph, 2))


def killing_at(batch: int) -> link_training.Progress:
    done = 0

    def kill(_total: int, since: int) -> None:
        nonlocal done
        done += since
        if done == batch:
            raise Killed

    return kill


@pytest.mark.parametrize("batch", [1, 7, 30])
def test_resumed_training_equals_uninterrupted_training_bit_for_bit(tmp_path, monkeypatch, batch):
    monkeypatch.setattr(link_training, "CHECKPOINT_SECONDS", -1.0)
    monkeypatch.setattr(link_training, "EPOCHS", 10)
    monkeypatch.setattr(link_training, "PAIRS", 30)
    graph, state = people(tmp_path, count=40).train, tmp_path / STATE
    with pytest.raises(Killed):
        train_links(graph, 3, state=state, progress=killing_at(batch))
    begun = LinkTraining.start(graph, 3, state)
    assert begun.done == batch - 1  # the last checkpoint, or none yet
    left: list[int] = []
    resumed = train_links(graph, 3, state=state, progress=lambda _, done: left.append(done))
    assert same(resumed, train_links(graph, 3))
    assert begun.done + sum(left) == 10 * -(-len(LinkPairs.of(graph).heads) // 30)


def test_a_checkpoint_of_another_seed_or_graph_is_not_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(link_training, "EPOCHS", 2)
    graph, state = people(tmp_path, count=20).train, tmp_path / STATE
    LinkTraining(train_links(graph, 5), train_links(graph, 6), done=1, total=2).save(state, seed=5)
    assert LinkTraining.start(graph, 5, state).done == 1
    assert LinkTraining.start(graph, 6, state).done == 0
    assert LinkTraining.start(graph_of([(0, 0, 1)], (3,), 2), 5, state).done == 0


def test_the_loss_is_the_sampled_softmax_of_tails_and_of_relations_and_a_cubic_norm(tmp_path):
    graph = people(tmp_path, count=10, split=None).train
    rng = np.random.default_rng(0)
    pairs, shares = LinkPairs.of(graph), np.bincount(graph.tails, minlength=graph.entity_count) / len(graph.tails)
    batch = LinkBatch.draw(pairs, np.array([0, 5, 11, 30]), shares, rng)
    fresh = ComplEx.new(graph.entity_count, graph.relation_count, 3, torch.Generator().manual_seed(0))
    model = ComplEx(fresh.entities.double() * 300, fresh.relations.double() * 300)
    found = link_training._loss(batch, model.entities[batch.heads], model.relations, model.entities[batch.candidates])
    assert float(found) == pytest.approx(plain_loss(model, batch), rel=1e-6)


def plain_loss(model: ComplEx, batch: LinkBatch) -> float:
    """The loss with complex numbers, one edge after another."""
    entities, relations = (
        table[:, :3].numpy() + 1j * table[:, 3:].numpy() for table in (model.entities, model.relations)
    )

    def score(head: int, relation: int, tail: int) -> float:
        return float((entities[head] * relations[relation] * entities[tail].conj()).sum().real)

    def norm(vector: np.ndarray) -> float:
        return float((np.abs(vector) ** 3).sum())

    edges, tails, cubes, first = [], batch.candidates[batch.targets].tolist(), [], {}
    heads, own = batch.heads.tolist(), batch.relations.tolist()
    for row, tail in zip(batch.rows.tolist(), tails, strict=True):
        first.setdefault(row, tail)
        logits = [
            score(heads[row], own[row], candidate) - sampled
            for candidate, sampled in zip(batch.candidates.tolist(), batch.log_sampled.tolist(), strict=True)
        ]
        chosen = logits[batch.candidates.tolist().index(tail)]
        edges.append(log(sum(map(exp, logits))) - chosen)
        cubes.append(norm(entities[heads[row]]) + norm(relations[own[row]]) + norm(entities[tail]))
    between = []
    for row, tail in first.items():
        logits = [score(heads[row], relation, tail) for relation in range(len(relations))]
        between.append(log(sum(map(exp, logits))) - logits[own[row]])
    return float(np.mean(edges) + np.mean(between) + link_training.CUBES * np.mean(cubes))


def test_a_batch_has_the_edges_of_its_pairs_and_at_most_some_tails_of_a_hub(monkeypatch):
    monkeypatch.setattr(link_training, "TAILS", 4)
    graph = graph_of([*((0, 0, tail) for tail in range(1, 11)), (1, 2, 5), (2, 2, 6)], (12,), 4)
    pairs = LinkPairs.of(graph)
    chosen = np.flatnonzero(np.isin(pairs.heads, (0, 1)) & np.isin(pairs.relations, (0, 2)))
    seen = set()
    for seed in range(20):
        rows, tails = pairs.edges(chosen, np.random.default_rng(seed))
        assert np.bincount(rows).tolist() == [4, 1]
        assert (np.diff(rows) >= 0).all()
        for row, tail in zip(rows, tails, strict=True):
            assert tail in graph.tails_of(int(pairs.heads[chosen[row]]), int(pairs.relations[chosen[row]]))
        seen |= set(tails[rows == 0].tolist())
    assert seen == set(range(1, 11))


def test_candidates_have_the_probability_of_being_sampled():
    graph = graph_of([(head, 0, tail) for head in range(20) for tail in (20 + head % 3, 25)], (200,), 2)
    pairs, shares = LinkPairs.of(graph), np.bincount(graph.tails, minlength=200) / len(graph.tails)
    times, expected, count = np.zeros(200), np.zeros(200), 300
    for seed in range(count):
        rng = np.random.default_rng(seed)
        batch = LinkBatch.draw(pairs, rng.permutation(len(pairs.heads))[:10], shares, rng)
        assert batch.candidates.tolist() == sorted(set(batch.candidates.tolist()))
        times[batch.candidates] += 1
        expected[batch.candidates] = batch.log_sampled.exp()
    rare = shares == 0  # for frequent tails the expected number of draws stands for the probability
    assert (times / count)[rare].mean() == pytest.approx(expected[rare].mean(), rel=0.2)
    assert (expected <= 1.0 + 1e-6).all()
    assert expected[25] == pytest.approx(1.0)


def test_a_time_limit_is_turned_into_batches_and_at_least_a_few_epochs_are_done(tmp_path):
    graph = people(tmp_path, count=20).train
    per_epoch = -(-len(LinkPairs.of(graph).heads) // 100)
    for seconds, epochs in ((0.0, link_training.FEWEST_EPOCHS), (1e6, link_training.EPOCHS)):
        done: list[int] = []
        train_links(graph, 0, seconds=seconds, progress=lambda _, since, done=done: done.append(since))
        assert sum(done) == epochs * per_epoch


def test_a_time_limit_gives_as_many_batches_if_a_run_is_resumed_before_it_was_turned_into_batches(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(link_training, "PAIRS", 10)
    graph, state = people(tmp_path, count=20).train, tmp_path / STATE
    per_epoch = -(-len(LinkPairs.of(graph).heads) // 10)
    seconds, take = 5 * per_epoch + 1, LinkTraining.step  # for five epochs, at a batch a second
    clock = [0.0]
    monkeypatch.setattr(link_training.time, "monotonic", lambda: clock[0])

    def step(training: LinkTraining, batch: LinkBatch) -> None:
        clock[0] += 1.0
        take(training, batch)

    monkeypatch.setattr(LinkTraining, "step", step)
    early = LinkTraining.start(graph, 0, None)
    early.done = per_epoch - 1  # a minute was over before the pace was known
    early.save(state, 0)
    totals: list[int] = []
    train_links(graph, 0, seconds=seconds, state=state, progress=lambda total, _: totals.append(total))
    assert totals[-1] == pytest.approx(seconds, abs=1)


def test_a_large_graph_has_shorter_vectors(monkeypatch):
    graph = graph_of([(0, 0, 1)], (50,), 2)
    assert LinkTraining.start(graph, 0, None).model.entities.shape == (50, 2 * link_training.RANK)
    monkeypatch.setattr(link_training, "TABLE", 50 * 2 * 10)
    assert LinkTraining.start(graph, 0, None).model.entities.shape == (50, 2 * 10)
    monkeypatch.setattr(link_training, "TABLE", 50)
    assert LinkTraining.start(graph, 0, None).model.entities.shape == (50, 2 * link_training.LEAST_RANK)


def test_a_graph_without_triples_has_the_initial_model():
    graph = graph_of([], (3,), 2)
    assert same(train_links(graph, 4), LinkTraining.start(graph, 4, None).model)

"""Losses: the paper's hinge, and a cross-entropy over shared negatives. Both training phases use the same code."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from halfgraph.model.encoder import Encoder, cosine
from halfgraph.model.entities import unit
from halfgraph.training.batches import Batch
from halfgraph.training.links import Links, link_losses
from halfgraph.training.recipe import Recipe

MASKED = -1e9  # logit of a candidate that does not count


def batch_loss(encoder: Encoder, batch: Batch, recipe: Recipe) -> Tensor:
    """Return the weighted sum of the losses of all structures, neighbourhoods included (eq. 13)."""
    queries = [questions.structure.fill(questions.anchors, questions.relations) for questions in batch.questions]
    link_queries = [] if batch.links is None else [batch.links.query]
    embeddings = torch.cat(encoder.encode([*queries, *link_queries]))  # (n + links, d); of a neighbourhood: eq. 9
    questions, links = unit(embeddings).tensor_split([len(batch)])
    losses = pair_losses(encoder, batch, questions, recipe)  # eqs. 10 and 12
    if recipe.loss == "softmax":
        losses = losses + softmax_losses(encoder, batch, questions, recipe)
    total = (torch.from_numpy(batch.weights).to(losses) * losses).sum()  # eq. 13
    if batch.links is None:
        return total
    candidates = _link_candidates(encoder, batch.links)
    return total + recipe.link_weight * link_losses(batch.links, links, candidates, recipe.temperature).mean()


def _link_candidates(encoder: Encoder, links: Links) -> Tensor:
    """Return the entities among which the tails of links are predicted: (candidates, d)."""
    if links.candidates is not None:
        return encoder.entities(_ids(links.candidates, encoder))
    if encoder.entities.sparse:  # a look-up, because its gradient must be sparse
        return encoder.entities(torch.arange(len(encoder.entities.table), device=encoder.device))
    return encoder.entities.embeddings()


def pair_losses(encoder: Encoder, batch: Batch, queries: Tensor, recipe: Recipe) -> Tensor:
    """Return the losses of each question's own negatives and hard negatives: (n,), 0 for a question without any.

    With the hinge, max(0, margin - cos(q, a) + cos(q, a-)) (eqs. 10 and 12). With the cross-entropy, whose other
    negatives are shared, a soft hinge without margin of the hard negatives, its own and those of its whole structure.
    """
    sets = ((1.0, batch.negatives), (recipe.hard_weight if recipe.hard_negatives else 0.0, batch.hard_negatives))
    used = [(weight, negatives) for weight, negatives in sets if weight and negatives.shape[1]]
    if not used:
        return queries.new_zeros(len(queries))
    negatives = np.concatenate([ids for _, ids in used], axis=1)  # (n, negatives), -1: none
    ids = np.concatenate([batch.answers[:, None], np.maximum(negatives, 0)], axis=1)
    entities = encoder.entities(_ids(ids.ravel(), encoder)).view(*ids.shape, -1)
    right, wrong = cosine(queries, entities).split([1, negatives.shape[1]], dim=1)
    # Departs from the paper: the mean over the negatives, not the sum, so that the weight of a question does not depend
    # on how many negatives it has.
    means = np.concatenate([weight * _mean_weights(ids) for weight, ids in used], axis=1)
    weights = torch.from_numpy(means).to(queries)
    if recipe.loss == "hinge":
        return (F.relu(recipe.margin + wrong - right) * weights).sum(dim=1)  # eqs. 10 and 12
    losses = (F.softplus((wrong - right) / recipe.temperature) * weights).sum(dim=1)
    if not recipe.hard_pooled_weight:
        return losses
    exists = torch.from_numpy(negatives >= 0).to(queries.device)  # hard ones only: the others are shared
    level = torch.logsumexp((wrong / recipe.temperature).masked_fill(~exists, MASKED), dim=1)
    level = level - exists.sum(dim=1).clamp(min=1).to(level).log()
    pooled = pooled_losses(batch, right.squeeze(1) / recipe.temperature, level)
    return losses + recipe.hard_weight * recipe.hard_pooled_weight * pooled


def _mean_weights(negatives: np.ndarray) -> np.ndarray:
    """Return weights (n, negatives) that make a sum over existing negatives a mean."""
    exists = negatives >= 0
    weights: np.ndarray = exists / np.maximum(exists.sum(axis=1, keepdims=True), 1)
    return weights


def softmax_losses(encoder: Encoder, batch: Batch, queries: Tensor, recipe: Recipe) -> Tensor:
    """Return the cross-entropy of each answer against shared negatives of its type and of any type: (n,)."""
    assert batch.shared is not None
    shared = batch.shared
    order = np.argsort(shared.groups, kind="stable")  # questions that share negatives next to each other
    sizes = np.bincount(shared.groups, minlength=len(shared.of_type)).tolist()
    rows = torch.from_numpy(order).to(queries.device)
    queries = queries.index_select(0, rows) / recipe.temperature  # cosines are logits from here on
    ids = [batch.answers[order], shared.of_any, *shared.of_type]
    entities = encoder.entities(_ids(np.concatenate(ids), encoder))  # one look-up: its gradient is a whole table
    answers, of_any, *of_types = entities.split([len(column) for column in ids])
    known = torch.from_numpy(shared.known[order]).to(queries.device)
    totals, levels = [], []
    groups = (part.split(sizes) for part in (queries, cosine(queries, of_any), known))
    for group, any_logits, mask, of_type in zip(*groups, of_types, strict=True):
        type_mask, any_mask = mask[:, : len(of_type)], mask[:, len(of_type) :][:, : len(of_any)]
        total = _masked_logsumexp(cosine(group, of_type), type_mask)
        totals.append(torch.logaddexp(total, _masked_logsumexp(any_logits, any_mask)))
        levels.append(total - math.log(max(len(of_type), 1)))
    sorted_parts = (cosine(queries, answers.unsqueeze(1)).squeeze(1), torch.cat(totals), torch.cat(levels))
    right, wrong, level = (torch.empty_like(part).index_copy(0, rows, part) for part in sorted_parts)
    losses = F.softplus(wrong - right)
    return losses + recipe.pooled_weight * pooled_losses(batch, right, level) if recipe.pooled_weight else losses


def _masked_logsumexp(logits: Tensor, mask: Tensor) -> Tensor:
    """Return the log of the summed exponentials of the logits that are not masked: (n, m), (n, m) -> (n,)."""
    return torch.logsumexp(logits.masked_fill(mask, MASKED), dim=1)


def pooled_losses(batch: Batch, answer: Tensor, level: Tensor) -> Tensor:
    """Return the cross-entropy of each answer's logit against the negatives of all questions of its structure: (n,).

    `level` (n,) is the log of the mean exponential of each question's negative logits. A softmax over the candidates of
    one question leaves the absolute level of its scores open. This term makes scores of different questions comparable,
    which the paper's AUC needs: it pools the questions of a structure.
    """
    sizes = [len(questions) for questions in batch.questions]
    pairs = zip(answer.split(sizes), level.split(sizes), strict=True)
    return torch.cat([F.softplus(torch.logsumexp(wrong, 0) - math.log(len(wrong)) - right) for right, wrong in pairs])


def _ids(ids: np.ndarray, encoder: Encoder) -> Tensor:
    return torch.from_numpy(ids.astype(np.int64)).to(encoder.device)

"""The losses: the paper's margin, and a cross-entropy over shared negatives; both phases go through the same code."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from halfgraph.model.encoder import Encoder
from halfgraph.model.units import cosines, normalised
from halfgraph.training.batches import Batch
from halfgraph.training.links import Links, link_losses
from halfgraph.training.recipe import Recipe

NEVER = -1e9  # the score of a candidate that does not count


def batch_loss(encoder: Encoder, batch: Batch, recipe: Recipe) -> Tensor:
    """The weighted sum of the losses of all structures, neighbourhoods included (eq. 13)."""
    queries = [some.structure.fill(some.anchors, some.relations) for some in batch.questions]
    links = [] if batch.links is None else [batch.links.query]
    walked = normalised(torch.cat(encoder.encode([*queries, *links])))  # (n, d); a neighbourhood's is eq. 9
    vectors = walked[: len(batch)]
    weights = torch.from_numpy(batch.weights).to(vectors)
    losses = pair_losses(encoder, batch, vectors, recipe)
    if recipe.loss == "softmax":
        losses = losses + softmax_losses(encoder, batch, vectors, recipe)
    total = (weights * losses).sum()
    if batch.links is None:
        return total
    own = link_losses(batch.links, walked[len(batch) :], _candidates(encoder, batch.links), recipe.temperature)
    return total + recipe.link_weight * own.mean()


def _candidates(encoder: Encoder, links: Links) -> Tensor:
    """The entities that the tails of links are told from: (candidates, d)."""
    if links.candidates is not None:
        return encoder.entities(_ids(links.candidates, encoder))
    if encoder.entities.sparse:  # its gradient is by rows, whichever they are
        return encoder.entities(torch.arange(len(encoder.entities.table), device=encoder.device))
    return encoder.entities.every()


def pair_losses(encoder: Encoder, batch: Batch, vectors: Tensor, recipe: Recipe) -> Tensor:
    """The losses of a question's own negatives and hard ones: (n,), zero where its structure has none.

    With the hinge max(0, margin - cos(q, a) + cos(q, a-)) (eqs. 10 and 12). Beside the cross-entropy, which has shared
    negatives, a soft hinge without a margin: how likely a hard negative is taken for the answer, its question's own or
    any of its structure.
    """
    sorts = ((1.0, batch.negatives), (recipe.hard_weight if recipe.hard_negatives else 0.0, batch.hard_negatives))
    used = [(weight, negatives) for weight, negatives in sorts if weight and negatives.shape[1]]
    if not used:
        return vectors.new_zeros(len(vectors))
    every = np.concatenate([negatives for _, negatives in used], axis=1)  # (n, negatives), -1 where there is none
    # One look-up for all: the gradient of each is as large as the table.
    ids = np.concatenate([batch.answers[:, None], np.maximum(every, 0)], axis=1)
    looked_up = encoder.entities(_ids(ids.ravel(), encoder)).view(*ids.shape, -1)
    right, wrong = cosines(vectors, looked_up).split([1, every.shape[1]], dim=1)
    # Departs from the paper: the mean over the negatives, not the sum, so that a question's weight does not grow with
    # how many of them are found.
    shares = np.concatenate([weight * _shares(negatives) for weight, negatives in used], axis=1)
    counted = torch.from_numpy(shares).to(vectors)
    if recipe.loss == "hinge":
        return (F.relu(recipe.margin + wrong - right) * counted).sum(dim=1)
    losses = (F.softplus((wrong - right) / recipe.temperature) * counted).sum(dim=1)
    if not recipe.hard_pooled_weight:
        return losses
    there = torch.from_numpy(every >= 0).to(vectors.device)  # hard ones alone: all others are shared
    level = torch.logsumexp((wrong / recipe.temperature).masked_fill(~there, NEVER), dim=1)
    level = level - there.sum(dim=1).clamp(min=1).to(level).log()  # one without any counts as nothing in the mean
    pooled = pooled_losses(batch, right.squeeze(1) / recipe.temperature, level)
    return losses + recipe.hard_weight * recipe.hard_pooled_weight * pooled


def _shares(negatives: np.ndarray) -> np.ndarray:
    """What each negative counts: one over how many a question has, or nothing where there is none."""
    there = negatives >= 0
    shares: np.ndarray = there / np.maximum(there.sum(axis=1, keepdims=True), 1)
    return shares


def softmax_losses(encoder: Encoder, batch: Batch, vectors: Tensor, recipe: Recipe) -> Tensor:
    """The cross-entropy of the answer against the candidates of its type and of any: (n,)."""
    order = np.argsort(batch.groups, kind="stable")  # one product for the questions that share candidates
    sizes = np.bincount(batch.groups, minlength=len(batch.candidates)).tolist()
    place = torch.from_numpy(order).to(vectors.device)
    asked = vectors.index_select(0, place)
    looked_up = [batch.answers[order], batch.others, *batch.candidates]
    rows = encoder.entities(_ids(np.concatenate(looked_up), encoder))
    answers, others, *candidates = rows.split([len(some) for some in looked_up])
    right = (asked * answers).sum(dim=-1, keepdim=True)
    known = torch.from_numpy(batch.known[order]).to(vectors.device)
    pieces = (part.split(sizes) for part in (asked, right, asked @ others.t(), known))
    logits_right, logits_wrong, levels = [], [], []
    for some, score, of_any, mask, wrong in zip(*pieces, candidates, strict=True):
        scores = torch.cat([some @ wrong.t(), of_any], dim=1) / recipe.temperature
        scores = scores.masked_fill(mask[:, : scores.shape[1]], NEVER)
        logits_right.append(score.squeeze(1) / recipe.temperature)
        logits_wrong.append(torch.logsumexp(scores, dim=1))
        levels.append(torch.logsumexp(scores[:, : len(wrong)], dim=1) - math.log(max(len(wrong), 1)))
    answer, wrong = torch.cat(logits_right), torch.cat(logits_wrong)
    losses = torch.empty_like(answer).index_copy(0, place, F.softplus(wrong - answer))
    if not recipe.pooled_weight:
        return losses
    answer, level = (torch.empty_like(answer).index_copy(0, place, part) for part in (answer, torch.cat(levels)))
    return losses + recipe.pooled_weight * pooled_losses(batch, answer, level)


def pooled_losses(batch: Batch, answer: Tensor, level: Tensor) -> Tensor:
    """The cross-entropy of each answer's logit against the wrong ones of all questions of its structure: (n,).

    A softmax over one question's candidates leaves open how high its scores are as a whole. This makes scores of
    different questions comparable, which the paper's AUC asks for: it pools the questions of a type.
    """
    sizes = [len(some) for some in batch.questions]
    pieces = zip(answer.split(sizes), level.split(sizes), strict=True)
    pooled = [F.softplus(torch.logsumexp(wrong, 0) - math.log(len(wrong)) - right) for right, wrong in pieces]
    return torch.cat(pooled)


def _ids(ids: np.ndarray, encoder: Encoder) -> Tensor:
    return torch.from_numpy(ids.astype(np.int64)).to(encoder.device)

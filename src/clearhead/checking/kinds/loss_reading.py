"""What a loss does, read from its gradient: which target each position is scored on, how much it counts, and by which formula.

For cross-entropy d loss / d z[b,t] = w[b,t] (softmax(z[b,t]) - y[b,t]), y the target as a distribution: so w and y can be read from
the gradient at each position by itself, whatever the code looks like.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from clearhead.checking.kinds.loss_calling import LossCase

NEAR = 1e-4
"""How far numbers may be apart, relative: losses are often computed in float32."""


class Formula(NamedTuple):
    """How the gradient of each position is made.

    Args:
        name: "once" for cross-entropy, "twice" for that of a softmax, "no-log" for a negative probability; "" for none of them.
        weights: w (B,T), 0 where a position does not count.
        smoothing: the mass that is spread evenly.
    """

    name: str
    weights: Tensor
    smoothing: float = 0.0


def logits_of(case: LossCase, rows: int, length: int, seed: int = 0) -> Tensor:
    """Random logits (B,T,V) in which no class is out of reach."""
    drawn = torch.Generator().manual_seed(seed)
    return (1.5 * torch.randn(rows, length, case.vocab, generator=drawn, dtype=torch.float64)).to(case.dtype)


def gradient(case: LossCase, logits: Tensor, ids: Tensor, options: Mapping[str, Any] | None = None) -> Tensor:
    """d loss / d logits (B,T,V), by differences where the code gives no gradient."""
    z = logits.clone().requires_grad_()
    with torch.enable_grad():
        loss = case.run(z, ids, options or {})
        if loss.requires_grad:
            (found,) = torch.autograd.grad(loss, z)
            return found.detach().double()
    return _differences(case, logits, ids, options or {})


def _differences(case: LossCase, logits: Tensor, ids: Tensor, options: Mapping[str, Any]) -> Tensor:
    step = 1e-5 if logits.dtype == torch.float64 else 1e-2
    found = torch.zeros(logits.numel(), dtype=torch.float64)
    if logits.numel() > 4096:
        return found.view(logits.shape)
    for place in range(logits.numel()):
        nudge = torch.zeros_like(logits).view(-1).index_fill(0, torch.tensor(place), step).view(logits.shape)
        above, below = (float(case.run(logits + sign * nudge, ids, options)) for sign in (1, -1))
        found[place] = (above - below) / (2 * step)
    return found.view(logits.shape)


def counted(found: Tensor) -> Tensor:
    """Which positions (B,T) count at all."""
    sizes: Tensor = torch.linalg.vector_norm(found, dim=-1)
    return sizes > 1e-6 * sizes.max().clamp_min(1e-30)


def offsets(case: LossCase, logits: Tensor, ids: Tensor) -> Counter[int]:
    """How far ahead the target of a position is: how often each distance was seen.

    A target is changed, and the positions are looked for whose gradient takes another direction.
    """
    before, seen = gradient(case, logits, ids), Counter[int]()
    for place in range(ids.shape[1]):
        changed = ids.clone()
        changed[:, place] = 1 + ids[:, place] % (case.vocab - 1)
        after = gradient(case, logits, changed)
        both = counted(before) & counted(after)
        turned = (_direction(before) - _direction(after)).abs().amax(-1) > 1e-3
        for at in (both & turned).any(0).nonzero().flatten().tolist():
            seen[place - at] += 1
    return seen


def _direction(found: Tensor) -> Tensor:
    size: Tensor = torch.linalg.vector_norm(found, dim=-1, keepdim=True)
    return found / size.clamp_min(1e-30)


def aligned(ids: Tensor, shift: int) -> Tensor:
    """Of each position (B,T) the target, `shift` places ahead; -1 where there is none."""
    length = ids.shape[1]
    places = torch.arange(length) + shift
    inside = (places >= 0) & (places < length)
    return torch.where(inside, ids[:, places.clamp(0, length - 1)], -1)


def formula(found: Tensor, logits: Tensor, ids: Tensor, shift: int) -> Formula:
    """The formula whose gradient this is, and what each position weighs in it.

    Args:
        found: the gradient (B,T,V).
        logits: (B,T,V).
        ids: (B,T), with ids below V where a position counts.
        shift: how far ahead the targets are.
    """
    p, targets = logits.double().softmax(-1), aligned(ids, shift)
    vocab = logits.shape[-1]
    real = counted(found)
    usable = real & (targets >= 0) & (targets < vocab)
    weights = torch.zeros(found.shape[:2], dtype=torch.float64)
    if not usable.any():
        return Formula("", weights)
    one = torch.nn.functional.one_hot(targets.clamp(0, vocab - 1), vocab).double()
    flat = torch.full_like(p, 1 / vocab)
    once, left = _fitted(found, (p, one, flat))
    # Where the target is the only thing known, the uniform part and the probabilities must carry as much as it does.
    if bool((left[usable] < NEAR).all()):
        weights[real] = (-once[..., 1] - once[..., 2])[real]
        smoothing = float((-once[..., 2] / weights.where(usable, torch.ones_like(weights)))[usable].median())
        # Without the logarithm the gradient is that of cross-entropy, times the target's own probability.
        share = (weights / p.gather(-1, targets.clamp(0, vocab - 1).unsqueeze(-1)).squeeze(-1))[usable]
        uneven = _spread(weights[usable]) > NEAR and _spread(share) < NEAR
        return Formula("no-log" if uneven else "once", weights, smoothing if smoothing > NEAR else 0.0)
    twice, left = _fitted(found, (_through(p, p.softmax(-1)), _through(p, one)))
    if bool((left[usable] < NEAR).all()):
        weights[real] = -twice[..., 1][real]
        return Formula("twice", weights)
    return Formula("", weights)


def _spread(values: Tensor) -> float:
    """How far values are apart, beside their size."""
    return float((values.max() - values.min()) / values.abs().max())


def _through(p: Tensor, v: Tensor) -> Tensor:
    """v carried back through a softmax with probabilities p."""
    return p * (v - (p * v).sum(-1, keepdim=True))


def _fitted(found: Tensor, columns: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """The coefficients (B,T,n) of the columns that come nearest, and what is left beside the size of the gradient (B,T)."""
    matrix = torch.stack(columns, -1)
    normal = matrix.mT @ matrix
    coefficients = torch.linalg.solve(normal, matrix.mT @ found.unsqueeze(-1))
    left = (matrix @ coefficients).squeeze(-1) - found
    return coefficients.squeeze(-1), left.norm(dim=-1) / found.norm(dim=-1).clamp_min(1e-30)

"""Attention that never holds the T×S matrix: the online softmax over blocks of keys, as in FlashAttention.

A softmax seems to need a whole row of scores before it can begin, for its maximum and its sum. It does not: both can be
kept up to date while keys arrive, and what was summed under an older maximum is corrected by one factor. For each query
the forward keeps the largest score m, the sum l and the weighted values o, and for each block of keys j:

    x_j = cap tanh(scale q·k_j / cap)              the score; without a cap, scale q·k_j
    s_j = x_j + bias_j, and -∞ where the query must not look
    m'  = max(m, max_j s_j)
    l'  = l e^(m - m') + Σ_j e^(s_j - m')          as if m' had been known from the beginning
    o'  = o e^(m - m') + Σ_j e^(s_j - m') z_j v_j  z: dropout, 0 or 1 / (1 - p); l sums the weights before it

    output = o / l,   L = m + ln l = ln Σ_s e^(s_s)

A sink is a key that came first and holds no value: m = sink, l = 1, o = 0. Without one m = -∞ and l = 0.

The backward keeps no block either. From L it computes each weight again, w_ts = e^(s_ts - L_t), and with the gradient g of
the output:

    dv_s  = Σ_t w_ts z_ts g_t
    dw_ts = z_ts g_t·v_s
    ds_ts = w_ts (dw_ts - D_t),   D_t = Σ_s w_ts dw_ts = g_t·output_t, known before the first block
    dx_ts = ds_ts (1 - (x_ts / cap)²)              without a cap, ds_ts
    dq_t  = scale Σ_s dx_ts k_s,   dk_s = scale Σ_t dx_ts q_t
    dbias = ds, summed where the bias was spread;   dsink = -Σ_t e^(sink - L_t) D_t, as its value is 0

Blocks that the mask hides entirely are computed like all others: this is about memory, the arithmetic is that of `attend_visible`
(and in the backward q kᵀ once more).

Source: Milakov and Gimelshein 2018 (arXiv:1805.02867) for the running maximum and sum; Rabe and Staats 2021
(arXiv:2112.05682) for attention in blocks; Dao et al. 2022 (arXiv:2205.14135) for the backward.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from clearhead.ops.heads import repeat_heads
from clearhead.ops.masks import Mask
from clearhead.ops.softmax import at_least_float32
from clearhead.ops.tap import NO_TAP, Ran, Tap


def attend_blockwise(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    visible: Mask,
    *,
    bias: Tensor | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
    tap: Tap = NO_TAP,
    block: int = 64,
    cap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """As `attend_visible`, `attend_capped` and `attend_with_sinks`, looking at `block` keys at a time.

    Shapes, result and the first arguments are those of `Attend`; all runs in the wider of float32 and the type of `q`, also
    under autocast. There are no weights to show to a tap, which may look again. The dropout is drawn from a seed that comes from PyTorch's global
    generator, so that the backward can draw it again.

    Args:
        q: queries (B,H,T,d).
        k: keys (B,K,S,d).
        v: values (B,K,S,d_v).
        visible: who may look at whom; asked for the keys of one block at a time.
        bias: added to the scores, broadcasts to (B,H,T,S).
        scale: multiplies QKᵀ; 1/√d if not given.
        dropout: probability of dropping a weight after the softmax.
        tap: is told what the kernel was given.
        block: how many keys at a time; memory grows with T·block.
        cap: squeezes the scaled scores into (-cap, cap), before bias and mask.
        sinks: a further score for each head, (H), that takes weight and holds no value.

    Raises:
        ValueError: if `block` is less than 1, or mask or bias do not fit the scores (a block could not tell).
        RuntimeError: if a derivative of its gradient is asked for.
    """
    if block < 1:
        raise ValueError(f"a block of {block} keys holds nothing; it must be at least 1")
    scores = (*q.shape[:-1], k.shape[-2])
    # On `meta` a matrix has a shape and no numbers.
    _check_fits("mask", visible.matrix(torch.device("meta")).shape, scores)
    _check_fits("bias", () if bias is None else bias.shape, scores)
    seed = int(torch.randint(2**63 - 1, ())) if dropout else None
    how = _How(visible, q.shape[-1] ** -0.5 if scale is None else scale, cap, dropout, seed, block)
    mixed: Tensor = _Blockwise.apply(q, k, v, bias, sinks, how)[0]  # type: ignore[no-untyped-call]
    return tap.attended("weights", Ran(mixed, q, k, v, visible, bias, scale, dropout, cap, sinks)).mixed


def _check_fits(name: str, shape: Sequence[int], scores: Sequence[int]) -> None:
    """Refuse what does not broadcast to the scores: a part of it might."""
    fits = all(size in (1, whole) for size, whole in zip(reversed(shape), reversed(scores), strict=False))
    if len(shape) > len(scores) or not fits:
        raise ValueError(f"a {name} of shape {tuple(shape)} does not fit scores of shape {tuple(scores)}")


@dataclass(frozen=True)
class _How:
    """What the forward and the backward must do alike, besides the tensors."""

    visible: Mask
    scale: float
    cap: float | None
    dropout: float
    seed: int | None
    block: int


@dataclass(frozen=True)
class _Block:
    """The scores of some of the keys.

    Args:
        start: the first of the keys.
        stop: the key after the last.
        keys: (B,H,b,d), one set for each query head.
        capped: x, the scores before bias and mask, (B,H,T,b).
        scores: s, after them.
        kept: z, what dropout makes of the weights; None without dropout.
    """

    start: int
    stop: int
    keys: Tensor
    capped: Tensor
    scores: Tensor
    kept: Tensor | None


def _blocks(q: Tensor, k: Tensor, bias: Tensor | None, how: _How) -> Iterator[_Block]:
    """The scores, some keys at a time, and with the same dropout each time."""
    # Nothing is drawn on "meta", which has no generator of its own.
    generator = None if how.seed is None or q.is_meta else torch.Generator(q.device).manual_seed(how.seed)
    for start in range(0, k.shape[-2], how.block):
        stop = min(start + how.block, k.shape[-2])
        keys = _lift(k, start, stop, q)
        capped = q @ keys.mT * how.scale
        capped = capped if how.cap is None else how.cap * torch.tanh(capped / how.cap)
        scores = capped if bias is None else capped + _columns(bias, start, stop).to(q.dtype)
        scores = scores.masked_fill(~how.visible.of_keys(start, stop).matrix(q.device), -torch.inf)
        kept = None
        if generator is not None:
            grown = 0.0 if how.dropout == 1 else 1 / (1 - how.dropout)
            kept = torch.empty_like(scores).bernoulli_(1 - how.dropout, generator=generator) * grown
        yield _Block(start, stop, keys, capped, scores, kept)


class _Blockwise(torch.autograd.Function):
    """The equations at the top of this file: q, k, v, bias, sinks -> output (B,H,T,d_v), L (B,H,T,1)."""

    @staticmethod
    def forward(  # noqa: PLR0917 - autograd hands its tensors over by place
        q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, sinks: Tensor | None, how: _How
    ) -> tuple[Tensor, Tensor]:
        with _no_autocast(q.device):
            q = q.to(at_least_float32(q.dtype))
            largest = q.new_full((*q.shape[:-1], 1), -torch.inf)
            if sinks is not None:
                largest = largest.maximum(sinks[:, None, None].to(q.dtype))
            total = (largest > -torch.inf).to(q.dtype)
            mixed = q.new_zeros(*q.shape[:-1], v.shape[-1])
            for part in _blocks(q, k, bias, how):
                larger = largest.maximum(part.scores.amax(-1, keepdim=True))
                # A query that has seen nothing yet has the maximum -∞; 0 in its place avoids -∞ - -∞ = NaN.
                shift = _finite(larger)
                weights, older = torch.exp(part.scores - shift), torch.exp(largest - shift)
                total = total * older + weights.sum(-1, keepdim=True)
                mixed = mixed * older + _drop(weights, part) @ _lift(v, part.start, part.stop, q)
                largest = larger
            # Where nothing was seen, 0/1 = 0 and L = -∞.
            return (mixed / total.masked_fill(total == 0, 1.0)).to(v.dtype), largest + torch.log(total)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        # All that is kept grows with T or with S; only a bias is as large as it was given.
        ctx.save_for_backward(*inputs[:5], *output)
        ctx.mark_non_differentiable(output[1])
        ctx.how = inputs[5]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # create_graph=True; what is written in place below has no derivative to speak of
            raise RuntimeError("attend_blockwise has no second derivative; attend_visible has all of them")
        q, k, v, bias, sinks, output, log_total = ctx.saved_tensors
        how: _How = ctx.how
        with _no_autocast(q.device):
            wide = q.to(log_total.dtype)
            gradient = gradient.to(wide.dtype)
            inner = (gradient * output).sum(-1, keepdim=True)  # D, from the output as it was handed out
            shift = _finite(log_total)
            dq, dk, dv = torch.zeros_like(wide), torch.empty_like(k), torch.empty_like(v)
            dbias = torch.zeros_like(bias, dtype=wide.dtype) if ctx.needs_input_grad[3] else None
            for part in _blocks(wide, k, bias, how):
                weights = torch.exp(part.scores - shift)
                values = _lift(v, part.start, part.stop, wide)
                dv[..., part.start : part.stop, :] = _gather(_drop(weights, part).mT @ gradient, v)
                dscores = weights * (_drop(gradient @ values.mT, part) - inner)
                if dbias is not None:
                    spread = _columns(dbias, part.start, part.stop)
                    spread += dscores.sum_to_size(spread.shape)
                if how.cap is not None:
                    dscores = dscores * (1 - (part.capped / how.cap) ** 2)
                dq += dscores @ part.keys * how.scale
                dk[..., part.start : part.stop, :] = _gather(dscores.mT @ wide * how.scale, k)
            dsinks = None
            if sinks is not None:
                taken = torch.exp(sinks[:, None, None].to(wide.dtype) - shift)
                dsinks = -(taken * inner).sum_to_size(len(sinks), 1, 1).flatten().to(sinks.dtype)
            return dq.to(q.dtype), dk, dv, None if dbias is None else dbias.to(bias.dtype), dsinks, None


def _no_autocast(device: torch.device) -> AbstractContextManager[object]:
    """The forward and the backward in the same precision: autocast would be on in one of them alone."""
    available = torch.amp.is_autocast_available(device.type)
    return torch.autocast(device.type, enabled=False) if available else nullcontext()


def _lift(x: Tensor, start: int, stop: int, q: Tensor) -> Tensor:
    """Some keys or values for the query heads of q, in its type: (B,K,S,d) -> (B,H,b,d)."""
    return repeat_heads(x[..., start:stop, :], q.shape[-3]).to(q.dtype)


def _gather(x: Tensor, like: Tensor) -> Tensor:
    """The transpose of `repeat_heads`, a sum over the query heads that share a key head: (B,H,b,d) -> (B,K,b,d)."""
    return x.reshape(*x.shape[:-3], like.shape[-3], -1, *x.shape[-2:]).sum(-3)


def _columns(bias: Tensor, start: int, stop: int) -> Tensor:
    """The bias for some of the keys; one that is the same for all keys stays as it is."""
    return bias[..., start:stop] if bias.dim() and bias.shape[-1] > 1 else bias


def _drop(weights: Tensor, part: _Block) -> Tensor:
    return weights if part.kept is None else weights * part.kept


def _finite(x: Tensor) -> Tensor:
    return x.masked_fill(x == -torch.inf, 0.0)

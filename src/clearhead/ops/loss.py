"""Cross-entropy, written out."""

from __future__ import annotations

from torch import Tensor

from clearhead.ops.softmax import at_least_float32

IGNORED = -100
"""The target that does not count, PyTorch's own convention."""


def cross_entropy(
    logits: Tensor, targets: Tensor, ignored: int = IGNORED, smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Sum over real targets of -ln p(target), and how many there are.

    -ln softmax(z)[y] = ln Σ exp(z) - z[y], in nats, from raw logits: nobody applies a softmax first. The sum and the
    count come apart so that micro-batches and ranks with unequal counts add up exactly; divide once, at the end.

    With label smoothing ε the target is (1 - ε) the token and ε spread evenly over the V tokens, the right one among them:

        (1 - ε) (-ln p[y]) + ε (1/V) Σ_v -ln p[v]  =  ln Σ exp(z) - (1 - ε) z[y] - ε mean(z)

    It cannot fall below the entropy of that mixture, so it is no measure of a model; evaluations use ε = 0.

    Args:
        logits: (..., V), any floating type; computed in the wider of float32 and that type.
        targets: (...) integers below V, or `ignored`.
        ignored: the target that does not count.
        smoothing: ε, at least 0 and below 1.

    Returns:
        (sum in nats, count of real targets), both scalars; with no real target (0, 0) and a zero gradient.

    Source: transformer-notes §15, §21.7; Szegedy et al. 2016 §7 (arXiv:1512.00567) for label smoothing.
    """
    logits = logits.to(at_least_float32(logits.dtype))
    real = targets != ignored
    chosen = logits.gather(-1, targets.masked_fill(~real, 0).unsqueeze(-1)).squeeze(-1)
    # Without smoothing nothing is added: 0 · mean(z) would be NaN where a logit is -∞.
    wanted = chosen if smoothing == 0 else (1 - smoothing) * chosen + smoothing * logits.mean(-1)
    surprise = (logits.logsumexp(-1) - wanted).masked_fill(~real, 0.0)
    return surprise.sum(), real.sum()

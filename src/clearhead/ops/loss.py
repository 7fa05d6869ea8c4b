"""Cross-entropy, written out."""

from __future__ import annotations

from torch import Tensor

from clearhead.ops.softmax import at_least_float32

IGNORED = -100
"""The target that does not count, PyTorch's own convention."""


def cross_entropy(logits: Tensor, targets: Tensor, ignored: int = IGNORED) -> tuple[Tensor, Tensor]:
    """Sum over real targets of -ln p(target), and how many there are.

    -ln softmax(z)[y] = ln Σ exp(z) - z[y], in nats, from raw logits: nobody applies a softmax first. The sum and the
    count come apart so that micro-batches and ranks with unequal counts add up exactly; divide once, at the end.

    Args:
        logits: (..., V), any floating type; computed in the wider of float32 and that type.
        targets: (...) integers below V, or `ignored`.
        ignored: the target that does not count.

    Returns:
        (sum in nats, count of real targets), both scalars; with no real target (0, 0) and a zero gradient.

    Source: transformer-notes §15, §21.7.
    """
    logits = logits.to(at_least_float32(logits.dtype))
    real = targets != ignored
    chosen = logits.gather(-1, targets.masked_fill(~real, 0).unsqueeze(-1)).squeeze(-1)
    surprise = (logits.logsumexp(-1) - chosen).masked_fill(~real, 0.0)
    return surprise.sum(), real.sum()

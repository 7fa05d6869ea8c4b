"""Hidden units of a feed-forward that no input wakes."""

from __future__ import annotations

from collections.abc import Iterator

from clearhead.checking.kinds.block_words import branch_name, place
from clearhead.checking.kinds.branches import Chain
from clearhead.checking.kinds.feedforward_found import feed_forwards, used
from clearhead.checking.report import Fault
from clearhead.messages import say

FLAT = frozenset({"relu", "relu-squared", "gelu-erf", "gelu-tanh", "gelu-quick", "silu"})
"""Functions that give next to nothing for what is far below zero."""
FAR = 8.0
"""How many standard deviations below zero the input of a unit must lie, so that no input of a usual size reaches it."""


def dead_faults(chain: Chain, prefix: str) -> Iterator[Fault]:
    """The fault of units whose input lies far below zero whatever comes in, so that they give nothing and are never trained."""
    for branch in feed_forwards(chain):
        found = used(chain, branch)
        if found is None or found[0] not in FLAT:
            continue
        _, before, given = found
        rows, out = before.value.flatten(0, -2), given.value.flatten(0, -2).abs().amax(0)
        mean, spread = rows.mean(0), rows.std(0)
        # Where all that comes in is alike, every unit varies little around a mean of its own, and other inputs would wake it.
        usual = spread.clamp_min(float(mean.abs().quantile(0.4)))
        dead = (mean + FAR * usual < 0) & (out <= 1e-6 * float(out.max()))
        if not bool(dead.any()):
            continue
        evidence = say(
            "block.dead",
            branch=branch_name(chain, branch),
            count=int(dead.sum()),
            units=dead.numel(),
            mean=f"{float(mean[dead].mean()):.3g}",
            spread=f"{float(spread[dead].max()):.2g}",
        )
        effect = float(dead.double().mean())
        yield Fault("weights.dead-units", "consistent", evidence, place(before, prefix), say("block.fix_dead"), effect)
        return

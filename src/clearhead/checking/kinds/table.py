"""The kinds, by the names that users type."""

from __future__ import annotations

from clearhead.checking.kinds import (
    attention,
    block,
    encoder,
    lm,
    loss,
    norm,
    positions,
    rotary,
    sampler,
    sdpa,
    seq2seq,
)
from clearhead.checking.kinds.kind import Kind

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        attention.KIND,
        block.KIND,
        encoder.KIND,
        seq2seq.KIND,
        norm.KIND,
        rotary.KIND,
        positions.KIND,
        lm.KIND,
        loss.KIND,
        sampler.KIND,
        sdpa.KIND,
    )
}

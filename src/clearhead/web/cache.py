"""The cache of keys and values: the prompt in one forward, then one column a token, beside what it would take without."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from clearhead.messages import say
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.web.answer import Answer, packed
from clearhead.web.cache_bytes import memory_bytes, sizes
from clearhead.web.cache_steps import grown
from clearhead.web.place import number
from clearhead.web.pooling import roots
from clearhead.web.session import RefusedError, Session

MOST = 32
"""Tokens that a prompt is written on by, at most."""

SHOWN = 16
"""What the page asks for, once; it draws fewer of them."""


def answer(session: Session, query: Mapping[str, str]) -> Answer:
    """The prompt written on with a cache and, at each step, computed again without.

    Args:
        session: the forward.
        query: `steps`, from 0 to `MOST`.

    Returns:
        Packed: `keys` and `values` (layers, tokens), the norm of what the cache holds of each token, as `roots` of the largest; the header
        says what each step read, wrote and cost, and how many bytes are kept.

    Raises:
        RefusedError: if `steps` is no such number, or the model writes nothing and has no cache.
    """
    steps, config = number(query, "steps", MOST + 1), session.loaded.config
    if not isinstance(config, DecoderConfig | EncoderDecoderConfig):
        raise RefusedError(400, say("cache.encoder"))
    found = grown(session, steps)
    pictures = {"keys": found.keys, "values": found.values}
    most = {name: float(norms.nan_to_num(0.0).amax()) for name, norms in pictures.items()}
    tokenizer, stream = session.loaded.tokenizer, session.loaded.tokenizer.stream()
    pieces = tokenizer.pieces([step.id for step in found.steps]) if found.steps else []
    told = [
        {**step._asdict(), "difference": plain(step.difference), "largest": plain(step.largest), "piece": piece,
         "text": stream.push(step.id)}
        for step, piece in zip(found.steps, pieces, strict=True)
    ]  # fmt: skip
    bytes_each = found.kind.itemsize
    header = {
        "asked": steps,
        "prefill": len(session.ids),
        "prefill_flops": found.prefill_flops,
        "steps": told,
        "layers": config.layers,
        "heads": config.heads,
        "kv_heads": config.key_value_heads,
        "head_width": config.width_of_head,
        "context": config.context,
        "kind": str(found.kind).removeprefix("torch."),
        "epsilon": torch.finfo(found.kind).eps,
        "bytes_each": bytes_each,
        "windows": [sight.window for sight in config.sights],
        "ring": found.ring,
        "source": len(session.source) if isinstance(config, EncoderDecoderConfig) else None,
        "bytes": sizes(config, bytes_each, len(session.ids), found.ring),
        "memory": memory_bytes(config, bytes_each, len(session.source)),
        "most": most,
    }
    return packed(header, [(name, roots(norms, most[name]).cpu().numpy()) for name, norms in pictures.items()])


def plain(value: float | None) -> float | None:
    """The number, as JSON can say it."""
    return value if value is not None and math.isfinite(value) else None

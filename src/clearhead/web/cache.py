"""The cache of keys and values: the prompt in one forward, then one column a token, beside what it would take without."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from clearhead.messages import say
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.web.answer import Answer, finite, packed
from clearhead.web.cache_bytes import memory_bytes, sizes
from clearhead.web.cache_steps import grown
from clearhead.web.place import number
from clearhead.web.pooling import roots
from clearhead.web.session import RefusedError, Session

MOST_STEPS = 32
"""Tokens that a prompt is written on by, at most."""

STEPS = 16
"""How many where nothing is said: the page asks once, and draws as many of them as its state says."""


def answer(session: Session, query: Mapping[str, str]) -> Answer:
    """The prompt written on with a cache and, at each step, computed again without.

    Args:
        session: the forward.
        query: `steps`, from 0 to `MOST_STEPS`; `STEPS` of them where it is left out.

    Returns:
        Packed: `keys` and `values` (layers, tokens), the norm of what the cache holds of each token, as `roots` of the largest; the header
        says what each step read, wrote and cost, and how many bytes are kept.

    Raises:
        RefusedError: if `steps` is no such number, or the model writes nothing and has no cache.
    """
    steps = number(query, "steps", MOST_STEPS + 1) if "steps" in query else STEPS
    config = session.loaded.config
    if not isinstance(config, DecoderConfig | EncoderDecoderConfig):
        raise RefusedError(400, say("cache.encoder"))
    found = grown(session, steps)
    pictures = {"keys": found.keys, "values": found.values}
    most = {name: float(norms.nan_to_num(0.0).amax()) for name, norms in pictures.items()}
    tokenizer, stream = session.loaded.tokenizer, session.loaded.tokenizer.stream()
    pieces = tokenizer.pieces([step.id for step in found.steps]) if found.steps else []
    taken = [
        {**step._asdict(), "difference": finite(step.difference), "largest": finite(step.largest), "piece": piece,
         "text": stream.push(step.id)}
        for step, piece in zip(found.steps, pieces, strict=True)
    ]  # fmt: skip
    bytes_each = found.kind.itemsize
    header = {
        "asked": steps,
        "prefill": len(session.ids),
        "prefill_flops": found.prefill_flops,
        "steps": taken,
        "end": None if found.end is None else tokenizer.pieces([found.end])[0],
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
        "source_flops": found.source_flops,
        "bytes": sizes(config, bytes_each, len(session.ids), found.ring),
        "memory": memory_bytes(config, bytes_each, len(session.source)),
        "most": most,
    }
    return packed(header, [(name, roots(norms, most[name]).cpu().numpy()) for name, norms in pictures.items()])

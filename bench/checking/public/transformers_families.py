"""How a family of transformers is made small, and its parts taken out of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.checking.public.subject import Subject
from bench.checking.public.transformers_calls import BLIND, CALLS, CONFIRMED

IDS = {"vocab_size": 61, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4} | IDS
GROUPED = {"num_key_value_heads": 2}
CONTEXT = {"max_position_embeddings": 64}
GPT = {
    "n_positions": 64,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "vocab_size": 61,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
SMALL_T5 = {"d_model": 32, "d_ff": 48, "num_layers": 2, "num_heads": 4, "d_kv": 8, "vocab_size": 61}
BART = {
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
}
BART |= {"encoder_ffn_dim": 48, "decoder_ffn_dim": 48} | CONTEXT | IDS
BACKENDS = {"attention": ("eager", "sdpa"), "norm": ("",), "rotary": ("",), "positions": ("",), "block": ("eager",)}
"""By kind the kernels; of the whole the fused one, where there is one. In some parts none is chosen."""


@dataclass(frozen=True)
class Family:
    """A family, and which of its classes are checked.

    Args:
        model: the class of the whole.
        sizes: of its configuration.
        parts: by kind the names of classes, with spaces between.
        fused: whether it has the fused kernel.
    """

    model: str
    sizes: Mapping[str, Any]
    parts: Mapping[str, str]
    fused: bool = True


def made(model: str, sizes: Mapping[str, Any], name: str, backend: str) -> Any:
    """The first part of that class in a small model; what it draws is the caller's seed."""
    import transformers  # noqa: PLC0415 - only when something is made

    kind = getattr(transformers, model)
    # Some configurations write into what they are given.
    config = kind.config_class(**{key: _own(value) for key, value in sizes.items()})
    whole = kind(config)
    if backend:
        whole.set_attn_implementation(backend)
    return next(part for part in whole.modules() if type(part).__name__ == name)


def _own(value: Any) -> Any:
    return list(value) if isinstance(value, list) else dict(value) if isinstance(value, dict) else value


def _backends(kind: str, fused: bool) -> tuple[str, ...]:
    found = BACKENDS.get(kind, ("sdpa",))
    return found if fused or found == ("",) else ("eager",)


def subjects(families: Iterable[Family]) -> list[Subject]:
    """Each class of each family with each kernel; a name that two families have is told with that of the whole."""
    found = []
    families = list(families)
    owners = Counter(name for family in families for names in family.parts.values() for name in names.split())
    for family in families:
        for kind, names in family.parts.items():
            for name in names.split():
                for backend in _backends(kind, family.fused):
                    make = partial(made, family.model, family.sizes, name, backend)
                    options = {"call": CALLS[name]} if name in CALLS else {}
                    said = (options, CONFIRMED.get(name, ()), BLIND.get(name, {}))
                    title = name if owners[name] == 1 else f"{name} of {family.model}"
                    found.append(Subject("transformers", f"{title}, {backend}".rstrip(", "), make, kind, *said))
    return found

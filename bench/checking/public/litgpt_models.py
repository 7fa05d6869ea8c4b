"""litgpt: its one model under configurations of the published families, and its parts."""

from __future__ import annotations

from typing import Any

from bench.checking.public.subject import Subject

VOCAB = 61
OFFSET = ("norm.offset",)
SMALL = {"n_layer": 2, "n_head": 4, "n_embd": 32, "intermediate_size": 48, "block_size": 64, "padded_vocab_size": VOCAB, "vocab_size": VOCAB}  # fmt: skip


def _config(name: str, **values: Any) -> Any:
    from litgpt import Config  # noqa: PLC0415

    return Config.from_name(name, **(SMALL | values)) if name else Config(**(SMALL | values))


def _gpt(name: str, **values: Any) -> Subject:
    def make() -> Any:
        from litgpt import GPT  # noqa: PLC0415

        return GPT(_config(name, **values))

    confirmed = OFFSET if name.startswith("Gemma") else ()
    return Subject("litgpt", f"GPT, {name}", make, "lm", {"vocab": VOCAB}, confirmed)


def _norm(name: str, **values: Any) -> Subject:
    def make() -> Any:
        from litgpt.model import RMSNorm  # noqa: PLC0415

        return RMSNorm(32, **values)

    return Subject("litgpt", f"RMSNorm, {name}", make, "norm", confirmed=OFFSET if values else ())


SUBJECTS: list[Subject] = [
    _gpt("pythia-14m"),
    _gpt("Llama-3.2-1B", n_query_groups=2, rope_adjustments=None),
    _gpt("Mistral-7B-v0.1", n_query_groups=2, sliding_window_size=None),
    _gpt("Gemma-2b", n_query_groups=1, head_size=8),
    _gpt("Gemma-2-2b", n_query_groups=2, head_size=8, sliding_window_size=8),
    _gpt("phi-2"),
    _gpt("falcon-7b", n_query_groups=1),
    _gpt("stablelm-3b-4e1t"),
    _gpt("Qwen2.5-0.5B", n_query_groups=2),
    _norm("plain"),
    _norm("unit offset", add_unit_offset=True),
]

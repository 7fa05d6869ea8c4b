"""`clearhead info`: what a model costs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from jsonargparse import ArgumentParser

from clearhead.cli.options import instantiate, parse, parser
from clearhead.messages import UserError, say
from clearhead.models.config import DecoderConfig, ModelConfig
from clearhead.models.cost import flops_per_token, generation_memory, parameters, training_memory


def options() -> ArgumentParser:
    """The flags of `clearhead info`."""
    made = parser("info")
    made.add_argument("run", nargs="?", default=None, help="run directory; none for a model described by --model")
    made.add_argument("--model", type=ModelConfig, default=None, help="sizes and parts of a model that is not built")
    made.add_argument("--batch", type=int, default=12, help="windows an update learns from, for the memory of training")
    made.add_argument("--json", action="store_true", help="print one JSON object")
    return made


def run(arguments: Sequence[str]) -> int:
    """Print parameters, operations a token and memory, split by part."""
    made = options()
    asked = instantiate(made, parse(made, arguments))
    config = asked.model or DecoderConfig()
    if asked.run is not None:
        from pathlib import Path  # noqa: PLC0415

        from clearhead.formats.run import read_run  # noqa: PLC0415 - loads torch

        config = read_run(Path(asked.run)).model
    if not isinstance(config, DecoderConfig):
        raise UserError(say("formats.not_a_decoder", path=asked.run or type(config).__name__))
    if asked.batch < 1:
        raise UserError(say("training.setting", name="batch", value=asked.batch, wanted="≥ 1"))
    facts = _facts(config, asked.batch)
    print(json.dumps(facts, ensure_ascii=False) if asked.json else _table(config, asked.batch, facts))
    return 0


def _facts(config: DecoderConfig, batch: int) -> dict[str, Any]:
    memory, generation = training_memory(config, batch), generation_memory(config)
    return {
        "parameters": {**parameters(config), "total": sum(parameters(config).values())},
        "flops_per_token": {**flops_per_token(config), "total": sum(flops_per_token(config).values())},
        "training_bytes": {
            "weights": memory.weights,
            "gradients": memory.gradients,
            "optimizer": memory.optimizer,
            "activations": memory.activations,
            "total": memory.total,
        },
        "generation_bytes": {
            "weights": generation.weights,
            "cache": generation.cache,
            "activations": generation.activations,
            "total": generation.total,
        },
    }


def _table(config: DecoderConfig, batch: int, facts: dict[str, Any]) -> str:
    lines = [
        say(
            "cli.info.model",
            layers=config.layers,
            heads=config.heads,
            kv_heads=config.key_value_heads,
            width=config.width,
            context=config.context,
            vocab=config.vocab,
        )
    ]
    for kind, parts in facts.items():
        lines += ["", say(f"cli.info.{kind}", batch=batch, context=config.context)]
        lines += [
            f"  {name:<12} {_grouped(kind, value):>14}  {value / parts['total']:>6.1%}" for name, value in parts.items()
        ]
    return "\n".join(lines)


def _grouped(kind: str, value: int) -> str:
    return f"{value / 2**20:,.1f} MiB" if kind.endswith("bytes") else f"{value:,}"

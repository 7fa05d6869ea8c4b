"""`clearhead info`: what a model costs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser

from clearhead.cli.options import MODEL, instantiate, parse, parser
from clearhead.formats.packages import BUILT_IN, PACKAGES
from clearhead.messages import UserError, say
from clearhead.models.config import DecoderConfig, ModelConfig, StackConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.models.cost import flops_per_token, generation_memory, parameters, training_memory
from clearhead.models.explain import explain
from clearhead.models.presets import PRESETS, preset

SIZES = {"float32": 4, "bfloat16": 2, "float16": 2, "float64": 8}
"""Bytes of a number, by its type."""


def options() -> ArgumentParser:
    """The flags of `clearhead info`."""
    made = parser("info")
    made.add_argument("run", nargs="?", default=None, help=f"{MODEL}, or preset ({', '.join(PRESETS)})")
    made.add_argument("--model", type=ModelConfig, default=None, help="sizes and parts of a model that is not built")
    made.add_argument(
        "--batch", type=int, default=12, help="windows, rows or pairs an update learns from, for the memory of training"
    )
    made.add_argument("--dtype", type=str, default="float32", help=f"for the memory to generate: {', '.join(SIZES)}")
    made.add_argument("--explain", type=str, nargs=2, default=None, help="say in words how two models differ")
    made.add_argument("--json", action="store_true", help="print one JSON object")
    return made


def run(arguments: Sequence[str]) -> int:
    """Print parameters, operations a token and memory, split by part; or how two models differ."""
    made = options()
    asked = instantiate(made, parse(made, arguments))
    if sum(given is not None for given in (asked.run, asked.model, asked.explain)) > 1:
        raise UserError(say("cli.info.two_models", run="run" if asked.run is None else asked.run))
    if asked.batch < 1:
        raise UserError(say("training.setting", name="batch", value=asked.batch, wanted="≥ 1"))
    if asked.dtype not in SIZES:
        raise UserError(say("models.no_dtype", name=asked.dtype, known=", ".join(SIZES)))
    if asked.explain is not None:
        return _explain(*asked.explain, as_json=asked.json)
    config = _named(asked.model) if asked.run is None else _config(asked.run)
    facts = _facts(config, asked.batch, asked.dtype)
    headings = _headings(config, asked.batch, asked.dtype)
    print(json.dumps(facts, ensure_ascii=False) if asked.json else _table(config, headings, facts))
    return 0


def _explain(first: str, second: str, *, as_json: bool) -> int:
    lines = explain(_config(first), _config(second))
    print(
        json.dumps({"first": first, "second": second, "differences": lines}, ensure_ascii=False)
        if as_json
        else "\n".join(lines)
    )
    return 0


def _named(model: ModelConfig | None) -> StackConfig:
    """The model of `--model`, a decoder if there is none.

    Raises:
        UserError: if it is what the kinds of models have in common: the option takes that class, too, but it is no model.
    """
    match model:
        case None:
            return DecoderConfig()
        case DecoderConfig() | EncoderConfig() | EncoderDecoderConfig():
            return model
    known = ", ".join(kind.__name__ for kind in (DecoderConfig, EncoderConfig, EncoderDecoderConfig))
    raise UserError(say("cli.unknown_choice", flag="--model", value=type(model).__name__, known=known))


def _config(name: str) -> StackConfig:
    """The configuration of a preset, a run directory or one of its checkpoints."""
    if name in PRESETS and not Path(name).exists():
        return preset(name)
    if not Path(name).exists() and Path(name).name == name and name not in (BUILT_IN, *PACKAGES):
        raise UserError(say("cli.info.no_model", name=name, known=", ".join(PRESETS)))
    from clearhead.formats.find import config_of  # noqa: PLC0415 - loads torch

    return config_of(name)


def _facts(config: StackConfig, batch: int, dtype: str) -> dict[str, Any]:
    memory, generation = training_memory(config, batch), generation_memory(config, bytes_each=SIZES[dtype])
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


def _table(config: StackConfig, headings: dict[str, str], facts: dict[str, Any]) -> str:
    lines = [_model(config)]
    for kind, parts in facts.items():
        lines += ["", headings[kind]]
        lines += [
            f"  {name:<15} {_grouped(kind, value):>14}  {value / parts['total']:>6.1%}" for name, value in parts.items()
        ]
    return "\n".join(lines)


def _model(config: StackConfig) -> str:
    """The sizes of a model in one line."""
    match config:
        case EncoderConfig():
            return say(
                "cli.info.model_encoder",
                layers=config.layers,
                heads=config.heads,
                kv_heads=config.key_value_heads,
                width=config.width,
                context=config.context,
                vocab=config.vocab,
                segments=config.segments,
                head=repr(config.head).replace("()", ""),
            )
        case EncoderDecoderConfig():
            return say(
                "cli.info.model_pair",
                encoder_layers=config.encoder.layers,
                layers=config.layers,
                heads=config.heads,
                kv_heads=config.key_value_heads,
                width=config.width,
                source_context=config.encoder.context,
                context=config.context,
                vocabulary=_vocabulary(config),
            )
    return say(
        "cli.info.model",
        layers=config.layers,
        heads=config.heads,
        kv_heads=config.key_value_heads,
        width=config.width,
        context=config.context,
        vocab=config.vocab,
    )


def _vocabulary(config: EncoderDecoderConfig) -> str:
    if config.source_vocab is None:
        return str(config.vocab)
    return say("cli.info.vocabularies", source=config.source_vocab, target=config.vocab)


def _headings(config: StackConfig, batch: int, dtype: str) -> dict[str, str]:
    """What is counted, by kind of fact and of model."""
    context = config.context
    match config:
        case EncoderConfig():
            kinds = {
                "flops_per_token": say("cli.info.flops_per_token_encoder", context=context),
                "training_bytes": say("cli.info.training_bytes_encoder", batch=batch, context=context),
                "generation_bytes": say("cli.info.generation_bytes_encoder", context=context, dtype=dtype),
            }
        case EncoderDecoderConfig():
            source = config.encoder.context
            kinds = {
                "flops_per_token": say("cli.info.flops_per_token_pair", context=context, source_context=source),
                "training_bytes": say(
                    "cli.info.training_bytes_pair", batch=batch, context=context, source_context=source
                ),
                "generation_bytes": say(
                    "cli.info.generation_bytes_pair", context=context, source_context=source, dtype=dtype
                ),
            }
        case _:
            kinds = {
                "flops_per_token": say("cli.info.flops_per_token", context=context),
                "training_bytes": say("cli.info.training_bytes", batch=batch, context=context),
                "generation_bytes": say("cli.info.generation_bytes", dtype=dtype),
            }
    return {"parameters": say("cli.info.parameters"), **kinds}


def _grouped(kind: str, value: int) -> str:
    return f"{value / 2**20:,.1f} MiB" if kind.endswith("bytes") else f"{value:,}"

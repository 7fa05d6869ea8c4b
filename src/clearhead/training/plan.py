"""What a training will do, decided before it starts: sizes, steps, data, and why."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch

from clearhead import __version__
from clearhead.formats.run import Run, create_run, read_run
from clearhead.messages import UserError, say
from clearhead.models.config import DecoderConfig, ModelConfig
from clearhead.training.run import measured_speed
from clearhead.training.settings import TrainingSettings
from clearhead.training.sizing import (
    CORPUS_FEWEST_STEPS,
    CORPUS_SECONDS,
    FEWEST_STEPS,
    MOST_EPOCHS,
    TEXT_SECONDS,
    pick_lr,
    pick_size,
    pick_steps,
)
from clearhead.training.text_data import TextData, new_tokenizer, prepare, read_texts

Given = Mapping[str, int | float | str]
"""The training settings that the user has named, by their names in `TrainingSettings`."""

FEWEST_STEPS_TO_EVALUATION = 100
"""A short training is evaluated at its end alone: an evaluation reads the whole validation text."""

CHANGEABLE = ("steps", "eval_every", "checkpoint_every")
"""What a run that goes on may do differently; anything else would make it another training."""


@dataclass(frozen=True)
class Plan:
    """A training ready to start."""

    run: Run
    settings: TrainingSettings
    data: TextData
    reasons: tuple[str, ...]
    """What was decided for the user, and why, a line each."""


def new_plan(
    out: Path,
    files: Sequence[str],
    given: Given,
    *,
    model: ModelConfig | None = None,
    typed: frozenset[str] = frozenset(),
    encoding: str = "auto",
    tokenizer: str = "character",
    device: torch.device,
) -> Plan:
    """Decide on a new training and make its run directory.

    Args:
        out: the run directory; it may be empty or not exist.
        files: texts to learn from; none for the built-in corpus.
        given: settings that the user has named; the rest is decided here.
        model: sizes and parts; picked for the text if None.
        typed: the fields of `model` that the user has named, where the others are to be picked; empty for all.
        encoding: of the files.
        tokenizer: "character" or "byte".
        device: where it will run; its speed decides how many steps fit.

    Raises:
        UserError: if `out` holds something, a text cannot be used or numbers do not fit together.
    """
    _must_be_free(out)
    texts = read_texts(files, encoding)
    size = pick_size(None if texts.built_in else texts.characters)
    config = size.config()
    if model is not None:
        if not isinstance(model, DecoderConfig):
            raise UserError(say("formats.not_a_decoder", path=type(model).__name__))
        config = _laid_over(config, model, typed) if typed else model
    data = prepare(texts, new_tokenizer(tokenizer, texts), config.context)
    config = replace(config, vocab=data.tokenizer.size, context=data.context)
    settings, reasons = _settings(given, config, data, size.batch, device)
    if model is None or typed:
        picked = say(
            "training.sizes",
            characters=f"{texts.characters:,}",
            layers=config.layers,
            heads=config.heads,
            width=config.width,
            context=config.context,
            dropout=config.dropout,
        )
        reasons = (picked, *reasons)
    details = {"training": asdict(settings), "data": texts.source, "versions": versions()}
    return Plan(create_run(out, config, data.tokenizer, details), settings, data, reasons)


def resumed_plan(
    out: Path,
    files: Sequence[str],
    given: Given,
    *,
    model: ModelConfig | None = None,
    typed: frozenset[str] = frozenset(),
    encoding: str | None = None,
    tokenizer: str | None = None,
) -> Plan:
    """Go on with the run in `out`, on the text it was trained on; what is given must be what it was started with.

    Raises:
        UserError: if there is no run, its text has changed, or a setting is asked for that would make it another
            training.
    """
    run = read_run(out)
    recorded, source = _recorded(run)
    for name, value in given.items():
        if name not in CHANGEABLE and value != getattr(recorded, name):
            raise UserError(say("training.resume_differs", name=name, old=getattr(recorded, name), new=value))
    assert isinstance(run.model, DecoderConfig)
    kind = type(run.tokenizer).__name__.removesuffix("Tokenizer").lower()
    for name, old, new in (("encoding", source.get("encoding", "auto"), encoding), ("tokenizer", kind, tokenizer)):
        if new is not None and new != old:
            raise UserError(say("training.resume_differs", name=name, old=old, new=new))
    texts = read_texts(files or source.get("files", ()), source.get("encoding", "auto"))
    if texts.source["sha256"] != source["sha256"]:
        raise UserError(say("training.text_changed", out=out))
    if isinstance(model, DecoderConfig):
        # A short text shrinks the context that is asked for: compare with what this one would have become.
        context = prepare(texts, run.tokenizer, model.context).context
        _must_be_the_same(run.model, replace(model, context=context), typed)
    data = prepare(texts, run.tokenizer, run.model.context)
    settings = TrainingSettings(**(run.details["training"] | dict(given)))
    if settings != recorded:
        details = run.details | {"training": asdict(settings)}
        run = create_run(out, run.model, run.tokenizer, details)
    return Plan(run, settings, data, ())


def _laid_over(picked: DecoderConfig, model: DecoderConfig, typed: frozenset[str]) -> DecoderConfig:
    """The picked configuration with the fields that the user has named."""
    plain = {field.name: getattr(picked, field.name) for field in fields(picked)}
    return DecoderConfig(**(plain | {name: getattr(model, name) for name in typed}))


def _must_be_the_same(old: DecoderConfig, new: DecoderConfig, typed: frozenset[str]) -> None:
    """A UserError that names the first typed field that differs; the vocabulary is the tokenizer's, not the user's."""
    for field in fields(old):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if before != after and field.name != "vocab" and (field.name in typed or not typed):
            raise UserError(say("training.resume_differs", name=f"model.{field.name}", old=before, new=after))


def _recorded(run: Run) -> tuple[TrainingSettings, dict[str, Any]]:
    """The settings and the text that a run was started with; the text's hash is there."""
    try:
        settings, source = TrainingSettings(**run.details["training"]), dict(run.details["data"])
        return settings, source | {"sha256": source["sha256"]}
    except (KeyError, TypeError) as error:
        raise UserError(say("training.not_recorded", out=run.path, reason=error)) from error


def versions() -> dict[str, Any]:
    """What the numbers of a run depend on beside its settings."""
    return {
        "clearhead": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "threads": torch.get_num_threads(),
    }


def _settings(
    given: Given, config: DecoderConfig, data: TextData, batch: int, device: torch.device
) -> tuple[TrainingSettings, tuple[str, ...]]:
    """The settings as given, the rest filled in; and why so many steps."""
    chosen: dict[str, Any] = {
        "batch": batch,
        "lr": pick_lr(config.width),
        "final_lr": 0.1,
        "weight_decay": 0.1,
        "beta2": 0.99,
        "clip": 1.0,
        "seed": 0,
    } | dict(given)
    reasons: tuple[str, ...] = ()
    if "steps" not in chosen:
        chosen["steps"], reason = _picked_steps(config, data, chosen["batch"], device)
        reasons = (reason,)
    steps = chosen["steps"]
    rhythm = max(FEWEST_STEPS_TO_EVALUATION, -(-steps // 5)) if isinstance(steps, int) else 1
    chosen = {"warmup": min(100, steps // 10), "eval_every": rhythm} | chosen
    chosen = {"checkpoint_every": chosen["eval_every"]} | chosen
    return TrainingSettings(**chosen), reasons


def _picked_steps(config: DecoderConfig, data: TextData, batch: int, device: torch.device) -> tuple[int, str]:
    """As many steps as fit the time on this machine, and why."""
    seconds, fewest = (CORPUS_SECONDS, CORPUS_FEWEST_STEPS) if data.texts.built_in else (TEXT_SECONDS, FEWEST_STEPS)
    speed, per_step = measured_speed(config, batch, device), batch * config.context
    steps = pick_steps(
        tokens_per_second=speed,
        seconds=seconds,
        tokens_per_step=per_step,
        train_tokens=sum(len(document) for document in data.train),
        fewest=fewest,
    )
    shown = f"{speed:,.0f}"
    if steps == fewest:
        needed = f"{steps * per_step / speed:.0f}"
        return steps, say("training.fewest_steps", steps=steps, speed=shown, device=device, seconds=needed)
    planned = f"{seconds:.0f}"
    return steps, say("training.steps", steps=steps, speed=shown, device=device, epochs=MOST_EPOCHS, seconds=planned)


def _must_be_free(out: Path) -> None:
    if (out / "config.json").exists():
        raise UserError(say("training.out_exists", out=out))
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(say("training.out_in_use", out=out))

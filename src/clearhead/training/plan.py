"""What a training will do, decided before it starts: sizes, steps, data, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from clearhead.formats.atomic import PARTIAL
from clearhead.formats.find import is_there, lasting_name
from clearhead.formats.load import Loaded, load, weights_of
from clearhead.formats.lock import NAME as LOCK
from clearhead.formats.run import Run, create_run, read_run
from clearhead.messages import UserError, say
from clearhead.models.adapt import targets_of
from clearhead.models.config import ModelConfig, StackConfig
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.low_rank import LowRank
from clearhead.text import MarkedTokenizer, Tokenizer
from clearhead.text.numbers import knows_no_words
from clearhead.training.adapting import begun_with
from clearhead.training.asked import Asked, Data, Dial, laid_over
from clearhead.training.choosing import Given, chosen_settings
from clearhead.training.conversation_data import ConversationData
from clearhead.training.data_choice import NOTHING_SAID, DataChoice, Watch, unwatched
from clearhead.training.environment import environment
from clearhead.training.material import fitting, new_material, same_material
from clearhead.training.objective import Objective
from clearhead.training.settings import PLAIN, TrainingSettings
from clearhead.training.text_data import TextData
from clearhead.training.texts import SIDES

CHANGEABLE = ("steps", "eval_every", "checkpoint_every", "keep", "skip_nonfinite")
"""What a run that goes on may do differently; anything else would make it another training."""


@dataclass(frozen=True)
class Plan:
    """A training ready to start."""

    run: Run
    settings: TrainingSettings
    data: Data
    objective: Objective[Any]
    """What is learnt from the data."""
    reasons: tuple[str, ...]
    """What was decided for the user, and why, a line each."""
    init: Mapping[str, Tensor] | None = None
    """The weights to begin with; None for fresh ones, and where there is a checkpoint."""
    speed: float | None = None
    """Tokens per second of an update, if that was measured to decide."""


def new_plan(
    out: Path,
    files: Sequence[str],
    given: Given,
    *,
    choice: DataChoice = NOTHING_SAID,
    model: ModelConfig | None = None,
    typed: frozenset[str] | None = None,
    init: str | None = None,
    lora: LowRank | None = None,
    minutes: float | None = None,
    device: torch.device,
    watch: Watch = unwatched,
) -> Plan:
    """Decide on a new training and make its run directory.

    Args:
        out: the run directory; it may be empty or not exist.
        files: texts, pairs or conversations; none for the built-in corpus.
        given: settings that the user has named; the rest is decided here.
        choice: what was said about the files and the tokenizer.
        model: the kind of model, its sizes and parts; a decoder picked for the text if None.
        typed: the fields of `model` that the user has named, where the others are to be picked; all of them if None.
        init: the model that is continued, with its tokenizer; a new one is made if None.
        lora: what is trained beside its weights, which stay; all weights are trained if None.
        minutes: what the whole training may take; the sizes and the steps of a decoder are chosen for it.
        device: where it will run; its speed decides how many steps fit.
        watch: who is told how far reading is.

    Raises:
        UserError: if `out` holds something, a file cannot be used or numbers do not fit together; nothing is left in `out`.
    """
    must_be_free(out)
    begun = _begun(init, lora, choice)
    with _nothing_left(out):
        dial = None if minutes is None else _dial(minutes, given, device)
        asked = Asked(files, choice, out / "tokens", model, typed, begun, watch, dial)
        material = new_material(asked)
        settings, reasons, speed = chosen_settings(given, material, lora, device)
        if material.few is not None and "batch" not in given:
            reasons = (material.few, *reasons)
        if material.sizes is not None:
            reasons = (material.sizes, *reasons)
        if begun is not None and knows_no_words(begun.tokenizer):
            reasons = (say("text.numbers_alone", path=begun.source), *reasons)
        data = material.data
        details: dict[str, Any] = {"training": asdict(settings), "data": data.source, "versions": environment(device)}
        if isinstance(data, TextData):
            details |= {"levels": {**data.levels} | ({} if data.entropy is None else {"entropy": data.entropy})}
        if init is not None and begun is not None:
            details |= {"init": begun_with(lasting_name(init), begun)} | (
                {} if lora is None else {"lora": lora.to_plain()}
            )
            details |= {"opening": [*begun.opening], "closing": [*begun.closing], "ends": [*begun.ends]}
        # What does not fit the data is found before there is a run.
        objective = data.objective(material.config, batch=settings.batch, seed=settings.seed)
        template = None if begun is None else begun.chat_template
        template = data.template if isinstance(data, ConversationData) else template
        run = create_run(out, material.config, data.tokenizer, details, template)
    return Plan(run, settings, data, objective, reasons, None if begun is None else weights_of(begun), speed)


def resumed_plan(
    out: Path,
    files: Sequence[str],
    given: Given,
    *,
    choice: DataChoice = NOTHING_SAID,
    model: ModelConfig | None = None,
    typed: frozenset[str] | None = None,
    init: str | None = None,
    lora: LowRank | None = None,
    watch: Watch = unwatched,
) -> Plan:
    """Go on with the run in `out`, on the data it was trained on; what is given must be what it was started with.

    Raises:
        UserError: if there is no run, its data has changed, or a setting is asked for that would make it another
            training.
    """
    run = read_run(out)
    recorded, source = _recorded(run)
    for name, value in given.items():
        if name not in CHANGEABLE and value != getattr(recorded, name):
            raise UserError(say("training.resume_differs", name=name, old=getattr(recorded, name), new=value))
    difference = choice.differs(DataChoice.of_record(source), _kind(run.tokenizer)) or _begun_otherwise(run, init, lora)
    if difference is not None:
        name, old, new = difference
        raise UserError(say("training.resume_differs", name=name, old=old, new=new))
    data = same_material(run, files, source, watch)
    if model is not None:
        _must_be_the_same(run.model, model, data, typed)
    settings = TrainingSettings(**(run.details["training"] | dict(given)))
    done = max((each.step for each in run.checkpoints()), default=0)
    if settings != recorded and settings.steps > done:
        details = run.details | {"training": asdict(settings)}
        run = create_run(out, run.model, run.tokenizer, details)
    # A run that was killed before its first checkpoint begins anew, with the model that it began with.
    begun = run.details.get("init") if not run.checkpoints() else None
    weights = _begun_again(out, str(begun.get("model"))) if isinstance(begun, dict) else None
    objective = data.objective(run.model, batch=settings.batch, seed=settings.seed)
    return Plan(run, settings, data, objective, (), weights)


def _begun_again(out: Path, init: str) -> Mapping[str, Tensor]:
    if not is_there(init):
        raise UserError(say("training.init_gone", out=out, init=init))
    return weights_of(load(init, device="cpu"))


def _begun_otherwise(run: Run, init: str | None, lora: LowRank | None) -> tuple[str, object, object] | None:
    """What is asked for of the beginning and was not so: its name, then and now."""
    begun = run.details.get("init")
    before = begun.get("model") if isinstance(begun, dict) else None
    if init is not None and before not in (init, lasting_name(init)):
        return "init", before, init
    if lora is None:
        return None
    if run.lora is None:
        return "lora", None, lora.rank
    pairs = zip(run.lora.to_plain().items(), lora.to_plain().values(), strict=True)
    return next(((f"lora.{name}", old, new) for (name, old), new in pairs if old != new), None)


def _dial(minutes: float, given: Given, device: torch.device) -> Dial:
    if "batch" in given:
        raise UserError(say("training.minutes_choose", flags="--batch"))
    # How an update is made takes its time; how many there are is still to be found.
    made = {name: value for name, value in given.items() if name not in (*CHANGEABLE, "warmup", "lr")}
    return Dial(minutes, device, TrainingSettings(**asdict(PLAIN) | made))


def _begun(init: str | None, lora: LowRank | None, choice: DataChoice) -> Loaded | None:
    """The model that is continued."""
    if init is None:
        if lora is not None:
            raise UserError(say("training.lora_of_nothing"))
        return None
    if choice.tokenizer is not None:
        raise UserError(say("training.init_tokenizer", tokenizer=choice.tokenizer))
    begun = load(init, device="cpu")
    if lora is not None:
        # Before anything is made: which layers there are does not depend on the data.
        targets_of(begun.model, lora)
    return begun


def _must_be_the_same(old: ModelConfig, new: ModelConfig, data: Data, typed: frozenset[str] | None) -> None:
    """A UserError that names what the user asks for and the run is not; sizes that the data decides are not asked for."""
    if type(old) is not type(new):
        before, after = type(old).__name__, type(new).__name__
        raise UserError(say("training.resume_differs", name="model", old=before, new=after))
    assert isinstance(old, StackConfig)
    assert isinstance(new, StackConfig)
    asked = fitting(laid_over(old, new, typed), data)
    assert isinstance(asked, StackConfig)
    was, would_be = _written_out(old), _written_out(asked)
    for field in fields(old):
        before, after = getattr(was, field.name), getattr(would_be, field.name)
        if before != after and field.name != "vocab":
            raise UserError(say("training.resume_differs", name=f"model.{field.name}", old=before, new=after))


def _written_out(config: StackConfig) -> StackConfig:
    """The same model, the sizes that were left to follow others written as numbers: that makes it no other model."""
    if isinstance(config, EncoderDecoderConfig):
        config = replace(config, encoder_layers=config.encoder.layers, source_context=config.encoder.context)
    return replace(
        config,
        kv_heads=config.key_value_heads,
        head_width=config.width_of_head,
        feedforward_width=config.hidden,
    )


def _kind(tokenizer: Tokenizer) -> str:
    """What the user types for such a tokenizer."""
    inner = tokenizer.inner if isinstance(tokenizer, MarkedTokenizer) else tokenizer
    return type(inner).__name__.removesuffix("Tokenizer").lower()


def _recorded(run: Run) -> tuple[TrainingSettings, dict[str, Any]]:
    """The settings and the text that a run was started with; the text's hash is there."""
    if "imported" in run.details:
        raise UserError(say("import.no_training", out=run.path))
    try:
        settings, source = TrainingSettings(**run.details["training"]), dict(run.details["data"])
        return settings, source | {"sha256": source["sha256"]}
    except (KeyError, TypeError) as error:
        raise UserError(say("training.not_recorded", out=run.path, reason=error)) from error


def must_be_free(out: Path) -> None:
    """Raise a UserError if a new run cannot be made in `out`."""
    if (out / "config.json").exists():
        raise UserError(say("training.out_exists", out=out))
    if out.exists() and not (out.is_dir() and all(_is_left_over(inside) for inside in out.iterdir())):
        raise UserError(say("training.out_in_use", out=out))


def _is_left_over(path: Path) -> bool:
    """Whether it is a lock, or a folder of token files that a killed process left: those that are whole are used."""
    if path.name == LOCK:
        return True
    if path.name != "tokens" or not path.is_dir():
        return False
    own = {f"{side}.tokens" for side in SIDES}
    return all(inside.name in own or inside.name.startswith(PARTIAL) for inside in path.iterdir())


@contextmanager
def _nothing_left(out: Path) -> Iterator[None]:
    """Whatever goes wrong inside leaves no token files that were not there, and no folder."""
    tokens, there, done = out / "tokens", out.exists(), False
    before = set(tokens.iterdir()) if tokens.is_dir() else None
    try:
        yield
        done = True
    finally:
        if not done and tokens.is_dir():
            for made in set(tokens.iterdir()) - (before or set()):
                made.unlink(missing_ok=True)
            if before is None:
                tokens.rmdir()
        if not done and not there and out.is_dir() and not any(out.iterdir()):
            out.rmdir()

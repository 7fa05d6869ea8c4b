"""`clearhead train`: learn from text."""

from __future__ import annotations

import signal
from argparse import SUPPRESS
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from shlex import quote
from types import FrameType
from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser, Namespace

from clearhead.cli.model_flags import leaves_kind_open, typed_fields, without_fields
from clearhead.cli.options import INTERRUPTED, add_device, instantiate, own_name, parse, parser, tell, use_threads
from clearhead.messages import UserError, say
from clearhead.models.config import DecoderConfig, ModelConfig
from clearhead.models.low_rank import LowRank
from clearhead.models.presets import preset

if TYPE_CHECKING:
    import torch

    from clearhead.training.choosing import Given
    from clearhead.training.dashboard import Dashboard
    from clearhead.training.plan import Plan

SETTINGS = (
    ("--steps", int, "updates; as many as fit the time if not given"),
    ("--batch", int, "windows or pairs an update learns from"),
    ("--lr", float, "highest learning rate; falls with the width if not given"),
    ("--final-lr", float, "last learning rate, as a part of the highest (default 0.1)"),
    ("--warmup", int, "updates in which the learning rate rises (default 100, or a tenth of the steps)"),
    ("--weight-decay", float, "AdamW's, on matrices only (default 0.1)"),
    ("--beta2", float, "AdamW's decay of squared gradients (default 0.99)"),
    ("--clip", float, "largest gradient norm an update uses (default 1)"),
    ("--seed", int, "of weights, order of the data and dropout (default 0)"),
    (
        "--eval-every",
        int,
        "updates between evaluations of the validation data (default a fifth of the steps, at least 100)",
    ),
    ("--checkpoint-every", int, "updates between checkpoints (default as --eval-every)"),
    ("--keep", int, "how many of the latest checkpoints stay, beside the best (default 2)"),
    ("--optimizer", str, "adamw (default), or muon for the matrices of the blocks"),
    ("--schedule", str, "how the learning rate falls: cosine (default), linear, wsd or constant"),
    ("--label-smoothing", float, "part of the target that is spread over the vocabulary (default 0)"),
    ("--micro-batch", int, "rows that go through the model at a time, to save memory; the numbers stay"),
    ("--logits-at-once", int, "positions that have logits at a time, to save memory; the numbers stay"),
)

SWITCHES = (
    ("--recompute", "run blocks again in the backward, to save memory for a third more time"),
    ("--compile", "let PyTorch compile the update"),
    ("--skip-nonfinite", "leave out an update that is not finite, where the training would stop"),
)


def options() -> ArgumentParser:
    """The flags of `clearhead train`."""
    made = parser("train")
    # Without a default, so that not typing any does not hide those of a --config.
    made.add_argument(
        "text",
        nargs="*",
        default=SUPPRESS,
        help="what to learn from: text files (.txt .md .jsonl, also .gz) and folders, none for the built-in corpus;"
        " .tsv or .csv files of pairs for an EncoderDecoder; .jsonl files with messages for answers",
    )
    made.add_argument("--out", type=str, default=None, help="run directory to make, or to go on with")
    made.add_argument("--resume", action="store_true", help="go on with the run in --out")
    made.add_argument("--config", action="config", help="YAML or JSON file with these options")
    made.add_argument(
        "--encoding", type=str, default=None, help="of the files, such as utf-8 or gb18030; recognised if auto"
    )
    made.add_argument("--errors", type=str, default=None, help="bytes that do not fit: strict (default) or replace")
    made.add_argument("--field", type=str, default=None, help="the field of a .jsonl line that is its text (text)")
    made.add_argument(
        "--tokenizer", type=str, default=None, help="character (default), byte, bpe, or the path of a tokenizer.json"
    )
    made.add_argument(
        "--vocab", type=int, default=None, help="ids of --tokenizer bpe; picked for the text if not given"
    )
    made.add_argument(
        "--document-mask", type=bool, default=None, help="whether packed documents see themselves alone (true)"
    )
    made.add_argument("--init", type=str, default=None, help="a model to continue: its weights, sizes and tokenizer")
    made.add_argument(
        "--lora",
        type=LowRank | None,
        default=None,
        help="train changes of low rank beside the weights of --init, which stay: --lora.rank 8, --lora.alpha, --lora.targets",
    )
    made.add_argument(
        "--model",
        type=ModelConfig,
        default=None,
        help="Decoder (default), Encoder or EncoderDecoder, its sizes and parts, as in --model.layers 4 --model.positions Rotary;"
        " what is not given is chosen for the data (--model.help DecoderConfig lists all)",
    )
    made.add_argument(
        "--preset", type=str, default=None, help="sizes and parts of a known model, such as nanogpt or qwen3"
    )
    made.add_argument(
        "--minutes",
        type=float,
        default=None,
        help="choose the best model and its steps for so much time on this machine",
    )
    for flag, kind, meaning in SETTINGS:
        made.add_argument(flag, type=kind, default=None, help=meaning)
    for flag, meaning in SWITCHES:
        made.add_argument(flag, action="store_true", default=None, help=meaning)
    made.add_argument("--tensorboard", type=str, default=None, help="also write for TensorBoard into this folder")
    add_device(made, dtype=None, dtypes="float32 (default), bfloat16 or float16 for the forward, or bfloat16-weights")
    return made


def run(arguments: Sequence[str]) -> int:
    """Train; 0 when done, 130 when stopped by the user and saved."""
    made = options()
    asked = instantiate(made, parse(made, arguments, kind=_kind_meant(made, arguments)))
    if asked.out is None:
        raise UserError(say("cli.train.no_out"))
    use_threads(asked.threads)
    kind_named = asked.model is not None and not leaves_kind_open(arguments)
    return _train(asked, typed_fields(arguments), kind_named=kind_named)


def _kind_meant(made: ArgumentParser, arguments: Sequence[str]) -> str:
    """The class that `--model.width 16` means where none is typed: that of the run gone on with, or a decoder's.

    Raises:
        UserError: if there is no such run, or something beside the fields is wrong.
    """
    if leaves_kind_open(arguments):
        asked = parse(made, without_fields(arguments))
        known = asked.out if asked.resume else asked.init
        if known is not None:
            from clearhead.formats.find import config_of  # noqa: PLC0415 - it brings numpy, for which --help need not wait

            return type(config_of(known)).__name__
    return DecoderConfig.__name__


def _train(asked: Namespace, typed: frozenset[str], *, kind_named: bool) -> int:
    from clearhead.models.device import pick_device  # noqa: PLC0415 - torch comes after the flags are right
    from clearhead.training.tensorboard import TensorBoard  # noqa: PLC0415

    device = pick_device(asked.device)
    tell(say("cli.train.preparing"))
    boards = [] if asked.tensorboard is None else [TensorBoard(Path(asked.tensorboard))]
    if asked.resume and asked.minutes is not None:
        raise UserError(say("training.no_effect", flag="--minutes", reason=say("cli.train.sized_already")))
    with _alone(Path(asked.out), resume=asked.resume):
        plan = _plan(asked, typed, device)
        return _run(asked, plan, device, boards, pairs_meant=kind_named or asked.resume)


@contextmanager
def _alone(out: Path, *, resume: bool) -> Iterator[None]:
    """Hold the run directory, made if a new run is to be there; nothing is left of it if nothing was put into it."""
    from clearhead.formats.atomic import clear_failure  # noqa: PLC0415
    from clearhead.formats.lock import training_alone  # noqa: PLC0415
    from clearhead.training.plan import must_be_free  # noqa: PLC0415

    there = out.exists()
    if not resume:
        must_be_free(out)
        with clear_failure(out):
            out.mkdir(parents=True, exist_ok=True)
    try:
        with training_alone(out):
            yield
    finally:
        if not there and out.is_dir() and not any(out.iterdir()):
            out.rmdir()


def _run(asked: Namespace, plan: Plan, device: torch.device, boards: Sequence[Dashboard], *, pairs_meant: bool) -> int:
    from clearhead.cli.closing import closing, next_command  # noqa: PLC0415
    from clearhead.cli.follow import available, estimate_of, follow, warned  # noqa: PLC0415
    from clearhead.training.run import Training  # noqa: PLC0415

    done = plan.run.checkpoints()[-1:]
    if done and done[0].step >= plan.settings.steps:
        print(say("cli.train.finished_already", out=asked.out, steps=done[0].step))
        return 0
    estimate = estimate_of(plan, device)
    room = available(device)
    training = Training(plan.run, plan.settings, plan.objective, device, init=plan.init)
    for note in (*plan.data.notes, *plan.reasons):
        tell(note)
    if not pairs_meant and _looks_like_pairs(plan):
        tell(say("cli.train.looks_like_pairs"))
    for line in (estimate.words(), estimate.warning(room), *warned(plan, device)):
        if line is not None:
            tell(line)
    with _stop_between_updates() as stopped:
        last = follow(training, plan, estimate, stopped, boards)
    if training.step < plan.settings.steps:
        training.save_if_new()
        command = f"{own_name()} train --out {quote(asked.out)} --resume"
        print(say("cli.train.stopped", step=training.step, command=command))
        return INTERRUPTED
    print("\n".join([*closing(plan, training), *last]))
    print(say("cli.train.done", command=f"{own_name()} {next_command(plan, asked.out)}"))
    return 0


def _plan(asked: Namespace, typed: frozenset[str], device: torch.device) -> Plan:
    from clearhead.cli.progress import reading_bar  # noqa: PLC0415
    from clearhead.training.data_choice import DataChoice  # noqa: PLC0415
    from clearhead.training.plan import new_plan, resumed_plan  # noqa: PLC0415

    flags = [flag for flag, *_ in (*SETTINGS, *SWITCHES)]
    names = [*(flag.lstrip("-").replace("-", "_") for flag in flags), "dtype"]
    files = asked.get("text") or []
    files = [files] if isinstance(files, str) else files
    given: Given = {name: asked[name] for name in names if asked[name] is not None}
    model, named = _preset(asked, typed)
    choice = DataChoice(**{field.name: asked[field.name] for field in fields(DataChoice)})
    if asked.resume:
        return resumed_plan(
            Path(asked.out),
            files,
            given,
            choice=choice,
            model=model,
            typed=named,
            init=asked.init,
            lora=asked.lora,
            watch=reading_bar,
        )
    return new_plan(
        Path(asked.out),
        files,
        given,
        choice=choice,
        model=model,
        typed=named,
        init=asked.init,
        lora=asked.lora,
        minutes=asked.minutes,
        device=device,
        watch=reading_bar,
    )


def _preset(asked: Namespace, typed: frozenset[str]) -> tuple[ModelConfig | None, frozenset[str] | None]:
    """The model that is asked for, and which of its fields: all of them if it is a known one."""
    if asked.preset is None:
        return asked.model, typed
    if asked.model is not None:
        raise UserError(say("cli.train.preset_and_model", preset=asked.preset))
    return preset(asked.preset), None


def _looks_like_pairs(plan: Plan) -> bool:
    """Whether a decoder is about to learn from what an encoder-decoder would learn more from."""
    from clearhead.text import look_like_pairs  # noqa: PLC0415
    from clearhead.text.streams import nothing  # noqa: PLC0415
    from clearhead.training.text_data import TextData  # noqa: PLC0415

    if not isinstance(plan.data, TextData) or not isinstance(plan.run.model, DecoderConfig):
        return False
    return all(look_like_pairs(document.parts) for document in plan.data.texts.read(nothing))


@contextmanager
def _stop_between_updates() -> Iterator[list[int]]:
    """Ctrl-C or SIGTERM asks for a stop after the present update; a second one stops at once, unsaved."""
    stopped: list[int] = []

    def ask(number: int, _frame: FrameType | None) -> None:
        if stopped:
            raise KeyboardInterrupt
        stopped.append(number)
        tell(say("cli.train.stopping"))

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

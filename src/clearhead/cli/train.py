"""`clearhead train`: learn from text."""

from __future__ import annotations

import signal
import sys
from argparse import SUPPRESS
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from types import FrameType
from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser, Namespace

from clearhead.cli.model_flags import leaves_kind_open, typed_fields, without_fields
from clearhead.cli.options import INTERRUPTED, add_device, instantiate, own_name, parse, parser, use_threads
from clearhead.messages import UserError, say
from clearhead.models.config import DecoderConfig, ModelConfig

if TYPE_CHECKING:
    import torch

    from clearhead.training.plan import Given, Plan
    from clearhead.training.run import Training

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
)


def options() -> ArgumentParser:
    """The flags of `clearhead train`."""
    made = parser("train")
    # Without a default, so that not typing any does not hide those of a --config.
    made.add_argument(
        "text",
        nargs="*",
        default=SUPPRESS,
        help="text files to learn from, none for the built-in corpus; TSV files of pairs for an EncoderDecoder",
    )
    made.add_argument("--out", type=str, default=None, help="run directory to make, or to go on with")
    made.add_argument("--resume", action="store_true", help="go on with the run in --out")
    made.add_argument("--config", action="config", help="YAML or JSON file with these options")
    made.add_argument(
        "--encoding", type=str, default=None, help="of the files, such as utf-8 or gb18030; recognised if auto"
    )
    made.add_argument("--tokenizer", type=str, default=None, help="character (default) or byte")
    made.add_argument(
        "--model",
        type=ModelConfig,
        default=None,
        help="Decoder (default) or EncoderDecoder, its sizes and parts, as in --model.layers 4 --model.positions Rotary;"
        " what is not given is chosen for the data (--model.help DecoderConfig lists all)",
    )
    for flag, kind, meaning in SETTINGS:
        made.add_argument(flag, type=kind, default=None, help=meaning)
    add_device(made, dtype=None, dtypes="float32 (default), or bfloat16 for the forward")
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
        if asked.resume and asked.out is not None:
            from clearhead.formats.run import read_run  # noqa: PLC0415 - it brings numpy, for which --help need not wait

            return type(read_run(Path(asked.out)).model).__name__
    return DecoderConfig.__name__


def _train(asked: Namespace, typed: frozenset[str], *, kind_named: bool) -> int:
    from clearhead.models.device import pick_device  # noqa: PLC0415 - torch comes after the flags are right
    from clearhead.training.run import Training  # noqa: PLC0415

    device = pick_device(asked.device)
    _tell(say("cli.train.preparing"))
    plan = _plan(asked, typed, device)
    for note in (*plan.data.notes, *plan.reasons):
        _tell(note)
    if not kind_named and not asked.resume and _looks_like_pairs(plan):
        _tell(say("cli.train.looks_like_pairs"))
    batch, seed = plan.settings.batch, plan.settings.seed
    objective = plan.data.objective(plan.run.model, batch=batch, seed=seed)
    training = Training(plan.run, plan.settings, objective, device)
    if training.step >= plan.settings.steps:
        print(say("cli.train.finished_already", out=asked.out, steps=training.step))
        return 0
    with _stop_between_updates() as stopped:
        _follow(training, plan, stopped)
    if training.step < plan.settings.steps:
        training.save_if_new()
        command = f"{own_name()} train --out {quote(asked.out)} --resume"
        print(say("cli.train.stopped", step=training.step, command=command))
        return INTERRUPTED
    print(_summary(plan, training))
    print(say("cli.train.done", command=f"{own_name()} generate {quote(asked.out)}{_prompt_of(plan)}"))
    return 0


def _plan(asked: Namespace, typed: frozenset[str], device: torch.device) -> Plan:
    from clearhead.training.plan import new_plan, resumed_plan  # noqa: PLC0415

    names = [*(flag.lstrip("-").replace("-", "_") for flag, _, _ in SETTINGS), "dtype"]
    files = asked.get("text") or []
    files = [files] if isinstance(files, str) else files
    given: Given = {name: asked[name] for name in names if asked[name] is not None}
    if asked.resume:
        return resumed_plan(
            Path(asked.out),
            files,
            given,
            model=asked.model,
            typed=typed,
            encoding=asked.encoding,
            tokenizer=asked.tokenizer,
        )
    return new_plan(
        Path(asked.out),
        files,
        given,
        model=asked.model,
        typed=typed,
        encoding=asked.encoding or "auto",
        tokenizer=asked.tokenizer or "character",
        device=device,
    )


def _follow(training: Training, plan: Plan, stopped: list[int]) -> None:
    """Hand every event to its consumers until the training ends or the user stops it."""
    from clearhead.cli.progress import Progress  # noqa: PLC0415
    from clearhead.training.metrics import MetricsFile  # noqa: PLC0415

    with MetricsFile(plan.run, training.step) as metrics, Progress(training, plan) as progress:
        for event in training.events(stop=lambda: bool(stopped)):
            metrics.take(event)
            progress.take(event)


def _looks_like_pairs(plan: Plan) -> bool:
    """Whether a decoder is about to learn from what an encoder-decoder would learn more from."""
    from clearhead.text import look_like_pairs  # noqa: PLC0415
    from clearhead.training.text_data import TextData  # noqa: PLC0415

    return isinstance(plan.data, TextData) and all(map(look_like_pairs, plan.data.texts.documents))


def _prompt_of(plan: Plan) -> str:
    """What to write behind `generate`: an encoder-decoder answers nothing unasked."""
    from clearhead.training.pair_data import PairData  # noqa: PLC0415

    return f" --prompt={quote(plan.data.example.source)}" if isinstance(plan.data, PairData) else ""


def _summary(plan: Plan, training: Training) -> str:
    """The final loss in words, beside what it can be compared with."""
    from clearhead.training.text_data import TextData  # noqa: PLC0415

    data, last = plan.data, training.evaluated
    assert last is not None
    loss = last.val_loss
    if not isinstance(data, TextData):
        count = len(data.validation)
        right = round(last.measures["exact_match"] * count)
        line = say(
            "cli.train.summary_pairs",
            loss=f"{loss:.3f}",
            uniform=f"{data.uniform:.3f}",
            right=f"{right:,}",
            count=f"{count:,}",
        )
        return f"{line}{_best(plan, training)}"
    line = say("cli.train.summary", loss=f"{loss:.3f}", uniform=f"{data.uniform:.3f}", bigram=f"{data.bigram:.3f}")
    line = f"{line}{_best(plan, training)}"
    if data.entropy is None:
        return line
    return f"{line} {say('cli.train.entropy', entropy=f'{data.entropy:.3f}', above=f'{loss - data.entropy:.3f}')}"


def _best(plan: Plan, training: Training) -> str:
    """Which weights `generate` takes, if they are not the last."""
    best = plan.run.best()
    if best.step == training.step:
        return ""
    return f" {say('cli.train.best', step=best.step, loss=f'{best.val_loss:.3f}')}"


@contextmanager
def _stop_between_updates() -> Iterator[list[int]]:
    """Ctrl-C or SIGTERM asks for a stop after the present update; a second one stops at once, unsaved."""
    stopped: list[int] = []

    def ask(number: int, _frame: FrameType | None) -> None:
        if stopped:
            raise KeyboardInterrupt
        stopped.append(number)
        _tell(say("cli.train.stopping"))

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)

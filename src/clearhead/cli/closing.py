"""What a training says at its end: a card that tells whether the loss is normal, and what to do next."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import Any

from tqdm import tqdm

from clearhead.cli.bar import plain_signs
from clearhead.messages import say
from clearhead.models.config import StackConfig
from clearhead.text.columns import columns_of
from clearhead.training.adapting import unchanged
from clearhead.training.conversation_data import ConversationData
from clearhead.training.course import course_of
from clearhead.training.pair_data import PairData
from clearhead.training.plan import Plan
from clearhead.training.record import read_record
from clearhead.training.run import Evaluated, Training
from clearhead.training.scoring import perplexity
from clearhead.training.sizing import pick_lr
from clearhead.training.tasks import HiddenTokens
from clearhead.training.text_data import TextData
from clearhead.training.verdict import Known, Verdict, judged

LEVELS = ("unigram", "bigram")

Row = tuple[str, str]
"""What it is, and its number."""


def closing(plan: Plan, training: Training) -> list[str]:
    """The card, what is to be said of the training in words, and what LoRA left as it was.

    Raises:
        AssertionError: if weights that were frozen have moved, which is a defect of clearhead.
    """
    last = training.evaluated
    assert last is not None
    lines = _lines(plan, last)
    known = _known(plan, last.step)
    verdict = judged(lines, known)
    card = framed(
        _title(plan),
        [_ladder(plan, known, last), list(_measures(plan, verdict, last)), list(_work(plan, known, lines))],
        plain=plain_signs(sys.stdout),
    )
    said = [*card, *(f"- {each.sentence}" for each in verdict.findings)]
    if training.frozen is not None:
        assert unchanged(training.model, training.frozen), "weights that were frozen have moved"
        said.append(say("cli.train.frozen", sha256=training.frozen[:16]))
    return said


def next_command(plan: Plan, out: str) -> str:
    """What can be done with the model now, without the name of the program."""
    data = plan.data
    if isinstance(data, ConversationData):
        return f"chat {quote(out)}"
    if isinstance(data, PairData):
        # It answers nothing unasked.
        return f"generate {quote(out)} --prompt={quote(data.example.source)}"
    if not isinstance(data.task, HiddenTokens):
        return f"generate {quote(out)}"
    files = [quote(file) for file in data.source.get("files", ())]
    # Read otherwise, the files would hold another text.
    read = [f"--{name}={quote(data.source[name])}" for name in ("encoding", "errors", "field") if name in data.source]
    usual = "--encoding=auto"
    return " ".join(["eval", quote(out), *files, *(flag for flag in read if flag != usual)])


def framed(title: str, groups: Sequence[Sequence[Row]], *, plain: bool) -> list[str]:
    """A table in a frame: labels to the left, numbers to the right, a line between groups.

    Args:
        title: above the first group.
        groups: rows; empty ones are left out.
        plain: ASCII alone; the signs of frames are one column wide on some consoles and two on others.
    """
    rows = [row for group in groups for row in group]
    labels = max(columns_of(label) for label, _ in rows)
    numbers = max(columns_of(number) for _, number in rows)
    inside = max(labels + 2 + numbers, columns_of(title))
    plus = ("+", "+")
    corners = (plus, plus, plus) if plain else (("┌", "┐"), ("├", "┤"), ("└", "┘"))
    across, down = ("-", "|") if plain else ("─", "│")
    top, between, bottom = (left + across * (inside + 2) + right for left, right in corners)
    framed_rows = [f"{down} {_filled(title, '', inside)} {down}"]
    for group in groups:
        if group:
            framed_rows += [between, *(f"{down} {_filled(label, number, inside)} {down}" for label, number in group)]
    return [top, *framed_rows, bottom]


def _filled(left: str, right: str, width: int) -> str:
    return left + " " * (width - columns_of(left) - columns_of(right)) + right


def _title(plan: Plan) -> str:
    """The question, and of what the losses are means."""
    if not isinstance(plan.data, TextData):
        return say("closing.title_answers")
    return say("closing.title_hidden" if isinstance(plan.data.task, HiddenTokens) else "closing.title")


def _lines(plan: Plan, last: Evaluated) -> list[dict[str, Any]]:
    """The lines of metrics; if somebody deleted them, what is known without."""
    lines = read_record(plan.run.metrics)
    if any("val_loss" in line for line in lines):
        return lines
    return [*lines, {"step": last.step, "val_loss": last.val_loss, "lr": plan.settings.lr}]


def _known(plan: Plan, steps: int) -> Known:
    """What the training is measured against."""
    data, config, settings = plan.data, plan.run.model, plan.settings
    assert isinstance(config, StackConfig)
    fresh = plan.run.begins_with is None
    return Known(
        uniform=data.uniform,
        levels=_levels(plan),
        entropy=data.entropy if isinstance(data, TextData) else None,
        epochs=steps * data.tokens_a_step(config, settings.batch) / data.tokens,
        # What another model learns next is learnt at other rates, and its dropout is its own.
        usual_lr=pick_lr(config.width, settings.optimizer) if fresh else None,
        clip=settings.clip,
        dropout=config.dropout if fresh else None,
        comparable=not settings.label_smoothing,
    )


def _levels(plan: Plan) -> Mapping[str, float]:
    """The losses of tables of counts, as the run has recorded them; runs of older versions have not."""
    if not isinstance(plan.data, TextData):
        return {}
    known = plan.run.details.get("levels")
    recorded = {name: known[name] for name in LEVELS if name in known} if isinstance(known, dict) else {}
    return recorded or plan.data.levels


def _ladder(plan: Plan, known: Known, last: Evaluated) -> list[Row]:
    """The model among what it can be compared with, the worst first."""
    best = plan.run.best()
    loss, step = (last.val_loss, last.step) if best.val_loss is None else (best.val_loss, best.step)
    steps: Mapping[str, float] = {"uniform": known.uniform, **known.levels}
    if known.entropy is not None:
        steps = {**steps, "entropy": known.entropy}
    rows = [(value, "  " + say(f"closing.level.{name}")) for name, value in steps.items()]
    rows.append((loss, "> " + say("closing.row.model", step=step)))
    return [(label, f"{value:.3f}") for value, label in sorted(rows, key=lambda row: -row[0])]


def _measures(plan: Plan, verdict: Verdict, last: Evaluated) -> Iterator[Row]:
    """Other numbers of the model that the card is about, and what the end of the training had."""
    best, data = plan.run.best(), plan.data
    loss = last.val_loss if best.val_loss is None else best.val_loss
    yield say("closing.row.perplexity"), f"{perplexity(loss):,.3f}"
    if isinstance(data, TextData) and not isinstance(data.task, HiddenTokens):
        yield say("closing.row.bits"), f"{loss * data.tokens_per_byte / math.log(2):.3f}"
    if best.step != last.step:
        yield say("closing.row.last", step=last.step), f"{last.val_loss:.3f}"
    yield say("closing.row.train"), f"{verdict.train:.3f}"
    yield say("closing.row.gap"), f"{verdict.gap:+.3f}"
    count = len(data.validation) if not isinstance(data, TextData) else 0
    if "exact_match" in last.measures:
        right = round(last.measures["exact_match"] * count)
        yield say("closing.row.exact_match"), say("closing.of", right=f"{right:,}", count=f"{count:,}")
    if "answers_right" in last.measures:
        share = f"{last.measures['answers_right']:.1%}"
        yield say("closing.row.answers_right", count=f"{count:,}"), share


def _work(plan: Plan, known: Known, lines: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    """What it took."""
    config, batch = plan.run.model, plan.settings.batch
    steps = course_of(lines).steps
    a_step = plan.data.tokens_a_step(config, batch)
    done = int(steps[-1] * a_step) if steps.size else 0
    epochs = f"{known.epochs:,.1f}" if known.epochs >= 1 else f"{known.epochs:.2g}"
    yield say("closing.row.tokens", epochs=epochs), f"{done:,}"
    timed = [(line.get("tokens", a_step), line["tokens_per_second"]) for line in lines if line.get("tokens_per_second")]
    if timed:
        seconds = sum(tokens / speed for tokens, speed in timed)
        speed = f"{sum(tokens for tokens, _ in timed) / seconds:,.0f}"
        yield say("closing.row.time", speed=speed), tqdm.format_interval(seconds)

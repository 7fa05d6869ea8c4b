"""What a training says at its end: how good the model is, in words, and what to do next."""

from __future__ import annotations

from shlex import quote

from clearhead.messages import say
from clearhead.training.adapting import unchanged
from clearhead.training.conversation_data import ConversationData
from clearhead.training.pair_data import PairData
from clearhead.training.plan import Plan
from clearhead.training.run import Evaluated, Training
from clearhead.training.tasks import HiddenTokens
from clearhead.training.text_data import TextData


def closing(plan: Plan, training: Training) -> list[str]:
    """The final loss beside what it can be compared with, and what LoRA left as it was.

    Raises:
        AssertionError: if weights that were frozen have moved, which is a defect of clearhead.
    """
    last = training.evaluated
    assert last is not None
    lines = [" ".join([_compared(plan, last), *_best(plan, training)])]
    if training.frozen is not None:
        assert unchanged(training.model, training.frozen), "weights that were frozen have moved"
        lines.append(say("cli.train.frozen", sha256=training.frozen[:16]))
    return lines


def next_command(plan: Plan, out: str) -> str:
    """What can be done with the model now, without the name of the program."""
    data, files = plan.data, [quote(file) for file in plan.data.source.get("files", ())]
    if isinstance(data, ConversationData):
        return f"chat {quote(out)}"
    if isinstance(data, PairData):
        # It answers nothing unasked.
        return f"generate {quote(out)} --prompt={quote(data.example.source)}"
    return f"eval {quote(out)} {' '.join(files)}" if isinstance(data.task, HiddenTokens) else f"generate {quote(out)}"


def _compared(plan: Plan, last: Evaluated) -> str:
    data, loss = plan.data, f"{last.val_loss:.3f}"
    uniform = f"{data.uniform:.3f}"
    if isinstance(data, PairData):
        count = len(data.validation)
        right = round(last.measures["exact_match"] * count)
        return say("cli.train.summary_pairs", loss=loss, uniform=uniform, right=f"{right:,}", count=f"{count:,}")
    if isinstance(data, ConversationData):
        share = f"{last.measures['answers_right']:.1%}"
        return say("cli.train.summary_answers", loss=loss, uniform=uniform, share=share, count=len(data.validation))
    counted = f"{data.baseline:.3f}"
    if isinstance(data.task, HiddenTokens):
        return say("cli.train.summary_hidden", loss=loss, uniform=uniform, unigram=counted)
    return " ".join([say("cli.train.summary", loss=loss, uniform=uniform, bigram=counted), *_entropy(data, last)])


def _entropy(data: TextData, last: Evaluated) -> list[str]:
    if data.entropy is None:
        return []
    above = last.val_loss - data.entropy
    return [say("cli.train.entropy", entropy=f"{data.entropy:.3f}", above=f"{above:.3f}")]


def _best(plan: Plan, training: Training) -> list[str]:
    """Which weights `generate` takes, if they are not the last."""
    best = plan.run.best()
    if best.step == training.step:
        return []
    return [say("cli.train.best", step=best.step, loss=f"{best.val_loss:.3f}")]

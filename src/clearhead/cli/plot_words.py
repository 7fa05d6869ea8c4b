"""The words on a plot, in the user's language, or in English where nothing can draw the user's signs."""

from __future__ import annotations

from typing import NamedTuple

from clearhead.messages import say
from clearhead.messages.plotting import MESSAGES


class Words(NamedTuple):
    """All that a plot says besides numbers and the names of runs; a field a message `plot.word_...`."""

    step: str
    tokens: str
    seconds: str
    loss: str
    val_loss: str
    lr: str
    grad_norm: str
    tokens_per_second: str
    ceiling_share: str
    memory: str
    every_update: str
    mean: str
    validation: str
    best: str
    best_mark: str
    measured: str
    uniform: str
    unigram: str
    bigram: str
    entropy: str
    far: str

    def title(self, column: str) -> str:
        """What a column is called; one without a word by its own name."""
        titles = {
            "loss": self.loss,
            "val_loss": self.val_loss,
            "lr": self.lr,
            "grad_norm": self.grad_norm,
            "tokens_per_second": self.tokens_per_second,
            "ceiling_share": self.ceiling_share,
            "memory": self.memory,
        }
        return titles.get(column, column)

    def axis(self, name: str) -> str:
        """What an axis is called."""
        return {"step": self.step, "tokens": self.tokens, "seconds": self.seconds}[name]

    def level(self, name: str, value: str) -> str:
        """A level with its value; one without a word by its own name."""
        levels = {
            "uniform": self.uniform,
            "unigram": self.unigram,
            "bigram": self.bigram,
            "entropy": self.entropy,
        }
        return f"{levels.get(name, name)} {value}"

    def outside(self, label: str) -> str:
        """A level that is named and not drawn."""
        return self.far.format(level=label)

    def mean_of(self, window: int) -> str:
        """The running mean."""
        return self.mean.format(window=window)

    def best_of(self, value: str, step: int) -> str:
        """The best validation loss of a run."""
        return self.best.format(value=value, step=f"{step:,}")


def english_words() -> Words:
    """English, whatever the user speaks."""
    return Words(*(MESSAGES[f"plot.word_{field}"][0] for field in Words._fields))


def words() -> Words:
    """The user's language."""
    return Words(
        step=say("plot.word_step"),
        tokens=say("plot.word_tokens"),
        seconds=say("plot.word_seconds"),
        loss=say("plot.word_loss"),
        val_loss=say("plot.word_val_loss"),
        lr=say("plot.word_lr"),
        grad_norm=say("plot.word_grad_norm"),
        tokens_per_second=say("plot.word_tokens_per_second"),
        ceiling_share=say("plot.word_ceiling_share"),
        memory=say("plot.word_memory"),
        every_update=say("plot.word_every_update"),
        mean=say("plot.word_mean", window="{window}"),
        validation=say("plot.word_validation"),
        best=say("plot.word_best", value="{value}", step="{step}"),
        best_mark=say("plot.word_best_mark"),
        measured=say("plot.word_measured"),
        uniform=say("plot.word_uniform"),
        unigram=say("plot.word_unigram"),
        bigram=say("plot.word_bigram"),
        entropy=say("plot.word_entropy"),
        far=say("plot.word_far", level="{level}"),
    )

"""What a training shows while it runs: a line that moves, evaluations, samples."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import NoReturn

from tqdm import tqdm

from clearhead.cli.samples import sample
from clearhead.formats.load import Loaded
from clearhead.messages import say
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.training.data_choice import Told
from clearhead.training.fit import Update, evaluating
from clearhead.training.plan import Plan
from clearhead.training.run import Evaluated, Event, Training

LAYOUT = "{desc} {bar:20} {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]"


class Progress:
    """Shows events as they come: loss, tokens/s and time left on a line; validation losses and samples above it.

    Args:
        training: the training shown.
        plan: what it set out to do.
    """

    def __init__(self, training: Training, plan: Plan) -> None:
        self._training, self._plan = training, plan
        self._bar = tqdm(
            total=plan.settings.steps,
            initial=training.step,
            bar_format=LAYOUT,
            desc=say("cli.train.step"),
            # A log file gets a line every few seconds, a terminal a line that moves.
            mininterval=0.2 if sys.stderr.isatty() else 10.0,
            dynamic_ncols=True,
        )

    def take(self, event: Event) -> None:
        """Show one event."""
        if isinstance(event, Update):
            speed = f"{event.terms / event.seconds:,.0f}"
            self._bar.set_postfix_str(say("cli.train.postfix", loss=f"{event.loss:.3f}", speed=speed), refresh=False)
            self._bar.update(1)
            if event.step % self._plan.settings.eval_every == 0 or event.step == self._plan.settings.steps:
                # The whole validation text is read now, which may take seconds.
                self._bar.set_description_str(say("cli.train.evaluating"))
        elif isinstance(event, Evaluated):
            self._bar.set_description_str(say("cli.train.step"), refresh=False)
            tqdm.write(_evaluated(event), file=sys.stderr)
            # A model whose training went wrong writes nothing.
            if math.isfinite(event.val_loss):
                tqdm.write(_indented(self._sample()), file=sys.stderr)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def _sample(self) -> str:
        loaded = self._loaded()
        with evaluating(loaded.model):
            return sample(loaded, self._plan.data)

    def _loaded(self) -> Loaded:
        """The model as it is now."""
        model, run = self._training.model, self._plan.run
        assert isinstance(model, Decoder | Encoder | EncoderDecoder)
        assert isinstance(run.model, DecoderConfig | EncoderConfig | EncoderDecoderConfig)
        return Loaded(model, run.tokenizer, run.model, run.path, run.chat_template())


def _evaluated(event: Evaluated) -> str:
    loss = f"{event.val_loss:.4f}"
    for share in event.measures.values():
        return say("cli.train.evaluated_pairs", step=event.step, loss=loss, share=f"{share:.2%}")
    return say("cli.train.evaluated", step=event.step, loss=loss)


@contextmanager
def reading_bar(what: str, size: int) -> Iterator[Told]:
    """A bar for what takes longer than two seconds: bytes of files."""
    with tqdm(total=size, desc=what, unit="B", unit_scale=True, delay=2, leave=False, dynamic_ncols=True) as bar:
        yield lambda count: _moved(bar, count)


def _moved(bar: tqdm[NoReturn], count: int) -> None:
    bar.update(count)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.strip().splitlines())

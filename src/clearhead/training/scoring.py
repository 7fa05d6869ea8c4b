"""How well a model predicts texts it is given: loss, perplexity, bits per byte and per character.

What is scored. A text is its ids; with a tokenizer that has both marks it is begin, ids, end. Every token is scored but
the first, which nothing stands before: so with marks every token of the text and the end mark, without them all of its
tokens but one. Nothing is scored twice, and what fills up a batch is not scored.

What a token is predicted from. Windows of the model's context move on by `stride`. With the stride of the context they
touch: a token is predicted from 1 to T tokens before it. With a smaller one they overlap, and of each window but the
first only the last `stride` tokens are scored: each is predicted from more than T - stride tokens before it, or from all
there are. No token ever sees beyond the context.

The mean is Σ -ln p / tokens over everything, never a mean of means, so that it depends neither on the batch nor on the
lengths of the texts. Σ runs in float64, -ln p in the wider of float32 and the type of the logits.

Bits per byte and per character are Σ -ln p / ln 2 over the UTF-8 bytes, or the characters, of the text that the scored
tokens stand for (as read: line ends LF, no byte order mark). A first token that is not scored takes its bytes with it; a
character counts with its last byte. An end mark has no bytes, but its -ln p is in the sum: where a text ends is a part of
it. A character that the tokenizer does not know is predicted as the unknown mark, which is easier than the character:
`unknown` counts them, and where there are any, the bits are too few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.formats.load import Loaded
from clearhead.messages import UserError, say
from clearhead.models.decoder import Decoder
from clearhead.ops.loss import IGNORED
from clearhead.ops.softmax import at_least_float32
from clearhead.training.batches import Batch, strided
from clearhead.training.fit import evaluating
from clearhead.training.scoring_text import Readable, spooled

TOKENS_AT_ONCE = 16_384
"""How many tokens go through the model together at most, unless one window has more; bounds the memory, not the result."""
LOGITS_AT_ONCE = 1 << 26
"""How many logits that gives at most."""

Progress = Callable[[int, int], None]
"""Is told how many tokens are scored, and how many there are; before that, how many characters are read, of 0."""


@dataclass(frozen=True)
class Score:
    """How well a model predicts some texts."""

    loss: float
    """Mean of -ln p over the scored tokens (nats per token)."""
    tokens: int
    """How many are scored, end marks among them."""
    ends: int
    """How many of them are end marks."""
    documents: int
    """How many texts they are of."""
    bytes: int
    """Of the scored text in UTF-8."""
    characters: int
    """Of the scored text."""
    unknown: int
    """How many scored characters the tokenizer does not know: the bits per byte and per character leave out what they are."""
    context: int
    """T, the most tokens that one is predicted from."""
    stride: int
    """How far one window stands behind the other; the context if they touch."""

    @property
    def perplexity(self) -> float:
        """exp(loss); infinite where no float is so large."""
        return perplexity(self.loss)

    @property
    def bits_per_byte(self) -> float:
        """loss · tokens / (ln 2 · bytes); NaN if nothing but end marks is scored."""
        return self._bits(self.bytes)

    @property
    def bits_per_character(self) -> float:
        """loss · tokens / (ln 2 · characters); NaN if nothing but end marks is scored."""
        return self._bits(self.characters)

    def _bits(self, count: int) -> float:
        return self.loss * self.tokens / math.log(2) / count if count else math.nan


def perplexity(loss: float) -> float:
    """exp(loss), infinite where no float is so large."""
    return math.exp(loss) if not loss > 709 else math.inf


def usual_batch(context: int, vocab: int) -> int:
    """Windows that go through a model together unless told otherwise; at least one."""
    return max(1, min(TOKENS_AT_ONCE // context, LOGITS_AT_ONCE // (context * vocab)))


def unseen(_done: int, _total: int) -> None:
    """Nobody looks at the progress."""


def score(
    loaded: Loaded,
    documents: Readable,
    *,
    stride: int | None = None,
    batch: int | None = None,
    limit: int | None = None,
    progress: Progress = unseen,
) -> Score:
    """Score texts with a decoder; the module says what exactly is scored.

    Texts of any length take the memory of a batch: their ids wait in a temporary file.

    Args:
        loaded: what `load` gave.
        documents: a text, several, or what `find_sources(...).documents` gives.
        stride: how far windows move on, 1 ≤ stride ≤ T; T if None.
        batch: windows that go through the model together; bounded by their tokens and logits if None.
        limit: score no more than the first so many tokens.
        progress: is told the characters read, then the tokens done and all of them, after each batch.

    Raises:
        UserError: if the model is no decoder, there is nothing to score, or a number is out of range.
    """
    model = loaded.model
    if not isinstance(model, Decoder):
        raise UserError(say("scoring.wants_decoder", name=type(model).__name__))
    context, vocab = model.context, loaded.tokenizer.size
    stride = checked("stride", context if stride is None else stride, context)
    batch = usual_batch(context, vocab) if batch is None else checked("batch", batch)
    limit = None if limit is None else checked("limit", limit)
    with TemporaryDirectory(prefix="clearhead-") as folder:
        text = spooled(Path(folder) / "tokens", loaded.tokenizer, documents, limit, lambda read: progress(read, 0))
        if text.tokens == 0:
            raise UserError(say("scoring.nothing"))
        begin, end = text.marks or (None, None)
        windows = strided(text.documents, context, stride, batch, begin=begin, end=end, limit=text.tokens)
        total, count = summed(model, windows, lambda done: progress(done, text.tokens))
    # What was scored is what was promised, or the numbers below would be of something else.
    assert count == text.tokens
    return Score(
        total / count,
        count,
        text.ends,
        text.scored,
        text.extent.bytes,
        text.extent.characters,
        text.unknown,
        context,
        stride,
    )


def checked(name: str, value: int, most: int | None = None) -> int:
    """The value, if it is at least 1 and at most `most`.

    Raises:
        UserError: otherwise.
    """
    if value < 1 or (most is not None and value > most):
        wanted = "≥ 1" if most is None else f"1 ... {most}"
        raise UserError(say("training.setting", name=name, value=value, wanted=wanted))
    return value


def summed(model: nn.Module, batches: Iterable[Batch], told: Callable[[int], None]) -> tuple[float, int]:
    """Σ -ln p(target) over the real targets of all batches, and their count; dropout off, the modes restored.

    Args:
        model: ids (B,T) -> logits (B,T,V).
        batches: inputs and targets (B,T), filled up at the end of a row.
        told: is told the count so far, after each batch.
    """
    device = next(model.parameters()).device
    total, count = 0.0, 0
    with evaluating(model):
        for batch in map(trimmed, batches):
            losses = losses_of(model(batch.inputs.to(device)), batch.targets.to(device))
            total, count = total + sum_of(losses), count + len(losses)
            told(count)
    return total, count


def trimmed(batch: Batch) -> Batch:
    """The batch without the columns in which no row has a target any more: padding of short texts costs nothing."""
    used = (batch.targets != IGNORED).any(0).nonzero()
    length = int(used[-1]) + 1 if len(used) else 1
    return Batch(batch.inputs[:, :length], batch.targets[:, :length])


def losses_of(logits: Tensor, targets: Tensor) -> Tensor:
    """-ln p of each real target (N,), in the wider of float32 and the type of the logits.

    Args:
        logits: (..., V).
        targets: (...) ids, or `IGNORED`.
    """
    real = targets != IGNORED
    chosen = logits[real]
    return F.cross_entropy(chosen.to(at_least_float32(logits.dtype)), targets[real], reduction="none")


def sum_of(losses: Tensor) -> float:
    """Their sum in float64, which not every device has."""
    return losses.cpu().double().sum().item()

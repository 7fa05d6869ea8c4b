"""How well an encoder guesses tokens that are hidden from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from clearhead.formats.load import Loaded
from clearhead.layers.encoder_heads import MaskedTokenHead
from clearhead.messages import UserError, say
from clearhead.models.config_encoders import EncoderConfig
from clearhead.models.encoder import Encoder
from clearhead.ops.loss import IGNORED
from clearhead.training.fit import evaluating
from clearhead.training.masking import hiding_of, masked_whole
from clearhead.training.scoring import Progress, checked, losses_of, perplexity, sum_of, unseen, usual_batch
from clearhead.training.scoring_text import Readable, spooled


@dataclass(frozen=True)
class MaskedScore:
    """How well an encoder guesses."""

    loss: float
    """Mean of -ln p over the tokens that were asked for (nats per token)."""
    tokens: int
    """How many they are."""
    right: int
    """For how many of them the best token is the right one."""
    seed: int
    """Of what was hidden."""
    context: int
    """T, the most tokens that the model sees at once."""

    @property
    def perplexity(self) -> float:
        """exp(loss) of a hidden token: not to be compared with that of a model that sees only what stands before."""
        return perplexity(self.loss)

    @property
    def accuracy(self) -> float:
        """right / tokens."""
        return self.right / self.tokens


def score_masked(
    loaded: Loaded,
    documents: Readable,
    *,
    seed: int = 0,
    batch: int | None = None,
    limit: int | None = None,
    progress: Progress = unseen,
) -> MaskedScore:
    """Hide some tokens of every text, the same ones at every call, and ask an encoder for them.

    Args:
        loaded: what `load` gave.
        documents: a text, several, or what `find_sources(...).documents` gives.
        seed: of what is hidden; nothing else has a say in it.
        batch: windows that go through the model together; bounded by their tokens and logits if None.
        limit: read no more than the first so many tokens, or a window more.
        progress: is told the characters read, then the tokens seen and all of them, after each batch.

    Raises:
        UserError: if the model is no encoder that guesses tokens, its tokenizer has no mark that hides one, there is
            nothing to hide, or a number is out of range.
    """
    model, tokenizer = loaded.model, loaded.tokenizer
    if not isinstance(model, Encoder) or not isinstance(model.head, MaskedTokenHead):
        raise UserError(say("scoring.wants_encoder", name=_kind_of(loaded)))
    hiding = hiding_of(tokenizer)
    if hiding is None:
        raise UserError(say("scoring.no_mask"))
    batch = usual_batch(model.context, tokenizer.size) if batch is None else checked("batch", batch)
    limit = None if limit is None else checked("limit", limit)
    device = next(model.parameters()).device
    total, count, right, seen = 0.0, 0, 0, 0
    with TemporaryDirectory(prefix="clearhead-") as folder, evaluating(model):
        text = spooled(Path(folder) / "tokens", tokenizer, documents, limit, lambda read: progress(read, 0))
        windows = masked_whole(
            text.documents, model.context, batch, seed, hiding=hiding, begin=tokenizer.begin, end=tokenizer.end
        )
        for window in windows:
            each = window.to(device)
            logits = model(each.inputs, real=each.real)
            losses = losses_of(logits, each.targets)
            asked = each.targets != IGNORED
            total, count = total + sum_of(losses), count + len(losses)
            right += int(torch.count_nonzero(logits[asked].argmax(-1) == each.targets[asked]))
            seen += int(torch.count_nonzero(window.real))
            progress(seen, text.tokens + len(text.documents))
    return MaskedScore(total / count, count, right, seed, model.context)


def _kind_of(loaded: Loaded) -> str:
    """What a model is called that guesses no hidden tokens: by its head, if it is an encoder."""
    kind, config = type(loaded.model).__name__, loaded.config
    return f"{kind}, head {type(config.head).__name__}" if isinstance(config, EncoderConfig) else kind

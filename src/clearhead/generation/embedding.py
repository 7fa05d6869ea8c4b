"""Texts as vectors: what an encoder with a pooling head makes of each."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from clearhead.formats.load import Loaded
from clearhead.generation.rows import padded
from clearhead.messages import UserError, say
from clearhead.models.choices import Pooled
from clearhead.models.config_encoders import EncoderConfig


@torch.inference_mode()
def embed(loaded: Loaded, texts: Sequence[str], *, batch: int = 32) -> Tensor:
    """One vector for each text, in their order: (N,D), on the model's device.

    A text is read as the model was trained to read it, between the ids that open and close it (BERT's `[CLS]` and `[SEP]`). Of one
    that is longer than the context, the first tokens are read that fit between them. An empty text has a vector, too. Whether vectors
    have length 1, so that `vectors @ vectors.T` are cosines, is the model's own matter: `loaded.config.head.unit`.

    Texts of like length are read together; no vector depends on what is read beside it.

    Args:
        loaded: what `load` gave: an encoder whose head pools.
        texts: any number of them, none included.
        batch: how many are read in one forward at most.

    Raises:
        UserError: if the model makes no vector of a text, or `batch` is less than 1.
        TypeError: if `texts` is one text, whose letters would be taken for texts, or one of them is none.
    """
    config = loaded.config
    if not isinstance(config, EncoderConfig) or not isinstance(config.head, Pooled):
        kind = f"{type(config).__name__} {type(config.head).__name__}" if isinstance(config, EncoderConfig) else ""
        raise UserError(say("generation.no_vectors", path=loaded.source, kind=kind or type(config).__name__))
    if batch < 1:
        raise UserError(say("generation.setting", name="batch", value=batch, wanted="≥ 1"))
    if isinstance(texts, str):
        raise TypeError("texts is one text; give a list of them")
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"texts[{index}] is {type(text).__name__} and not str")
    rows = [_ids(loaded, text) for text in texts]
    order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
    weight = next(loaded.model.parameters())
    found = torch.empty(len(rows), config.width, dtype=weight.dtype, device=weight.device)
    for first in range(0, len(rows), batch):
        chosen = order[first : first + batch]
        ids, real = _matrix([rows[index] for index in chosen], weight.device)
        found[chosen] = loaded.model(ids, real=real)
    return found


def _ids(loaded: Loaded, text: str) -> list[int]:
    """What the model reads of a text: its opening, as many tokens as there is room for, its closing."""
    ids = loaded.tokenizer.encode(text)
    room = loaded.config.context - len(loaded.opening) - len(loaded.closing)
    return [*loaded.opening, *ids[: max(0, room)], *loaded.closing]


def _matrix(rows: list[list[int]], device: torch.device) -> tuple[Tensor, Tensor | None]:
    """The rows side by side; where all are empty, one place of padding, since a forward reads at least one."""
    if any(rows):
        return padded(rows, "right", device)
    shape = (len(rows), 1)
    return torch.zeros(shape, dtype=torch.long, device=device), torch.zeros(shape, dtype=torch.bool, device=device)

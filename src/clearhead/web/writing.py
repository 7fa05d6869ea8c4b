"""What an encoder-decoder answers to a text by itself: what a page begins with where nobody says what was written."""

from __future__ import annotations

from clearhead.formats.load import Loaded
from clearhead.generation.generate import generate
from clearhead.generation.writing import Generation
from clearhead.models.encoder_decoder import EncoderDecoder

LONGEST = 64
"""How many tokens it writes at most."""


def own_answer(loaded: Loaded, text: str) -> Generation:
    """The answer of an encoder-decoder, the most probable token each time, at most `LONGEST` of them: the same each time.

    Args:
        loaded: an encoder-decoder.
        text: what it reads.

    Raises:
        UserError: if it cannot write.
    """
    assert isinstance(loaded.model, EncoderDecoder)
    room = min(LONGEST, loaded.model.decoder.context - 1)
    return generate(loaded, text, max_tokens=room, temperature=0)

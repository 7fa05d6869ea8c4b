"""The models whose page is looked at: the one that comes with clearhead, a decoder, an encoder-decoder, and SmolLM2."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from clearhead.formats.load import Loaded, load
from clearhead.models import choices as c
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.text import ByteTokenizer
from clearhead.web.files import builtin
from tests.web.browser.translating import SOURCE, TARGET, translating
from tests.web.read_models import encoder, pair

QUICK = ("bytes", "built-in", "pair")
"""Those that are there at once."""
TEXTS = {
    "bytes": "the cat 小猫 sat",
    "built-in": "The little cat sat on the mat. 小猫趴在窗台上。",
    "pair": "abc小猫abcab",
    "encoder": "abc小猫abcab",
    "ring": "the little cat sat",
    "translating": SOURCE,
    "smollm2, float64": "The little cat sat on the mat, and the little dog sat on the rug.",
}
TARGETS = {"pair": "猫ab猫c", "translating": TARGET}
"""What an encoder-decoder has written."""


@cache
def model(name: str) -> Loaded:
    """One of them, loaded once.

    Raises:
        UserError: if it is not installed.
    """
    if name == "pair":
        return pair()
    if name == "encoder":
        return encoder()
    if name in ("bytes", "ring"):
        return _bytes(3 if name == "ring" else None)
    if name == "translating":
        return translating()
    if name == "built-in":
        return load(str(builtin()), dtype="float32")
    # Scores of SmolLM2 are small sums of large terms: in float32 two right orders of summing differ by more than is asked for.
    name, _, dtype = name.partition(", ")
    return load(name, dtype="float64" if dtype else "float32")


def _bytes(window: int | None = None) -> Loaded:
    """Reads any text, byte by byte; rotary, and two heads for each pair of keys and values; with a window its cache is a ring."""
    config = DecoderConfig(
        vocab=256,
        layers=3,
        heads=4,
        kv_heads=2,
        width=32,
        context=64,
        positions=c.Rotary(),
        kernel=c.Fused(),
        window=window,
    )
    made = build(config, seed=3).eval()
    assert isinstance(made, Decoder)
    return Loaded(made, ByteTokenizer(), config, Path("bytes"))

"""The families that are known, one table."""

from __future__ import annotations

from clearhead.formats.hugging_face.family import Family
from clearhead.formats.hugging_face.gpt2 import GPT2

FAMILIES: tuple[Family, ...] = (GPT2,)

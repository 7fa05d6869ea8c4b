"""A `tokenizer.json`, put together from the parts that other files hold: a vocabulary, merges, and rules known by a name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = [
    "GPT2",
    "LLAMA3",
    "NEOX",
    "QWEN2",
    "SMOLLM",
    "TEKKEN",
    "Splitting",
    "added_token",
    "byte_level",
    "library_file",
]


class Splitting(NamedTuple):
    """How byte-level BPE cuts a text into the pieces that it merges within. Nothing in a vocabulary tells it: it is known by a name."""

    pattern: str | None = None
    """What a piece is, as a regular expression; None for GPT-2's, which the library has built in."""
    digits: bool = False
    """Whether every digit is cut out first, as a piece of its own."""
    composed: bool = False
    """Whether the text is brought into Unicode's form NFC first."""
    whole: bool = False
    """Whether a piece that is a token is that token, whatever merges would make of it."""


_CASELESS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_SIGN = r"[^\r\n\p{L}\p{N}]?"
_CAPITALS, _SMALL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"

GPT2 = Splitting()
"""GPT-2: contractions, letters, digits, signs, each with a space before it; white space up to the last of it."""
NEOX = Splitting(composed=True)
"""GPT-NeoX and Pythia."""
SMOLLM = Splitting(digits=True)
"""SmolLM and StarCoder: as GPT-2, and each digit by itself."""
LLAMA3 = Splitting(rf"{_CASELESS}|{_WORD}|\p{{N}}{{1,3}}|{_REST}", whole=True)
"""Llama 3: three digits at most."""
QWEN2 = Splitting(rf"{_CASELESS}|{_WORD}|\p{{N}}|{_REST}", composed=True)
"""Qwen2 and Qwen3: each digit by itself."""
TEKKEN = Splitting(
    rf"{_SIGN}{_CAPITALS}*{_SMALL}+|{_SIGN}{_CAPITALS}+{_SMALL}*|\p{{N}}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    whole=True,
)
"""Mistral NeMo: a capital begins a word."""


def added_token(id: int, content: str, *, special: bool) -> dict[str, Any]:
    """A token that is found in a text before anything is split.

    Args:
        id: its id.
        content: how it is spelt, exactly so.
        special: whether no text of a user's may make it.
    """
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": id, "content": content, **flags, "special": special}


def byte_level(
    vocab: Mapping[str, int],
    merges: Sequence[Sequence[str]],
    splitting: Splitting,
    added: Iterable[dict[str, Any]] = (),
) -> str:
    """Byte-level BPE, as GPT-2's, for which every text is bytes.

    Args:
        vocab: the id of each token, its bytes written as letters.
        merges: pairs of tokens, the first learnt first.
        splitting: how a text is cut.
        added: tokens that are found before.
    """
    # The library's own pattern is GPT-2's.
    bytes_as_letters = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    steps: list[dict[str, Any]] = []
    if splitting.digits:
        steps.append({"type": "Digits", "individual_digits": True})
    if splitting.pattern is not None:
        pattern = {"Regex": splitting.pattern}
        steps.append({"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False})
    steps.append({**bytes_as_letters, "use_regex": splitting.pattern is None})
    model = {
        **{"type": "BPE", "dropout": None, "unk_token": None, "fuse_unk": False, "byte_fallback": False},
        **{"continuing_subword_prefix": None, "end_of_word_suffix": None, "ignore_merges": splitting.whole},
        **{"vocab": vocab, "merges": merges},
    }
    return library_file(
        model,
        added,
        normalizer={"type": "NFC"} if splitting.composed else None,
        pre_tokenizer={"type": "Sequence", "pretokenizers": steps},
        decoder={**bytes_as_letters, "use_regex": True},
    )


def library_file(
    model: Mapping[str, Any],
    added: Iterable[dict[str, Any]] = (),
    *,
    normalizer: Mapping[str, Any] | None = None,
    pre_tokenizer: Mapping[str, Any] | None = None,
    post_processor: Mapping[str, Any] | None = None,
    decoder: Mapping[str, Any] | None = None,
) -> str:
    """The whole file.

    Args:
        model: what makes tokens of a piece.
        added: tokens that are found before, in any order.
        normalizer: what is done to a text first.
        pre_tokenizer: how it is cut.
        post_processor: what is put around the ids.
        decoder: how tokens become text.
    """
    return json.dumps(
        {
            **{"version": "1.0", "truncation": None, "padding": None},
            "added_tokens": sorted(added, key=lambda each: each["id"]),
            **{"normalizer": normalizer, "pre_tokenizer": pre_tokenizer},
            **{"post_processor": post_processor, "decoder": decoder, "model": model},
        },
        separators=(",", ":"),
    )

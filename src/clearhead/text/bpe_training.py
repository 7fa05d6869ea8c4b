"""A byte-level BPE tokenizer from texts: how texts are cut, and what is learnt from the pieces.

A text is cut into pieces first, and no token crosses a cut. At each place the first of these that fits is the piece:

1. an apostrophe and one or two Latin letters that end a word: don|'t, you|'re;
2. one to four Han, or hiragana, or Hangul, or one to eight katakana: a clause has no spaces there, and would become one token;
3. a word of any other script, with one space before it;
4. one to three digits;
5. other signs in a row, with one space before them and line ends behind them: emoji and what joins them stay together;
6. line ends, with the white space before them;
7. white space, of which the last space goes to a word behind it.

What none of them takes would be a piece too, so nothing is ever lost. A piece is then its bytes of UTF-8; a token for each
byte is known from the start, and merges join the commonest pairs.

Four Han rather than one, two or three: of the vocabulary's sizes tried on classical and on simple modern Chinese it gave the
most characters a token, or within 1% of it, and a line of five characters still is two tokens or more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from clearhead.messages import UserError, say
from clearhead.text.library import LibraryTokenizer
from clearhead.text.specials import ESCAPE, GUARD
from clearhead.text.tokenizer import without_surrogates

__all__ = ["BYTES", "PIECES", "Parts", "train_bpe"]

Parts: TypeAlias = Iterable[str] | Callable[[], Iterable[str]]
"""Texts, or pieces of them as they come from a file; or what gives them."""

BYTES = 256
"""The ids that every byte-level vocabulary has."""
LEAST_TIMES = 2
"""A pair that is there once teaches nothing."""

# In the language of the library's own expressions, Oniguruma: && is what two classes share.
_CUT_SHORT = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}ー"
PIECES = "|".join(
    [
        r"['’]\p{Latin}{1,2}(?![\p{L}\p{M}])",
        r"\p{Han}{1,4}",
        r"\p{Hiragana}{1,4}",
        r"[\p{Katakana}ー]{1,8}",
        r" ?\p{Hangul}{1,4}",
        rf" ?[[\p{{L}}\p{{M}}]&&[^{_CUT_SHORT}]]+",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{M}\p{N}][^\s\p{L}\p{N}]*[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
"""The rule above as a regular expression, as it stands in the `tokenizer.json`."""


def train_bpe(
    parts: Parts, *, vocab: int, specials: Sequence[str] = (), progress: Callable[[int], object] | None = None
) -> LibraryTokenizer:
    """A byte-level BPE tokenizer: bytes first, then merges, then the special tokens.

    `decode(encode(text)) == text` for every text without surrogates. The same parts give the same tokenizer. A text in which
    fewer pairs repeat gives fewer ids than asked for; `size` tells.

    Args:
        parts: the texts to learn from, read once.
        vocab: the number of ids to reach, bytes and special tokens among them.
        specials: how special tokens are spelt. Where the texts spell one, it is left out of what is learnt, so that it never is
            a token of text as well.
        progress: is told the number of characters of each part when it has been taken in.

    Raises:
        UserError: the vocabulary is too small, the texts are empty, or a special token has no spelling of its own.
    """
    _must_be_spelt_apart(specials)
    least = BYTES + len(specials)
    if vocab < least:
        raise UserError(say("text.bpe_vocab", vocab=vocab, least=least, specials=len(specials)))
    library = tokenizers.Tokenizer(models.BPE())
    cut = pre_tokenizers.Split(tokenizers.Regex(PIECES), behavior="isolated")
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    library.pre_tokenizer = pre_tokenizers.Sequence([cut, as_bytes])
    library.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab - len(specials),
        min_frequency=LEAST_TIMES,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    library.train_from_iterator(_learnt_from(parts() if callable(parts) else parts, specials, progress), trainer)
    for spelling in specials:
        if library.token_to_id(spelling) is not None:
            raise UserError(say("text.special_spelling", spelling=repr(spelling)))
    library.add_special_tokens([tokenizers.AddedToken(spelling, normalized=False) for spelling in specials])
    return LibraryTokenizer(library.to_str())


def _must_be_spelt_apart(specials: Sequence[str]) -> None:
    """A single character is a byte's own token, or would leave a character out of all that is learnt."""
    for place, spelling in enumerate(specials):
        written = without_surrogates(spelling) == spelling and {GUARD, ESCAPE}.isdisjoint(spelling)
        if len(spelling) < 2 or spelling in specials[:place] or not written:
            raise UserError(say("text.special_spelling", spelling=ascii(spelling)))


def _learnt_from(
    parts: Iterable[str], specials: Sequence[str], progress: Callable[[int], object] | None
) -> Iterator[str]:
    """The texts between the spellings of special tokens.

    Raises:
        UserError: there is not one character.
    """
    spelt = re.compile("|".join(map(re.escape, sorted(specials, key=len, reverse=True)))) if specials else None
    read = 0
    for part in parts:
        text = without_surrogates(part)
        yield from spelt.split(text) if spelt else [text]
        read += len(text)
        if progress is not None:
            progress(len(part))
    if not read:
        raise UserError(say("text.bpe_nothing"))

"""What a tokenizer makes of texts: how many tokens, for which scripts, from how much of its vocabulary.

Which characters a token stands for is told by the text that comes out: a token counts for the characters that it
completes, and tokens that complete none count with the next one that does. So t tokens in a row stand for c characters,
and each of these has t/c tokens to its account; summed over all characters of a script, these are the script's tokens.
A byte of "猫" is a third of a character, " the" is a quarter of a token for the space and three quarters for Latin.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from clearhead.text.alignment import completion, utf8_lengths
from clearhead.text.documents import Document, Documents
from clearhead.text.encoding import SIZES, Sizes, encoded
from clearhead.text.library import LibraryTokenizer
from clearhead.text.marked import MarkedTokenizer
from clearhead.text.scripts import SCRIPTS, script_places
from clearhead.text.tokenizer import UNKNOWN, Tokenizer
from clearhead.text.tokenizers import CharacterTokenizer

__all__ = ["ScriptCount", "Statistics", "statistics"]

LONGEST = 10
"""How many of the longest tokens are told."""

_UNSPACED = {"Han", "Kana", "Bopomofo", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "other letters"}
_SPACED = np.array([script not in _UNSPACED for script in SCRIPTS[: SCRIPTS.index("digits")]] + [False] * 6)
"""By place in `SCRIPTS`: whether words of the script are written with spaces between them."""


@dataclass(frozen=True)
class ScriptCount:
    """The characters of one script, and the tokens they have to their account."""

    characters: int
    tokens: float

    @property
    def characters_per_token(self) -> float:
        """How much of the script a token holds."""
        return self.characters / self.tokens


@dataclass(frozen=True)
class Statistics:
    """What a tokenizer made of texts."""

    documents: int
    tokens: int
    characters: int
    bytes: int
    """Of the text in UTF-8."""
    scripts: Mapping[str, ScriptCount]
    """Each script that occurs, the most frequent first."""
    apart: int
    """Characters of texts that do not come out as they went in, so that nobody can say which token stands for which of
    them; they are missing in `scripts` and `words`."""
    words: int
    """Runs of letters of a script that puts spaces between its words."""
    word_tokens: int
    """Tokens that stand for characters of these, a token of two words counted for both."""
    size: int
    """The number of ids, V."""
    used: int
    """How many of them occur."""
    unknown: int | None
    """Tokens that say only that something is not known; None if the tokenizer has none for that."""
    longest: tuple[str, ...]
    """The longest tokens that occur, of two characters or more, as they are shown."""

    @property
    def characters_per_token(self) -> float:
        """Overall; 0 where there is no token."""
        return self.characters / max(self.tokens, 1)

    @property
    def bytes_per_token(self) -> float:
        """Overall; 0 where there is no token."""
        return self.bytes / max(self.tokens, 1)

    @property
    def tokens_per_word(self) -> float | None:
        """How many tokens stand for a word; None where no word was written."""
        return self.word_tokens / self.words if self.words else None


def statistics(
    tokenizer: Tokenizer,
    documents: Documents,
    progress: Callable[[int], None] | None = None,
    *,
    sizes: Sizes = SIZES,
) -> Statistics:
    """Encode documents and count. Memory stays bounded, however long they are.

    Args:
        tokenizer: what encodes; its marks are not put around the documents.
        documents: what is encoded, once.
        progress: is told how many characters have been encoded so far.
        sizes: how much text is handled at a time; changes no count.

    Raises:
        UserError: whatever reading the documents raises.
    """
    kept, complete = _Kept(documents), completion(tokenizer)
    tally = _Tally(np.zeros(tokenizer.size, dtype=np.int64))
    for piece in encoded(tokenizer, kept.documents, progress, sizes=sizes):
        text = kept.taken(piece.characters)
        tally.take(text, piece.ids, complete(text, piece.ids), ends=piece.ends)
    return tally.told(tokenizer)


class _Kept:
    """Documents whose text is kept until it is asked for, in order."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._waiting: deque[str] = deque()

    def documents(self) -> Iterator[Document]:
        """The same documents."""
        for document in self._documents():
            yield document._replace(parts=self._parts(document.parts))

    def taken(self, characters: int) -> str:
        """The next so many characters of what was read."""
        found = []
        while characters:
            part = self._waiting.popleft()
            if len(part) > characters:
                self._waiting.appendleft(part[characters:])
            found.append(part[:characters])
            characters -= len(found[-1])
        return "".join(found)

    def _parts(self, parts: Iterable[str]) -> Iterator[str]:
        for part in parts:
            self._waiting.append(part)
            yield part


@dataclass
class _Tally:
    """Counts that grow."""

    counts: NDArray[np.int64]
    """How often each id occurs."""
    documents: int = 0
    characters: int = 0
    bytes: int = 0
    apart: int = 0
    words: int = 0
    word_tokens: int = 0
    within: bool = False
    """Whether the piece before ended inside a word that may go on."""
    letters: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(SCRIPTS), dtype=np.int64))
    shares: NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(SCRIPTS)))

    def take(self, text: str, ids: NDArray[np.int64], ending: NDArray[np.int64] | None, *, ends: bool) -> None:
        """Count a piece of a document, its tokens, and the characters that each of these completes."""
        self.counts += np.bincount(ids, minlength=self.counts.size)
        self.characters += len(text)
        self.bytes += int(utf8_lengths(text).sum())
        self.documents += ends
        if ending is None:
            self.apart += len(text)
            self.within = False
        elif text:
            self._align(text, ending)
        self.within = self.within and not ends

    def _align(self, text: str, ending: NDArray[np.int64]) -> None:
        last = np.flatnonzero(ending)
        # The tokens of each group, the last of which completes its characters.
        tokens, characters = np.diff(last, prepend=-1), ending[last]
        places = script_places(text)
        self.letters += np.bincount(places, minlength=len(SCRIPTS))
        self.shares += np.bincount(places, np.repeat(tokens / characters, characters), minlength=len(SCRIPTS))
        inside = np.concatenate([[False], _SPACED[places], [False]])
        edges = np.flatnonzero(inside[1:] != inside[:-1])
        begins, stops = edges[::2], edges[1::2]
        self.words += begins.size - bool(self.within and inside[1])
        self.within = bool(inside[-2])
        reached = np.cumsum(characters)
        spent = np.concatenate([[0], np.cumsum(tokens)])
        first = np.searchsorted(reached, begins, side="right")
        behind = np.searchsorted(reached, stops, side="left") + 1
        self.word_tokens += int((spent[behind] - spent[first]).sum())

    def told(self, tokenizer: Tokenizer) -> Statistics:
        """What was counted."""
        inner = tokenizer.inner if isinstance(tokenizer, MarkedTokenizer) else tokenizer
        used = np.flatnonzero(self.counts).tolist()
        lengths = {id: len(inner.decode([id]).replace(UNKNOWN, "")) for id in used}
        longest = sorted((id for id in used if lengths[id] > 1), key=lambda id: (-lengths[id], id))[:LONGEST]
        order = sorted(np.flatnonzero(self.letters).tolist(), key=lambda place: (-self.letters[place], place))
        unknown = _unknown_id(inner)
        return Statistics(
            documents=self.documents,
            tokens=int(self.counts.sum()),
            characters=self.characters,
            bytes=self.bytes,
            scripts={
                SCRIPTS[place]: ScriptCount(int(self.letters[place]), float(self.shares[place])) for place in order
            },
            apart=self.apart,
            words=self.words,
            word_tokens=self.word_tokens,
            size=tokenizer.size,
            used=len(used),
            unknown=None if unknown is None else int(self.counts[unknown]),
            longest=tuple(inner.pieces(longest)),
        )


def _unknown_id(tokenizer: Tokenizer) -> int | None:
    """The id that stands for whatever is not known, if there is one."""
    if isinstance(tokenizer, CharacterTokenizer):
        return 0
    if not isinstance(tokenizer, LibraryTokenizer):
        return None
    model = json.loads(tokenizer.json)["model"]
    found: int | None = (
        model.get("unk_id") if model["type"] == "Unigram" else model["vocab"].get(model.get("unk_token"))
    )
    return found

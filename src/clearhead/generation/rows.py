"""Texts being written, and the groups in which a model reads them.

Whatever is written, one text, many, or the beams of a search, is read here: prompts of different lengths side by side, long
ones in chunks, each token once, and past the context by a stated rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar

import torch
from torch import Tensor

from clearhead.generation.stores import Cache, DoublingStore, WindowStore
from clearhead.layers.memory import NO_MEMORY, CrossStore, NoMemory
from clearhead.layers.store import NO_STORE, Store
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops.tap import NO_TAP, Tap

Overflow = Literal["stop", "window", "recompute"]
"""What happens past the context: the text ends; the newest half is read once and the rest forgotten; or the last `context` tokens
are read anew for each token."""

Side = Literal["left", "right"]

READ_AT_ONCE = 1024
"""Tokens of a prompt, over all rows, that one forward reads, or one a row: bounds its memory, logits (V numbers a token) above all."""

SPARE = 16
"""The most tokens that may be proposed at once, and so taken back."""


@dataclass(eq=False)
class Row:
    """One text: what has been read and written of it, and from where on the model sees it."""

    ids: list[int]
    source: tuple[int, ...] = ()
    """What an encoder reads; empty for a decoder alone."""
    start: int = 0
    """The first of `ids` that the model sees."""
    open: bool = True
    """False as soon as whoever consumes its tokens wants no more."""

    @property
    def view(self) -> list[int]:
        """The ids that the model sees."""
        return self.ids[self.start :]

    @property
    def seen(self) -> int:
        """How many ids the model sees; unlike the view, at no cost."""
        return len(self.ids) - self.start


def cache_for(decoder: Decoder, capacity: int) -> Cache:
    """A ring where every block of the model has a window and the ring is the smaller, memory that doubles otherwise."""
    windows = [look.window for look in decoder.looks]
    if None not in windows and max(window or 0 for window in windows) + SPARE < decoder.context:
        return WindowStore(decoder, SPARE, capacity)
    return DoublingStore(decoder, capacity)


def _untold(done: int, total: int) -> None:
    """Nobody wants to know how far the reading is."""


@dataclass(frozen=True)
class Reader:
    """How a model reads rows.

    Args:
        model: in evaluation mode.
        overflow: what happens past the context.
        padding: where shorter prompts are filled up.
        new_store: from the decoder and the most tokens, padding among them, to a cache.
        progress: is told how many tokens of a prompt have been read, and of how many.
        tap: sees, or replaces, the named tensors of every forward.
    """

    model: Decoder | EncoderDecoder
    overflow: Overflow = "recompute"
    padding: Side = "left"
    new_store: Callable[[Decoder, int], Cache] = cache_for
    progress: Callable[[int, int], None] = _untold
    tap: Tap = NO_TAP

    @property
    def decoder(self) -> Decoder:
        """The part that writes."""
        return self.model.decoder if isinstance(self.model, EncoderDecoder) else self.model

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    def start(self, length: int) -> int:
        """Where the view of a text of `length` ids begins once it does not fit the context any more."""
        context = self.decoder.context
        return length - (context if self.overflow == "recompute" else max(1, context // 2))

    def remember(self, sources: Sequence[Sequence[int]]) -> CrossStore | NoMemory:
        """The memory of sources of any lengths; none for a decoder alone."""
        if not isinstance(self.model, EncoderDecoder):
            return NO_MEMORY
        ids, real = padded(sources, "right", self.device)
        return self.model.remember(ids, real=real, tap=self.tap)

    def logits(self, ids: Tensor, store: Store, *, real: Tensor | None = None) -> Tensor:
        """One forward of the part that writes: ids (R,T) -> logits (R,T,V)."""
        tap = self.tap.within("decoder") if isinstance(self.model, EncoderDecoder) else self.tap
        found: Tensor = self.decoder(ids, real=real, store=store, tap=tap)
        return found


def padded(texts: Sequence[Sequence[int]], side: Side, device: torch.device) -> tuple[Tensor, Tensor | None]:
    """Texts of any lengths as one matrix of ids (R,T), and which of them are real: (R,T), or None if all are."""
    longest = max(map(len, texts))
    if longest == min(map(len, texts)):
        return torch.tensor(texts, device=device), None
    ids = torch.zeros(len(texts), longest, dtype=torch.long)
    real = torch.zeros(len(texts), longest, dtype=torch.bool)
    for row, text in enumerate(texts):
        place = slice(longest - len(text), None) if side == "left" else slice(len(text))
        ids[row, place], real[row, place] = torch.tensor(text), True
    return ids.to(device), real.to(device)


SomeRow = TypeVar("SomeRow", bound=Row)


class Group(Generic[SomeRow]):
    """Rows that are read together; what has been read is kept in one store.

    After the first reading all rows grow alike, by as many ids between two readings.

    Args:
        reader: how to read.
        rows: at least one.
        memory: of their sources, if it is known already.
        once: whether the rows' views move after each reading, so that nothing that is kept would be asked for again.
    """

    def __init__(
        self,
        reader: Reader,
        rows: Sequence[SomeRow],
        memory: CrossStore | NoMemory | None = None,
        *,
        once: bool = False,
    ) -> None:
        self.reader, self.rows = reader, list(rows)
        self._memory, self._once = memory, once
        self._store: Cache | None = None
        self._covered = [0] * len(self.rows)
        """How many ids of each row have been read."""

    @property
    def room(self) -> int:
        """How many proposed ids may be read behind the row; 0 where nothing is kept, as before the first reading."""
        if self._store is None:
            return 0
        return min(SPARE, *(self.reader.decoder.context - row.seen for row in self.rows))

    @torch.inference_mode()
    def read(self, proposed: Sequence[int] = ()) -> Tensor:
        """Read what has not been read yet: logits (R,1+k,V) of what follows each row, and each of k proposed ids behind it.

        Args:
            proposed: at most `room`, behind a single row. They are forgotten at the next reading unless the row has taken them.
        """
        if self._store is None or self._memory is None:
            return self._first()
        self.rewind()
        fresh = [[*row.ids[known:], *proposed] for row, known in zip(self.rows, self._covered, strict=True)]
        ids = torch.tensor(fresh, device=self.reader.device)
        logits = self.reader.logits(ids, self._memory.beside(self._store))
        self._covered = [len(row.ids) + len(proposed) for row in self.rows]
        return logits[:, -1 - len(proposed) :]

    def rewind(self) -> None:
        """Forget what has been read behind the row, and its last id, which is read again with what follows.

        Only before the row grows further can what it has not taken be told from what it has.
        """
        back = self._covered[0] - len(self.rows[0].ids) + 1
        if self._store is not None and back > 0:
            self._store.truncate(self._store.length - back)
            self._covered = [known - back for known in self._covered]

    def parts(self) -> list[Group[SomeRow]]:
        """The groups that the next reading is done in: without closed rows, and those whose view must move by themselves."""
        context = self.reader.decoder.context
        kept = [i for i, row in enumerate(self.rows) if row.open and row.seen <= context]
        moved = [i for i, row in enumerate(self.rows) if row.open and row.seen > context]
        groups = []
        if moved:
            for i in moved:
                self.rows[i].start = self.reader.start(len(self.rows[i].ids))
            memory = None if self._memory is None else self._memory.select(moved)
            # What is read anew is no prompt, and nobody waits for it.
            reader = self.reader if self._memory is None else replace(self.reader, progress=_untold)
            groups.append(Group(reader, [self.rows[i] for i in moved], memory, once=reader.overflow == "recompute"))
        if kept:
            self.keep(kept)
            groups.append(self)
        return groups

    def keep(self, index: Sequence[int]) -> None:
        """Go on with these rows, in this order; what was read of the others is given up."""
        if list(index) == list(range(len(self.rows))):
            return
        self.rows, self._covered = [self.rows[i] for i in index], [self._covered[i] for i in index]
        if self._store is not None:
            self._store.select(index)
        if self._memory is not None:
            self._memory = self._memory.select(index)

    def _first(self) -> Tensor:
        """Read the rows from the beginning of their views, equal ones once: logits (R,1,V)."""
        reader, wanted = self.reader, [(row.source, tuple(row.view)) for row in self.rows]
        distinct = list(dict.fromkeys(wanted)) if self._memory is None else wanted
        memory = reader.remember([source for source, _ in distinct]) if self._memory is None else self._memory
        views = [view for _, view in distinct]
        # Chunks need what was read before them.
        once = self._once and len(views) * max(map(len, views)) <= READ_AT_ONCE
        store = None if once else reader.new_store(reader.decoder, 2 * reader.decoder.context)
        logits = _last_logits(reader, views, memory.beside(NO_STORE if store is None else store))
        if distinct != wanted:
            index = [distinct.index(row) for row in wanted]
            if store is not None:
                store.select(index)
            memory, logits = memory.select(index), logits[index]
        self._store, self._memory = store, memory
        self._covered = [len(row.ids) for row in self.rows]
        return logits[:, None]


def _last_logits(reader: Reader, texts: Sequence[Sequence[int]], store: Store) -> Tensor:
    """Read texts in chunks; logits (R,V) of what follows each."""
    ids, real = padded(texts, reader.padding, reader.device)
    length = ids.shape[1]
    last = [length - 1 if reader.padding == "left" else len(text) - 1 for text in texts]
    step = max(1, READ_AT_ONCE // len(texts))
    found: dict[int, Tensor] = {}
    for begin in range(0, length, step):
        end = min(begin + step, length)
        logits = reader.logits(ids[:, begin:end], store, real=None if real is None else real[:, begin:end])
        found |= {row: logits[row, place - begin] for row, place in enumerate(last) if begin <= place < end}
        reader.progress(end, length)
    return torch.stack([found[row] for row in range(len(texts))])

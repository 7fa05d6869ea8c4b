"""Is speculative decoding exact? A sampler speculates with two tiny models whose distributions are known."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from clearhead.checking.report import Check, Fault, Report
from clearhead.checking.strangers import Attempt, Seeded
from clearhead.messages import UserError, say

BIASED, ROLLBACK = "speculative.biased", "speculative.rollback"
VOCAB, LENGTH = 3, 9
"""V, and how many tokens are asked for: enough for several rounds."""
CHANCE = 1e-12
"""How improbable one number must be before it is called wrong."""
LEAST, MOST, SECONDS = 300, 2000, 1.5
"""Runs, and about how long they may take where the first do not show a fault."""
PROMPT = (1, 2)
SHARP = 200.0


@dataclass
class TableCache:
    """What a table model has read: the caller's, as all caches."""

    ids: list[int] = field(default_factory=list)

    @property
    def length(self) -> int:
        """How many tokens it holds."""
        return len(self.ids)

    def truncate(self, length: int) -> None:
        """Forget all but the first so many tokens."""
        del self.ids[length:]

    crop = truncate


class TableModel:
    """A model whose distribution depends on the last token and on the sum of all that it has read: a token too many shows.

    Args:
        chances: of the tokens (V), best first; they change places with what was read.
        sharp: the factor of the logits; a large one makes the best token certain.
    """

    def __init__(self, chances: Sequence[float], sharp: float = 1.0) -> None:
        logits = torch.tensor(chances, dtype=torch.float64).log() * sharp
        self._rows = torch.stack([logits.roll(turn) for turn in range(VOCAB)]).log_softmax(-1).clamp_min(-1e4)
        self.calls: list[tuple[tuple[int, ...], int]] = []
        """Of each call with a cache: all that is read then, and how much of it was in the cache."""

    def new_cache(self) -> TableCache:
        """An empty cache."""
        return TableCache()

    def row(self, read: Sequence[int]) -> Tensor:
        """The distribution (V) of the token after `read`."""
        return self._rows[(read[-1] + sum(read)) % VOCAB].softmax(-1)

    def __call__(self, ids: Tensor, cache: TableCache | None = None) -> Tensor:
        """Logits (B,T,V) of ids (B,T), or (T,V) of ids (T); with a cache, ids are what is new, and B = 1."""
        if ids.dim() > 1:
            return torch.stack([self(row, cache) for row in ids])
        known = [] if cache is None else list(cache.ids)
        read = known + ids.tolist()
        if cache is not None:
            cache.ids = read
            self.calls.append((tuple(read), len(known)))
        so_far = sum(known)
        turns = [(each + (so_far := so_far + each)) % VOCAB for each in read[len(known) :]]
        return self._rows[turns].clone()


Speculator = Callable[[TableModel, TableModel, Tensor, int], Tensor | Sequence[int]]
"""`sampler(target, draft, prompt, count)` -> at least `count` new ids, with the prompt before them or without."""


def check_speculative(sampler: Speculator) -> Report:
    """Whether a speculative sampler draws from the target's distribution exactly, whatever the draft proposes.

    Args:
        sampler: `sampler(target, draft, prompt, count)` continues `prompt` (1,P) by `count` tokens, drawn with temperature 1. Both models give
            logits (1,T,V) for ids (1,T); with `cache=model.new_cache()` they are given the new ids alone, and `cache.truncate(length)`
            takes rejected ones back. How many tokens are proposed at a time is the sampler's own.

    Returns:
        A report of the kind "speculative": `speculative.biased` and `speculative.rollback`.

    Raises:
        UserError: if the sampler gives fewer tokens than it was asked for, or raises.
    """
    name = getattr(sampler, "__name__", type(sampler).__name__)
    target, draft = TableModel((0.7, 0.2, 0.1)), TableModel((0.1, 0.2, 0.7))
    greedy, greedy_stale = _greedy(sampler, name)
    runs, stale = _runs(sampler, name, target, draft)
    wrong = _distribution(runs, target)
    stale = stale or greedy_stale
    evidence = greedy or wrong
    tells = any(
        _improbable(int(p * len(runs)), len(runs), q)
        for p, q in zip(draft.row(PROMPT), target.row(PROMPT), strict=True)
    )
    if not evidence:
        if not tells:
            return Report(
                name, "speculative", False, (Check(BIASED, "skipped", say("functions.few", runs=len(runs))),), ()
            )
        words = say("functions.exact", runs=len(runs), length=LENGTH)
        rolled = Check(
            ROLLBACK, "pass" if target.calls else "skipped", words if target.calls else say("functions.no_cache")
        )
        return Report(name, "speculative", False, (Check(BIASED, "pass", words), rolled), ())
    id = ROLLBACK if stale else BIASED
    evidence = f"{stale}; {evidence}" if stale else evidence
    fix = say("functions.fix_rollback") if stale else say("functions.fix_biased")
    fault = Fault(id, "consistent", evidence, "", fix)
    return Report(name, "speculative", False, (Check(id, "fail", evidence, 1.0),), (fault,))


def _runs(sampler: Speculator, name: str, target: TableModel, draft: TableModel) -> tuple[list[tuple[int, ...]], str]:
    """Many texts, and where the target read a rejected token again ("" if nowhere)."""
    found: list[tuple[int, ...]] = []
    stale, begun = "", time.perf_counter()
    with Seeded(7):
        while len(found) < LEAST or (len(found) < MOST and time.perf_counter() - begun < SECONDS):
            first = len(target.calls)
            found.append(_text(sampler, name, target, draft))
            stale = stale or _stale(target.calls[first:], found[-1])
            del target.calls[:-1], draft.calls[:]
            if len(found) == LEAST and _distribution(found, target):
                break
    return found, stale


def _text(sampler: Speculator, name: str, target: TableModel, draft: TableModel) -> tuple[int, ...]:
    """The new tokens of one run."""
    with Attempt() as attempt:
        result = sampler(target, draft, torch.tensor([PROMPT]), LENGTH)
        ids = [int(each) for each in (result.flatten() if isinstance(result, Tensor) else result)]
        if len(ids) >= len(PROMPT) + LENGTH and tuple(ids[: len(PROMPT)]) == PROMPT:
            ids = ids[len(PROMPT) :]
        if len(ids) >= LENGTH:
            return tuple(ids)
        raise UserError(say("functions.short", name=name, found=len(ids), wanted=LENGTH))
    if isinstance(attempt.error, UserError):
        raise attempt.error
    raise UserError(say("functions.raises", name=name, reason=attempt.reason)) from attempt.error


def _stale(calls: Sequence[tuple[tuple[int, ...], int]], text: tuple[int, ...]) -> str:
    """Where the target's cache held a token that is not in the text."""
    whole = PROMPT + text
    for read, known in calls:
        for place in range(min(known, len(whole))):
            if read[place] != whole[place]:
                return say("functions.stale", place=place, held=read[place], wanted=whole[place])
    return ""


def _greedy(sampler: Speculator, name: str) -> tuple[str, str]:
    """A target that is certain writes its one text, whatever is proposed."""
    target, draft = TableModel((0.7, 0.2, 0.1), SHARP), TableModel((0.4, 0.35, 0.25))
    wanted = list(PROMPT)
    for _ in range(LENGTH):
        wanted.append(int(target.row(wanted).argmax()))
    with Seeded(9):
        for _ in range(8):
            target.calls.clear()
            found = _text(sampler, name, target, draft)
            if list(found[:LENGTH]) != wanted[len(PROMPT) :]:
                words = say("functions.not_greedy", found=list(found[:LENGTH]), wanted=wanted[len(PROMPT) :])
                return words, _stale(target.calls, found)
    return "", ""


def _distribution(runs: Sequence[tuple[int, ...]], target: TableModel) -> str:
    """Where the tokens that followed are not the target's; "" if they may be."""
    for place, counts in _followers(runs):
        for read, seen in counts.items():
            number = sum(seen.values())
            row = target.row(read)
            for token in range(VOCAB):
                if _improbable(seen[token], number, float(row[token])):
                    shares = " ".join(f"{seen[each] / number:.3f}" for each in range(VOCAB))
                    wanted = " ".join(f"{float(each):.3f}" for each in row)
                    return say("functions.biased", place=place, number=number, found=shares, wanted=wanted)
    return ""


Followers = dict[tuple[int, ...], Counter[int]]


def _followers(runs: Sequence[tuple[int, ...]]) -> Iterator[tuple[str, Followers]]:
    """What came next, counted for each state that the target tells apart: at each place, and at all of them."""
    everywhere: Followers = {}
    for place in range(LENGTH):
        here: Followers = {}
        for text in runs:
            read = PROMPT + text[:place]
            # The state has the last token and the sum: two tokens with both stand for all texts that have them.
            state = ((sum(read) - read[-1]) % VOCAB, read[-1])
            for counts in (here, everywhere):
                counts.setdefault(state, Counter())[text[place]] += 1
        yield str(place), here
    yield "0..", everywhere


def _improbable(seen: int, number: int, chance: float) -> bool:
    """Whether a coin of this chance gives such a count with a probability below `CHANCE`; Chernoff's bound."""
    f, apart = seen / number, 0.0
    for mine, theirs in ((f, chance), (1 - f, 1 - chance)):
        if mine > 0:
            apart += mine * math.log(mine / theirs) if theirs > 0 else math.inf
    return 2 * math.exp(-number * max(apart, 0.0)) < CHANCE

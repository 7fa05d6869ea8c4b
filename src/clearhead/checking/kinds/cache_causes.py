"""Why reading with a cache differs from reading without: causes told apart by experiments, each a change that would mend one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.lm_case import LmCase, Session, logits_of
from clearhead.checking.kinds.lm_finding import failed
from clearhead.checking.kinds.lm_positions import NoPlaces, without_places
from clearhead.checking.kinds.lm_watch import Core, cores, seen_by
from clearhead.checking.strangers import Attempt
from clearhead.checking.watch import watched
from clearhead.messages import say

if TYPE_CHECKING:
    from clearhead.checking.kinds.caches import Reading

Wrong = Mapping[tuple[int, ...], float]


def cause(case: LmCase, text: Reading, wrong: Wrong) -> Found:
    """The fault that the wrong pieces come from.

    Args:
        case: how the model is called.
        text: what was read.
        wrong: pieces -> how far the logits are off.
    """
    pieces, by = min(wrong.items(), key=lambda item: (len(item[0]), item[0]))
    cut, off, size = "+".join(map(str, pieces)), f"{by:.1e}", f"{text.size:.1e}"
    where = written_at(case, text)
    worst = max(wrong.values())
    same = same_object(case, text)

    def named(name: str, evidence: str) -> Found:
        return failed(name, evidence, where=where, largest=worst, effect=worst / text.size if worst < 1e300 else None)

    if same:
        return named("cache.shared-between-blocks", say("lm.shared_object", pieces=cut, by=off, size=size))
    if _placed(case, text, wrong):
        return named("position.offset", say("lm.offset", pieces=cut, by=off, size=size))
    length = text.ids.shape[1]
    # The last output alone may be all that is given: then a piece that is wrong where single tokens are right tells.
    whole = (length,) in wrong and (1,) * length not in wrong
    if not whole and _one_layer_agrees(case, text, wrong):
        return named("cache.shared-between-blocks", say("lm.one_layer", pieces=cut, by=off, size=size))
    if whole or _unmasked(case, text):
        return named("cache.prefill-unmasked", say("lm.unmasked", pieces=cut, by=off, size=size))
    return named(*_shown_wrongly(case, text, (cut, off, size)))


def _shown_wrongly(case: LmCase, text: Reading, words: tuple[str, str, str]) -> tuple[str, str]:
    """The fault by which keys a step sees, with its evidence; `cache.mismatch` if it sees those that it should."""
    cut, off, size = words
    lost = _lost(case, text)
    if lost is not None:
        return "causal.top-left", say("lm.top_left", query=lost[0], lost=lost[1], pieces=cut, by=off, size=size)
    more, last = _more(case, text), text.ids.shape[1] - 1
    if more is not None:
        evidence = say("lm.overflow_window", place=last, found=more[0], right=more[1], by=off, size=size)
        return "cache.overflow", evidence
    return "cache.mismatch", say("lm.mismatch", pieces=cut, by=off, size=size)


def written_at(case: LmCase, text: Reading) -> str:
    """The line that joins new keys to old ones, or writes them into a buffer."""
    with Attempt(), torch.no_grad():
        module = case.case.ready()
        session = Session(case, module, 2)
        session.feed(text.ids[:, :3])
        record = watched(module if isinstance(module, nn.Module) else None, lambda: session.feed(text.ids[:, 3:4]))
        for op in record.ops:
            if (
                op.name in ("cat", "concat", "__setitem__", "index_copy_", "copy_", "scatter_", "index_put_")
                and op.where
            ):
                return op.where
    return ""


def same_object(case: LmCase, text: Reading) -> bool:
    """Whether the parts of the cache for two blocks are one object."""
    with Attempt(), torch.no_grad():
        session = Session(case, case.case.ready(), 2)
        session.feed(text.ids[:, :3])
        cache = session.cache
        parts: list[Any] = (
            list(cache.values()) if isinstance(cache, dict) else list(cache) if isinstance(cache, tuple | list) else []
        )
        held = [part for part in parts if isinstance(part, dict | list) or hasattr(part, "__dict__")]
        held = [part for part in held if not isinstance(part, Tensor)]
        return len(held) >= 2 and len({id(part) for part in held}) < len(held)
    return False


def agrees(case: LmCase, text: Reading, wrong: Wrong, made: Callable[[], Any]) -> bool:
    """Whether a changed model reads with the cache as without, in every way that was wrong."""
    from clearhead.checking.kinds.caches import off_by  # noqa: PLC0415

    with Attempt(), torch.no_grad():
        full = logits_of(case, made(), text.ids)
        allowed = 3 * case.rounding * full.std().item()
        if not full.std() > 0:
            return False
        for pieces in wrong:
            session, at, found, wanted = Session(case, made(), text.ids.shape[0]), 0, [], []
            for length in pieces:
                found.append(session.feed(text.ids[:, at : at + length]))
                at += length
                wanted.append(full[:, at - found[-1].shape[1] : at])
            if off_by((torch.cat(found, 1), torch.cat(wanted, 1))) > allowed:
                return False
        return True
    return False


def _placed(case: LmCase, text: Reading, wrong: Wrong) -> bool:
    """Whether the difference is gone where every place looks alike."""
    with NoPlaces():
        return agrees(case, text, wrong, lambda: without_places(case.case.ready()))


def _unmasked(case: LmCase, text: Reading) -> bool:
    """Whether, within one piece, an earlier output moves when the last id of the piece changes."""
    other = text.ids.clone()
    other[:, -1] = (other[:, -1] + 1) % case.vocab
    for begin in (0, 3):
        with Attempt(), torch.no_grad():
            outs = []
            for ids in (text.ids, other):
                session = Session(case, case.case.ready(), 2)
                if begin:
                    session.feed(ids[:, :begin])
                outs.append(session.feed(ids[:, begin:]))
            if outs[0].shape[1] > 1 and (outs[0] - outs[1])[:, :-1].abs().max() > 1e-9 * text.size:
                return True
    return False


def _one_layer_agrees(case: LmCase, text: Reading, wrong: Wrong) -> bool:
    """Whether the first block alone reads with its cache as without."""
    whole = case.case.ready()
    lists = (
        [m for m in whole.modules() if isinstance(m, nn.ModuleList | nn.Sequential)]
        if isinstance(whole, nn.Module)
        else []
    )

    def cut(size: int) -> Any:
        module = case.case.ready()
        for inner in module.modules():
            if isinstance(inner, nn.ModuleList | nn.Sequential) and len(inner) == size:
                del inner[1:]
        return module

    # Blocks may be kept in several lists of one length: attentions, feed-forwards.
    return any(agrees(case, text, wrong, partial(cut, size)) for size in sorted({len(m) for m in lists if len(m) >= 2}))


def _lost(case: LmCase, text: Reading) -> tuple[int, int] | None:
    """A query of a later piece and a kept key before it that has no influence on it, though an earlier one has; None if all have."""
    begin = 5
    if text.ids.shape[1] < begin + 3:
        return None
    for length in (3, 1):
        with Attempt(), torch.no_grad():
            before = _after(case, text.ids, begin, length)
            moved = []
            for key in range(begin):
                other = text.ids.clone()
                other[:, key] = (other[:, key] + 1) % case.vocab
                moved.append(
                    ((_after(case, other, begin, length) - before)[:, 0].abs().max() > 1e-9 * text.size).item()
                )
            if moved[0] and not all(moved) and not moved[-1]:
                return begin, begin - 1
    return None


def _more(case: LmCase, text: Reading) -> tuple[int, int] | None:
    """How many keys the newest token sees with the cache and without, where a window hides old ones and the cache shows more; None if it does not."""
    length = text.ids.shape[1]
    with Attempt(), torch.no_grad():
        module = case.case.ready()
        session = Session(case, module, 2)
        session.feed(text.ids[:, :-1])
        record = watched(module if isinstance(module, nn.Module) else None, lambda: session.feed(text.ids[:, -1:]))
        kept = [_shown(core) for core in cores(record, 1, any_keys=True)]
        right = [_shown(core) for core in cores(seen_by(case, text.ids), length, any_keys=True)]
        if len(kept) == len(right):
            return next(
                (pair for pair in zip(kept, right, strict=True) if pair[0] > pair[1] and pair[1] < length), None
            )
    return None


def _shown(core: Core) -> int:
    """How many keys the last query sees."""
    last = core.weights[..., -1, :]
    return int((last.reshape(-1, last.shape[-1]) > 0).any(0).sum())


def _after(case: LmCase, ids: Tensor, begin: int, length: int) -> Tensor:
    """The logits of a piece after a beginning that was read token by token, so that no kept key depends on later ones."""
    session = Session(case, case.case.ready(), 2)
    session.feed(ids[:, :begin])
    return session.feed(ids[:, begin : begin + length])

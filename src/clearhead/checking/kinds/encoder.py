"""An encoder: its blocks one by one, its last norm, its positions, and everything that is asked of attention."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.claims import says
from clearhead.checking.kinds.attention import asked, behaviour
from clearhead.checking.kinds.block import common, inside
from clearhead.checking.kinds.block_claims import documents, norm_first
from clearhead.checking.kinds.block_found import Block, Watched
from clearhead.checking.kinds.block_norms import between, final_fault
from clearhead.checking.kinds.branches import weighted
from clearhead.checking.kinds.kind import Found, Kind, NoInterfaceError
from clearhead.checking.kinds.seeing import ready, seen_above, size_of
from clearhead.checking.kinds.sequence import SequenceCase, open_sequence, run
from clearhead.checking.report import Check, Fault
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.checking.target import Target
from clearhead.messages import say

PLACES = r"(^|[._])(pos\w*|\w*_pos|wpe|pe|\w*position\w*|rope|rotary\w*|alibi\w*|sinus\w*|rel_\w+|relative\w*|freqs\w*|inv_freq)([._]|$)"
"""Names of parts, parameters and buffers that stand for positions."""
LAST = r"(final|last|closing)[-_ ]?(layer|rms)?[-_ ]?norm|\bln_f\b|norm\w* (at the end|after the last)|ends (in|with) a norm"
"""Words for the norm after the last block."""
NO_PLACES = r"no position|without position|nope|permutation[- ]?(equi|in)variant|set (transformer|encoder)|bag of|order(less| does not| is ignored)|unordered"


def _open(target: Target, settings: Settings) -> SequenceCase:
    """The target as it is called, with ids if it has an embedding of them, else with vectors; else the other way."""
    made = target.make()
    tables = [n for n, m in made.named_modules() if isinstance(m, nn.Embedding)] if isinstance(made, nn.Module) else []
    first = [settings.vocab is not None or any(not re.search(r"pos|seg|type|rel|bias|bucket|wpe", n) for n in tables)]
    tried: list[str] = []
    for ids in (*first, not first[0]):
        with Attempt() as attempt:
            return open_sequence(target, settings, ids=ids)
        tried += attempt.error.tried if isinstance(attempt.error, NoInterfaceError) else [attempt.reason]
    raise NoInterfaceError(tried)


def _check(case: SequenceCase, settings: Settings) -> Found:
    found = asked("residual.missing", lambda: _stack(case))
    found += asked("position.unused", lambda: places(case))
    found += asked("causal.future-leak", lambda: behaviour(case, settings)[0])
    return found + common(case, settings)


def _stack(case: SequenceCase) -> Found:
    """What is asked of the blocks, and of the norm after them."""
    found, seen, blocks, module = inside(case, case.case.target, several=True)
    if _attention_alone(case.case.target):
        found = found._replace(faults=tuple(f for f in found.faults if f.id != "residual.missing"))
        found = found._replace(checks=tuple(c for c in found.checks if c.id != "residual.missing"))
    return found + last_norm(seen, blocks, module, case.case.target)


def _attention_alone(target: Target) -> bool:
    """Whether it is called an attention and no more, though it is fed as an encoder is: it claims no skip."""
    name = getattr(target.kind_of, "__name__", "")
    whole = re.search(r"block|layer|encoder|transformer|model|net", name, re.IGNORECASE)
    return whole is None and re.search(r"attention|attn", name, re.IGNORECASE) is not None


def last_norm(seen: Watched, blocks: list[Block], module: Any, target: Target) -> Found:
    """Whether a norm follows the last sum of a stack of pre-norm blocks.

    The next part may bring its own norm, so that it is missed only where something says that it belongs here: a norm that
    nothing calls, a head that reads the sum, or words.

    Args:
        seen: the forward.
        blocks: that were found in it.
        module: the copy that ran.
        target: the code, for its claims.
    """
    name = "norm.final-missing"
    if not blocks or not blocks[-1].chain.merges():
        return Found((Check(name, "skipped", say("block.no_merge")),))
    called = {run.module for run in seen.graph.runs}
    names = module.named_modules() if isinstance(module, nn.Module) else ()
    spare = [n for n, m in names if _spare(n, m, called)]
    chain = blocks[-1].chain
    faults = tuple(final_fault(chain, seen.out, spare))
    head = any(weighted(node, chain.reader) for node in between(chain.end, seen.out))
    if faults and not spare and not head and not _claims_last(target, blocks):
        return Found((Check(name, "skipped", say("block.final_unsaid")),))
    if faults:
        return Found((Check(name, "fail", faults[0].evidence),), faults)
    return Found((Check(name, "pass", say("block.final_there")),))


def _spare(name: str, part: nn.Module, called: set[str]) -> bool:
    """Whether a part is a norm that nothing calls, or is called a norm and does nothing."""
    if isinstance(part, nn.Identity):
        return re.search(r"norm|(^|\.)ln", name, re.IGNORECASE) is not None and name.count(".") == 0
    return re.search("norm", type(part).__name__, re.IGNORECASE) is not None and name not in called


def _claims_last(target: Target, blocks: list[Block]) -> bool:
    """Whether the code speaks of a last norm, or calls a stack of several blocks pre-norm, to which such a norm belongs."""
    words = f"{getattr(target.kind_of, '__name__', '')} {documents(target)}"
    attending = sum(branch.attends for block in blocks for value in block.chain.merges() for branch in value.branches)
    return re.search(LAST, words, re.IGNORECASE) is not None or (attending >= 2 and norm_first(target) is True)


@torch.no_grad()
def places(case: SequenceCase) -> Found:
    """Whether the order of the input matters, where positions are declared or ids come in."""
    name = "position.unused"
    declared = _declared(case)
    wanted = bool(declared) or case.ids
    if (
        not wanted
        or says(case.case.target, "no_pos", "nopos")
        or re.search(NO_PLACES, documents(case.case.target), re.IGNORECASE)
    ):
        return Found((Check(name, "skipped", say("block.no_places")),))
    length = case.length(7)
    module, x = ready(case), case.inputs(3, length, 31)
    order = torch.tensor([*range(2, length), 1, 0])
    there, back = run(case, module, x), run(case, module, x[:, order])
    if not bool(there.isfinite().all() and back.isfinite().all()) or there.shape != back.shape:
        return Found((Check(name, "skipped", say("block.no_numbers")),))
    moved = float((there[:, order] - back).abs().max()) / size_of(there)
    alive = float((there - run(case, module, _other(case, x))).abs().max()) / size_of(there)
    if alive <= seen_above(case):
        return Found((Check(name, "skipped", say("block.no_numbers")),))
    evidence = say("block.order", length=length, moved=f"{moved:.1e}")
    if moved > seen_above(case):
        return Found((Check(name, "pass", evidence, moved),))
    parts = say("block.declared", names=", ".join(declared[:3])) if declared else say("block.undeclared")
    fault = Fault(name, "consistent", f"{evidence}; {parts}", next(iter(declared), ""), say("block.fix_places"), None)
    return Found((Check(name, "fail", fault.evidence, moved),), (fault,))


def _other(case: SequenceCase, x: Tensor) -> Tensor:
    return (x + 7) % case.vocab if case.ids else x.flip(-1)


def _declared(case: SequenceCase) -> list[str]:
    """The parts, parameters and buffers that are called after positions."""
    made = case.case.target.make()
    if not isinstance(made, nn.Module):
        return []
    names = [n for n, _ in (*made.named_modules(), *made.named_parameters(), *made.named_buffers()) if n]
    return [n for n in names if re.search(PLACES, n, re.IGNORECASE)]


KIND = Kind("encoder", _open, _check)

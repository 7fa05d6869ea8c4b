"""Heads that start as copies of each other: they compute the same and get the same gradient for ever."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import torch
from torch import Tensor, nn

from clearhead.checking.claims import size
from clearhead.checking.kinds.kind import Found
from clearhead.checking.report import Check, Fault
from clearhead.checking.settings import Settings
from clearhead.checking.target import Target
from clearhead.messages import say

QUERIES = r"(^|\.|_)(q|wq|w_q|query|queries|q_proj|to_q|q_linear|q_lin|lin_q|linear_q|fc_q|q_net)(_?(proj|proj_weight|linear|lin|layer))?$"
FUSED = r"qkv|c_attn|in_proj|query_key_value|wqkv|\bqk"


class _Tied(NamedTuple):
    where: str
    one: int
    other: int


def heads_tied(target: Target, made: nn.Module) -> Found:
    """Whether two heads have equal query weights.

    Keys and values alone may be equal: a multi-query model that was written out for every head has them so.

    Args:
        target: the code under check.
        made: a copy of it.
    """
    heads = size(target, Settings(), "heads")
    found = [*_in_matrices(made, heads), *_in_lists(made)]
    if not found:
        return Found((Check("weights.heads-tied", "pass", say("common.heads_differ")),))
    first = found[0]
    evidence = say("common.heads_tied", where=first.where, one=first.one, other=first.other)
    fault = Fault("weights.heads-tied", "reproduced", evidence, first.where, say("common.fix_heads_tied"))
    return Found((Check("weights.heads-tied", "fail", evidence, 1.0),), (fault,))


def _in_matrices(made: nn.Module, heads: int | None) -> Iterator[_Tied]:
    """Equal blocks of rows of a projection for queries."""
    for name, parameter in made.named_parameters():
        path = re.sub(r"\.weight$", "", name)
        value = parameter.detach()
        if value.dim() not in (2, 3) or not bool(value.any()):
            continue
        query, fused = re.search(QUERIES, path.lower()), re.search(FUSED, path.lower())
        if not query and not fused:
            continue
        if value.dim() == 3:
            yield from _in_axes(path, value)
            continue
        for turned in (value, value.T):
            rows = turned[: len(turned) // 3] if fused and len(turned) % 3 == 0 else turned
            if fused and _written_out(turned):
                continue
            yield from _in_rows(path, rows, heads)


def _in_axes(path: str, value: Tensor) -> Iterator[_Tied]:
    """Equal slices of (H,D,d) or (D,H,d)."""
    for axis in (0, 1):
        slices = value.movedim(axis, 0)
        for one, other in combinations(range(min(len(slices), 16)), 2):
            if bool(slices[one].any()) and torch.equal(slices[one], slices[other]):
                yield _Tied(path, one, other)
                return


def _in_rows(path: str, rows: Tensor, heads: int | None) -> Iterator[_Tied]:
    """Equal blocks of d rows; where H is not known, rows that come again in the same order."""
    for count in [heads] if heads else [n for n in range(2, 17) if len(rows) % n == 0 and len(rows) // n > 1]:
        if count < 2 or len(rows) % count:
            continue
        blocks = rows.reshape(count, -1)
        for one, other in combinations(range(count), 2):
            if bool(blocks[one].any()) and torch.equal(blocks[one], blocks[other]):
                yield _Tied(path, one, other)
                return


def _written_out(rows: Tensor) -> bool:
    """Whether only rows of keys and values come again, in a layout [head][q, k, v]: each run of new rows is followed by old ones."""
    _, inverse, counts = torch.unique(rows, dim=0, return_inverse=True, return_counts=True)
    again = counts[inverse] > 1
    share = float(again.double().mean())
    # [q | k | v] with equal queries has repeated rows in its first third from end to end or in whole heads;
    # [head][q, k, v] written out from one key/value head repeats exactly two rows of three, everywhere.
    return (
        abs(share - 2 / 3) < 1e-9 and not bool(again[: len(again) // 3].all()) and not bool(again.view(3, -1)[1:].all())
    )


def _in_lists(made: nn.Module) -> Iterator[_Tied]:
    """Equal heads in a list of heads: parts with three small projections each."""
    for path, container in made.named_modules():
        children = list(container.named_children())
        kinds = {type(child) for _, child in children}
        if len(children) < 2 or len(kinds) != 1 or not isinstance(container, nn.ModuleList | nn.Sequential):
            continue
        if not _is_head(children[0][1]):
            continue
        for (one, first), (other, second) in combinations(children, 2):
            pairs = list(zip(first.parameters(), second.parameters(), strict=False))
            if pairs and all(torch.equal(a, b) for a, b in pairs):
                yield _Tied(path, int(one), int(other))
                return


def _is_head(part: nn.Module) -> bool:
    """Whether a part projects to a few features two or three times, and is no whole layer."""
    linears = [each for each in part.modules() if isinstance(each, nn.Linear)]
    narrow = [each for each in linears if each.out_features < each.in_features]
    return re.search(r"head|att", type(part).__name__, re.IGNORECASE) is not None and len(narrow) >= 2

"""Blocks and encoders: each planted mistake is named, right ones are silent, and what cannot be seen is said to be unseen."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

from bench.checking.case import Case
from bench.checking.first import block, block_functional, block_parts, encoder, encoder_more, encoder_seq2seq
from clearhead.checking.check import check
from clearhead.checking.kinds import feedforward_found
from clearhead.checking.kinds.block_found import Watched, blocks_in
from clearhead.checking.kinds.block_graph import graphed
from clearhead.checking.kinds.block_norms import tables_in
from clearhead.checking.kinds.block_terms import Reader, summed
from clearhead.checking.kinds.branches import Chain
from clearhead.checking.report import Report

FILES = (block, block_functional, block_parts, encoder, encoder_more, encoder_seq2seq)
SETS = [(module, case) for module in FILES for case in module.CASES]
FIRST = {case.fault: (module, case) for module, case in reversed(SETS) if case.fault}
QUICK = [
    *FIRST.values(),
    *[(m, c) for m, c in SETS if c.name in ("PostNormRight", "LlamaRight", "BertRight", "CrossRight")],
]
REST = [each for each in SETS if each not in QUICK]


def reported(module: object, case: Case) -> Report:
    path = Path(str(getattr(module, "__file__", "")))
    return check(f"{path}:{case.name}", kind=case.kind)


def held(module: object, case: Case) -> None:
    report = reported(module, case)
    names = [fault.id for fault in report.faults]
    if case.fault is None:
        assert report.ok, report.faults
    else:
        assert (names or [""])[0] in (case.fault, *case.also), names


@pytest.mark.parametrize(("module", "case"), QUICK, ids=lambda value: getattr(value, "name", ""))
def test_the_set(module: object, case: Case) -> None:
    held(module, case)


@pytest.mark.slow
@pytest.mark.parametrize(("module", "case"), REST, ids=lambda value: getattr(value, "name", ""))
def test_the_rest_of_the_set(module: object, case: Case) -> None:
    held(module, case)


class Sums(nn.Module):
    """Sums of every spelling."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(6, 6).double()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.lin(x)
        y = torch.add(x, a, alpha=3)
        y += a.transpose(0, 1).contiguous().transpose(0, 1) / 2
        y = torch.stack([y, x]).sum(0) - a * 0.25
        y[:, :0] = 0
        return 1.0 - y


def test_a_sum_is_read_whatever_its_spelling() -> None:
    module, x = Sums(), torch.randn(2, 5, 6, dtype=torch.float64)
    graph = graphed(module, {"x": x}, lambda: module(x))
    reader = Reader([graph.nodes[0]], frozenset({"x"}), 5)
    changed = next(node for node in graph.nodes if node.name == "__setitem__")
    terms = reader.terms(changed.parents[0])
    assert sorted(round(sum(w.scale for w in ways), 6) for ways in terms.values()) == [2.0, 3.25]
    made = summed(terms)
    assert made is not None
    torch.testing.assert_close(made, changed.parents[0].value)
    assert len(reader.terms(graph.node(graph.result))) == 1  # An assignment into a part is not seen through.


def test_a_reshape_that_mixes_is_not_seen_through() -> None:
    x = torch.randn(2, 5, 6, dtype=torch.float64)

    def right() -> torch.Tensor:
        return x.view(2, 5, 3, 2).transpose(1, 2).transpose(1, 2).reshape(10, 6)

    def wrong() -> torch.Tensor:
        return x.transpose(1, 2).reshape(2, 5, 6)

    for call, seen in ((right, True), (wrong, False)):
        graph = graphed(None, {"x": x}, call)
        reader = Reader([graph.nodes[0]], frozenset({"x"}), 5)
        assert reader.stream(graph.node(graph.result)) is seen


def test_reach_sees_other_positions_and_rows() -> None:
    x = torch.randn(3, 5, 6, dtype=torch.float64, requires_grad=True).clone()
    for call, others, rows in (
        (lambda: x * 2, [], False),
        (lambda: x + x.mean(1, keepdim=True), [0, 1, 3, 4], False),
        (lambda: x - x.mean(0), [], True),
    ):
        graph = graphed(None, {"x": x}, call)
        assert feedforward_found.reach(graph.nodes[0], graph.node(graph.result), 5) == (others, rows)
    with torch.no_grad():
        graph = graphed(None, {"x": x}, lambda: x + x.mean(1, keepdim=True))
    assert feedforward_found.reach(graph.nodes[0], graph.node(graph.result), 5) is None


def test_what_cannot_be_seen_is_skipped() -> None:
    """A module without a sum passes no question about sums."""

    class Bare(nn.Module):
        def __init__(self, dim: int = 32) -> None:
            super().__init__()
            self.lin = nn.Linear(dim, dim)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tanh(self.lin(x))

    verdicts = {each.id: each.verdict for each in check(Bare, kind="block", width=32).checks}
    for name in ("residual.missing", "residual.stale", "activation.missing", "norm.axis", "activation.variant"):
        assert verdicts[name] == "skipped"


def test_where_no_gradient_passes_nothing_is_said_of_positions() -> None:
    """Tensors that are changed in place, or detached, hide over what a norm averages and what a feed-forward reads."""

    class Blind(block_parts.Mixed):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                x = x + self.a(self.n1(x))
                return x + self.ff(self.n2(x))

    found = check(Blind, kind="block", width=24)
    verdicts = {each.id: each.verdict for each in found.checks}
    assert verdicts["norm.axis"] == verdicts["feedforward.mixes-positions"] == "skipped"
    assert verdicts["residual.missing"] == "pass"


def test_attention_with_gates_is_taken_for_no_block() -> None:
    """Its caller holds the skip: what bends queries, scores or the result of attention makes no feed-forward."""
    module = block_parts.GatedAttention(24, 3).double()
    around = nn.ModuleDict({"attention": module})
    x = torch.randn(2, 5, 24, dtype=torch.float64, requires_grad=True).clone()
    graph = graphed(around, {"x": x}, lambda: x + module(x))
    seen = Watched(graph, graph.node(graph.result), frozenset({"x"}), 5, frozenset({5}), False)
    assert [each.module for each in blocks_in(seen, around, whole=False)] == [""]
    inner = block_parts.GatedRight().double()
    stack = nn.Sequential(inner)
    graph = graphed(stack, {"x": x}, lambda: stack(x))
    seen = Watched(graph, graph.node(graph.result), frozenset({"x"}), 5, frozenset({5}), False)
    assert [each.module for each in blocks_in(seen, stack, whole=False)] == ["0"]


def test_the_equation_is_told() -> None:
    report = check(f"{block.__file__}:Stale", kind="block")
    stale = report.faults[0]
    assert stale.certainty == "reproduced"
    assert "x + F" in stale.evidence
    assert "N(x + A)" in stale.evidence
    assert re.match(r"block\.py:\d+", stale.where)
    assert stale.effect is not None
    assert 0 < stale.effect < 10


def test_a_table_added_to_what_a_branch_reads_is_not_in_the_stream() -> None:
    """As where positions are added to queries and keys alone."""
    table = torch.randn(5, 6, dtype=torch.float64)
    x = torch.randn(2, 5, 6, dtype=torch.float64)
    lin = nn.Linear(6, 6).double()
    graph = graphed(lin, {"x": x}, lambda: x + lin(x + table))
    chain = Chain(Reader([graph.nodes[0]], frozenset({"x"}), 5), graph.node(graph.result), frozenset({5}))
    assert tables_in(chain) == []
    graph = graphed(lin, {"x": x}, lambda: x + table + lin(x))
    chain = Chain(Reader([graph.nodes[0]], frozenset({"x"}), 5), graph.node(graph.result), frozenset({5}))
    assert len(tables_in(chain)) == 1

"""Weights as found: what is wrong is named, known choices are notes or silent."""

import copy

import pytest
import torch
from torch import nn

from clearhead.checking.common.registered import registered
from clearhead.checking.common.shared import shared, tying
from clearhead.checking.common.unused import unused
from clearhead.checking.common.weights import weights
from clearhead.checking.settings import Settings
from clearhead.checking.target import target_of
from tests.checking.common.opened import case_of, names, verdict


def found(code):
    return weights(target_of(code, "code", Settings()))


class Pair(nn.Module):
    """Two layers and a table."""

    def __init__(self, change=lambda _: None):
        super().__init__()
        self.table, self.fc1, self.fc2 = nn.Embedding(11, 16), nn.Linear(16, 24), nn.Linear(24, 16)
        with torch.no_grad():
            change(self)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x + self.table.weight[0])))


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda m: m.fc1.weight.zero_(), "weights.zero"),
        (lambda m: m.table.weight.zero_(), "weights.zero"),
        (lambda m: m.fc1.weight[4].zero_(), "weights.dead-units"),
        (lambda m: m.fc2.weight[:, 5:7].zero_(), "weights.dead-units"),
        (lambda m: m.table.weight[3].zero_(), "weights.rows-zero"),
        (lambda m: m.fc1.bias[0].fill_(float("inf")), "weights.non-finite"),
        (lambda m: m.fc1.weight.requires_grad_(False), "weights.frozen"),
        (lambda m: setattr(m, "extra", [nn.Linear(16, 16)]), "parameter.unregistered"),
        (lambda m: setattr(m, "extra", {"a": (nn.Linear(16, 16),)}), "parameter.unregistered"),
        (lambda m: setattr(m, "extra", torch.ones(3, requires_grad=True)), "parameter.unregistered"),
        (lambda m: setattr(m, "extra", nn.ModuleList([nn.Linear(16, 16)] * 2)), "blocks.shared"),
        (lambda m: setattr(m, "extra", nn.Sequential(m.fc1, nn.ReLU(), m.fc1)), "blocks.shared"),
    ],
)
def test_what_is_wrong(change, name):
    assert names(found(Pair())) == []
    assert names(found(Pair(change))) == [name]


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.fc1.bias.zero_(),
        lambda m: m.fc2.weight.zero_(),
        lambda m: m.requires_grad_(False),
        lambda m: setattr(m, "teacher", [copy.deepcopy(m.fc1).requires_grad_(False)]),
        lambda m: setattr(m, "layers", [m.fc1, m.fc2]),
        lambda m: setattr(m, "table", nn.Embedding(11, 16, padding_idx=3)),
        lambda m: m.register_buffer("mask", torch.full((4, 4), float("-inf")).triu(1)),
        lambda m: setattr(m, "extra", nn.Sequential(*[nn.ReLU()] * 2, nn.LayerNorm(16))),
        lambda m: setattr(m, "positions", nn.Parameter(torch.zeros(1, 8, 16))),
        lambda m: setattr(m, "freqs", nn.Parameter(torch.ones(8), requires_grad=False)),
        lambda m: m.fc1.weight.copy_(torch.eye(24, 16)),
    ],
)
def test_what_is_right(change):
    assert names(found(Pair(change))) == []


def test_a_last_projection_of_zeros_is_a_note():
    assert any("fc2" in note for note in found(Pair(lambda m: m.fc2.weight.zero_())).notes)


def test_closures_are_looked_into():
    def change(module):
        hidden = nn.Linear(16, 16)
        module.extra = lambda x: hidden(x) + 1

    made = Pair(change)
    target = target_of(Pair, "code", Settings())
    assert names(registered(target, made)) == ["parameter.unregistered"]


class Queries(nn.Module):
    def __init__(self, copied=()):
        super().__init__()
        self.num_heads = 4
        self.q_proj, self.k_proj = nn.Linear(16, 16), nn.Linear(16, 16)
        for layer in copied:
            getattr(self, layer).weight.data[12:] = getattr(self, layer).weight.data[4:8]

    def forward(self, x):
        return self.q_proj(x) * self.k_proj(x)


def test_heads_are_tied_by_their_queries():
    assert names(found(Queries())) == []
    assert names(found(Queries(["q_proj", "k_proj"]))) == ["weights.heads-tied"]
    assert "1 and 3" in found(Queries(["q_proj"])).faults[0].evidence
    assert names(found(Queries(["k_proj"]))) == []


class Modelled(nn.Module):
    """Weights are tied."""

    def __init__(self, how=None):
        super().__init__()
        self.table, self.head = nn.Embedding(11, 16), nn.Linear(16, 11, bias=False)
        if how == "one":
            self.head.weight = self.table.weight
        elif how == "data":
            self.head.weight.data = self.table.weight.data


def test_a_tie_is_one_parameter():
    for how, expected in ((None, ["tying.lost"]), ("data", ["tying.lost"]), ("one", [])):
        target = target_of(type("Modelled", (Modelled,), {"__module__": __name__}), "code", Settings())
        assert names(tying(target, Modelled(how))) == expected
    assert verdict(shared(target, Modelled()), "blocks.shared") == "pass"


class Lost(Pair):
    """A part that no line uses, and one whose way to the output is cut."""

    def __init__(self, cut=False):
        super().__init__()
        self.cut, self.never = cut, None if cut else nn.Linear(16, 16)

    def forward(self, x, memory=None):
        if memory is not None:
            x = x + self.fc1(memory)
        hidden = self.fc1(x + self.table.weight[0])
        return self.fc2(torch.relu(hidden.detach() if self.cut else hidden))


def test_parameters_without_gradient():
    assert names(unused(case_of(Pair()))) == []
    for cut, name in ((False, "never"), (True, "fc1")):
        said = unused(case_of(Lost(cut)))
        assert names(said) == ["parameter.unused"]
        assert name in said.faults[0].evidence


def test_a_part_for_an_input_that_is_not_given_is_left_alone():
    class Optional(Pair):
        def __init__(self):
            super().__init__()
            self.other = nn.Linear(16, 16)

        def forward(self, x, memory=None):
            return super().forward(x if memory is None else x + self.other(memory))

    assert names(unused(case_of(Optional()))) == []


def test_a_branch_behind_zeros_is_seen():
    assert names(unused(case_of(Pair(lambda m: m.fc2.weight.zero_())))) == []


def test_functions_have_no_weights():
    assert found(torch.tanh).checks == ()
    assert unused(case_of(torch.tanh)).checks == ()

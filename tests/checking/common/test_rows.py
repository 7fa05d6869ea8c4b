"""Rows: independent by value and by gradient, and axes of one are kept; what cannot be seen is skipped."""

import torch
from torch import nn

from clearhead.checking.common.rows import rows
from tests.checking.common.opened import case_of, names, verdict


def found(code):
    return rows(case_of(code))


def test_rows_apart_pass():
    assert names(found(torch.tanh)) == []
    assert verdict(found(torch.tanh), "batch.mixing") == "pass"
    assert verdict(found(torch.tanh), "shape.squeezed") == "pass"


def test_rows_that_mix_are_named():
    assert names(found(lambda x: x - x.mean(0, keepdim=True))) == ["batch.mixing"]
    assert names(found(lambda x: torch.softmax(x, 0))) == ["batch.mixing"]
    assert names(found(lambda x: x.flip(0))) == ["batch.mixing"]
    assert names(found(lambda x: x / x.shape[0])) == ["batch.mixing"]


def test_what_float32_leaves_when_the_number_of_rows_changes_is_rounding_and_as_much_without_it_is_not():
    def counts(x):
        return x * (1 + 1e-7 / x.shape[0])

    assert names(found(counts)) == ["batch.mixing"]
    assert names(found(lambda x: counts(x) + x.float().double() * 0)) == []


def test_the_evidence_says_which_rows():
    assert "row" in found(lambda x: x + x[:1]).faults[0].evidence


def test_an_influence_that_shows_in_gradients_alone():
    class Straight(torch.autograd.Function):
        @staticmethod
        def forward(_, x):
            return x.clone()

        @staticmethod
        def backward(_, gradient):
            return gradient + gradient.mean(0, keepdim=True)

    assert names(found(Straight.apply)) == ["batch.mixing"]


def test_axes_that_are_lost_are_named():
    assert names(found(lambda x: x.squeeze())) == ["shape.squeezed"]
    assert names(found(lambda x: x.squeeze(1) * 2)) == ["shape.squeezed"]
    assert names(found(lambda x: x.transpose(0, 1).squeeze(1).transpose(0, 1))) == ["shape.squeezed"]


def test_code_that_refuses_one_position_by_itself_is_right():
    def refuses(x):
        if x.shape[1] == 1:
            raise ValueError("two positions at least")
        return x * 2

    assert names(found(refuses)) == []


def test_no_influence_and_no_rows_are_skipped():
    assert verdict(found(torch.zeros_like), "batch.mixing") == "skipped"
    assert verdict(found(lambda x: x.mean()), "batch.mixing") == "skipped"


def test_statistics_of_the_batch_that_are_said_are_a_note():
    class Loose(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(16, track_running_stats=False)

        def forward(self, x):
            return self.norm(x.transpose(1, 2)).transpose(1, 2)

    said = found(Loose())
    assert names(said) == []
    assert verdict(said, "batch.mixing") == "skipped"
    assert said.notes

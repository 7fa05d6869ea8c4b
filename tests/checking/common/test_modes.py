"""Modes: evaluation is deterministic, dropout is at work where it is stated and only there; a probe that cannot see says so."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from clearhead.checking.common.chance import chances
from clearhead.checking.common.dropouts import SHARE, dropouts
from clearhead.checking.common.modes import modes
from clearhead.checking.common.trial import Trial, trial
from tests.checking.common.opened import case_of, names, target, verdict


class Held(nn.Module):
    def __init__(self, p=0.3):
        super().__init__()
        self.layer, self.drop = nn.Linear(16, 16), nn.Dropout(p)

    def forward(self, x):
        return self.drop(self.layer(x))


class BehindZero(Held):
    """Dropout that the output does not show: what follows is zero at the start."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(16, 16, bias=False)
        nn.init.zeros_(self.last.weight)

    def forward(self, x):
        return x + self.last(super().forward(x))


class Undone(Held):
    """What stands behind nn.Dropout is thrown away."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        self.drop(x)
        return self.layer(x)


def test_dropout_that_works_passes_and_one_that_is_thrown_away_does_not():
    assert names(modes(case_of(Held()))) == []
    assert verdict(modes(case_of(Held())), "dropout.never-active") == "pass"
    assert names(modes(case_of(Undone()))) == ["dropout.never-active"]


def test_dropout_before_a_zero_projection_is_seen_in_the_gradients():
    assert verdict(modes(case_of(BehindZero())), "dropout.never-active") == "pass"


def test_no_dropout_is_nothing_to_see():
    assert verdict(modes(case_of(Held(0.0))), "dropout.never-active") == "skipped"
    assert verdict(modes(case_of(nn.Linear(16, 16))), "dropout.never-active") == "skipped"
    assert verdict(dropouts(case_of(torch.tanh), Trial(4, 6)), "dropout.never-active") == "skipped"


def test_a_base_class_whose_forward_was_replaced_states_no_dropout_of_its_own():
    class Replaced(Held):
        def forward(self, x):
            return self.layer(x)

    assert verdict(modes(case_of(Replaced())), "dropout.never-active") == "skipped"


def test_a_function_that_draws_is_noise():
    assert names(modes(case_of(lambda x: x + torch.rand_like(x)))) == ["noise.injected"]
    assert names(modes(case_of(lambda x: F.dropout(x, 0.2)))) == ["dropout.active-in-eval"]


def test_code_that_takes_no_input_of_ours_is_skipped():
    def refuses(x):
        raise ValueError(x.shape)

    case = case_of(refuses)
    assert trial(case) is None
    assert {check.verdict for check in modes(case).checks} == {"skipped"}


@pytest.mark.parametrize(
    ("drop", "kept"),
    [
        (lambda x: x * (torch.rand_like(x) > 0.4), 0.6),
        (lambda x: x * (torch.rand(x.shape) < 0.4).to(x.dtype), 0.4),
        (lambda x: torch.bernoulli(torch.full_like(x, 0.7)) * x, 0.7),
        (lambda x: x.masked_fill(torch.rand_like(x) < 0.2, 0.0), 0.8),
        (lambda x: torch.where(torch.rand_like(x) >= 0.2, x, torch.zeros_like(x)), 0.8),
        (lambda x: x * torch.empty_like(x).bernoulli_(0.9), 0.9),
    ],
)
def test_what_a_mask_by_hand_keeps(drop, kept):
    seen = chances(lambda: drop(torch.ones(3, 5)))
    assert [round(share, 6) for _, share in seen.masks] == [kept]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: F.dropout(x, 0.3, True),
        lambda x: F.dropout(x, p=0.3),
        lambda x: torch.dropout(x, 0.3, train=True),
        nn.Dropout(0.3),
        lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.3),
        lambda x: nn.MultiheadAttention(5, 1, dropout=0.3)(x, x, x),
        lambda x: F.alpha_dropout(x, 0.3, training=True),
    ],
)
def test_dropout_at_work_is_seen(call):
    assert chances(lambda: call(torch.ones(3, 5))).dropped


@pytest.mark.parametrize(
    "call",
    [
        lambda x: F.dropout(x, 0.3, False),
        lambda x: F.dropout(x, p=0.0),
        nn.Dropout(0.3).eval(),
        lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.0),
        lambda x: nn.MultiheadAttention(5, 1, dropout=0.3).eval()(x, x, x),
    ],
)
def test_dropout_that_rests_is_none(call):
    assert not chances(lambda: call(torch.ones(3, 5))).dropped


def test_the_share_that_is_tried_is_no_usual_factor():
    usual = {2.0, 0.5, 0.25, 0.125, *(n**-0.5 for n in range(1, 130)), *(float(n) for n in range(1, 130))}
    for number in (1 - SHARE, 1 / (1 - SHARE)):
        assert min(abs(number - each) / number for each in usual) > 1e-3


def test_a_class_is_built_again_with_the_dropout_that_it_takes():
    assert verdict(modes(case_of(type("Built", (Held,), {}))), "dropout.never-active") == "pass"
    assert "SdpaDropoutRight" in target("modes", "SdpaDropoutRight").name

"""Number types: islands are notes, 16 bit is a fault, tensors on a fixed device are found without a second device."""

import pytest
import torch
from torch import nn

from clearhead.checking.common.devices import devices
from clearhead.checking.common.precision import precision
from clearhead.checking.settings import Settings
from tests.checking.common.opened import case_of, names, verdict


class Step(nn.Module):
    """A step, and a layer so that there is something to convert."""

    def __init__(self, step):
        super().__init__()
        self.layer, self.step = nn.Linear(16, 16), step

    def forward(self, x):
        return self.layer(self.step(x))


def found(step, **settings):
    return precision(case_of(Step(step)), Settings(**settings))


@pytest.mark.parametrize(
    ("step", "name"),
    [
        (lambda x, kind: x.to(kind).softmax(-1).to(x), "score.precision"),
        (lambda x, kind: x.to(kind).cos().to(x), "rotary.low-precision"),
        (lambda x, kind: x * x.to(kind).pow(2).mean(-1, keepdim=True).rsqrt().to(x), "norm.low-precision"),
    ],
)
def test_narrow_steps(step, name):
    for kind in (torch.float16, torch.bfloat16):
        assert names(found(lambda x, kind=kind: step(x, kind))) == [name]
    single = found(lambda x: step(x, torch.float32))
    assert names(single) == []
    assert any("float32" in note for note in single.notes)
    double = found(lambda x: step(x, torch.float64))
    assert names(double) == []
    assert double.notes == ()


def test_the_table_has_a_row_a_part_and_differences_that_grow():
    rows = found(torch.tanh, rounding=True).rounding
    assert [row[0] for row in rows] == ["layer", "output"]
    assert all(float(row[1]) < 1e-5 < float(row[2]) < 0.1 for row in rows)
    assert found(torch.tanh).rounding == ()


def test_a_difference_that_is_no_rounding_is_said():
    step = lambda x: x * (1.5 if x.dtype is torch.float32 else 1.0)  # noqa: E731
    plain, wrong = (found(each, rounding=True).rounding[-1][3] for each in (torch.tanh, step))
    assert plain != wrong


def test_code_that_refuses_float64_is_said_to():
    case = case_of(Step(torch.tanh))
    noted = precision(type(case)(case.target, case.inputs, case.run, torch.float32), Settings())
    assert noted.notes


class Placed(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.make = make
        self.layer = nn.Linear(16, 16)

    def forward(self, x):
        return self.layer(x) + self.make(x)


class Fixed(Placed):
    def __init__(self):
        super().__init__(None)

    def forward(self, x):
        return self.layer(x) + torch.ones(16, device="cpu")


class Held(Fixed):
    def __init__(self):
        super().__init__()
        self.table = torch.ones(16)

    def forward(self, x):
        return self.layer(x) + self.table


class Moved(Held):
    def forward(self, x):
        return self.layer(x) + self.table.to(x.device)


def test_devices():
    assert names(devices(case_of(Fixed()))) == ["device.hard-coded"]
    assert names(devices(case_of(Held()))) == ["device.hard-coded"]
    assert verdict(devices(case_of(Moved())), "device.hard-coded") == "pass"
    assert verdict(devices(case_of(Placed(lambda x: torch.ones(16, device=x.device)))), "device.hard-coded") == "pass"


def test_the_default_device_is_a_note():
    said = devices(case_of(Placed(lambda _: torch.ones(16))))
    assert names(said) == []
    assert said.notes


def test_code_that_looks_at_values_is_skipped():
    said = devices(case_of(Placed(lambda x: float(x.sum()))))
    assert verdict(said, "device.hard-coded") == "skipped"

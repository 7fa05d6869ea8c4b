"""States of models: what does not come back is named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from clearhead.checking.report import Report
from clearhead.checking.state_dicts import check_state_dict
from clearhead.messages import UserError


def ids(report: Report) -> list[str]:
    return [fault.id for fault in report.faults]


def save(model: nn.Module, path: Path) -> None:
    torch.save(model.state_dict(), path)


def load(model: nn.Module, path: Path) -> None:
    model.load_state_dict(torch.load(path, weights_only=True))


def inner(model: nn.Module) -> nn.Module:
    return getattr(model, "_orig_mod", getattr(model, "module", model))


def save_inner(model: nn.Module, path: Path) -> None:
    torch.save(inner(model).state_dict(), path)


def loosely(model: nn.Module, path: Path) -> None:
    model.load_state_dict(torch.load(path, weights_only=True), strict=False)


def without_buffers(model: nn.Module, path: Path) -> None:
    torch.save(dict(inner(model).named_parameters()), path)


def turned(model: nn.Module, path: Path) -> None:
    state = {
        name: each.T if each.dim() == 2 and each.shape[0] == each.shape[1] else each
        for name, each in inner(model).state_dict().items()
    }
    torch.save(state, path)


def replaced(model: nn.Module, path: Path) -> nn.Module:
    for name, each in torch.load(path, weights_only=True).items():
        owner, _, last = name.rpartition(".")
        place = model.get_submodule(owner)
        if last in place._parameters:
            place._parameters[last] = nn.Parameter(each.clone())
        else:
            place._buffers[last] = each
    return model


def test_what_comes_back() -> None:
    report = check_state_dict(save_inner, load)
    assert report.ok
    assert {check.verdict for check in report.checks} == {"pass"}


def test_an_error_is_no_silent_fault() -> None:
    report = check_state_dict(save, load)
    assert report.ok
    assert [check.id for check in report.checks if check.verdict == "skipped"] == ["load.prefix", "load.prefix"]


def test_each_fault_is_named() -> None:
    assert ids(check_state_dict(save, loosely)) == ["load.prefix"]
    assert ids(check_state_dict(without_buffers, loosely)) == ["load.partial"]
    assert ids(check_state_dict(turned, load)) == ["load.transposed"]
    assert ids(check_state_dict(save_inner, replaced)) == ["tying.lost"]


def test_what_raises_is_said() -> None:
    with pytest.raises(UserError, match="raises"):
        check_state_dict(save_inner, lambda model, path: model.load_state_dict({}))

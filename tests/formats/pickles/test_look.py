"""What stands in a pickle is shown as a line holds it, and what is no storage is none."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from clearhead.formats.pickles.look import Looked
from tests.formats.pickles.peers import Course
from tests.formats.pickles.test_refused import Weights, refusal, saved


@pytest.mark.parametrize(
    "change",
    [
        lambda weights: {f"\x1b[2J{name}": tensor for name, tensor in weights.items()},
        lambda weights: weights | {"\x1b[2J\n": torch.ones(2)},
        lambda weights: weights | {"\x1b[2J\n": "no tensor"},
        lambda weights: weights | {"\x1b[2J": torch.ones(2), "module.\x1b[2J": torch.ones(2)},
    ],
    ids=["unknown", "unexpected", "no tensor", "twice"],
)
def test_names_that_would_clear_a_screen(tmp_path: Path, change: Callable[[Weights], object]) -> None:
    line = refusal(saved(tmp_path, change(Course().state_dict())))
    assert line.isprintable()
    assert "[2J" in line


def test_code_of_a_name_that_would_clear_a_screen(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(b"cos\x1b[2J\nsystem\n.")
    line = refusal(path)
    assert line.isprintable()
    assert r"os\x1b[2J.system" in line


@pytest.mark.parametrize(
    "pid",
    [None, 5, (), ("storage",), ("storage", 3, "0", "cpu", 4), ("storage", "FloatStorage", "0", "cpu", 4)],
    ids=str,
)
def test_what_is_no_storage(pid: object) -> None:
    with pytest.raises(pickle.UnpicklingError, match="no storage"):
        Looked(b".").persistent_load(pid)


def test_a_storage_is() -> None:
    looked = Looked(b".")
    looked.persistent_load(("storage", looked.find_class("torch", "FloatStorage"), "0", "cpu", 4, None))
    assert looked.storages == {"0": 16}

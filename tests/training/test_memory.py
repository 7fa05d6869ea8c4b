"""What the system tells of memory."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from clearhead.training.memory import _left_of_group, _meminfo, available_memory, peak_memory, present_memory
from tests.training.toy import CPU

linux = pytest.mark.skipif(sys.platform != "linux", reason="the files of Linux")


@linux
def test_a_tensor_that_is_held_is_seen() -> None:
    before = present_memory(CPU)
    held = torch.ones(25_000_000)
    after, peak = present_memory(CPU), peak_memory(CPU)
    assert before is not None and after is not None and peak is not None  # noqa: PT018 - one condition
    assert after - before == pytest.approx(held.numel() * 4, rel=0.1)
    # The system counts pages of the moment and of the peak at different times.
    assert peak >= 0.98 * after
    del held
    later = peak_memory(CPU)
    assert later is not None
    assert later >= peak


@linux
def test_what_is_available_is_part_of_the_machine() -> None:
    available, total = available_memory(CPU), _meminfo(Path("/proc/meminfo"))
    assert available is not None
    assert total is not None
    assert 0 < available <= 1.2 * total


def test_where_nobody_knows_it_says_so(tmp_path: Path) -> None:
    for device in (torch.device("meta"), torch.device("mps")):
        assert peak_memory(device) is present_memory(device) is available_memory(device) is None
    assert _meminfo(tmp_path / "none") is None
    assert _left_of_group(tmp_path) is None


@pytest.mark.parametrize(
    ("limit", "left"), [("1000", 1000 - 700 + 250), ("100", 0), ("max", None)], ids=["room", "none", "no limit"]
)
def test_a_container_has_what_its_limit_leaves(tmp_path: Path, limit: str, left: int | None) -> None:
    (tmp_path / "memory.max").write_text(f"{limit}\n", encoding="ascii")
    (tmp_path / "memory.current").write_text("700\n", encoding="ascii")
    (tmp_path / "memory.stat").write_text("anon 400\ninactive_file 250\n", encoding="ascii")
    assert _left_of_group(tmp_path) == left

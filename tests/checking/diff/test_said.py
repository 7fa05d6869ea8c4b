"""The words of a comparison: the verdict first, why, the stages around the parting, the weights."""

from dataclasses import replace

import pytest

from clearhead.checking.diff.said import comparable, lines
from tests.checking.diff.examples import EQUAL, PARTED


def text(found, **asked):
    return "\n".join(lines(found.to_dict(), **asked))


def test_equal_is_said_with_its_evidence():
    said = text(EQUAL)
    first = said.splitlines()[0]
    assert first.startswith("equal to rounding: 13 stages")
    assert all(each in first for each in ("the 5 ids of the text", "3.0e-15", "6.0e-14"))
    assert "weights, each its own: 14 the same" in said


def test_where_they_part_comes_first_then_why():
    said = text(PARTED).splitlines()
    assert said[0].startswith("they part at blocks.4.norm / h.4.ln (att.py:31): the difference is 2.0e-03")
    assert "4 stages before it are equal" in said[0]
    assert said[2] == "norm.eps  (blocks.4.norm): A, changed so, gives what B gives"
    assert "A has eps 1e-05, B 1e-06" in said[3]
    assert "2.0e-03, 3.0e-16 remains" in said[4]


def test_the_table_shows_what_is_around_and_the_result_and_all_if_asked():
    rows = [line for line in text(PARTED).splitlines() if ".norm" in line and line.startswith("    ")]
    assert [row.split()[0] for row in rows] == [f"blocks.{n}.norm" for n in (1, 2, 3, 5, 6, 7, 12)]
    marked = [line for line in text(PARTED).splitlines() if line.startswith("  >")]
    assert len(marked) == 1
    assert "DIFFERS" in marked[0]
    assert "    ..." in text(PARTED)
    assert "    ..." not in text(PARTED, every=True)
    assert "blocks.9.norm" in text(PARTED, every=True)


def test_what_has_no_partner_is_not_around():
    bare = replace(PARTED.pairs[5], b="", held="unpaired")
    found = replace(PARTED, pairs=(*PARTED.pairs[:5], bare, *PARTED.pairs[6:]))
    assert "blocks.5.norm" not in text(found)
    assert "blocks.8.norm" not in text(PARTED)
    assert "blocks.8.norm" in text(found)


def test_only_ten_tensors_are_told_and_how_many_more():
    said = text(PARTED)
    assert "14 changed" in said
    assert sum(line.startswith("  changed:") for line in said.splitlines()) == 10
    assert "and 4 more" in said
    assert sum(line.startswith("  changed:") for line in text(PARTED, every=True).splitlines()) == 14


def test_shapes_that_differ_have_no_size():
    first = replace(PARTED.pairs[4], largest=float("inf"))
    found = replace(PARTED, first=first, pairs=(*PARTED.pairs[:4], first, *PARTED.pairs[5:]))
    assert "the shapes are not the same" in text(found).splitlines()[0]
    assert "no size" in text(found)


def test_what_a_console_must_not_get_is_spelt():
    evil = replace(PARTED.pairs[4], b="h\x1b[2J", where="")
    found = replace(PARTED, first=evil, pairs=(*PARTED.pairs[:4], evil, *PARTED.pairs[5:]))
    assert "\x1b" not in text(found)
    assert "x1b" in text(found)


def test_nothing_compared_is_not_equal():
    bare = replace(EQUAL.pairs[-1], b="", held="unpaired")
    found = replace(EQUAL, pairs=(*EQUAL.pairs[:-1], bare))
    assert comparable(EQUAL.to_dict())
    assert not comparable(found.to_dict())
    assert "nothing is shown" in text(found)
    assert not comparable(replace(EQUAL, pairs=()).to_dict())
    assert "nothing is shown" in text(replace(EQUAL, pairs=()))


def test_chinese(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    assert text(EQUAL).startswith("在舍入范围内相等")
    assert "不同" in text(PARTED)

"""Tokens under the characters that they stand for, in columns that stay in line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.text import ByteTokenizer, CharacterTokenizer
from clearhead.text.columns import columns_of
from clearhead.text.token_table import Group, groups_of, table
from tests.text.small_library import MERGED, byte_level, small_letters


def in_line(drawn: str) -> bool:
    """Whether the lines of each block are equally wide, and every edge of a character is one of a token and of an id."""
    for block in drawn.rstrip("\n").split("\n\n"):
        lines = block.split("\n")
        edges = [{columns_of(line[:at]) for at, sign in enumerate(line) if sign == "│"} for line in lines]
        if len({columns_of(line) for line in lines}) > 1 or not all(edges[0] <= other for other in edges[1:]):
            return False
        if edges[-2:] != [edges[-1]] * 2 and len(lines) == 3:
            return False
    return True


def test_by_hand() -> None:
    tokenizer = byte_level("the the the 猫猫猫", merges=9)
    the, space, cat = (tokenizer.encode(text)[0] for text in ("the", " the", "猫"))
    first, second = tokenizer.encode("é")
    assert table("the the猫é", groups_of(tokenizer, "the the猫é"), 80) == (
        f"│the│␣the│猫 │é      │\n│   │    │   │C3 │A9 │\n│{the}│{space} │{cat}│{first}│{second}│\n\n"
    )
    # No second line where every token is its characters.
    assert table("the", groups_of(tokenizer, "the"), 80) == f"│the│\n│{the}│\n\n"
    assert table("", [], 80) == ""


def test_groups_by_hand() -> None:
    assert groups_of(ByteTokenizer(), "a猫") == [
        Group([97], ["a"], 0, 1),
        Group([0xE7, 0x8C, 0xAB], ["<0xE7>", "<0x8C>", "<0xAB>"], 1, 2),
    ]
    assert groups_of(small_letters(), "The cat") == [
        Group([1], [" the"], None, None),
        Group([0], [" cat"], None, None),
    ]


def test_what_is_not_known_and_half_characters_are_shown() -> None:
    unknown = table("ab", groups_of(CharacterTokenizer("a"), "ab"), 80)
    assert unknown == "│a│b│\n│ │�│\n│1│0│\n\n"
    # A token that ends in the middle of a character: its own characters, and the bytes that it holds besides.
    half = table("a猫", [Group([300], ["a<0xE7><0x8C>"], 0, 1), Group([171], ["<0xAB>"], 1, 2)], 80)
    assert half == "│a      │猫 │\n│a E7 8C│AB │\n│300    │171│\n\n"
    apart = table("The", groups_of(small_letters(), "The"), 80)
    assert apart == "│␣the│\n│1   │\n\n"


TEXTS = st.text(" \n,tehcaçé猫狗한7😀\x1b", max_size=30)


@pytest.mark.parametrize("tokenizer", [ByteTokenizer(), MERGED, small_letters()], ids=["byte", "merged", "changing"])
@given(text=TEXTS, width=st.integers(1, 60))
def test_columns_stay_in_line(tokenizer, text: str, width: int) -> None:
    groups = groups_of(tokenizer, text)
    drawn = table(text, groups, width)
    assert in_line(drawn)
    assert [id for group in groups for id in group.ids] == tokenizer.encode(text)
    narrow = [line for line in drawn.split("\n") if columns_of(line) > width]
    assert all(line.count("│") <= 1 + max(len(group.ids) for group in groups) for line in narrow)
    numbers = [int(word) for line in drawn.split("\n\n") for word in line.split("\n")[-1].split("│") if word.strip()]
    assert numbers == tokenizer.encode(text)


@given(TEXTS)
def test_groups_cover_the_text(text: str) -> None:
    groups = groups_of(MERGED, text)
    assert "".join(text[group.start : group.end] for group in groups) == text


def test_a_planted_fault_is_found() -> None:
    right = table("猫a", groups_of(ByteTokenizer(), "猫a"), 80)
    assert in_line(right)
    lines = right.split("\n")
    assert not in_line("\n".join([lines[0].replace("猫", "猫 "), *lines[1:]])), "Han counted as one column"
    assert not in_line("\n".join([lines[0], lines[1], lines[2].replace("│140", " 140")]))

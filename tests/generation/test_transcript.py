"""The text up to the first stop string, against a reference that looks at the whole of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clearhead.generation import transcript as module
from clearhead.generation.transcript import Transcript
from clearhead.text import ByteTokenizer


def whole(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """The reference: the first place at which any stop string ends, and what lies before the longest that ends there."""
    for end in range(len(text) + 1):
        found = [stop for stop in stops if text[:end].endswith(stop)]
        if found:
            return text[: end - max(map(len, found))], True
    return text, False


def held(text: str, stops: Sequence[str]) -> int:
    """The reference: how many of the last characters may begin a stop string that has not come yet."""
    return max(
        n for n in range(len(text) + 1) if n == 0 or any(s != text[-n:] and s.startswith(text[-n:]) for s in stops)
    )


@dataclass
class Pieces:
    """A stream whose ids stand for whole pieces of text, as those of any tokenizer may."""

    pieces: Sequence[str]
    rest: str = ""

    def push(self, id: int) -> str:
        return self.pieces[id]

    def finish(self) -> str:
        return self.rest


# Few letters, so that stop strings come, almost come and overlap; they take one to four bytes.
LETTERS = st.text("ab猫😀", max_size=14)
STOPS = st.lists(st.text("ab猫😀", min_size=1, max_size=5), max_size=4)


@given(st.lists(LETTERS, max_size=6), STOPS)
@example(["aab"], ["aaab", "ab"])
@example(["a", "a", "a", "b"], ["aab", "b"])
@example(["ababa", "b"], ["abab猫", "bab", "ab"])
@example(["猫a", "猫", "a😀"], ["猫a猫a猫", "a猫a😀"])
def test_the_text_is_that_of_the_reference_however_it_is_grouped(parts: list[str], stops: list[str]) -> None:
    """And what is given out is never taken back, nor is anything held that cannot belong to a stop string."""
    text, stopped = whole("".join(parts), stops)
    for pieces in (parts, list("".join(parts)), ["".join(parts)]):
        transcript, so_far, given_out = Transcript(Pieces(pieces), stops), "", ""
        for id, piece in enumerate(pieces):
            given_out += transcript.push(id)
            so_far += piece
            certain, ended = whole(so_far, stops)
            assert given_out == (certain if ended else certain[: len(certain) - held(certain, stops)])
            assert transcript.stopped == ended
        assert (given_out + transcript.finish(whole=False), transcript.stopped) == (text, stopped)


@given(LETTERS, LETTERS, STOPS)
def test_what_a_stream_gives_at_its_end_may_complete_a_stop_string(before: str, rest: str, stops: list[str]) -> None:
    transcript = Transcript(Pieces([before], rest), stops)
    text = transcript.push(0) + transcript.finish(whole=True)
    assert (text, transcript.stopped) == whole(before + rest, stops)


@given(st.lists(LETTERS, min_size=1, max_size=4), STOPS)
def test_bytes_are_as_good_as_characters(parts: list[str], stops: list[str]) -> None:
    text = "".join(parts)
    transcript = Transcript(ByteTokenizer().stream(), stops)
    made = "".join(transcript.push(byte) for byte in text.encode()) + transcript.finish(whole=False)
    assert (made, transcript.stopped) == whole(text, stops)


def groups_seen_alone(patch: pytest.MonkeyPatch) -> None:
    """Nothing is held, so a stop string is found within one group alone."""
    patch.setattr(Transcript, "_beginning", lambda transcript: 0)


def all_is_held(patch: pytest.MonkeyPatch) -> None:
    """Nothing is given out before the end."""
    patch.setattr(Transcript, "_beginning", lambda transcript: len(transcript._held))


def the_shortest_counts(patch: pytest.MonkeyPatch) -> None:
    """Of stop strings that end together the beginning of the longer one stays in the text."""

    def shortest(numbers: Sequence[int], default: int) -> int:
        # What bounds the search for beginnings is left as it is.
        return min(numbers, default=default) if default == 0 else max(numbers, default=default)

    patch.setattr(module, "max", shortest, raising=False)


@pytest.mark.parametrize(
    ("plant", "parts", "stops"),
    [
        (groups_seen_alone, ["ab", "猫a"], ["b猫"]),
        (all_is_held, ["ab", "猫a"], ["b猫"]),
        (the_shortest_counts, ["abc"], ["bc", "c"]),
    ],
)
def test_a_planted_fault_differs_from_the_reference(
    plant: Callable[[pytest.MonkeyPatch], None], parts: list[str], stops: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The property itself, at one example.
    check = test_the_text_is_that_of_the_reference_however_it_is_grouped.hypothesis.inner_test
    check(parts, stops)
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check(parts, stops)

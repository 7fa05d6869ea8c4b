"""Where a text ends, and that nothing of its end shows: stop strings, end ids, cut characters; and what else was likely."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from clearhead.formats.load import Loaded
from clearhead.generation import endings
from clearhead.generation.generate import generate, stream
from clearhead.generation.transcript import Transcript
from clearhead.generation.writing import Generation, Piece, gathered
from clearhead.messages import UserError
from clearhead.text import ByteTokenizer, MarkedTokenizer
from tests.generation.ready import DECODER, KINDS, MARKED, logprobs_after, ready, replaced, scripted
from tests.generation.test_transcript import whole

BYTES = ByteTokenizer()
MARKED_BYTES = MarkedTokenizer(BYTES)
FAMILY = "👨\u200d👩\u200d👧"  # three people joined by zero-width joiners
ACCENTS = "e\u0301a\u0323\u0302"  # letters with combining marks


def written(script: Sequence[int], marked: bool = False, **options: object) -> Generation:
    """What becomes of these ids, when the model writes them; its pieces are checked on the way."""
    loaded = scripted(script, MARKED_BYTES if marked else BYTES)
    told: dict[str, object] = {"max_tokens": len(script), "temperature": 0} | options
    parts: list[Piece] = list(stream(loaded, "x", **told))  # type: ignore[arg-type]
    made = gathered(parts)
    assert "".join(part.text for part in parts) == made.text
    assert [part.step.id for part in parts[:-1] if part.step] == made.ids == list(script[: len(made.ids)])
    assert parts[-1].step is None
    return made


@pytest.mark.parametrize(
    ("text", "stops", "wanted"),
    [
        ("one\n\ntwo", ["\n\n"], "one"),
        ("小猫趴在窗台上", ["窗台"], "小猫趴在"),
        ("a😀b😀😀c", ["😀😀"], "a😀b"),
        (f"we {FAMILY}!", [FAMILY], "we "),
        (f"we {FAMILY}!", ["\u200d👧"], "we 👨\u200d👩"),
        (f"x{ACCENTS}y", ["a\u0323"], "xe\u0301"),
        ("User: hi\nBot: ho\nUser:", ["\nUser:", "\nBot:"], "User: hi"),
        ("abcabd", ["abd"], "abc"),
        ("aaab", ["aab"], "a"),
        ("abcd", ["bc", "abc"], ""),
        ("abcd", ["bcd", "abc"], ""),
        ("xabcd", ["cd", "abcde"], "xab"),
        ("nothing of that", ["that's", "Z"], "nothing of that"),
        ("the end is nea", ["near"], "the end is nea"),
        ("no stops", [], "no stops"),
    ],
)
def test_stop_strings(text: str, stops: list[str], wanted: str) -> None:
    made = written(list(text.encode()), stop=stops)
    assert made.text == wanted == whole(text, stops)[0]
    assert made.finish_reason == ("stop" if whole(text, stops)[1] else "length")


def test_a_stop_string_that_almost_comes_is_held_back_and_then_given_out() -> None:
    script = list(b"a STO STOP b")
    loaded = scripted(script, BYTES)
    texts = [part.text for part in stream(loaded, "x", max_tokens=len(script), temperature=0, stop=["STOP"])]
    assert texts == ["a", " ", "", "", "", "STO ", "", "", "", "", ""]


def test_a_stop_string_counts_in_the_text_alone_not_in_the_prompt() -> None:
    made = generate(scripted(list(b"OPab"), BYTES), "ST", max_tokens=4, temperature=0, stop=["STOP"])
    assert (made.text, made.finish_reason) == ("OPab", "length")


def test_a_stop_string_with_the_last_token_counts_as_stop() -> None:
    made = written(list(b"abc"), stop=["c"])
    assert (made.text, made.finish_reason) == ("ab", "stop")


@pytest.mark.parametrize("stop", ["a", ["a", ""]], ids=["no list", "empty"])
def test_stops_that_are_none_are_refused(stop: Sequence[str]) -> None:
    with pytest.raises(UserError, match="stop"):
        stream(scripted([], BYTES), "x", stop=stop)


# --- whole characters


MANY = st.text(
    st.sampled_from([*"aé\n", "ß", "猫", "趴", "😀", "👩", "\u200d", "\u0301", "\ufe0f", "🇨", "🇳", "\U0010ffff"])
)


@given(MANY, st.data())
@example(FAMILY + ACCENTS, None)
def test_a_text_cut_anywhere_has_no_broken_character(text: str, data: st.DataObject | None) -> None:
    script = list(text.encode())
    for cut in range(len(script)) if data is None else [data.draw(st.integers(0, len(script)))]:
        made = written(script, max_tokens=cut)
        assert made.text == text.encode()[:cut].decode(errors="ignore")
        assert text.startswith(made.text)


@given(st.binary(max_size=12), st.integers(0, 12))
def test_any_bytes_are_written_as_decode_does_but_for_a_cut_character(script: bytes, cut: int) -> None:
    """Every U+FFFD stands for bytes that form no character, whatever comes after them."""
    made = written(list(script), max_tokens=min(cut, len(script)))
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    assert made.text == decoder.decode(script[:cut])
    # Of what is left out the model might still have made a character: at most three bytes, which begin one.
    rest = decoder.getstate()[0]
    assert len(rest) <= 3
    assert BYTES.decode(list(script[:cut])) == made.text + ("\ufffd" if rest else "")


@given(st.binary(max_size=12))
def test_a_character_that_the_model_itself_breaks_off_is_its_own(script: bytes) -> None:
    made = written([*script, MARKED_BYTES.end], marked=True)
    assert made.finish_reason == "eos"
    assert made.text == script.decode(errors="replace")


# --- end ids


def test_an_end_id_is_among_the_ids_and_not_in_the_text() -> None:
    script = [*b"ab", MARKED_BYTES.end, *b"cd"]
    made = written(script, marked=True)
    assert (made.text, made.ids, made.finish_reason) == ("ab", script[:3], "eos")


def test_no_end_ids_at_all_ignore_the_mark() -> None:
    script = [*b"ab", MARKED_BYTES.end, *b"cd"]
    made = written(script, marked=True, eos=())
    assert (made.text, made.ids, made.finish_reason) == ("abcd", script, "length")


@pytest.mark.parametrize(("eos", "count"), [([99], 3), ([98, 99], 2), ({120, 100}, 4), ([120], 5)], ids=str)
def test_any_ids_may_end_a_text(eos: Sequence[int], count: int) -> None:
    made = written(list(b"abcde"), eos=eos)
    assert (made.text, len(made.ids)) == ("abcde"[: count - (count < 5)], count)
    assert made.finish_reason == ("eos" if count < 5 else "length")


def test_given_end_ids_stand_in_place_of_the_tokenizers() -> None:
    made = written([*b"a", MARKED_BYTES.end, *b"bc"], marked=True, eos=[ord("c")])
    assert (made.text, made.finish_reason) == ("ab", "eos")


def test_what_was_held_for_a_stop_string_is_given_out_before_an_end_id() -> None:
    made = written([*b"a ST", MARKED_BYTES.end], marked=True, stop=["STOP"])
    assert (made.text, made.finish_reason) == ("a ST", "eos")


def test_an_end_id_outside_the_vocabulary_is_refused() -> None:
    with pytest.raises(UserError, match="256"):
        stream(scripted([], BYTES), "x", eos=[256])


@pytest.mark.parametrize("options", [{}, {"stop": ["a"]}, {"eos": [1]}, {"alternatives": 3}], ids=str)
def test_no_tokens_are_no_text_and_no_forward(options: dict[str, object]) -> None:
    made = written([], max_tokens=0, **options)
    assert made == Generation("", [], [], "length", [], [])


# --- alternatives


@pytest.mark.parametrize("kind", ["rotary", "pair"])
@pytest.mark.parametrize("count", [0, 1, 3, 10**6])
def test_alternatives_are_the_models_best_sorted_with_their_logprobs(kind: str, count: int) -> None:
    loaded: Loaded = ready(KINDS[kind])
    made = generate(loaded, "小猫", max_tokens=6, temperature=1.7, top_k=4, seed=2, alternatives=count, eos=())
    source = (*MARKED.encode("小猫"), MARKED.end) if kind == "pair" else ()
    ids = [MARKED.begin] if kind == "pair" else loaded.tokenizer.encode("小猫")
    vocab = loaded.config.vocab
    for id, logprob, found in zip(made.ids, made.logprobs, made.alternatives, strict=True):
        wanted = logprobs_after(loaded, ids, source, 0)
        best = wanted.topk(min(count, vocab))
        assert [token for token, _ in found] == best.indices.tolist()
        assert [value for _, value in found] == pytest.approx(best.values.tolist(), abs=1e-10)
        # Of four that could be drawn all are among four or more, and the chosen one has its own logprob there.
        assert dict(found).get(id, logprob) == logprob
        assert id in dict(found) or count < 4
        ids.append(id)


def test_a_negative_number_of_alternatives_is_refused() -> None:
    with pytest.raises(UserError, match="alternatives"):
        stream(ready(DECODER), "a", alternatives=-1)


# --- faults that make a difference


def nothing_is_held(patch: pytest.MonkeyPatch) -> None:
    """Stop strings are looked for in what one token gives."""
    patch.setattr(Transcript, "_beginning", lambda transcript: 0)


def what_is_held_is_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Transcript, "finish", lambda transcript, whole: "")


def a_cut_character_is_written(patch: pytest.MonkeyPatch) -> None:
    replaced(patch, Transcript, "finish", lambda right: lambda transcript, whole: right(transcript, whole=True))


def ends_are_not_looked_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(endings, "ends_of", lambda loaded, request: frozenset())


@pytest.mark.parametrize(
    ("plant", "text", "options"),
    [
        (nothing_is_held, "一二三", {"stop": ["二三"]}),
        (what_is_held_is_lost, "一二", {"stop": ["二三"]}),
        (a_cut_character_is_written, "一二", {"max_tokens": 5}),
        (ends_are_not_looked_for, "abc", {"eos": [ord("b")]}),
    ],
)
def test_a_planted_fault_changes_the_text(
    plant: Callable[[pytest.MonkeyPatch], None], text: str, options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = written(list(text.encode()), **options)
    plant(monkeypatch)
    assert written(list(text.encode()), **options).text != right.text


def test_logprobs_of_the_settings_in_place_of_the_models_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = ready(DECODER)
    told: dict[str, Any] = {"max_tokens": 3, "temperature": 1.7, "seed": 2, "alternatives": 2}
    right = generate(loaded, "小猫", **told)
    replaced(monkeypatch, torch.Tensor, "log_softmax", lambda right: lambda logits, dim: right(logits / 1.7, dim))
    wrong = generate(loaded, "小猫", **told)
    assert wrong.ids == right.ids
    assert wrong.logprobs != pytest.approx(right.logprobs, abs=1e-3)
    assert [value for _, value in wrong.alternatives[0]] != pytest.approx(
        [value for _, value in right.alternatives[0]], abs=1e-3
    )

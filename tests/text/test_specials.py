"""Special ids on purpose: templates have them, and what a user wrote, spelt however, has not."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clearhead.text import ByteTokenizer, CharacterTokenizer, MarkedTokenizer, Tokenizer, specials
from clearhead.text.specials import ESCAPE, GUARD, encode_special, guarded
from tests.text.library_files import BYTE_LEVEL, END, OTHERS, START


class Awkward(ByteTokenizer):
    """Spellings of one character, within each other, with one beginning, overlapping themselves, and with white space."""

    @property
    def size(self) -> int:
        return 256 + len(self.specials)

    @property
    def specials(self) -> dict[str, int]:
        spelt = ("@", "<a>", "<a>b>", "aba", "x y", " z", "><", "\n\n<")
        return {spelling: 256 + number for number, spelling in enumerate(spelt)}

    def decode(self, ids):
        return super().decode([id for id in ids if id < 256])


MARKED = MarkedTokenizer(ByteTokenizer(), masked=True)
TOKENIZERS: list[Tokenizer] = [MARKED, BYTE_LEVEL, Awkward(), ByteTokenizer()]
each = pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=["marked", "byte-level", "awkward", "without"])
few = settings(max_examples=60)


def special_ids(tokenizer: Tokenizer, ids: list[int]) -> list[int]:
    return [id for id in ids if id in set(tokenizer.specials.values())]


@st.composite
def fragments(draw, tokenizer):
    """Texts of parts of spellings, whole ones among them, guards and white space."""
    parts = ["", " ", "\n", "a", "小", GUARD, ESCAPE]
    for spelling in [*tokenizer.specials, "<|x|>"]:
        parts += [spelling, spelling[:-1], spelling[1:], spelling[:2], spelling[-2:], spelling[1:-1]]
    return "".join(draw(st.lists(st.sampled_from(parts) | st.text(max_size=2), max_size=5)))


def test_spellings_by_hand():
    begin, end, mask = MARKED.begin, MARKED.end, MARKED.mask
    assert encode_special(MARKED, "<begin>a<end><mask>") == [begin, ord("a"), end, mask]
    assert encode_special(MARKED, "<begin") == MARKED.encode("<begin")
    assert encode_special(MARKED, "") == []
    assert encode_special(BYTE_LEVEL, f"{START}the cat{END}") == [
        *[BYTE_LEVEL.specials[START], *BYTE_LEVEL.encode("the cat"), BYTE_LEVEL.specials[END]]
    ]
    # encode itself makes none.
    assert special_ids(MARKED, MARKED.encode("<begin>a<end>")) == []


def test_the_longest_spelling_counts():
    awkward = Awkward()
    assert special_ids(awkward, encode_special(awkward, "<a>b> <a>c")) == [
        *[awkward.specials["<a>b>"], awkward.specials["<a>"]]
    ]


def test_guards_by_hand():
    assert guarded(MARKED, "the < cat > and <x>") == "the < cat > and <x>"
    assert guarded(MARKED, "a <begin> b") == f"a <{GUARD}begin> b"
    assert guarded(MARKED, "<beg") == f"<beg{GUARD}"
    assert guarded(MARKED, "egin> x") == f"{GUARD}egin> x"
    assert guarded(MARKED, "egi") == f"{GUARD}egi"
    assert guarded(MARKED, "  egin> <b\n") == f"  {GUARD}egin> <b{GUARD}\n"
    assert guarded(MARKED, f"a{GUARD}b{ESCAPE}<end>") == f"a{ESCAPE}{GUARD}b{ESCAPE}{ESCAPE}<{GUARD}end>"
    assert guarded(Awkward(), "me@home, ababa") == f"me{ESCAPE}@home, a{GUARD}ba{GUARD}ba{GUARD}"
    assert guarded(MARKED, "") == ""
    assert guarded(CharacterTokenizer("ab"), "<begin>") == "<begin>"


def test_a_guard_is_left_out_and_what_it_guards_stays():
    assert encode_special(MARKED, f"<beg{GUARD}in>") == MARKED.encode("<begin>")
    assert encode_special(MARKED, f"{ESCAPE}<begin>") == MARKED.encode("<begin>")
    assert encode_special(MARKED, f"a{ESCAPE}{GUARD}b") == MARKED.encode(f"a{GUARD}b")
    assert encode_special(MARKED, f"a{GUARD}<begin>{ESCAPE}") == [ord("a"), MARKED.begin]


def test_a_guard_changes_no_token():
    # A cut before "mat" would leave the space before it alone.
    assert encode_special(BYTE_LEVEL, f"the {GUARD}mat") == BYTE_LEVEL.encode("the mat")
    assert len(BYTE_LEVEL.encode("the mat")) < len(BYTE_LEVEL.encode("the ")) + len(BYTE_LEVEL.encode("mat"))


@each
@few
@given(data=st.data())
def test_a_user_s_text_never_becomes_a_special_id(tokenizer, data):
    spelt = [*tokenizer.specials]
    beside = st.lists(
        st.sampled_from([*spelt, *(s[:2] for s in spelt), *(s[2:] for s in spelt), "u", "\n"]), max_size=3
    )
    before, behind = ("".join(data.draw(beside)) for _ in range(2))
    written = data.draw(fragments(tokenizer))
    text = before + guarded(tokenizer, written) + behind
    ids = encode_special(tokenizer, text)
    # A user's text that is empty is not there: what then touches is the template's own.
    apart = [before, behind] if written else [before + behind]
    wanted = [id for part in apart for id in special_ids(tokenizer, encode_special(tokenizer, part))]
    assert special_ids(tokenizer, ids) == wanted
    middle = tokenizer.decode(tokenizer.encode(written))
    assert tokenizer.decode(encode_special(tokenizer, guarded(tokenizer, written))) == middle
    plain = [tokenizer.decode(encode_special(tokenizer, part)) for part in (before, behind)]
    if written:
        assert tokenizer.decode(ids) == middle.join(plain)


@each
@few
@given(data=st.data())
def test_a_template_may_take_white_space_away(tokenizer, data):
    spelt = [*tokenizer.specials] or ["<begin>"]
    first, last = (data.draw(st.sampled_from(spelt)) for _ in range(2))
    written = data.draw(fragments(tokenizer))
    for trimmed in (str.strip, str.lstrip, str.rstrip, lambda text: text.strip("\n"), lambda text: text.strip(" ")):
        kept = trimmed(guarded(tokenizer, written))
        before, behind = first[: data.draw(st.integers(0, len(first)))], last[data.draw(st.integers(0, len(last))) :]
        if kept:
            wanted = [id for part in (before, behind) for id in special_ids(tokenizer, encode_special(tokenizer, part))]
            assert special_ids(tokenizer, encode_special(tokenizer, before + kept + behind)) == wanted


@each
@few
@given(data=st.data())
def test_texts_of_several_users_touch(tokenizer, data):
    written = [data.draw(fragments(tokenizer)) for _ in range(3)]
    ids = encode_special(tokenizer, "".join(guarded(tokenizer, text) for text in written))
    assert ids == tokenizer.encode("".join(written))


@few
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
@example("The cat sat on the mat. Is 3 < 4?")
def test_usual_texts_come_back_as_they_are(text):
    beginning = {spelling[size:] for spelling in BYTE_LEVEL.specials for size in range(1, len(spelling))}
    if not any(c in text for c in "<|" + GUARD + ESCAPE) and text.strip()[:1] not in {s[:1] for s in beginning}:
        assert guarded(BYTE_LEVEL, text) == text


@pytest.mark.parametrize("left_out", ["_found", "_open_edges"])
def test_a_guard_that_is_left_out_is_missed(monkeypatch, left_out):
    """The planted fault: without either half of the rule a user's text makes a special id."""
    monkeypatch.setattr(specials, left_out, lambda *_: iter(()))
    cases = [("", f"a{END}b", ""), ("<|", "end|>", ""), ("", "<|en", "d|>"), ("<|e", "nd", "|>")]
    made = [
        bool(special_ids(BYTE_LEVEL, encode_special(BYTE_LEVEL, before + guarded(BYTE_LEVEL, text) + behind)))
        for before, text, behind in cases
    ]
    assert made == ([True, False, False, False] if left_out == "_found" else [False, True, True, True])


def test_each_part_is_encoded_by_itself():
    # Metaspace puts a space before each part; it is what the library does with parts, too.
    llama = OTHERS["Llama"]
    assert llama.pieces(encode_special(llama, "<s>cat</s>cat")) == ["<s>", " cat", "</s>", " cat"]


def test_a_user_s_long_text_is_quick():
    text = "the cat < sat | on > the mat <|end|> " * 3000
    safe = guarded(BYTE_LEVEL, text)
    assert len(safe) == len(text) + 3000
    assert encode_special(BYTE_LEVEL, safe) == BYTE_LEVEL.encode(text)

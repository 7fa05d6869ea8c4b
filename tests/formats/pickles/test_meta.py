"""nanoGPT's meta.pkl: its ids exactly, nothing run, and one line for whatever it cannot be."""

from __future__ import annotations

import collections
import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clearhead.formats.pickles.meta import read_meta
from clearhead.messages import UserError
from clearhead.text import CharacterTokenizer, LibraryTokenizer, tokenizer_from_dict

CHARACTERS = "\n !$&',-.3:;?ABc\t\u3000小猫🐱é{}\"\\\u0301"


TWICE = b"\x80\x02}K\x05\x85" + b"".join(b"q%ch%c\x86" % (n, n) for n in range(60)) + b"K\x01s."


def meta(characters: str = CHARACTERS, **more: object) -> dict[str, Any]:
    ids = {character: id for id, character in enumerate(characters)}
    return {"vocab_size": len(characters), "itos": dict(enumerate(characters)), "stoi": ids} | more


def written(folder: Path, content: object, protocol: int = 4) -> Path:
    path = folder / "meta.pkl"
    path.write_bytes(content if isinstance(content, bytes) else pickle.dumps(content, protocol))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        read_meta(path)
    line = str(caught.value)
    assert "meta.pkl" in line
    assert "\n" not in line
    return line


@pytest.mark.parametrize("protocol", range(6))
def test_every_id_is_its_character(tmp_path: Path, protocol: int) -> None:
    tokenizer = read_meta(written(tmp_path, meta(), protocol))
    assert isinstance(tokenizer, LibraryTokenizer)
    assert tokenizer.size == len(CHARACTERS)
    assert tokenizer.encode(CHARACTERS) == [*range(len(CHARACTERS))]
    assert tokenizer.pieces([*range(len(CHARACTERS))]) == list(CHARACTERS)
    text = CHARACTERS[::-1] * 3
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer_from_dict(tokenizer.to_dict()) == tokenizer


def test_what_has_no_id_is_left_out(tmp_path: Path) -> None:
    assert read_meta(written(tmp_path, meta("abc"))).encode("a<b>?c") == [0, 1, 2]


def test_the_order_is_the_files_own(tmp_path: Path) -> None:
    tokenizer = read_meta(written(tmp_path, meta("zebra")))
    assert tokenizer.encode("bazer") == [2, 4, 0, 1, 3]
    # What a tokenizer that sorts would say.
    assert CharacterTokenizer.of("zebra").encode("bazer") != [2, 4, 0, 1, 3]


def test_ours_where_it_has_the_same_ids(tmp_path: Path) -> None:
    assert read_meta(written(tmp_path, meta("\ufffdzab"))) == CharacterTokenizer("zab")


def test_a_list_and_what_is_not_said(tmp_path: Path) -> None:
    assert read_meta(written(tmp_path, {"itos": list("zab")})).encode("abz") == [1, 2, 0]


def test_a_long_text_is_encoded_in_reasonable_time(tmp_path: Path) -> None:
    tokenizer = read_meta(written(tmp_path, meta("ab")))
    began = time.process_time()
    assert len(tokenizer.encode("abba" * 50_000)) == 200_000
    assert time.process_time() - began < 5


class Code:
    """Runs a command when it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return os.system, (self.command,)


@pytest.mark.parametrize("protocol", range(6))
def test_code_is_refused_by_name_and_not_run(tmp_path: Path, protocol: int) -> None:
    command = f"echo run > {tmp_path / 'ran'}"
    path = written(tmp_path, meta(extra=Code(command)), protocol)
    line = refusal(path)
    assert f"{os.system.__module__}.system to be run" in line
    # There is no model in it whose weights could be saved instead.
    assert "prepare.py" in line
    assert "state_dict" not in line
    assert not (tmp_path / "ran").exists()
    # The same file does run it where it is unpickled.
    pickle.loads(path.read_bytes())
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("value", [collections.OrderedDict(a=1), {1, 2}, Path("x"), 1j, bytearray(b"x")], ids=repr)
@pytest.mark.parametrize("protocol", [2, 3])
def test_no_global_at_all(tmp_path: Path, value: object, protocol: int) -> None:
    assert "to be run" in refusal(written(tmp_path, meta(extra=value), protocol))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([1, 2], "no vocabulary"),
        ({"stoi": {}}, "no vocabulary"),
        ({"itos": "abc"}, "no vocabulary"),
        (meta(vocab_size=3), "do not say the same"),
        (meta(vocab_size="26"), "do not say the same"),
        (meta("ab", stoi={"a": 1, "b": 0}), "do not say the same"),
        ({"itos": ["a", "a"]}, "do not say the same"),
        ({"itos": {}}, "do not say the same"),
        ({"itos": {0: "a", 2: "b"}}, "id 1 is None"),
        ({"itos": {0: "a", 1: "the"}}, "id 1 is 'the'"),
        ({"itos": {0: "a", 1: ""}}, "id 1 is ''"),
        ({"itos": {0: "a", 1: 5}}, "id 1 is 5"),
        ({"itos": {0: "\ud800"}}, "id 0 is '\\ud800'"),
        ({"itos": {0: "x" * 10_000}}, "id 0 is 'xxx"),
        (b"", "cannot be read"),
        (b"\x80\x04.", "cannot be read"),
        (b"not a pickle", "cannot be read"),
        # A list in itself, and a place to remember a value by for which Python would make room.
        (b"\x80\x02]q\x00h\x00a.", "no vocabulary"),
        (b"\x80\x02}r\xf0\xff\xff\xff.", "remembers 4294967280 values"),
        (b"\x80\x02}p4294967280\n.", "remembers 4294967280 values"),
        (b"\x80\x04\x8e\x00\x00\x00\x00\xff\x00\x00\x00abc.", "cannot be read"),
        (b"\x80\x02\x82\x01.", "by number"),
        # Tuples in tuples, which would be looked up in 2^n steps.
        (TWICE, "too often"),
        (b"\x80\x04})" + b"2\x86" * 60 + b"K\x01s.", "too often"),
    ],
)
def test_what_is_no_vocabulary(tmp_path: Path, content: object, said: str) -> None:
    assert said in refusal(written(tmp_path, content))


def test_the_tuples_in_tuples_do_take_long() -> None:
    """With a fifth of them, a millionth of the steps."""
    short = b"\x80\x02}K\x05\x85" + b"".join(b"q%ch%c\x86" % (n, n) for n in range(12)) + b"K\x01s."
    (key,) = pickle.loads(short)
    for _ in range(12):
        assert key[0] is key[1]
        key = key[0]
    assert key == (5,)


def test_a_vocabulary_cut_at_any_byte(tmp_path: Path) -> None:
    whole = pickle.dumps(meta())
    for kept in range(0, len(whole), 3):
        assert "cannot be read" in refusal(written(tmp_path, whole[:kept]))

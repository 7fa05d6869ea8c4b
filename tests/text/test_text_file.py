"""Reading in blocks: wherever a block ends, the same text, the same notes and the same mistakes as of the whole file."""

import codecs
import io
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clearhead.messages import UserError
from clearhead.text import read_text
from clearhead.text.characters import WrongByteError, decoded
from clearhead.text.files import raw_text, with_line_feeds
from clearhead.text.streams import Progress, blocks_of, nothing
from clearhead.text.text_file import Read, TextFile, examine, examined

NAMED = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "gb18030"]
OTHERS = ["gbk", "big5", "shift_jis", "euc_jp", "euc_kr", "latin-1", "cp1252", "utf-7", "iso2022_jp", "hz"]
# Python removes a mark under these names; under the others it is a character.
ORDER = "le" if sys.byteorder == "little" else "be"
AS_IT_STANDS = {"utf-8-sig": "utf-8", "utf-16": f"utf-16-{ORDER}", "utf-32": f"utf-32-{ORDER}"}
PATH = Path("somewhere.txt")
# Characters of one, two, three and four bytes, a combination of line ends, and what a block must not cut.
MIXED = "aé猫😀\r\n\rñ\n\r\n\r\r\n好。\U00020000\ufffd end\r"

MIXED_CHINESE = "我们在山里看花，他说：这是好的。\n" * 9


def chopped(data: bytes, *sizes: int) -> Read:
    """The bytes in blocks of these sizes, again and again."""

    def read(*, progress: Progress = nothing) -> Iterator[bytes]:
        place, turn = 0, 0
        while place < len(data):
            size = sizes[turn % len(sizes)]
            progress(len(data[place : place + size]))
            yield data[place : place + size]
            place, turn = place + size, turn + 1

    return read


def outcome(read: Read, encoding: str, errors: str) -> object:
    """Everything that can be told of a reading: a text and what is known of it, or the mistake."""
    try:
        looked = examined(PATH, read, encoding, errors)
        return (
            "".join(looked.raw_parts()),
            "".join(looked.parts()),
            looked.encoding,
            looked.size,
            looked.blank,
            looked.all_notes,
        )
    except UserError as error:
        return str(error)


@given(
    st.text(st.sampled_from(list(MIXED + " 的一是不x")), min_size=5, max_size=30)
    | st.text(st.sampled_from(list(MIXED + "\0\x07的一是不 x")))
    | st.text(),
    st.sampled_from(NAMED),
    st.booleans(),
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
)
def test_blocks_of_any_size_give_what_the_whole_gives(text, encoding, mark, sizes):
    text = "\ufeff" * mark + text
    data = text.encode(encoding)
    whole = chopped(data, max(1, len(data)))
    for wanted in ("auto", encoding):
        assert outcome(chopped(data, *sizes), wanted, "strict") == outcome(whole, wanted, "strict")
    # The reference is Python's own decoding of the whole, with the line ends of the whole.
    found = outcome(chopped(data, *sizes), encoding, "strict")
    if isinstance(found, tuple):
        plain = data.decode(AS_IT_STANDS.get(encoding, encoding)).removeprefix("\ufeff")
        ended, kinds = with_line_feeds(plain, lone=True)
        assert found[:2] == (plain, ended)
        assert found[4] == (not plain.strip())
        assert [note.split()[1] for note in found[5] if "became LF" in note] == kinds


@given(
    st.binary(max_size=40) | st.lists(st.sampled_from([b"\xe7", b"\x8c", b"\xab", b"a", b"\r", b"\n", b"\xff"])),
    st.sampled_from(NAMED + OTHERS),
    st.sampled_from(["strict", "replace"]),
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
)
@example([b"\xe7", b"\x8c"], "utf-8", "strict", [1])
@example([b"\xff\xfe\x00\xd8"], "utf-16", "replace", [1])
def test_wrong_bytes_are_found_at_the_same_place(data, encoding, errors, sizes):
    data = data if isinstance(data, bytes) else b"".join(data)
    whole = chopped(data, max(1, len(data)))
    for wanted in ("auto", encoding):
        assert outcome(chopped(data, *sizes), wanted, errors) == outcome(whole, wanted, errors)
    # The reference: the place at which Python's decoding of the whole stops.
    named = "utf-8" if encoding == "utf-8-sig" else encoding
    assert stopped(chopped(data, *sizes), named) == stopped(whole, named) == first_wrong(data, named)
    read = "".join(decoded(chopped(data, *sizes)(), named, "replace"))
    assert read.removeprefix("\ufeff") == data.decode(named, "replace").removeprefix("\ufeff")


def stopped(read: Read, encoding: str) -> tuple[int, int] | None:
    """Where reading in blocks stops, and at which byte."""
    try:
        list(decoded(read(), encoding))
    except WrongByteError as wrong:
        return wrong.offset, wrong.byte
    return None


def first_wrong(data: bytes, encoding: str) -> tuple[int, int] | None:
    """Where Python's decoding of the whole stops, and at which byte."""
    try:
        data.decode(encoding)
    except UnicodeDecodeError as error:
        return error.start, data[error.start]
    return None


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32-le", "gb18030"])
def test_every_cut_place_of_one_text(encoding):
    data = MIXED.encode(encoding)
    ended = MIXED.replace("\r\n", "\n").replace("\r", "\n")
    wrong = doubled = 0
    for cut in range(1, len(data)):
        looked = examined(PATH, chopped(data, cut, len(data)), encoding, "strict")
        assert "".join(looked.raw_parts()) == MIXED
        assert "".join(looked.parts()) == ended
        assert looked.line_ends == ("CRLF", "CR")
        # The planted faults: each block decoded, or its line ends changed, by itself.
        blocks = [data[:cut], data[cut:]]
        alone = "".join(block.decode(encoding.removesuffix("-sig"), "replace") for block in blocks).removeprefix(
            "\ufeff"
        )
        wrong += alone != MIXED
        parts = decoded(blocks, encoding)
        doubled += "".join(with_line_feeds(part, lone=True)[0] for part in parts).removeprefix("\ufeff") != ended
    assert wrong
    assert doubled


@pytest.mark.parametrize("text", ["words and then \r\n \n\n", "\n\n\n\n\n\n words", "\n" * 9])
def test_a_text_is_blank_only_if_all_of_it_is(text):
    for size in range(1, len(text) + 1):
        assert examined(PATH, chopped(text.encode(), size), "auto", "strict").blank == (not text.strip())


@pytest.mark.parametrize("place", [0, 250, 500])
@pytest.mark.parametrize("encoding", ["auto", "utf-8", "latin-1"])
def test_a_nul_anywhere_is_no_text(place, encoding):
    data = bytearray(b"a" * 501)
    data[place] = 0
    for size in (7, 501):
        with pytest.raises(UserError, match="looks like a binary file: 1 control codes such as NUL in 501 characters"):
            examined(PATH, chopped(bytes(data), size), encoding, "strict")


@pytest.mark.parametrize("encoding", ["utf-8", "auto", "gb18030", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_first_nul_is_named_by_line_and_offset(encoding, end):
    """A NUL is what the file is refused for, though another control code stands before it."""
    text = f"小猫{end}ab\x01{end * 2}小\0猫\0{end}"
    place = f"in {len(text)} characters, 0x00 on line 4 (behind {text.index(chr(0))} characters)"
    # A mark at the start is no character of the text.
    data = text.encode("utf-8-sig" if encoding == "auto" else encoding)
    for size in (1, 2, 3, 5, 99):
        with pytest.raises(UserError) as error:
            examined(PATH, chopped(data, size), encoding, "strict")
        assert f"3 control codes such as NUL {place}" in str(error.value)


def test_without_a_nul_the_first_control_code_is_named():
    text = "words\nand \x02 more\x03"
    for size in (1, 4, 99):
        with pytest.raises(UserError, match=r"2 control codes .*, 0x02 on line 2 \(behind 10 characters\)"):
            examined(PATH, chopped(text.encode(), size), "auto", "strict")
    # What is judged by its bytes: no encoding was recognised.
    with pytest.raises(UserError, match=r"1 control codes .* in 4 characters, 0x00 on line 2 \(behind 3 characters\)"):
        examined(PATH, chopped(b"\xff\xfa\n\0", 2), "auto", "strict")


def test_a_mark_is_removed_at_the_start_alone():
    data = "\ufeffab\ufeff".encode()
    for size in range(1, len(data) + 1):
        looked = examined(PATH, chopped(data, size), "auto", "strict")
        assert "".join(looked.parts()) == "ab\ufeff"
        assert looked.notes == (f"{PATH}: byte order mark (BOM) removed",)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
@pytest.mark.parametrize("order", ["le", "be"])
def test_wide_text_named_without_its_order_follows_its_mark(encoding, order):
    data = ("\ufeff" + MIXED).encode(f"{encoding}-{order}")
    looked = examined(PATH, chopped(data, 1), encoding, "strict")
    assert ("".join(looked.raw_parts()), looked.encoding) == (MIXED, encoding)
    # Without a mark it is the machine's order, as `bytes.decode` has it.
    bare = MIXED.encode(f"{encoding}-{order}")
    assert "".join(decoded([bare], encoding, "replace")) == bare.decode(encoding, "replace")


@pytest.mark.parametrize(
    ("data", "text", "count", "offset"),
    [
        (b"ab\xffcd", "ab\ufffdcd", 1, 2),
        (b"\xff\xff", "\ufffd\ufffd", 2, 0),
        # Two bytes of a character of three are one place, and what the file itself has as U+FFFD is none.
        ("\ufffd猫".encode()[:-1] + b"x\xfe", "\ufffd\ufffdx\ufffd", 2, 3),
    ],
)
def test_wrong_bytes_are_replaced_and_counted(tmp_path, data, text, count, offset):
    path = tmp_path / "wrong.txt"
    path.write_bytes(data)
    with pytest.raises(UserError, match=f"at offset {offset} does not fit"):
        examine(path)
    looked = examine(path, errors="replace")
    assert looked.encoding == "utf-8"
    found = "".join(looked.parts())
    assert found == text
    assert looked.notes == (f"{path}: what is not utf-8 became U+FFFD, {count} times, the first at offset {offset}",)
    # The planted fault: every U+FFFD counted.
    assert (found.count("\ufffd") == count) == ("\ufffd" not in data.decode("utf-8", "ignore"))


def test_chinese_with_a_wrong_byte_is_recognised_no_more(tmp_path):
    path = tmp_path / "wrong.txt"
    path.write_bytes(MIXED_CHINESE.encode("gb18030"))
    assert examine(path, errors="replace").encoding == "gb18030"
    path.write_bytes(MIXED_CHINESE.encode("gb18030") + b"\xff")
    assert examine(path, errors="replace").encoding == "utf-8"
    # It can still be named, and then one place is wrong.
    looked = examine(path, "gb18030", "replace")
    assert "".join(looked.parts()) == MIXED_CHINESE + "\ufffd"
    assert looked.notes[0].endswith(
        f"what is not gb18030 became U+FFFD, 1 times, the first at offset {path.stat().st_size - 1}"
    )


def test_nothing_is_said_where_nothing_was_replaced(tmp_path, monkeypatch):
    path = tmp_path / "right.txt"
    path.write_text("é" * 1000, encoding="utf-8")
    assert read_text(path, errors="replace").notes == ()
    path.write_bytes(b"\xe9" * 1000)
    assert read_text(path, "latin-1", "replace").notes == ()
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    assert read_text(path, "ascii", "replace").notes == (
        f"{path}：不是 ascii 编码的地方已改为 U+FFFD，共 1,000 处，第一处在偏移 0",
    )


def test_a_binary_file_is_no_text_even_with_replacements(tmp_path):
    path = tmp_path / "binary.txt"
    path.write_bytes(b"\x7fELF\x02\xff" + b"\0" * 2000)
    with pytest.raises(UserError, match="looks like a binary file"):
        examine(path, errors="replace")


def test_bytes_and_blocks_are_read_alike(tmp_path):
    data = "\ufeff小猫\r\n".encode("utf-16-le")
    raw = raw_text(data, PATH, "auto")
    looked = examined(PATH, chopped(data, 3), "auto", "strict")
    assert (raw.text, raw.encoding, raw.size, raw.notes) == ("小猫\r\n", "utf-16-le", len(data), looked.notes)
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    assert [len(block) for block in blocks_of(path, size=4)] == [4, 4, 2]
    assert isinstance(examine(path), TextFile)


def blind(blocks: Iterable[bytes]) -> str:
    """A reader that forgets what a block left over."""
    return "".join(codecs.getincrementaldecoder("utf-8")("replace").decode(block) for block in blocks)


def test_the_planted_fault_a_reader_that_forgets():
    data = "猫猫".encode()
    assert blind(chopped(data, 3)()) == "猫猫"
    assert blind(chopped(data, 4)()) != "猫猫"
    assert io.IncrementalNewlineDecoder(None, translate=True).decode("\r") == ""

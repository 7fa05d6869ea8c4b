"""Text files: every encoding and line end that is recognised, and every mistake that is one clear line."""

import os
from pathlib import Path

import numpy as np
import pytest

from clearhead.messages import UserError
from clearhead.text import LEAST_BYTES, read_text
from clearhead.text.tokenizer import UNKNOWN

ENGLISH = "A small cat sits on the mat.\nIt says: hello, world!\n" * 30
CHINESE = "小猫趴在垫子上，它说：“你好，世界！”\n有一天，她来到山里看花。\n" * 30
MIXED = "The cat (小猫) sits.\n我们在 2024 年看到 3 只猫。\n" * 30
RUSSIAN = "Кошка сидит на окне и смотрит на улицу.\n" * 30
GERMAN = "Fräulein Müller isst süße Äpfel; der Bär fährt über größere Brücken.\n" * 30
JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。\n" * 30
KOREAN = "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.\n" * 30
TAIWANESE = "人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心。\n" * 30


def written(folder: Path, data: bytes, name: str = "text.txt") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def refused(path: Path, encoding: str = "auto") -> str:
    with pytest.raises(UserError) as caught:
        read_text(path, encoding)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("text", [ENGLISH, CHINESE, MIXED, RUSSIAN])
@pytest.mark.parametrize(
    ("codec", "mark"),
    [
        ("utf-8", b"\xef\xbb\xbf"),
        ("utf-16-le", b"\xff\xfe"),
        ("utf-16-be", b"\xfe\xff"),
        ("utf-32-le", b"\xff\xfe\x00\x00"),
        ("utf-32-be", b"\x00\x00\xfe\xff"),
        ("gb18030", b"\x84\x31\x95\x33"),
    ],
)
def test_a_mark_names_the_encoding_and_is_removed(tmp_path, text, codec, mark):
    read = read_text(written(tmp_path, mark + text.encode(codec)))
    assert read.text == text
    assert read.encoding == codec
    assert "byte order mark (BOM) removed" in read.notes[-1]
    assert (len(read.notes) == 2) == (codec != "utf-8")


@pytest.mark.parametrize("text", [ENGLISH, CHINESE, MIXED, RUSSIAN, GERMAN, JAPANESE, KOREAN, TAIWANESE])
@pytest.mark.parametrize("codec", ["utf-8", "utf-16-le", "utf-16-be"])
def test_an_encoding_without_a_mark_is_recognised(tmp_path, text, codec):
    read = read_text(written(tmp_path, text.encode(codec)))
    assert (read.text, read.encoding) == (text, codec)
    assert [codec.upper() in note for note in read.notes] == ([] if codec == "utf-8" else [True])


@pytest.mark.parametrize("text", ["abcdef" * 200, "Hello — “world” … €5 ½ → ✓\n" * 50, "a😀" * 300])
@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark_however_odd_the_text(tmp_path, text, codec):
    read = read_text(written(tmp_path, text.encode(codec)))
    assert (read.text, read.encoding) == (text, codec)


@pytest.mark.parametrize("text", [CHINESE, MIXED, TAIWANESE])
def test_gb18030_is_recognised(tmp_path, text):
    path = written(tmp_path, text.encode("gb18030"))
    read = read_text(path)
    assert (read.text, read.encoding) == (text, "gb18030")
    assert read.notes == (f"{path}: GB18030 recognised",)


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        (GERMAN, "latin-1"),
        ("naïveté\n" * 200, "cp1252"),
        ("fünfköpfige Bäckerzünfte\n" * 60, "latin-1"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8-r"),
        (JAPANESE, "euc_jp"),
        (JAPANESE, "shift_jis"),
        (KOREAN, "euc_kr"),
        (TAIWANESE, "big5"),
    ],
)
def test_other_encodings_are_never_guessed_to_be_gb18030_and_can_be_named(tmp_path, text, codec):
    data = text.encode(codec)
    path = written(tmp_path, data)
    first_wrong = next(at for at, byte in enumerate(data) if byte >= 0x80)
    assert f"0x{data[first_wrong]:02X} at offset {first_wrong:,} does not fit" in refused(path)
    assert read_text(path, codec).text == text


def test_latin_1_that_fits_gb18030_byte_by_byte_is_still_refused(tmp_path):
    data = ("fünfköpfige Bäckerzünfte\n" * 60).encode("latin-1")
    assert data.decode("gb18030")
    refused(written(tmp_path, data))


def test_a_wrong_byte_in_chinese_utf8_is_named_and_not_read_as_gb18030(tmp_path):
    data = bytearray(CHINESE.encode("utf-8"))
    data[300] = 0xFF
    message = refused(written(tmp_path, bytes(data)))
    assert "is not utf-8: byte 0xFF at offset 300" in message
    # The planted fault: replacing the byte without a word would have let the text through.
    assert UNKNOWN in bytes(data).decode("utf-8", "replace")


def test_utf8_cut_in_the_middle_of_a_character_is_named(tmp_path):
    data = ("a" * 1200 + "猫").encode("utf-8")[:-1]
    assert "byte 0xE7 at offset 1,200" in refused(written(tmp_path, data))


@pytest.mark.parametrize(
    ("encoding", "head"),
    [("utf-8", b""), ("utf-8-sig", b"\xef\xbb\xbf"), ("utf-8", b"\xef\xbb\xbf")],
)
def test_the_offset_counts_from_the_start_of_the_file(tmp_path, encoding, head):
    data = head + b"a" * (1100 - len(head)) + b"\xff" + b"b" * 50
    assert "byte 0xFF at offset 1,100" in refused(written(tmp_path, data), encoding)


def test_a_named_encoding_is_obeyed(tmp_path):
    path = written(tmp_path, ENGLISH.encode("utf-8"))
    assert read_text(path, "UTF8").encoding == "utf-8"
    assert read_text(path, "latin-1").text == ENGLISH
    assert "is not utf-32" in refused(path, "utf-32")
    gb = written(tmp_path, CHINESE.encode("gb18030"))
    assert read_text(gb, "gbk").text == CHINESE
    # The planted fault: a wrong name gives a wrong text, which the comparison shows.
    assert read_text(gb, "latin-1").text != CHINESE


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig", "utf-8"])
def test_a_named_encoding_drops_the_mark(tmp_path, encoding):
    codec = "utf-16-le" if encoding.startswith("utf-16") else "utf-8"
    assert read_text(written(tmp_path, ("\ufeff" + MIXED).encode(codec)), encoding).text == MIXED


@pytest.mark.parametrize(
    "encoding", ["utf-9", "", "编码", "hex", "rot13", "undefined", "idna", "unicode_escape", "a\0b", "\ud800", "AUTO"]
)
def test_an_unknown_encoding_is_one_line(tmp_path, encoding):
    message = refused(written(tmp_path, ENGLISH.encode()), encoding)
    assert message.startswith("There is no text encoding called ")


@pytest.mark.parametrize(
    ("ends", "kinds"),
    [("\n", []), ("\r\n", ["CRLF"]), ("\r", ["CR"])],
)
@pytest.mark.parametrize("codec", ["utf-8", "utf-16-le", "gb18030"])
def test_line_ends_become_lf(tmp_path, codec, ends, kinds):
    read = read_text(written(tmp_path, CHINESE.replace("\n", ends).encode(codec)))
    assert read.text == CHINESE
    assert [note.split()[1] for note in read.notes if "became LF" in note] == kinds


def test_mixed_line_ends_are_both_named(tmp_path):
    path = written(tmp_path, b"one\r\ntwo\rthree\n\r\n" * 100)
    read = read_text(path)
    assert read.text == "one\ntwo\nthree\n\n" * 100
    assert read.notes == (f"{path}: CRLF line ends became LF", f"{path}: CR line ends became LF")


def test_missing_folder_and_forbidden(tmp_path, monkeypatch):
    assert "There is no file" in refused(tmp_path / "nowhere.txt")
    assert "is a folder" in refused(tmp_path)
    path = written(tmp_path, ENGLISH.encode())
    # A name below a file is "not a directory" to POSIX and merely missing to Windows.
    assert "below.txt" in refused(path / "below.txt")

    def forbidden(self, mode):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbidden)
    assert "may not be read" in refused(path)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the system lets this user read every file")
def test_a_file_without_permission(tmp_path):
    path = written(tmp_path, ENGLISH.encode())
    path.chmod(0)
    assert "may not be read" in refused(path)


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf", b"\xff\xfe", b" \r\n\t" * 700])
def test_a_file_without_text(tmp_path, data):
    assert "holds no text" in refused(written(tmp_path, data))


def test_the_least_size(tmp_path):
    assert read_text(written(tmp_path, b"a" * LEAST_BYTES)).notes == ()
    assert "holds 999 bytes; at least 1,000 are needed" in refused(written(tmp_path, b"a" * (LEAST_BYTES - 1)))


def random_bytes(count: int) -> bytes:
    return np.random.default_rng(7).integers(0, 256, count, dtype=np.uint8).tobytes()


@pytest.mark.parametrize(
    "data",
    [
        random_bytes(5000),
        random_bytes(5001),
        random_bytes(5000).replace(b"\0", b"\x07"),
        b"\x7fELF\x02\x01\x01" + b"\0" * 2000,
        b"\x89PNG\r\n\x1a\n" + random_bytes(3000),
        np.arange(3000, dtype=np.uint16).tobytes(),
        np.random.default_rng(5).integers(0, 65, 3000, dtype=np.uint16).tobytes(),
        np.random.default_rng(6).integers(0, 50257, 3000, dtype=np.uint16).tobytes(),
        np.random.default_rng(8).normal(size=700).astype(np.float32).tobytes(),
        ENGLISH.encode() + b"\0",
    ],
    ids=["random", "random-odd", "random-no-nul", "elf", "png", "counts", "ids65", "ids50257", "floats", "one-nul"],
)
def test_a_binary_file_is_called_one(tmp_path, data):
    assert "looks like a binary file" in refused(written(tmp_path, data))


def test_a_few_control_codes_are_still_text(tmp_path):
    coloured = ("\x1b[31mred\x1b[0m is how a log writes it\n" * 9 + "a backspace: \x08\n") * 5
    assert read_text(written(tmp_path, coloured.encode())).text == coloured


def test_ascii_is_never_read_as_utf16(tmp_path):
    text = "this app can break. " * 60
    assert read_text(written(tmp_path, text.encode())).text == text


def test_a_chinese_file_name(tmp_path):
    path = written(tmp_path, CHINESE.encode("utf-16"), "唐诗 宋词.txt")
    read = read_text(str(path))
    assert (read.text, read.path) == (CHINESE, path)
    assert "唐诗 宋词.txt" in read.notes[0]
    assert "没有" not in refused(tmp_path / "诗.txt")


def test_messages_in_chinese(tmp_path, monkeypatch):
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    assert "找不到文件" in refused(tmp_path / "诗.txt")


@pytest.mark.parametrize(("name", "least"), [("shakespeare.txt", 1_000_000), ("tang-song.txt", 30_000)])
def test_real_texts_in_every_encoding(tmp_path, texts, name, least):
    read = read_text(texts / name)
    assert (read.encoding, read.notes) == ("utf-8", ())
    assert len(read.text) > least
    for codec in ("utf-16-le", "utf-16-be", "gb18030"):
        again = read_text(written(tmp_path, read.text.encode(codec)))
        assert again.text == read.text
        # Plain ASCII is the same bytes in GB18030, and is called UTF-8.
        assert again.encoding == ("utf-8" if codec == "gb18030" and read.text.isascii() else codec)

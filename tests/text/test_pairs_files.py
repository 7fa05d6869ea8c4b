"""Files of pairs that are more than plain TSV: CSV with its quotes, compressed files, headers, wrong bytes replaced."""

import csv
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.messages import UserError
from clearhead.text import Pair, look_like_pairs, read_pairs

SIDE = st.text(st.sampled_from("ab ,\"'\n猫;\t"), min_size=1)


def written(folder: Path, text: str, name: str = "x.csv", codec: str = "utf-8") -> Path:
    path = folder / name
    data = text.encode(codec)
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def refused(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        read_pairs(path)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_csv_by_hand(tmp_path):
    text = 'one,1\n\n"two, or\nmore","2 ""and"" 3"\n three ,3\t\n"four","4"'
    read = read_pairs(written(tmp_path, text))
    assert read.pairs == [
        Pair("one", "1"),
        Pair("two, or\nmore", '2 "and" 3'),
        Pair(" three ", "3\t"),
        Pair("four", "4"),
    ]
    # A pair has the line where it begins: the second is on lines 3 and 4.
    assert read.lines == [1, 3, 5, 6]
    # The planted fault: the name decides; as a TSV the same lines have no tab or too many columns.
    assert "has no tab" in refused(written(tmp_path, text, "x.tsv"))


@given(st.lists(st.tuples(SIDE, SIDE), min_size=2, max_size=6), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())
def test_what_python_writes_is_read_back(tmp_path_factory, pairs, end, every):
    out = io.StringIO(newline="")
    # Where lines end with CR, Python writes LF inside a field without the quotes that it needs.
    quoting = csv.QUOTE_ALL if every or end == "\r" else csv.QUOTE_MINIMAL
    csv.writer(out, lineterminator=end, quoting=quoting).writerows(pairs)
    path = written(tmp_path_factory.getbasetemp(), out.getvalue(), "back.csv")
    read = read_pairs(path)
    assert read.pairs == pairs
    starts, place = [], 1
    for pair in pairs:
        starts.append(place)
        place += 1 + "".join(pair).count("\n")
    assert read.lines == starts


@pytest.mark.parametrize("name", ["x.csv.gz", "x.tsv.gz", "X.CSV", "x.Tsv.GZ"])
@pytest.mark.parametrize("codec", ["utf-8", "utf-16-le", "gb18030"])
def test_compressed_and_in_capital_letters(tmp_path, name, codec):
    gap = "," if "csv" in name.lower() else "\t"
    text = f"小猫在山里看花{gap}a kitten\r\n你好{gap}hello\r\n"
    path = tmp_path / name
    data = text.encode(codec)
    path.write_bytes(gzip.compress(data) if name.lower().endswith(".gz") else data)
    read = read_pairs(path)
    assert read.pairs == [Pair("小猫在山里看花", "a kitten"), Pair("你好", "hello")]
    assert read.notes[-1] == f"{path}: CRLF line ends became LF"


BAD = [
    ("no comma", "has 1 columns: leave two, source and target, and put a field with commas", "有 1 列"),
    ("a,b,c", "has 3 columns", "有 3 列"),
    (",b", "has no source: write it before the comma, or remove the line.", "缺少源文"),
    ("a,", "has no target: write it after the comma, or remove the line.", "缺少目标文"),
    ('"",b', "has no source", "缺少源文"),
    ('"never closed,b', "begins a record whose double quotes do not match", "双引号不配对"),
    ('"a"b,c', "begins a record whose double quotes do not match", "双引号不配对"),
]


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
@pytest.mark.parametrize("number", range(len(BAD)))
def test_a_bad_record_is_named_by_its_first_line(tmp_path, monkeypatch, name, number):
    line, english, chinese = BAD[number]
    # Line 6: an empty line, and a record of two lines, stand before it; a second fault behind it is not named.
    text = f'a,1\n\nb,2\n"c\nc",3\n{line}\nd,4\n'
    path = written(tmp_path, text + ("" if "quotes" in english else "no comma either\n"), name)
    assert refused(path).startswith(f"Line 6 of {path} {english}")
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    message = refused(path)
    assert message.startswith(f"{path} 第 6 行")
    assert chinese in message


@pytest.mark.parametrize("name", ["x.csv", "x.tsv"])
def test_a_header_is_no_pair(tmp_path, monkeypatch, name):
    gap = "," if name == "x.csv" else "\t"
    rows = f"one{gap}1\nsource{gap}target\ntwo{gap}2\n"
    plain = read_pairs(written(tmp_path, rows, name))
    # Only as the first pair; and only these two words.
    assert plain.pairs == [Pair("one", "1"), Pair("source", "target"), Pair("two", "2")]
    assert len(read_pairs(written(tmp_path, f"target{gap}source\nSource {gap}target\n", name)).pairs) == 2
    path = written(tmp_path, f"\n\nSource{gap}TARGET\n{rows}", name)
    read = read_pairs(path)
    assert (read.pairs, read.lines) == (plain.pairs, [4, 5, 6])
    assert read.notes == (f"{path}: line 3, source and target, is a header and no pair",)
    assert "holds no pairs" in refused(written(tmp_path, f"source{gap}target\n", name))
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    assert "中没有句对" in refused(path)


def test_too_few_pairs_of_a_csv(tmp_path):
    assert refused(written(tmp_path, "\n\n")).endswith("one a line: source, a comma, target.")
    assert "holds one pair" in refused(written(tmp_path, "a,b\n"))


def test_wrong_bytes_are_replaced_on_request(tmp_path):
    path = written(tmp_path, "naïf,Bär\na,b\n", codec="latin-1")
    assert "byte 0xEF at offset 2 does not fit" in refused(path)
    read = read_pairs(path, errors="replace")
    assert read.pairs == [Pair("na\ufffdf", "B\ufffdr"), Pair("a", "b")]
    assert read.notes == (f"{path}: what is not utf-8 became U+FFFD, 2 times, the first at offset 2",)


@pytest.mark.parametrize("name", ["x.csv", "x.tsv"])
def test_fields_of_ten_megabytes(tmp_path, name):
    long, before = "猫 " * 2_600_000, csv.field_size_limit()
    gap = "," if name == "x.csv" else "\t"
    read = read_pairs(written(tmp_path, f"a{gap}{long}\nb{gap}c\n", name))
    assert read.pairs == [Pair("a", long), Pair("b", "c")]
    # The limit of the process is as it was; the planted fault, to leave it, refuses such a field.
    assert csv.field_size_limit() == before < len(long)
    with pytest.raises(csv.Error, match="field larger than field limit"):
        list(csv.reader([f"a,{long}"]))
    refused(written(tmp_path, 'a,"b'))
    assert csv.field_size_limit() == before


def test_nul_bytes_are_no_text(tmp_path):
    assert "looks like a binary file" in refused(written(tmp_path, "a,b\nc\0,d\n"))


def test_texts_in_parts_look_like_pairs_as_whole_ones_do():
    text = "a\tb\n\nc\td\n"
    for size in range(1, 9):
        assert look_like_pairs(text[place : place + size] for place in range(0, len(text), size))
        assert not look_like_pairs((text + "e")[place : place + size] for place in range(0, len(text) + 1, size))
    seen: list[str] = []
    assert not look_like_pairs(seen.append(part) or part for part in ["a story\n", "a\tb\n", "c\td\n"])
    assert seen == ["a story\n"]

"""Pairs: two columns a line in any encoding, every mistake with its line, and a split that depends on the pairs alone."""

import hashlib
import random
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from clearhead.messages import UserError
from clearhead.text import Pair, Pairs, look_like_pairs, read_pairs, read_text, split_pairs

TWO = [Pair("小猫在山里看花", "a kitten looks at flowers"), Pair("你好，世界", "hello, world")]
TSV = "小猫在山里看花\ta kitten looks at flowers\n你好，世界\thello, world\n"

# Every character that ends a line for `str.splitlines`, other than LF and CR.
OTHER_ENDS = "\v\f\x1c\x1d\x1e\x85\u2028\u2029"
SIDE = st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters=OTHER_ENDS + " \xa0"), min_size=1)


def written(folder: Path, data: bytes | str, name: str = "x.tsv") -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def refused(path: Path, encoding: str = "auto") -> str:
    with pytest.raises(UserError) as caught:
        read_pairs(path, encoding)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_pairs_by_hand(tmp_path):
    read = read_pairs(written(tmp_path, "one\t1\n\ntwo\t2\n\n\none\t1"))
    assert read == Pairs([Pair("one", "1"), Pair("two", "2"), Pair("one", "1")], (), [1, 3, 6])
    assert (read.pairs[1].source, read.pairs[1].target) == ("two", "2")


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a\tb\nc\td\n", True),
        ("\na\tb\n\n\nc d\t e", True),
        ("a\tb\n", False),
        ("a\tb\nc d\n", False),
        ("a\tb\nc\td\te\n", False),
        ("a\tb\n\td\n", False),
        ("a\tb\nc\t\n", False),
        ("", False),
    ],
)
def test_what_looks_like_pairs_is_what_can_be_read_as_pairs(tmp_path, text, pairs):
    assert look_like_pairs(text) == pairs
    path = written(tmp_path, text)
    if pairs:
        assert len(read_pairs(path).pairs) == 2
    else:
        assert str(path) in refused(path)


def test_spaces_are_kept(tmp_path):
    pairs = [Pair(" a", "b "), Pair("  c d\u3000", "\xa0e"), Pair(" ", "  ")]
    path = written(tmp_path, "".join(f"{source}\t{target}\n" for source, target in pairs))
    assert read_pairs(path).pairs == pairs


@pytest.mark.parametrize(
    ("data", "notes"),
    [
        (TSV.encode(), []),
        (b"\xef\xbb\xbf" + TSV.encode(), ["byte order mark (BOM) removed"]),
        (TSV.encode("gb18030"), ["GB18030 recognised"]),
        (TSV.encode("utf-16-le"), ["UTF-16-LE recognised"]),
        (TSV.encode("utf-16-be"), ["UTF-16-BE recognised"]),
        (b"\xff\xfe" + TSV.encode("utf-16-le"), ["UTF-16-LE recognised", "byte order mark (BOM) removed"]),
        (TSV.replace("\n", "\r\n").encode(), ["CRLF line ends became LF"]),
        (TSV.replace("\n", "\r\n").encode("gb18030"), ["GB18030 recognised", "CRLF line ends became LF"]),
        (TSV.replace("\n", "\r").encode(), ["CR line ends became LF"]),
    ],
)
def test_encodings_and_line_ends_are_recognised_and_named(tmp_path, data, notes):
    path = written(tmp_path, data)
    assert read_pairs(path) == Pairs(TWO, tuple(f"{path}: {note}" for note in notes), [1, 2])


def test_a_named_encoding_is_obeyed(tmp_path):
    path = written(tmp_path, "naïf\tein Bär\nsüß\tÄpfel\n".encode("latin-1"))
    assert read_pairs(path, "latin-1").pairs == [Pair("naïf", "ein Bär"), Pair("süß", "Äpfel")]
    assert "byte 0xEF at offset 2 does not fit" in refused(path)
    assert "no text encoding called 'utf-9'" in refused(path, "utf-9")


@pytest.mark.parametrize("other", [*OTHER_ENDS, "\r"])
def test_only_a_line_feed_ends_a_line(tmp_path, other):
    tsv = f"a{other}b\tc\nd\te{other}f\n"
    # More than 1% of control codes would be a binary file.
    path = written(tmp_path, f"{tsv}{'padding' * 40}\tg\n")
    read = read_pairs(path)
    assert read.pairs[:2] == [Pair(f"a{other}b", "c"), Pair("d", f"e{other}f")]
    assert read.notes == ((f"{path}: 2 CR without LF kept as characters of their lines",) if other == "\r" else ())
    # The planted fault: lines as Python splits them, of which none has these two columns.
    assert "a" in tsv.splitlines()


def test_a_lone_cr_does_not_shift_the_number_of_a_line(tmp_path):
    assert refused(written(tmp_path, "a\rb\tc\r\nno tab\r\n")).startswith("Line 2 of ")


BAD_LINES = [
    ("no tab", "has no tab: write source, a tab, target.", "没有制表符"),
    (" ", "has no tab: write source, a tab, target.", "没有制表符"),
    ("a\tb\tc", "has 3 columns: leave two, source and target, with one tab between them.", "有 3 列"),
    ("a\tb\t", "has 3 columns: leave two, source and target, with one tab between them.", "有 3 列"),
    ("\t\t\t", "has 4 columns: leave two, source and target, with one tab between them.", "有 4 列"),
    ("\tb", "has no source: write it before the tab, or remove the line.", "缺少源文"),
    ("\t", "has no source: write it before the tab, or remove the line.", "缺少源文"),
    ("a\t", "has no target: write it after the tab, or remove the line.", "缺少目标文"),
]


@pytest.mark.parametrize(("line", "english", "chinese"), BAD_LINES)
def test_a_bad_line_is_named_by_its_number(tmp_path, monkeypatch, line, english, chinese):
    # Line 7, counted with the two empty lines before it; a second fault behind it is not the one that is named.
    lines = ["a\t1", "", "b\t2", "c\t3", "", "d\t4", line, "e\t5", "no tab either"]
    for end in ("\r", "\r\n", "\n"):
        path = written(tmp_path, end.join(lines))
        assert refused(path) == f"Line 7 of {path} {english}"
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    assert refused(path).startswith(f"{path} 第 7 行{chinese}")


@pytest.mark.parametrize(
    ("data", "english", "chinese"),
    [
        (b"", "holds no pairs: write at least two, one a line: source, a tab, target.", " 中没有句对："),
        (b"\xef\xbb\xbf", "holds no pairs: write at least two, one a line: source, a tab, target.", " 中没有句对："),
        (b"\n\r\n\n", "holds no pairs: write at least two, one a line: source, a tab, target.", " 中没有句对："),
        (
            b"a\tb\n",
            "holds one pair; at least two are needed, one to train on and one for validation: add pairs.",
            " 只有一对，至少需要两对",
        ),
    ],
)
def test_too_few_pairs(tmp_path, monkeypatch, data, english, chinese):
    path = written(tmp_path, data)
    assert refused(path) == f"{path} {english}"
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    assert refused(path).startswith(f"{path}{chinese}")


def test_files_that_are_no_text(tmp_path):
    assert "There is no file" in refused(tmp_path / "nowhere.tsv")
    assert "is a folder" in refused(tmp_path)
    assert "looks like a binary file" in refused(written(tmp_path, b"a\tb\nc\0\td\n"))


def test_small_files_are_for_pairs_alone(tmp_path):
    path = written(tmp_path, "a\tb\nc\td\n")
    assert len(read_pairs(path).pairs) == 2
    with pytest.raises(UserError, match="holds 8 bytes; at least 1,000 are needed"):
        read_text(path)


def test_white_space_of_control_codes_is_not_called_binary(tmp_path):
    path = written(tmp_path, "\x1c\x1d\n" * 400)
    assert refused(path) == f"Line 1 of {path} has no tab: write source, a tab, target."
    with pytest.raises(UserError, match="holds no text"):
        read_text(path)


def test_the_notes_of_texts_and_of_pairs_stand_in_the_same_order(tmp_path):
    path = written(tmp_path, ("\ufeff" + TSV * 40).replace("\n", "\r\n").encode("utf-16-le"))
    read = read_text(path)
    assert [note.split(maxsplit=1)[1] for note in read.notes] == [
        "UTF-16-LE recognised",
        "byte order mark (BOM) removed",
        "CRLF line ends became LF",
    ]
    assert read_pairs(path) == Pairs(TWO * 40, read.notes, list(range(1, 81)))


@given(st.lists(st.tuples(SIDE, SIDE), min_size=2), st.integers(0, 3), st.booleans())
def test_there_and_back(tmp_path_factory, pairs, gap, last):
    tsv = ("\n" * (1 + gap)).join(f"{source}\t{target}" for source, target in pairs) + "\n" * last
    # A mark names the encoding, whatever the characters; more than 1% of control codes would be a binary file.
    tsv += f"\n{'-' * 100 * len(tsv)}\tend"
    path = written(tmp_path_factory.getbasetemp(), "\ufeff" + tsv, "back.tsv")
    assert read_pairs(path).pairs[:-1] == pairs


def pairs_of(sources: list[str]) -> list[Pair]:
    return [Pair(source, f"t{number}") for number, source in enumerate(sources)]


def test_the_split_by_hand():
    # sha256sum of s0 ... s29 in order: s23 1016..., s25 1082..., s7 13d2..., s8 1cb7...
    pairs = pairs_of([f"s{number}" for number in range(30)])
    train, validation = split_pairs(pairs)
    assert validation == [Pair("s7", "t7"), Pair("s23", "t23"), Pair("s25", "t25")]
    assert train == [pair for pair in pairs if pair not in validation]
    # 鸟 02d9..., 猫 a810..., 狗 cecd...: one of three, as there is at least one.
    assert split_pairs(pairs_of(["猫", "狗", "鸟"]))[1] == [Pair("鸟", "t2")]


@pytest.mark.parametrize(("count", "validating"), [(2, 1), (9, 1), (19, 1), (20, 2), (1999, 199), (5000, 500)])
def test_a_tenth_validates(count, validating):
    pairs = pairs_of([str(number) for number in range(count)])
    train, validation = split_pairs(pairs)
    assert (len(train), len(validation)) == (count - validating, validating)


def test_a_source_that_is_larger_than_the_tenth_is_passed_over():
    # s23 comes first, but its 12 pairs do not fit into the tenth of 20 (2); s25 (1) and s8 (1) do, s7 (2) no longer.
    sources = ["s23"] * 12 + ["s25"] + ["s7"] * 2 + ["s8"] + ["s13"] * 4
    assert {pair.source for pair in split_pairs(pairs_of(sources))[1]} == {"s25", "s8"}
    # s25 has two pairs here and fills the tenth, so that s7 and s8 find no room.
    sources = ["s13"] * 16 + ["s25"] * 2 + ["s7", "s8"]
    assert split_pairs(pairs_of(sources))[1] == [Pair("s25", "t16"), Pair("s25", "t17")]
    # No source fits: the one with the fewest pairs, among equals the first by its digest.
    assert len(split_pairs(pairs_of(["s23"] * 4 + ["s8"] * 2 + ["s7"] * 2))[1]) == 2
    assert {pair.source for pair in split_pairs(pairs_of(["s23"] * 4 + ["s8"] * 2 + ["s7"] * 2))[1]} == {"s7"}


@given(st.lists(st.tuples(st.sampled_from("abcdefghijklmno"), st.text(max_size=1)), min_size=2), st.randoms())
def test_the_split_depends_on_the_pairs_alone(sides, chance: random.Random):
    pairs = [Pair(*side) for side in sides]
    assume(len({pair.source for pair in pairs}) > 1)
    train, validation = split_pairs(pairs)
    assert train
    assert validation
    assert sorted(train + validation) == sorted(pairs)
    assert not {pair.source for pair in train} & {pair.source for pair in validation}
    chosen = {pair.source for pair in validation}
    assert validation == [pair for pair in pairs if pair.source in chosen]
    counts = [sum(pair.source == source for pair in pairs) for source in {pair.source for pair in pairs}]
    assert len(validation) <= max(1, len(pairs) // 10, min(counts))
    chance.shuffle(pairs)
    again = split_pairs(pairs)
    assert (sorted(again[0]), sorted(again[1])) == (sorted(train), sorted(validation))


def test_the_order_is_that_of_the_digests():
    pairs = pairs_of([f"{number} 小猫" for number in range(400)])
    smallest = sorted(pairs, key=lambda pair: hashlib.sha256(pair.source.encode()).hexdigest())[:40]
    assert sorted(split_pairs(pairs)[1]) == sorted(smallest)
    # The planted faults: the last tenth, and the order of the sources themselves, choose others.
    assert sorted(pairs[-40:]) != sorted(smallest)
    assert sorted(pairs)[:40] != sorted(smallest)


def test_half_a_surrogate_pair_is_no_crash():
    assert len(split_pairs(pairs_of(["\ud800", "a", "\udfff"]))[1]) == 1


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_pairs_that_cannot_be_split(monkeypatch, count):
    pairs = pairs_of(["same"] * count)
    with pytest.raises(UserError, match=rf"pairs \({count:,}\) have fewer than two different sources"):
        split_pairs(pairs)
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    with pytest.raises(UserError, match=rf"（{count:,} 对）的源文不足两种"):
        split_pairs(pairs)

"""Sources: what names stand for, which documents come of it, and one clear line for all that cannot be read."""

import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.messages import UserError
from clearhead.text.documents import Reading
from clearhead.text.jsonl import lines_of
from clearhead.text.sources import find_sources
from clearhead.text.streams import BLOCK

STORY = "A small cat sits on the mat.\n" * 40
POEM = "小猫在山里看花。\r\n" * 60


def put(path: Path, text: str, codec: str = "utf-8") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode(codec)
    path.write_bytes(gzip.compress(data) if path.suffix.lower() == ".gz" else data)
    return path


def lines(*values: object) -> str:
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


def read(*names: object, reading: Reading | None = None) -> list[tuple[str, int | None, str]]:
    sources = find_sources([str(name) for name in names], reading or Reading())
    found = [(document.path.name, document.line, "".join(document.parts)) for document in sources.documents()]
    assert found == [(each.path.name, each.line, "".join(each.parts)) for each in sources.documents()]
    assert len(found) == sources.count
    return found


def refused(*names: object, reading: Reading | None = None) -> str:
    with pytest.raises(UserError) as caught:
        find_sources([str(name) for name in names], reading or Reading())
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_file_is_a_document_and_a_line_of_jsonl_is_one(tmp_path):
    one = put(tmp_path / "b.txt", STORY)
    two = put(tmp_path / "a.jsonl", lines({"text": "first"}, {"text": "second\r\nline\r", "n": 1}))
    ended = POEM.replace("\r\n", "\n")
    three = put(tmp_path / "notes", POEM)
    # In the order named; a name without a known end is text if it is named itself.
    assert read(one, two, three) == [
        ("b.txt", None, STORY),
        ("a.jsonl", 1, "first"),
        ("a.jsonl", 2, "second\nline\n"),
        ("notes", None, ended),
    ]


def test_a_folder_is_its_files_in_the_order_of_their_paths(tmp_path):
    names = ["b/2.md", "b/10.txt", "b.txt", "a.tsv", "Z.csv.gz", "b/c/x.jsonl.gz", "é.TXT.GZ"]
    for name in names:
        put(tmp_path / name, lines({"text": name}) if "jsonl" in name else f"{name}\n{STORY}")
    for name in [".hidden.txt", ".git/x.txt", "b/.x.txt", "picture.png", "data.json", "a.gz", "README"]:
        put(tmp_path / name, STORY)
    (tmp_path / "folder.txt").mkdir()
    found = [text.split("\n")[0] for _, _, text in read(tmp_path)]
    assert found == ["Z.csv.gz", "a.tsv", "b/10.txt", "b/2.md", "b/c/x.jsonl.gz", "b.txt", "é.TXT.GZ"]
    # The planted fault: as the system lists them they come in another order, or hidden ones among them.
    assert sorted(found) != found
    # The same whatever the folder is called by.
    assert [text for _, _, text in read(f"{tmp_path}/./b/..")] == [text for _, _, text in read(tmp_path)]


def test_tables_are_plain_text_here(tmp_path):
    table = "source,target\n" + "one,1\n" * 300
    assert read(put(tmp_path / "a.csv", table)) == [("a.csv", None, table)]


def test_the_field_can_be_named(tmp_path):
    path = put(tmp_path / "a.jsonl", lines(*({"body": STORY, "text": n} for n in range(3))))
    assert len(read(path, reading=Reading(field="body"))) == 3
    assert refused(path).startswith(f"Line 1 of {path}: the field text is no string")
    put(path, lines({"messages": [{"role": "user", "content": STORY}]}))
    assert "--field messages" not in refused(path)
    # Who follows no advice gets the same.
    with pytest.raises(UserError, match=r"is a conversation .* in the field messages"):
        read(path, reading=Reading(field="messages"))


BROKEN = [
    ('{"text": "half a sto', "is no whole JSON (it breaks at character 10)", "不是完整的 JSON"),
    ('{"text": "a"} {"text": "b"}', "is no whole JSON (it breaks at character 15)", "不是完整的 JSON"),
    ('["text"]', "is JSON, but no object", "但不是对象"),
    ("null", "is JSON, but no object", "但不是对象"),
    ('{"body": "a", "id": 7}', "has no field text, only body, id: name the one", "没有字段 text"),
    ('{"messages": []}', "is a conversation (messages) and has no text in the field text", "是对话"),
    ('{"messages": [], "id": 7}', "all files must hold them", "字段 text 中没有文本"),
    ('{"messages": "a"}', "has no field text, only messages: name the one", "没有字段 text"),
    ('{"text": null, "messages": []}', "the field text is no string", "不是字符串"),
    ('{"text": null}', "the field text is no string", "不是字符串"),
    ('{"text": ["a"]}', "the field text is no string", "不是字符串"),
    ("[" * 100_000, "brackets too deep", "过深的括号"),
    ('{"text": ' + "7" * 5000 + "}", "a number too long", "过长的数字"),
    ('{"text": "\\ud83d"}', "half of a character (a surrogate such as \\ud83d alone)", "半个字符"),
]


@pytest.mark.parametrize("number", range(len(BROKEN)))
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_a_broken_line_is_named(tmp_path, monkeypatch, name, number):
    line, english, chinese = BROKEN[number]
    # Line 4, counted with a blank one; a second fault behind it is not the one that is named.
    path = put(tmp_path / name, f'{{"text": "one"}}\n \n{{"text": "two"}}\n{line}\nnothing\n')
    message = refused(path)
    assert message.startswith(f"Line 4 of {path}")
    assert english in message
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    message = refused(path)
    assert message.startswith(f"{path} 第 4 行")
    assert chinese in message


def test_a_line_broken_in_the_middle_is_broken_at_its_end(tmp_path):
    whole = lines({"text": STORY}, {"text": STORY})
    path = put(tmp_path / "a.jsonl", whole[:-40])
    assert refused(path).startswith(f"Line 2 of {path} is no whole JSON")
    assert len(read(put(path, whole))) == 2
    # Without its last line end a line is whole.
    assert len(read(put(path, whole[:-1]))) == 2


def test_half_a_character_is_replaced_on_request(tmp_path):
    path = put(tmp_path / "a.jsonl", '{"text": "\\ud83d\\ude00 \\ud83d."}\n' + lines({"text": STORY}))
    assert read(path, reading=Reading(errors="replace"))[0][2] == "😀 \ufffd."


def test_blank_documents_are_passed_over_and_counted(tmp_path):
    story = put(tmp_path / "a.txt", STORY)
    blank = put(tmp_path / "b.txt", " \r\n\t\u3000")
    empty = put(tmp_path / "c.md.gz", "")
    some = put(tmp_path / "d.jsonl", lines({"text": ""}, {"text": "one"}, {"text": " \n"}, {"text": "two"}))
    assert [(name, line) for name, line, _ in read(tmp_path)] == [("a.txt", None), ("d.jsonl", 2), ("d.jsonl", 4)]
    sources = find_sources([str(tmp_path)], Reading())
    assert sources.notes[-1] == "4 blank documents passed over"
    assert sources.paths == (story, some)
    assert sources.size == story.stat().st_size + some.stat().st_size
    assert refused(blank, empty).startswith(f"There is not one document in {blank}, {empty}: all is blank")


def test_nothing_to_read_is_one_line(tmp_path, monkeypatch):
    assert "There is no text to train on: name at least one file." in refused()
    (tmp_path / "empty").mkdir()
    assert refused(tmp_path / "empty").startswith(f"The folder {tmp_path / 'empty'} holds no text: put files")
    put(tmp_path / "other" / "a.png", STORY)
    assert ".txt .md .jsonl .csv .tsv" in refused(tmp_path / "other")
    assert "There is no file" in refused(put(tmp_path / "a.txt", STORY), tmp_path / "nowhere.txt")
    none = put(tmp_path / "none.jsonl", "\n \n")
    assert f"There is not one document in {none}" in refused(none)
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    assert "中没有文本" in refused(tmp_path / "empty")
    assert "一个文档也没有" in refused(none)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the system lets this user read every folder")
def test_a_folder_without_permission(tmp_path):
    put(tmp_path / "a.txt", STORY)
    put(tmp_path / "b/c.txt", STORY).parent.chmod(0)
    assert "cannot be read" in refused(tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="links want a right of their own")
def test_a_link_to_nothing_is_named_and_a_pipe_passed_over(tmp_path):
    put(tmp_path / "a.txt", STORY)
    os.mkfifo(tmp_path / "pipe.txt")
    assert len(read(tmp_path)) == 1
    (tmp_path / "link.txt").symlink_to("nowhere")
    assert refused(tmp_path).startswith(f"There is no file {tmp_path / 'link.txt'}")


def test_one_file_is_judged_by_itself_and_several_together(tmp_path):
    one = put(tmp_path / "f/1.txt", "x" * 400)
    assert "holds 400 bytes; at least 1,000 are needed" in refused(one)
    assert "holds 400 bytes; at least 1,000 are needed" in refused(tmp_path / "f")
    assert "holds no text" in refused(put(tmp_path / "blank.txt", "\n" * 2000))
    assert "holds 1 bytes" in refused(put(tmp_path / "character.txt", "x"))
    two = put(tmp_path / "f/2.txt", "y" * 599)
    message = refused(one, two)
    assert message.startswith(f"{one}, {two}: 999 bytes of text in all; at least 1,000 are needed")
    put(two, "y" * 600)
    assert len(read(one, two)) == len(read(tmp_path / "f")) == 2
    # Of lines the text counts, not what stands around it; as UTF-8.
    path = put(tmp_path / "a.jsonl", lines(*[{"text": "猫" * 111, "id": "x" * 500}] * 3))
    assert "999 bytes of text in all" in refused(path)
    assert len(read(put(path, lines(*[{"text": "猫" * 112}] * 3)))) == 3


def test_other_files_are_refused_as_a_single_one_is(tmp_path):
    good = put(tmp_path / "good.txt", STORY)
    bad = put(tmp_path / "bad.txt", STORY + "é", "latin-1")
    assert f"byte 0xE9 at offset {len(STORY):,}" in refused(good, bad)
    assert read(good, bad, reading=Reading(errors="replace"))[1][2] == STORY + "\ufffd"
    assert read(good, bad, reading=Reading(encoding="latin-1"))[1][2] == STORY + "é"
    for name in ("nul.txt", "nul.jsonl"):
        assert "looks like a binary file" in refused(good, put(tmp_path / name, STORY + "\0"))


def test_many_notes_become_few(tmp_path):
    for number in range(9):
        put(tmp_path / f"{number}.txt", POEM, "gb18030")
    notes = find_sources([str(tmp_path)], Reading()).notes
    assert notes[0] == f"{tmp_path / '0.txt'}: GB18030 recognised"
    assert notes[1] == f"{tmp_path / '0.txt'}: CRLF line ends became LF"
    assert len(notes) == 6
    assert notes[5] == "... and 13 notes more of this kind"
    assert len(find_sources([str(tmp_path / "0.txt"), str(tmp_path / "1.txt")], Reading()).notes) == 4


def test_progress_is_told_every_byte_on_disk_once(tmp_path):
    put(tmp_path / "a.txt", STORY)
    put(tmp_path / "b.md.gz", POEM)
    put(tmp_path / "c.jsonl", lines(*[{"text": STORY}] * 2000))
    put(tmp_path / "d.jsonl.gz", lines({"text": STORY}))
    told: list[int] = []
    sources = find_sources([str(tmp_path)], Reading(), told.append)
    assert sum(told) == sources.size == sum(path.stat().st_size for path in tmp_path.iterdir())
    told.clear()
    for document in sources.documents(told.append):
        for _ in document.parts:
            pass
    assert sum(told) == sources.size


def test_lines_of_ten_megabytes(tmp_path):
    long = "猫 and cat " * 900_000
    path = put(tmp_path / "a.jsonl", lines({"text": "short"}, {"text": long}, {"text": "short"}))
    assert path.stat().st_size > 10 * BLOCK
    assert [len(text) for _, _, text in read(path)] == [5, len(long), 5]


@given(st.text(st.sampled_from("ab\n")), st.integers(1, 4))
def test_lines_are_those_of_the_whole_text(text, size):
    parts = [text[place : place + size] for place in range(0, len(text), size)]
    whole = text.split("\n")
    wanted = list(enumerate(whole if whole[-1] else whole[:-1], start=1))
    assert list(lines_of(parts)) == wanted
    # The planted fault: each part's lines by themselves.
    if any("\n" not in part for part in parts[:-1]):
        assert [line for part in parts for line in part.split("\n")] != whole

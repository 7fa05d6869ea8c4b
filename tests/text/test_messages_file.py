"""Conversations: what is read is what was written, and every line that is none is one clear line with its number."""

import gzip
import hashlib
import json
from pathlib import Path

import pytest

from clearhead.messages import UserError
from clearhead.text.documents import Reading
from clearhead.text.messages_file import Conversation, Message, holds_conversations, read_conversations

ASKED = {"role": "user", "content": "1 + 1?"}
TOLD = {"role": "assistant", "content": "2"}
SYSTEM = {"role": "system", "content": "Be brief."}


def line(*messages: object) -> str:
    return json.dumps({"messages": messages}, ensure_ascii=False)


def written(folder: Path, text: str, name: str = "x.jsonl") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def refused(path: Path, reading: Reading | None = None) -> str:
    with pytest.raises(UserError) as caught:
        read_conversations([str(path)], reading or Reading())
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
def test_conversations_by_hand(tmp_path, name):
    more = json.dumps({"id": 7, "messages": [SYSTEM, ASKED | {"name": "小猫"}, TOLD]})
    path = written(tmp_path, f"{line(ASKED, TOLD)}\n\n{more}\r\n{line(ASKED, TOLD, ASKED, TOLD, ASKED)}", name)
    read = read_conversations([str(path)], Reading())
    user, assistant = Message("user", "1 + 1?"), Message("assistant", "2")
    assert read.conversations == (
        Conversation(path, 1, (user, assistant)),
        Conversation(path, 3, (Message("system", "Be brief."), user, assistant)),
        Conversation(path, 4, (user, assistant, user, assistant, user)),
    )
    assert read.notes == (f"{path}: CRLF line ends became LF",)


def test_an_assistant_may_speak_twice(tmp_path):
    path = written(tmp_path, line(ASKED, TOLD, TOLD))
    assert [turn.role for turn in read_conversations([str(path)], Reading()).conversations[0].turns][1:] == [
        "assistant"
    ] * 2


def test_the_hash_is_of_the_turns_alone(tmp_path):
    one = read_conversations([str(written(tmp_path, line(ASKED, TOLD)))], Reading())
    text = '[[["user", "1 + 1?"], ["assistant", "2"]]]'
    assert one.sha256 == hashlib.sha256(text.encode()).hexdigest()
    same = json.dumps({"n": 1, "messages": [dict(reversed(ASKED.items())), TOLD]})
    assert read_conversations([str(written(tmp_path, f"\n{same}\n", "y.jsonl"))], Reading()).sha256 == one.sha256
    # The planted faults: another role, another text, another border between two conversations.
    for other in (
        line(ASKED, TOLD | {"content": "3"}),
        line(SYSTEM, ASKED, TOLD),
        line(ASKED, TOLD) + "\n" + line(ASKED, TOLD),
    ):
        assert read_conversations([str(written(tmp_path, other))], Reading()).sha256 != one.sha256
    four = read_conversations([str(written(tmp_path, line(ASKED, TOLD, ASKED, TOLD)))], Reading())
    two = read_conversations([str(written(tmp_path, line(ASKED, TOLD) + "\n" + line(ASKED, TOLD)))], Reading())
    assert four.sha256 != two.sha256


def test_several_files_and_folders(tmp_path):
    (tmp_path / "f").mkdir()
    first = written(tmp_path, line(ASKED, TOLD), "z.jsonl")
    second = written(tmp_path / "f", line(SYSTEM, ASKED, TOLD), "b.jsonl.gz")
    third = written(tmp_path / "f", line(ASKED, TOLD, ASKED, TOLD), "c.jsonl")
    written(tmp_path / "f", "a story", "a.txt")
    told: list[int] = []
    read = read_conversations([str(first), str(tmp_path / "f")], Reading(), told.append)
    assert [each.path for each in read.conversations] == [first, second, third]
    assert sum(told) == sum(path.stat().st_size for path in (first, second, third))


def test_line_ends_in_a_message_are_lf(tmp_path):
    path = written(tmp_path, line(ASKED | {"content": "a\r\nb\rc"}, TOLD))
    assert read_conversations([str(path)], Reading()).conversations[0].turns[0].content == "a\nb\nc"


BAD = [
    (line(ASKED, TOLD)[:-9], "is no whole JSON", "不是完整的 JSON"),
    ("[]", "is JSON, but no object", "但不是对象"),
    ('{"text": "a"}', "has no list called messages", "没有名为 messages 的列表"),
    ('{"messages": {"role": "user"}}', "has no list called messages", "没有名为 messages 的列表"),
    (line(), "has no messages", "没有任何消息"),
    (line(ASKED, "2"), 'message 2 is not {"role": ..., "content": ...}', "第 2 条消息不是"),
    (line(ASKED, {"role": "assistant"}), "message 2 is not", "第 2 条消息不是"),
    (line({"content": "2"}), "message 1 is not", "第 1 条消息不是"),
    (line(ASKED, TOLD | {"role": "bot"}), 'message 2 has the role "bot"', '角色是 "bot"'),
    (line(ASKED, TOLD | {"role": ["user"]}), 'message 2 has the role ["user"]', "角色是"),
    (line(ASKED | {"role": None}, TOLD), "message 1 has the role null", "角色是 null"),
    (line(ASKED, TOLD | {"content": None}), "the content of message 2 is no string", "content 不是字符串"),
    (line(ASKED | {"content": [{"type": "text"}]}, TOLD), "the content of message 1 is no string", "不是字符串"),
    (line(ASKED), "has no message of the assistant's", "没有 assistant 的消息"),
    (line(SYSTEM, ASKED), "has no message of the assistant's", "没有 assistant 的消息"),
    (line(TOLD, ASKED), "message 1 is the assistant's, and no user has spoken", "之前没有 user"),
    (line(SYSTEM, TOLD), "message 2 is the assistant's, and no user has spoken", "之前没有 user"),
    (line(ASKED, SYSTEM, TOLD), "message 2 is the system's, which may only come first", "只能放在最前"),
    (line(SYSTEM, SYSTEM, ASKED, TOLD), "message 2 is the system's", "只能放在最前"),
    ('{"messages": [{"role": "user", "content": "\\udc00"}]}', "half of a character", "半个字符"),
]


@pytest.mark.parametrize("number", range(len(BAD)))
@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
def test_a_line_that_is_no_conversation_is_named(tmp_path, monkeypatch, name, number):
    bad, english, chinese = BAD[number]
    path = written(tmp_path, f"{line(ASKED, TOLD)}\n\n{bad}\nbroken too\n", name)
    message = refused(path)
    assert message.startswith(f"Line 3 of {path}")
    assert english in message
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    message = refused(path)
    assert message.startswith(f"{path} 第 3 行")
    assert chinese in message


def test_no_conversations_at_all(tmp_path):
    path = written(tmp_path, "\n \n")
    assert refused(path).startswith(f"{path} holds no conversations")
    assert "There is no file" in refused(tmp_path / "nowhere.jsonl")
    with pytest.raises(UserError, match="name at least one file"):
        read_conversations([], Reading())
    (tmp_path / "f").mkdir()
    assert "holds no text" in refused(tmp_path / "f")


def test_wrong_bytes(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(line(ASKED | {"content": "é"}, TOLD).encode("latin-1"))
    assert "byte 0xE9 at offset" in refused(path)
    read = read_conversations([str(path)], Reading(errors="replace"))
    assert read.conversations[0].turns[0].content == "\ufffd"
    assert "became U+FFFD, 1 times" in read.notes[0]
    named = read_conversations([str(path)], Reading(encoding="latin-1"))
    assert named.conversations[0].turns[0].content == "é"


def test_messages_of_ten_megabytes(tmp_path):
    long = "小猫 and " * 1_000_000
    path = written(tmp_path, line(ASKED, TOLD | {"content": long}))
    assert read_conversations([str(path)], Reading()).conversations[0].turns[1].content == long


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        (line(ASKED, TOLD), True),
        ("\n \r\n" + line(ASKED, TOLD) + "\nbroken", True),
        ("\ufeff\n" + line(ASKED, TOLD), True),
        ('{"messages": 7}\n', True),
        ('{"text": "a"}\n' + line(ASKED, TOLD), False),
        ('["messages"]\n', False),
        ('"messages"\n', False),
        (line(ASKED, TOLD)[:-3], False),
        ("[" * 100_000, False),
        ("\n\n", False),
        ("", False),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_which_files_hold_conversations(tmp_path, text, holds, end):
    text = text.replace("\r\n", "\n").replace("\n", end)
    for name in ("x.jsonl", "x.jsonl.gz", "X.JSONL"):
        assert holds_conversations(written(tmp_path, text, name)) == holds
    assert not holds_conversations(written(tmp_path, text, "x.txt"))
    for codec in ("utf-16-le", "utf-8"):
        (tmp_path / "named.jsonl").write_bytes(text.encode(codec))
        assert holds_conversations(tmp_path / "named.jsonl", Reading(encoding=codec)) == holds


def test_a_folder_holds_conversations_if_nothing_else_is_in_it(tmp_path):
    """So that no file of it is passed over; a name that ends with .jsonl does not make a folder a file."""
    folder = tmp_path / "f.jsonl"
    (folder / "more").mkdir(parents=True)
    with pytest.raises(UserError, match="holds no text"):
        holds_conversations(folder)
    written(folder, line(ASKED, TOLD), "a.jsonl")
    written(folder / "more", line(ASKED, TOLD), "b.jsonl.gz")
    written(folder, "no text for anybody", ".hidden.txt")
    written(folder, "nor this", "image.png")
    assert holds_conversations(folder)
    assert len(read_conversations([str(folder)], Reading()).conversations) == 2
    for name, text in (("c.txt", "text"), ("c.jsonl", '{"text": "a"}'), ("more/c.tsv.gz", "a\tb")):
        other = written(folder, text, name)
        assert not holds_conversations(folder)
        other.unlink()
    assert holds_conversations(folder)


def test_missing_files_hold_none(tmp_path):
    with pytest.raises(UserError, match="There is no file"):
        holds_conversations(tmp_path / "nowhere.jsonl")

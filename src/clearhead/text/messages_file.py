"""A .jsonl file of conversations -> their turns, each checked, so that what is learnt from is what was meant.

One conversation a line:

    {"messages": [{"role": "system", "content": "..."}, {"role": "user", "content": "..."},
                  {"role": "assistant", "content": "..."}, ...]}

A system message comes first or not at all; an assistant answers a user, so one has spoken before it; each conversation holds an
answer at least. Other fields are passed over.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from clearhead.messages import UserError, say
from clearhead.text.characters import MARK, codec_name, decoded, recognised
from clearhead.text.documents import Reading
from clearhead.text.files import with_line_feeds
from clearhead.text.jsonl import JSONL, is_jsonl, lines_of, objects_of, whole_characters
from clearhead.text.sources import found_files
from clearhead.text.streams import Progress, blocks_of, nothing
from clearhead.text.text_file import TextFile, examine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["ROLES", "Conversation", "Conversations", "Message", "holds_conversations", "read_conversations"]

ROLES = ("system", "user", "assistant")


class Message(NamedTuple):
    """What one side says."""

    role: str
    """"system", "user" or "assistant"."""
    content: str
    """The text; line ends are LF."""


class Conversation(NamedTuple):
    """One line of a file."""

    path: Path
    """Where it was read."""
    line: int
    """From 1."""
    turns: tuple[Message, ...]
    """In their order; at least a user's and an assistant's."""


@dataclass(frozen=True)
class Conversations:
    """The conversations of files.

    Attributes:
        conversations: in the order of the files and their lines; at least one.
        sha256: in hexadecimal, of the turns: [[[role, content], ...], ...] as JSON.
        notes: one line, in the user's language, for each thing that a reader of the files should know.
    """

    conversations: tuple[Conversation, ...]
    sha256: str
    notes: tuple[str, ...]


def read_conversations(files: Sequence[str], reading: Reading, progress: Progress = nothing) -> Conversations:
    """Read and check every conversation.

    Args:
        files: the .jsonl files, compressed (.gz) or not, and folders of such files.
        reading: how they are read.
        progress: told the bytes on disk, each once.

    Raises:
        UserError: a file cannot be read as text, a line is no conversation as the top of this module describes it (the
            message names the file and the line), or there is none at all.
    """
    if not files:
        raise UserError(say("text.no_documents"))
    looked = [examine(path, reading.encoding, reading.errors) for path in found_files(files, [JSONL])]
    found = [
        Conversation(file.path, line, _turns(file, line, value))
        for file in looked
        for line, value in objects_of(file, progress)
    ]
    if not found:
        raise UserError(say("messages.none", path=looked[0].path))
    # Plain lists of plain text: the same whatever the version of this package.
    written = json.dumps([conversation.turns for conversation in found])
    notes = tuple(note for file in looked for note in file.all_notes)
    return Conversations(tuple(found), hashlib.sha256(written.encode()).hexdigest(), notes)


def holds_conversations(path: Path, reading: Reading | None = None) -> bool:
    """Whether a file is a .jsonl whose first line that is not blank is an object with the field "messages".

    A line that is broken has no fields; whoever reads the file says so. A folder holds conversations if all files in it do that
    would be read as texts, so that none of them is passed over.

    Args:
        path: the file, or the folder.
        reading: how it is read.

    Raises:
        UserError: the file cannot be read as text; of a folder also that it cannot be read, or has no file that could.
    """
    if path.is_dir():
        return all(holds_conversations(each, reading) for each in found_files([str(path)]))
    if not is_jsonl(path):
        return False
    encoding = (reading or Reading()).encoding

    def blocks() -> Iterator[bytes]:
        return blocks_of(path)

    used = recognised(blocks, path) if encoding == "auto" else codec_name(encoding)
    # What does not fit is no matter here, nor is a blank line between CR and LF: one line is only looked at.
    for _, line in lines_of(part.replace("\r", "\n") for part in decoded(blocks(), used, "replace")):
        if line.removeprefix(MARK).strip():
            return _has_messages(line.removeprefix(MARK))
    return False


def _has_messages(line: str) -> bool:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "messages" in value


def _turns(file: TextFile, line: int, value: dict[str, Any]) -> tuple[Message, ...]:
    """The turns of one line, checked one by one and in their order."""
    messages = value.get("messages")
    if not isinstance(messages, list):
        raise UserError(say("messages.no_list", path=file.path, line=line))
    if not messages:
        raise UserError(say("messages.empty", path=file.path, line=line))
    turns = tuple(_message(file, line, number, each) for number, each in enumerate(messages, start=1))
    asked = answered = False
    for number, turn in enumerate(turns, start=1):
        if turn.role == "system" and number > 1:
            raise UserError(say("messages.late_system", path=file.path, line=line, number=number))
        if turn.role == "assistant" and not asked:
            raise UserError(say("messages.unasked", path=file.path, line=line, number=number))
        asked = asked or turn.role == "user"
        answered = answered or turn.role == "assistant"
    if not answered:
        raise UserError(say("messages.no_answer", path=file.path, line=line))
    return turns


def _message(file: TextFile, line: int, number: int, message: object) -> Message:
    if not isinstance(message, dict) or "role" not in message or "content" not in message:
        raise UserError(say("messages.no_message", path=file.path, line=line, number=number))
    role, content = message["role"], message["content"]
    if role not in ROLES:
        # As JSON writes it, in ASCII: it may be anything, a dictionary or half a character.
        shown = json.dumps(role)[:80]
        raise UserError(say("messages.role", path=file.path, line=line, number=number, role=shown))
    if not isinstance(content, str):
        raise UserError(say("messages.content", path=file.path, line=line, number=number))
    return Message(role, with_line_feeds(whole_characters(content, file, line), lone=True)[0])

"""What a user names -> documents: files and folders, each file looked at once, then read as often as needed.

| name | documents |
|---|---|
| a folder | those of the files in it and in its folders, in the order of their paths, whose names end with a known suffix |
| .txt, .md, .csv, .tsv, and any other file that is named itself | one: the text |
| .jsonl | one a line: the string in the field `text` or another |

Each may be compressed: .txt.gz. Hidden files, whose names begin with a dot, are passed over in folders, and so is a document
of nothing but white space.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clearhead.messages import UserError, say
from clearhead.text.documents import Document, Reading
from clearhead.text.files import LEAST_BYTES, require_size, with_line_feeds
from clearhead.text.jsonl import is_jsonl, objects_of, plain_suffix, whole_characters
from clearhead.text.streams import Progress, nothing
from clearhead.text.text_file import TextFile, examine

__all__ = ["SUFFIXES", "Sources", "find_sources", "found_files", "size_on_disk"]

SUFFIXES = (".txt", ".md", ".jsonl", ".csv", ".tsv")
"""What the names of files in a folder must end with, .gz behind it or not, to be read."""

MOST_NOTES = 5
"""How many notes on files are shown in full."""


@dataclass(frozen=True)
class Sources:
    """Files that have been looked at, and how to read them.

    Attributes:
        files: those that hold a document or more, in their order.
        field: which field of a .jsonl line holds the text.
        count: how many documents there are.
        size: the bytes of the files on disk, for those who show how far reading is.
        notes: one line, in the user's language, for each thing that a reader should know: encodings that were recognised,
            line ends that were changed, documents that were passed over. Of many files the first few, and how many more.
    """

    files: tuple[TextFile, ...]
    field: str
    count: int
    size: int
    notes: tuple[str, ...]

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files, as they were named or found."""
        return tuple(file.path for file in self.files)

    def documents(self, progress: Progress = nothing) -> Iterator[Document]:
        """The documents in their order, anew at each call.

        Args:
            progress: told the bytes on disk as they are read, `size` in all if every document is read.

        Raises:
            UserError: a file has changed and can no longer be read.
        """
        for file in self.files:
            if is_jsonl(file.path):
                for line, text in _texts(file, self.field, progress):
                    if text.strip():
                        yield Document(file.path, line, (text,))
            else:
                yield Document(file.path, None, file.parts(progress))


def find_sources(
    names: Sequence[str], reading: Reading, progress: Progress = nothing, *, least: int = LEAST_BYTES
) -> Sources:
    """Look at every file that `names` name, and refuse what cannot be read before anything is done with the rest.

    Args:
        names: files and folders.
        reading: how they are read.
        progress: told the bytes on disk, each once.
        least: how many bytes of text there must be; who does not train on them needs less.

    Raises:
        UserError: a file cannot be used as text (as `read_text`); a folder holds none that could; a line of a .jsonl file
            is broken, or has no text (the message names the file and the line); there is no document at all; or all text
            together is less than `least`.
    """
    looked = [examine(path, reading.encoding, reading.errors, _unless_lines(path, progress)) for path in _found(names)]
    if len(looked) == 1 and not is_jsonl(looked[0].path):
        require_size(looked[0].path, looked[0].size, blank=looked[0].blank, least=least)
    held = [_held(file, reading.field, progress) for file in looked]
    count = sum(documents for documents, _, _ in held)
    if not count:
        raise UserError(say("sources.nothing", names=_some(names)))
    size = sum(size for _, size, _ in held)
    if size < least:
        raise UserError(say("sources.too_small", names=_some(names), size=size, least=least))
    files = tuple(file for file, (documents, _, _) in zip(looked, held, strict=True) if documents)
    notes = _few([note for file in looked for note in file.all_notes])
    blank = sum(blank for _, _, blank in held)
    if blank:
        notes.append(say("sources.blank", count=blank))
    return Sources(files, reading.field, count, sum(file.path.stat().st_size for file in files), tuple(notes))


def size_on_disk(names: Sequence[str]) -> int:
    """The bytes of all files that `names` name; those that are not there count for none.

    Raises:
        UserError: a folder cannot be read, or has no file that could be.
    """
    return sum(path.stat().st_size for path in _found(names) if path.is_file())


def found_files(names: Sequence[str], suffixes: Sequence[str] = SUFFIXES) -> list[Path]:
    """The files that are named, and of folders that are named those with certain names, in the order of their paths.

    Args:
        names: files and folders.
        suffixes: with what a file in a folder must end, .gz behind it or not.

    Raises:
        UserError: a folder cannot be read, or has no such file.
    """
    found: list[Path] = []
    for name in names:
        path = Path(name)
        found.extend(_inside(path, suffixes) if path.is_dir() else [path])
    return found


def _found(names: Sequence[str]) -> list[Path]:
    if not names:
        raise UserError(say("text.no_documents"))
    return found_files(names)


def _inside(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    """The files in a folder and in its folders, hidden ones aside."""

    def refuse(error: OSError) -> None:
        raise UserError(say("text.unreadable", path=error.filename, reason=error.strerror or error)) from None

    found: list[Path] = []
    for where, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (
            Path(where, name) for name in files if not name.startswith(".") and plain_suffix(Path(name)) in suffixes
        )
        # A pipe is no text; what is not there, a link to nothing, is left to be refused by name.
        found.extend(path for path in paths if path.is_file() or not path.exists())
    if not found:
        raise UserError(say("sources.empty_folder", path=folder, suffixes=" ".join(suffixes)))
    return sorted(found, key=lambda path: path.parts)


def _unless_lines(path: Path, progress: Progress) -> Progress:
    """Whom to tell of the first reading: of a file of lines the reading of these is told, which takes longer."""
    return nothing if is_jsonl(path) else progress


def _held(file: TextFile, field: str, progress: Progress) -> tuple[int, int, int]:
    """How many documents a file holds, the bytes of these (those of lines as UTF-8), and how many are blank."""
    if not is_jsonl(file.path):
        return (0, 0, 1) if file.blank else (1, file.size, 0)
    documents = size = blank = 0
    for _, text in _texts(file, field, progress):
        if text.strip():
            documents += 1
            size += len(text.encode())
        else:
            blank += 1
    return documents, size, blank


def _texts(file: TextFile, field: str, progress: Progress) -> Iterator[tuple[int, str]]:
    """The text of each line that is not blank, and the number of the line."""
    for line, value in objects_of(file, progress):
        if isinstance(value.get("messages"), list) and (field == "messages" or field not in value):
            raise UserError(say("sources.conversation", path=file.path, line=line, field=field))
        if field not in value:
            raise UserError(say("sources.no_field", path=file.path, line=line, field=field, fields=_some(list(value))))
        text = value[field]
        if not isinstance(text, str):
            raise UserError(say("sources.no_string", path=file.path, line=line, field=field))
        yield line, with_line_feeds(whole_characters(text, file, line), lone=True)[0]


def _some(names: Sequence[str]) -> str:
    """The first few names on one line, each cut if it is long; half a surrogate pair becomes a question mark."""
    shown = [str(name) if len(str(name)) <= 200 else f"{str(name)[:200]}…" for name in names[:MOST_NOTES]]
    row = ", ".join(shown + ["…"] * (len(names) > MOST_NOTES))
    return " ".join(row.split()).encode("utf-8", "replace").decode()


def _few(notes: list[str]) -> list[str]:
    """The notes, or if there are many the first of them and how many more."""
    if len(notes) <= MOST_NOTES:
        return notes
    return [*notes[:MOST_NOTES], say("sources.more_notes", count=len(notes) - MOST_NOTES)]

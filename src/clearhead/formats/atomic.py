"""Writing so that a killed process leaves either the old state or the new one, never half of it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any

from clearhead.messages import UserError, say

PARTIAL = ".partial-"
"""Prefix of what is not finished; leftovers of a killed process are recognised by it."""


def write_json(path: Path, data: Any) -> None:
    """Write `data` as UTF-8 JSON under a temporary name, then rename it to `path`.

    Raises:
        UserError: if the system refuses (no space, no permission), with its reason; `path` is as it was.
    """
    write_text(path, json.dumps(data, ensure_ascii=False, indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text under a temporary name, then rename it to `path`.

    Raises:
        UserError: as `write_json`.
    """
    data = text.encode("utf-8")
    with new_file(path) as file:
        file.write(data)


class NewFile:
    """A file on its way: whatever is written to it, a refusal of the system is one line for the user."""

    def __init__(self, path: Path, file: FileIO) -> None:
        self._path, self._file = path, file

    def write(self, data: bytes | memoryview) -> None:
        """Write all of `data` at the present place.

        Raises:
            UserError: the system refuses (no space).
        """
        left = memoryview(data).cast("B")
        with clear_failure(self._path):
            # The system may take less than all: what fits, before it says that the disk is full.
            while left.nbytes:
                left = left[self._file.write(left) :]

    def rewind(self) -> None:
        """Go back to the beginning, to write over what stands there."""
        self._file.seek(0)


@contextmanager
def new_file(path: Path) -> Iterator[NewFile]:
    """A temporary file to fill inside the `with`; at its end it is on the disk and becomes `path`, replacing what was there.

    What is raised inside comes through; the temporary file is deleted and `path` is as it was.

    Raises:
        UserError: if the system refuses (no space, no permission), with its reason; `path` is as it was.
    """
    partial = path.with_name(f"{PARTIAL}{os.getpid()}-{path.name}")
    try:
        with clear_failure(path):
            # Without a buffer: nothing is left that closing could still fail to write.
            file = partial.open("wb", buffering=0)
        with file:
            yield NewFile(path, file)
            with clear_failure(path):
                os.fsync(file.fileno())
        with clear_failure(path):
            partial.replace(path)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A temporary folder to fill inside the `with`; at its end it becomes `path`, replacing what was there.

    The folder that `path` lies in must be there. A link to a folder stays, and the folder that it leads to is replaced.

    Raises:
        UserError: if the system refuses (no space, no permission, no such folder), with its reason; `path` is as it was.
    """
    path = _behind_links(path)
    partial = path.with_name(f"{PARTIAL}{os.getpid()}-{path.name}")
    with clear_failure(path):
        shutil.rmtree(partial, ignore_errors=True)
        # Not its parents: a run that somebody has deleted must not come back as a folder that holds one checkpoint alone.
        partial.mkdir()
        try:
            yield partial
            for inside in partial.rglob("*"):
                (_flush_names if inside.is_dir() else _flush_to_disk)(inside)
            _flush_names(partial)
            if path.exists():
                discard(path)
            partial.rename(path)
            _flush_names(path.parent)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def new_place(folder: Path) -> Path:
    """Where a new folder is to be made: by a name that another one could take, which "." is not, and behind links.

    Raises:
        UserError: if something is there that is no empty folder, or it is inside a run, whose files a training may be writing.
    """
    with clear_failure(folder):
        if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
            raise UserError(say("export.exists", path=folder))
        place = _behind_links(folder) if folder.name.strip(".") else folder.resolve()
        for parent in place.absolute().parents:
            if (parent / "checkpoints").is_dir() and (parent / "config.json").is_file():
                raise UserError(say("export.inside", path=folder, run=parent))
        return place


def _behind_links(path: Path) -> Path:
    """The place that a link leads to, which may be on another disk; a path that is none as it is."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def discard(folder: Path) -> None:
    """Delete a folder so that a killed process leaves it whole or not at all: renamed first, then emptied."""
    leftover = folder.with_name(f"{PARTIAL}{os.getpid()}-old-{folder.name}")
    with clear_failure(folder):
        folder.rename(leftover)
    shutil.rmtree(leftover, ignore_errors=True)


def remove_leftovers(folder: Path) -> None:
    """Delete what killed processes left unfinished in `folder`."""
    for leftover in folder.glob(f"{PARTIAL}*"):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def _flush_to_disk(file: Path) -> None:
    with file.open("rb+") as handle:
        os.fsync(handle.fileno())


def _flush_names(folder: Path) -> None:
    """Put the names of what is in a folder on the disk, so that a rename outlives a power cut before older things go."""
    # Windows opens no folder; a file system that cannot do this has nothing better to offer.
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def clear_failure(path: Path) -> Iterator[None]:
    """The system's refusal as one line for the user."""
    try:
        yield
    except OSError as error:
        if not path.parent.exists():
            raise UserError(say("resuming.no_folder", path=path, folder=path.parent)) from error
        raise UserError(say("formats.cannot_write", path=path, reason=error.strerror or error)) from error

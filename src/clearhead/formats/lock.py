"""One process at a time trains a run: a lock that the system gives back when its holder ends, however it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from clearhead.formats.atomic import clear_failure
from clearhead.messages import UserError, say

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

NAME = "training.lock"
"""The file in the run directory that is locked; it holds the number of the process, to be read by people."""

_FAR = 1 << 20
"""Windows keeps others from reading what is locked; so what is locked is a byte that the file does not have."""


@contextmanager
def training_alone(run: Path) -> Iterator[None]:
    """Hold the lock of the run directory `run` inside the `with`.

    The system itself drops the lock when the process ends: a killed training leaves the file, which locks nothing.

    Raises:
        UserError: if there is no such directory, another process trains in it, or the file cannot be written.
    """
    if not run.is_dir():
        raise UserError(say("formats.no_model", path=run))
    path = run / NAME
    with clear_failure(path):
        handle = _taken(path)
    if handle is None:
        raise UserError(say("resuming.in_training", out=run, process=_holder(path)))
    try:
        with clear_failure(path):
            os.ftruncate(handle, 0)
            os.write(handle, str(os.getpid()).encode())
        yield
    finally:
        # Deleted while it is held: whoever opened it in the meantime sees that it is gone, and opens the next one.
        # Windows deletes no open file, so there it is deleted after; somebody else's stays, as it is open.
        # What went wrong inside is what the user is to hear of: a lock file that stays locks nothing.
        with suppress(OSError):
            if sys.platform != "win32" and _is_still(handle, path):
                path.unlink(missing_ok=True)
        os.close(handle)
        if sys.platform == "win32":
            with suppress(OSError):
                path.unlink(missing_ok=True)


def _taken(path: Path) -> int | None:
    """The lock file, open and locked; None if somebody else holds it."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        if not _lock(handle):
            os.close(handle)
            return None
        if _is_still(handle, path):
            return handle
        os.close(handle)


def _lock(handle: int) -> bool:
    """Lock an open file without waiting; False if it is locked."""
    try:
        if sys.platform == "win32":
            os.lseek(handle, _FAR, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            os.lseek(handle, 0, os.SEEK_SET)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _is_still(handle: int, path: Path) -> bool:
    """Whether the open file is the one that the name means."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _holder(path: Path) -> str:
    """The number of the process that holds the lock, as it wrote it down."""
    with suppress(OSError):
        return path.read_text(encoding="ascii", errors="replace").strip() or "?"
    return "?"

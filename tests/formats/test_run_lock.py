"""One process at a time trains a run, and a dead one trains nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from clearhead.formats import lock
from clearhead.formats.lock import NAME, training_alone
from clearhead.messages import UserError

HOLDING = (
    "import sys, time; from pathlib import Path; from clearhead.formats.lock import training_alone\n"
    "with training_alone(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(100)"
)


def holder(run: Path) -> subprocess.Popen[str]:
    """Another process that holds the lock."""
    process = subprocess.Popen([sys.executable, "-c", HOLDING, str(run)], stdout=subprocess.PIPE, encoding="utf-8")
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_another_process_is_refused_by_its_number_and_its_death_opens_the_lock(tmp_path: Path) -> None:
    process = holder(tmp_path)
    with (
        pytest.raises(UserError, match=rf"trained by another process \({process.pid}\)") as error,
        training_alone(tmp_path),
    ):
        pass
    assert "\n" not in str(error.value)
    process.kill()
    process.communicate()
    with training_alone(tmp_path):
        assert (tmp_path / NAME).read_text() == str(os.getpid())
    assert list(tmp_path.iterdir()) == []


def test_a_second_one_in_the_same_process_is_refused_and_does_no_harm(tmp_path: Path) -> None:
    with training_alone(tmp_path):
        for _ in range(2):
            with pytest.raises(UserError, match=str(os.getpid())), training_alone(tmp_path):
                pass
    with training_alone(tmp_path):
        pass


def test_what_goes_wrong_inside_opens_the_lock(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), training_alone(tmp_path):
        raise ZeroDivisionError
    with training_alone(tmp_path):
        pass


def test_two_runs_have_two_locks(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with training_alone(tmp_path / "a"), training_alone(tmp_path / "b"):
        pass


def test_a_run_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such model"), training_alone(tmp_path / "nothing"):
        pass
    assert not (tmp_path / "nothing").exists()


def test_a_run_that_is_deleted_while_it_is_held_is_no_crash(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with training_alone(run):
        (run / NAME).unlink()
        run.rmdir()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows deletes no file that is open")
def test_a_lock_on_a_file_that_was_deleted_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between opening and locking the holder may end and delete it: the file locked then is nobody's."""
    right, deleted = lock._lock, []

    def late(handle: int) -> bool:
        if not deleted:
            deleted.append(True)
            (tmp_path / NAME).unlink()
        return right(handle)

    monkeypatch.setattr(lock, "_lock", late)
    with training_alone(tmp_path):
        assert (tmp_path / NAME).read_text() == str(os.getpid())
        with pytest.raises(UserError), training_alone(tmp_path):
            pass
    # The planted fault: without the second look, the lock would be one that nobody else can see.
    deleted.clear()
    monkeypatch.setattr(lock, "_is_still", lambda _handle, _path: True)
    with training_alone(tmp_path):
        assert not (tmp_path / NAME).exists()


def test_without_the_lock_both_would_train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: locking that always succeeds."""
    process = holder(tmp_path)
    monkeypatch.setattr(lock, "_lock", lambda _: True)
    with training_alone(tmp_path):
        pass
    process.kill()
    process.communicate()

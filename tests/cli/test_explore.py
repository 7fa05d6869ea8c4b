"""`clearhead explore`: served until Ctrl-C, or written to a file; mistakes are one line."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest

from clearhead.web import files
from clearhead.web.files import VIEWS, static_files
from clearhead.web.serving import listening
from tests.cli.runs import Clearhead, start

needs_posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")


def address_said(process: subprocess.Popen[bytes]) -> str:
    """The address that the command prints, in one line."""
    assert process.stdout is not None
    line = process.stdout.readline().decode()
    found = re.match(r"(http://127\.0\.0\.1:\d+/) ", line)
    assert found, (line, process.stderr and process.stderr.read())
    return found[1]


@needs_posix
def test_it_serves_until_it_is_stopped(trained: Path, tmp_path: Path) -> None:
    flags = ("-p", "小猫 <b>", "--view", "head", "--no-browser", "--port", 0, "--threads", 1)
    process = start("explore", trained, *flags, cwd=tmp_path)
    try:
        address = address_said(process)
        page = urllib.request.urlopen(address, timeout=30).read().decode()
        assert 'data-state="#view=head&amp;text=%E5%B0%8F%E7%8C%AB+%3Cb%3E"' in page
        told = urllib.request.urlopen(f"{address}api/model", timeout=30).read().decode()
        assert '"layers": 1' in told
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (0, b"", b"")


def test_threads_and_allocator_are_told_how_before_pytorch_is_there() -> None:
    told = "explore.leave_cores = explore.return_memory = lambda: print('torch' in sys.modules)"
    asked = "explore.run(['no such model', '--no-browser', '--port', '0', '--threads', '1'])"
    script = f"import sys\nfrom clearhead.cli import explore\n{told}\n{asked}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "False\n" * 2, done.stderr
    assert "no such model" in done.stderr


def test_a_port_that_is_taken_is_said_before_the_model_is_looked_for(clearhead: Clearhead) -> None:
    with listening("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        said = clearhead("explore", "no such model", "--port", port)
    assert f"port {port} is taken" in said.mistake


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (("no such model",), "no such model"),
        (("--view", "masks"), "tokens, flow, atlas, head, cell"),
        (("--lang", "fr"), "fr"),
        (("--target", "a"), "-p"),
        (("--memory", 0), "--memory 0"),
        (("--memory", "inf"), "--memory inf"),
        (("--port", 99999), "99999"),
        (("--port", "a"), "--port"),
        (("--host", "no such host"), "no such host"),
        (("--export", "nowhere/page.html"), "nowhere"),
        (("--export", "page.txt"), "let it end in .html"),
        (("--export", "page"), "let it end in .html"),
        (("--export", "."), "is a folder"),
        (("--bogus", "1"), "did you mean --help?"),
        (("--threads", 0), "threads"),
        (("--portt", 0), "--port"),
    ],
    ids=str,
)
def test_a_mistake_is_one_line(clearhead: Clearhead, trained: Path, flags: tuple[object, ...], named: str) -> None:
    said = clearhead("explore", *([] if flags[0] == "no such model" else [trained]), *flags)
    assert named in said.mistake


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """What is asked of whoever writes the page to a file."""
    asked: list[tuple[object, ...]] = []
    writes = SimpleNamespace(exported=lambda *given: asked.append(given[1:]) or "<html>小猫")
    monkeypatch.setitem(sys.modules, "clearhead.web.export", writes)
    return asked


def test_the_page_is_written_to_a_file(
    clearhead: Clearhead, trained: Path, tmp_path: Path, written: list[tuple[object, ...]]
) -> None:
    path = tmp_path / "小猫.html"
    said = clearhead("explore", trained, "-p", "the cat", "--view", "cell", "--lang", "zh", "--export", path)
    assert (said.status, said.err) == (0, "")
    assert said.out.startswith(f"{path}：")
    assert written == [("the cat", None, {"view": "cell", "lang": "zh", "text": "the cat"})]
    assert path.read_text(encoding="utf-8") == "<html>小猫"
    assert "holds the prompt" in clearhead("explore", trained, "-p", "", "--export", path).out
    assert written[1] == ("", None, {"text": ""})


def test_without_a_prompt_an_example_is_written(
    clearhead: Clearhead, trained: Path, tmp_path: Path, written: list[tuple[object, ...]]
) -> None:
    assert clearhead("explore", trained, "--export", tmp_path / "page.html").status == 0
    ((text, target, state),) = written
    assert (target, state) == (None, {})
    assert isinstance(text, str)


def served(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have nothing served; what is opened in a browser."""
    opened: list[str] = []
    monkeypatch.setattr("clearhead.cli.explore.serve", lambda app, listener: None)
    monkeypatch.setattr("clearhead.cli.explore.go_there", opened.append)
    return opened


def test_a_browser_is_opened_unless_it_is_not_wanted(
    clearhead: Clearhead, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = served(monkeypatch)
    said = clearhead("explore", trained, "--port", 0)
    assert (said.status, said.err) == (0, "")
    assert len(said.out.splitlines()) == 1
    assert [said.out.split()[0]] == opened
    clearhead("explore", trained, "--port", 0, "--no-browser")
    assert len(opened) == 1


def test_listening_for_others_is_warned_of(
    clearhead: Clearhead, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served(monkeypatch)
    said = clearhead("explore", trained, "--port", 0, "--host", "0.0.0.0", "--no-browser")
    assert (said.status, said.out[:17]) == (0, "http://127.0.0.1:")
    assert "can read your prompts" in said.err


def test_without_a_model_it_is_the_one_that_comes_along(
    clearhead: Clearhead, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served(monkeypatch)
    monkeypatch.setattr("clearhead.cli.explore.builtin", lambda: trained)
    assert clearhead("explore", "--port", 0, "--no-browser").status == 0
    monkeypatch.undo()
    served(monkeypatch)
    monkeypatch.setattr(files, "files", lambda package: tmp_path)
    assert "install clearhead again" in clearhead("explore", "--port", 0).mistake


def test_the_views_are_those_of_the_page() -> None:
    listed = re.search(r"views = \[(.*?)\]", static_files()["js/views.js"].decode(), re.DOTALL)
    assert listed is not None
    assert tuple(re.findall(r"\w+", listed[1])) == VIEWS

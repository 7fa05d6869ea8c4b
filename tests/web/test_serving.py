"""A place to listen: the usual port, another where it is taken, one line where there is none; a browser only where it can be seen."""

from __future__ import annotations

import ctypes
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import webbrowser
from types import SimpleNamespace

import pytest

from clearhead.messages import UserError
from clearhead.web import serving
from clearhead.web.serving import address_of, go_there, leave_cores, listening, return_memory


def port_of(listener: socket.socket) -> int:
    return int(listener.getsockname()[1])


def test_a_free_port_is_found_and_its_address_is_a_browsers() -> None:
    with listening("127.0.0.1", 0) as listener:
        assert address_of(listener) == f"http://127.0.0.1:{port_of(listener)}/"
        # It listens already: whoever comes before the server waits.
        socket.create_connection(listener.getsockname(), timeout=5).close()


def test_a_port_that_is_taken_is_one_line() -> None:
    with listening("127.0.0.1", 0) as first, pytest.raises(UserError, match=f"port {port_of(first)} is taken.*--port"):
        listening("127.0.0.1", port_of(first))


def test_where_no_port_is_named_the_next_one_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening("127.0.0.1", 0) as first:
        monkeypatch.setattr(serving, "PORT", port_of(first))
        with listening("127.0.0.1") as second:
            assert port_of(second) != port_of(first)
        monkeypatch.setattr(serving, "NEXT", 1)
        with listening("127.0.0.1") as third:
            assert port_of(third) != port_of(first)


@pytest.mark.parametrize(("host", "port", "named"), [("127.0.0.1", 65536, "65536"), ("127.0.0.1", -1, "-1"),
                                                     ("192.0.2.1", 0, "192.0.2.1"), ("no such host", 0, "no such host"),
                                                     ("x" * 70, 0, "xxx")])  # fmt: skip
def test_what_cannot_be_listened_on_is_one_line(host: str, port: int, named: str) -> None:
    with pytest.raises(UserError, match=named):
        listening(host, port)


def test_every_address_is_opened_by_the_one_of_this_machine() -> None:
    with listening("0.0.0.0", 0) as listener:
        assert address_of(listener).startswith("http://127.0.0.1:")


def test_the_address_of_the_sixth_version_stands_in_brackets() -> None:
    try:
        listener = listening("::1", 0)
    except UserError:
        pytest.skip("this machine has no IPv6")
    with listener:
        assert address_of(listener) == f"http://[::1]:{port_of(listener)}/"


def test_a_browser_is_opened_where_there_is_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, done = [], threading.Event()

    def note(address: str) -> bool:
        opened.append(address)
        done.set()
        return True

    monkeypatch.setattr(webbrowser, "open", note)
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    go_there("http://nowhere/")
    monkeypatch.setenv("DISPLAY", ":0")
    go_there("http://here/")
    assert done.wait(5)
    assert opened == ["http://here/"]


SLOW = """
import asyncio, sys, time
from clearhead.web.serving import address_of, listening, serve
from clearhead.web.sessions import Desk

desk = Desk()

async def here():
    return False

def work():
    print("begun", flush=True)
    time.sleep(float(sys.argv[1]))

async def app(scope, receive, send):
    await desk.do(work, here)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"done"})

listener = listening("127.0.0.1", 0)
print(address_of(listener), flush=True)
serve(app, listener)
print("ended", flush=True)
"""


def stopped(seconds: float, times: int, program: str = SLOW) -> tuple[list[str], bytes, int, bytes]:
    """A server that is stopped while it works: what the client got, what was printed, the status, and the errors."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(seconds)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    got: list[str] = []

    def fetch(address: str) -> None:
        try:
            got.append(urllib.request.urlopen(address, timeout=60).read().decode())
        except OSError:
            got.append("lost")

    assert process.stdout is not None
    try:
        client = threading.Thread(target=fetch, args=(process.stdout.readline().decode().strip(),))
        client.start()
        assert process.stdout.readline() == b"begun\n"
        for _ in range(times):
            process.send_signal(signal.SIGINT)
            time.sleep(0.3)
            if process.poll() is not None:
                break
        out, err = process.communicate(timeout=30)
        client.join(30)
    finally:
        process.kill()
    return got, out, process.returncode, err


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_what_is_being_computed_is_finished_first() -> None:
    assert stopped(0.5, 1) == (["done"], b"ended\n", 0, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_whoever_presses_twice_does_not_wait() -> None:
    """The work would take a minute, and the process is given half of that."""
    got, _, status, err = stopped(60, 40)  # a busy machine may take two for one
    assert (got, status, err) == (["lost"], 0, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_waiting_after_the_second_press_is_found() -> None:
    """A server that takes the second for the first waits for the work, here three seconds."""
    waits = SLOW.replace(
        "desk = Desk()", "desk = Desk()\nimport clearhead.web.serving as s, uvicorn\ns.Server = uvicorn.Server"
    )
    assert stopped(3, 9, waits)[3] != b""


def test_threads_wait_asleep_unless_a_person_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", {"GOMP_SPINCOUNT": "7"})
    leave_cores()
    assert serving.os.environ == {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "7"}


@pytest.mark.skipif(sys.platform != "linux", reason="only the allocator of Linux is told")
def test_the_allocator_is_told_what_nobody_has_set(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(serving.ctypes, "CDLL", lambda _: SimpleNamespace(mallopt=lambda *pair: told.append(pair)))
    every = [(-8, 1), (-3, 2**24), (-1, 2**26)]
    monkeypatch.setattr("os.environ", {})
    return_memory()
    assert told == every
    for place, name in enumerate(["MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"]):
        told.clear()
        monkeypatch.setattr("os.environ", {name: "4"})
        return_memory()
        assert told == every[:place] + every[place + 1 :]
    told.clear()
    monkeypatch.setattr("os.environ", {"GLIBC_TUNABLES": "glibc.malloc.arena_max=8"})
    return_memory()
    assert told == []
    monkeypatch.setattr("os.environ", {})
    # Another library of C than glibc has nothing of the kind.
    monkeypatch.setattr(serving.ctypes, "CDLL", lambda _: SimpleNamespace())
    return_memory()
    assert told == []


def test_another_system_s_allocator_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # On Windows there is no library without a name.
    monkeypatch.setattr(serving.ctypes, "CDLL", lambda _: pytest.fail("looked for an allocator"))
    for system in ("win32", "darwin"):
        monkeypatch.setattr(sys, "platform", system)
        return_memory()


@pytest.mark.skipif(sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_info"), reason="no glibc")
def test_a_large_piece_of_memory_goes_back_at_once() -> None:
    # One after another of 20 MB, which glibc takes from its heap once it has freed as much; seen in a process of its own.
    code = """if True:
        import sys, torch
        from pathlib import Path
        from clearhead.web.serving import return_memory
        if sys.argv[1] == "told": return_memory()
        def resident(): return next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in line)
        torch.ones(5 << 20)
        before, kept = resident(), []
        for _ in range(3):
            large, small = torch.ones(5 << 20), torch.ones(100)
            kept.append(small)
        print(resident() - before)"""
    took = [
        int(subprocess.run([sys.executable, "-c", code, how], capture_output=True, text=True, check=True).stdout)
        for how in ("told", "plain")
    ]
    assert took[0] < 30_000 < took[1]

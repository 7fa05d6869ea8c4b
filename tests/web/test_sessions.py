"""Prompts are kept as long as they fit; work is done one piece at a time, and not for whoever has left."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace

import pytest

from clearhead.web.opening import opened
from clearhead.web.session import Session
from clearhead.web.sessions import Desk, GoneError, Sessions
from tests.web.asking import small


def some(*sizes: int) -> list[Session]:
    one = opened(small(), "abc")
    return [replace(one, id=str(number), size=size) for number, size in enumerate(sizes)]


def names(sessions: Sessions, count: int) -> list[int]:
    """Which of the first are kept; looking makes them the latest, in order."""
    return [number for number in range(count) if sessions.get(str(number)) is not None]


def check_budget() -> None:
    sessions = Sessions(10)
    first, second, third, large = some(4, 5, 3, 50)
    for each in (first, second):
        sessions.keep(each)
    assert sessions.get("0") is first  # now the second is the oldest
    sessions.keep(third)
    assert names(sessions, 4) == [0, 2]
    assert sessions.size == 7
    sessions.keep(large)
    assert (names(sessions, 4), len(sessions)) == ([3], 1)  # larger than the budget: the newest stays
    sessions.keep(first)
    assert names(sessions, 4) == [0]


def check_room() -> None:
    sessions = Sessions(10)
    sessions.make_room(100)
    for each in some(3, 6):  # of three tokens each
        sessions.keep(each)
    sessions.make_room(1)  # 9 and 2 more: the oldest goes
    assert (names(sessions, 2), sessions.size) == ([1], 6)
    sessions.make_room(2)  # 6 and 4 fit
    assert len(sessions) == 1
    sessions.make_room(3)  # 6 and 6: it does not wait until both stand
    assert len(sessions) == 0


def test_room_is_made_before_a_prompt_is_opened() -> None:
    check_room()


@pytest.mark.parametrize("fault", ["none is made", "one always stays"])
def test_room_that_is_not_made_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = Sessions._let_go
    if fault == "none is made":
        monkeypatch.setattr(Sessions, "make_room", lambda self, tokens: None)
    else:
        monkeypatch.setattr(Sessions, "_let_go", lambda self, least, budget: let_go(self, 1, budget))
    with pytest.raises(AssertionError):
        check_room()


def test_the_latest_that_fit_are_kept() -> None:
    check_budget()


@pytest.mark.parametrize("fault", ["first in, first out", "nothing goes", "the newest goes"])
def test_a_wrong_order_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "first in, first out":
        monkeypatch.setattr(Sessions, "get", lambda self, name: self._kept.get(name))
    elif fault == "nothing goes":
        monkeypatch.setattr(Sessions, "size", 0)
    else:
        kept = Sessions.keep

        def keep(self: Sessions, session: Session) -> None:
            kept(self, session)
            if session.size > self.budget:
                self._kept.clear()

        monkeypatch.setattr(Sessions, "keep", keep)
    with pytest.raises(AssertionError):
        check_budget()


def test_the_same_prompt_is_counted_once() -> None:
    sessions = Sessions(10)
    (one,) = some(6)
    sessions.keep(one)
    sessions.keep(one)
    assert (len(sessions), sessions.size) == (1, 6)


async def here() -> bool:
    return False


async def left() -> bool:
    return True


def check_desk() -> None:
    at_once, most, order, threads = 0, 0, [], set()

    def work(number: int) -> int:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        time.sleep(0.01)
        at_once -= 1
        order.append(number)
        threads.add(threading.get_ident())
        return number

    async def all_of_them() -> list[int | BaseException]:
        desk = Desk()
        pieces = [desk.do(lambda number=number: work(number), left if number == 2 else here) for number in range(5)]  # type: ignore[misc]
        return await asyncio.gather(*pieces, return_exceptions=True)

    given = asyncio.run(all_of_them())
    assert isinstance(given[2], GoneError)
    assert [each for each in given if isinstance(each, int)] == order == [0, 1, 3, 4]
    assert (most, len(threads)) == (1, 1)
    assert threading.get_ident() not in threads


def test_one_piece_at_a_time_in_order_and_none_for_whoever_has_left() -> None:
    check_desk()


@pytest.mark.parametrize("fault", ["no turns", "nobody is asked"])
def test_a_desk_without_order_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(self: Desk, work: object, gone: object) -> object:
        return await asyncio.to_thread(work)  # type: ignore[arg-type]

    async def for_all(self: Desk, work: object, gone: object) -> object:
        async with self._turn:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)  # type: ignore[arg-type]

    monkeypatch.setattr(Desk, "do", at_once if fault == "no turns" else for_all)
    with pytest.raises(AssertionError):
        check_desk()


def test_a_mistake_in_the_work_leaves_the_desk_free() -> None:
    async def twice() -> int:
        desk = Desk()
        with pytest.raises(ZeroDivisionError):
            await desk.do(lambda: 1 // 0, here)
        return await desk.do(lambda: 7, here)

    assert asyncio.run(twice()) == 7

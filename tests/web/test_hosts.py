"""Only the server's own page may ask: strangers' names, pages and pictures get 403."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.datastructures import Headers

from clearhead.web.hosts import Hosts, is_loopback

OWN = ["127.0.0.1:8421", "localhost", "LocalHost:9000", "localhost.:8421", "[::1]:8421", "127.0.0.1"]
STRANGE = ["evil.example:8421", "127.0.0.1.evil.example", "localhost.evil.example", "192.168.1.7:8421", "", "a@localhost",
           "localhost/", "localhost:8421:1", "[::1", "[::ffff:1.2.3.4]", "2130706433", "0.0.0.0:8421", "lоcalhost"]  # fmt: skip


def fault(hosts: tuple[str, ...] = (), path: str = "/", **headers: str) -> str | None:
    named = {name.replace("_", "-"): value for name, value in {"host": "127.0.0.1:8421", **headers}.items()}
    raw = [(name.encode(), value.encode()) for name, value in named.items()]
    return Hosts(Starlette(), hosts).fault(Headers(raw=raw), path)


def check_names() -> None:
    assert [host for host in OWN if fault(host=host)] == []
    assert [host for host in STRANGE if not fault(host=host)] == []


def check_origins() -> None:
    assert fault(origin="http://127.0.0.1:8421") is None
    assert fault(origin="https://127.0.0.1:8421") is None
    for origin in ("null", "http://evil.example", "http://127.0.0.1:3000", "http://localhost:8421", "file://", ""):
        assert "may not ask" in (fault(origin=origin) or ""), origin


def test_the_server_goes_by_its_own_names() -> None:
    check_names()


def test_a_page_of_another_origin_may_not_ask() -> None:
    check_origins()


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_picture_on_another_page_may_not_ask_but_a_link_may_lead_here(site: str) -> None:
    assert fault(path="/api/s/x/atlas", sec_fetch_site=site)
    assert fault(path="/", sec_fetch_site=site) is None
    assert fault(path="/api/s/x/atlas", sec_fetch_site="same-origin") is None
    assert fault(path="/api/s/x/atlas", sec_fetch_site="none") is None


def test_a_server_for_all_goes_by_numbers_and_by_the_names_of_its_machine() -> None:
    of_all = ("0.0.0.0", "Desk.example")
    assert fault(of_all, host="192.168.1.7:8421") is None
    assert fault(of_all, host="[fe80::1]:8421") is None
    assert fault(of_all, host="desk.example") is None
    assert fault(of_all, host="evil.example")


def test_a_check_that_was_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hosts, "_is_own", lambda self, host: True)
    with pytest.raises(AssertionError):
        check_names()
    monkeypatch.setattr(Hosts, "fault", lambda self, headers, path: None)
    with pytest.raises(AssertionError):
        check_origins()


def test_what_only_this_machine_reaches() -> None:
    assert all(map(is_loopback, ["127.0.0.1", "localhost", "::1", "127.9.9.9"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "192.168.1.7", "desk.example", ""]))

"""A server that dies and returns; a prompt that the server has forgotten; and the witness of all these tests, who must see what is wrong."""

from __future__ import annotations

from collections.abc import Callable

from tests.web.browser.site import Site
from tests.web.browser.watched import Watched

Visit = Callable[..., Watched]
# What a browser writes by itself when nobody answers, or the answer is a refusal; no page can prevent it.
UNHEARD = ("error: Failed to load resource: net::ERR_CONNECTION_REFUSED", "error: Failed to load resource: net::ERR_CONNECTION_RESET",
           "error: Failed to load resource: net::ERR_EMPTY_RESPONSE", "error: Failed to load resource: the server responded with a status of 404")  # fmt: skip


def test_a_server_dies_and_returns(visit: Visit, site: Callable[[str], Site]) -> None:
    page, server = visit(known=UNHEARD).open(lang="en", text="before"), site("bytes")
    server.end()
    try:
        page.page.locator("#text").fill("after")
        page.page.locator("#text").press("Enter")
        page.until(lambda: page.texts("#notice span"))
        assert page.texts("#notice span")[0].startswith("The server does not answer.")
        assert page.page.locator("#notice button").is_visible()
        assert page.js("() => document.getElementById('views').classList.contains('stale')")
    finally:
        server.begin()
    # It goes on by itself, with what was asked for.
    page.until(lambda: page.texts("#notice") == [""])
    page.drawn()
    assert page.texts("#view-tokens .letters") == list("after")
    assert not page.js("() => document.getElementById('views').classList.contains('stale')")


def test_a_prompt_that_the_server_forgot_is_opened_again(visit: Visit, site: Callable[[str], Site]) -> None:
    page, server = visit(known=UNHEARD).open(lang="en", text="forgotten"), site("bytes")
    server.end()
    server.begin()
    page.page.locator("#view-head [data-field=head]").select_option("1")
    page.drawn()
    assert page.texts("#notice, section > .line") == [""] * (1 + page.page.locator("section").count())
    assert page.state()["head"] == 1
    assert page.page.locator("#view-cell .step").count() >= 5


def test_the_witness_sees_what_is_wrong(visit: Visit) -> None:
    """Planted: a line on the console, an error that nobody catches, a script that the policy forbids, a request to a stranger."""
    page = visit().open(lang="en", text="abc")
    assert page.troubles() == []
    for fault, sign in (
        ("() => { console.error('oops'); }", "error: oops"),
        ("() => { setTimeout(() => { throw new Error('nobody'); }); }", "error: nobody"),
        (
            "() => { const one = document.createElement('script'); one.textContent = 'alert(1)'; document.body.append(one); }",
            "Content Security Policy",
        ),
        ("() => { fetch('https://example.invalid/').catch(() => 0); }", "Content Security Policy"),
        (
            "() => { document.body.setAttribute('style', 'color: red'); document.body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">'); }",
            "Content Security Policy",
        ),
    ):
        page.js(fault)
        page.until(lambda: page.lines)
        assert any(sign in line for line in page.troubles()), (sign, page.lines)
        page.lines.clear()
    page.asked.append("https://example.invalid/x")
    assert page.troubles() == ["asked https://example.invalid/x"]
    page.lines.clear()
    page.asked.clear()

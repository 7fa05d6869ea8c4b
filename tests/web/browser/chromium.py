"""Which browser there is: Debian's Chromium, or a Chrome where people have it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Google/Chrome/Application/chrome.exe",
)
# A sandbox wants rights that root does not give away. What the browser asks of its maker by itself is no request of the page.
ARGUMENTS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--force-color-profile=srgb",
             "--font-render-hinting=none", "--hide-scrollbars")  # fmt: skip


def executable() -> str | None:
    """Its path: what CHROMIUM names, or the first that is found."""
    named = os.environ.get("CHROMIUM")
    found = [named, *map(shutil.which, NAMES), *(place for place in PLACES if Path(place).exists())]
    return next((each for each in found if each), None)


def must_exist() -> str:
    """Its path; a test without it is skipped, and fails where `CI` is set."""
    found = executable()
    if found is None:
        missing("there is no Chromium; install it (Debian: apt install chromium), or name one in CHROMIUM")
    return found


def missing(reason: str) -> None:
    """Skip, saying why; in continuous integration, where a test that never runs would go unseen, fail."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)

"""The committed pages are what the list of claims says, all caught."""

from __future__ import annotations

import pytest

from tests.equalities.verification import COMMAND, PAGES, page


@pytest.mark.parametrize("language", PAGES)
def test_the_page_is_up_to_date(language: str) -> None:
    assert PAGES[language].read_text(encoding="utf-8") == page(language), f"run: {COMMAND}"

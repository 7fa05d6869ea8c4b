"""The views look as in docs/explorer, but for how a machine draws letters; and the pictures there are small."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PIL import Image

pytest.importorskip("playwright")

from playwright.sync_api import Browser

from tests.web.browser.pictures import FOLDER, PICTURES, Picture, apart, taken
from tests.web.browser.site import Site

FAR = 0.06
"""The share of coarse fields that may look otherwise; letters of another font change some."""


@pytest.mark.parametrize("picture", PICTURES, ids=lambda each: each.name)
def test_pictures_are_small(picture: Picture) -> None:
    assert 5_000 < (FOLDER / f"{picture.name}.png").stat().st_size <= 200_000


def test_there_is_no_other_picture() -> None:
    assert {path.stem for path in FOLDER.glob("*.png")} == {each.name for each in PICTURES}


@pytest.mark.slow
@pytest.mark.parametrize("picture", PICTURES, ids=lambda each: each.name)
def test_a_view_looks_as_it_did(chromium: Browser, site: Callable[[str], Site], picture: Picture) -> None:
    with Image.open(FOLDER / f"{picture.name}.png") as image:
        before = image.convert("RGB")
    now = taken(chromium, site(picture.model), picture)
    assert apart(before, now) <= FAR
    # Planted: a fifth of it is gone; two views.
    empty = now.copy()
    empty.paste((128, 128, 128), (0, 0, now.width, now.height // 5))
    assert apart(before, empty) > FAR

"""The pictures of the views in docs/explorer, and how far another picture is from one.

    python -m tests.web.browser.pictures

writes them anew, from SmolLM2 and from the model that comes with clearhead.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from tests.web.browser.chromium import ARGUMENTS, must_exist
from tests.web.browser.site import Site
from tests.web.browser.translating import SOURCE, TARGET
from tests.web.browser.watched import Watched

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "explorer"
ENGLISH = "The little cat sat on the mat, and the little dog sat on the rug."
CHINESE = "小猫趴在窗台上，看着窗外的小鸟；小狗趴在门口，看着门外的小猫。"
COLOURS = 64
"""Of a picture in the folder: enough for what is drawn, and small."""
COARSE = 16
"""Pictures are compared by fields of so many pixels a side: letters may be drawn a little otherwise elsewhere."""


class Picture(NamedTuple):
    """A picture of the folder.

    Args:
        name: of the file.
        model: as in `models`.
        state: of the address.
        how: of the browser's context.
        top: what stands at the top, where it is not the title of the section.
    """

    name: str
    model: str
    state: dict[str, Any]
    how: Mapping[str, Any] = MappingProxyType({})
    top: str = ""


HEAD = {"text": ENGLISH, "layer": 13, "head": 4, "lang": "en"}
PICTURES = (
    Picture("tokens", "built-in", {"view": "tokens", "text": CHINESE, "lang": "zh"}),
    Picture("flow", "smollm2", {"view": "flow", "stage": "blocks.13.attention.scores", **HEAD}),
    Picture("atlas", "smollm2", {"view": "atlas", "sort": "previous", **HEAD}),
    Picture("head", "smollm2", {"view": "head", "query": 14, "key": 13, **HEAD}),
    Picture("cell", "smollm2", {"view": "cell", "query": 14, "key": 13, **HEAD}, {"color_scheme": "dark"}),
    Picture("effect", "built-in", {"view": "cell", "text": ENGLISH, "layer": 3, "head": 1, "key": 7, "lang": "en"},
            {"viewport": {"width": 1200, "height": 1100}}, "#view-cell .effect"),
    Picture("alignment", "translating", {"view": "alignment", "text": SOURCE, "target": TARGET, "align": "layer", "layer": 1,
            "part": "decoder.cross_attention", "query": 3, "key": 2, "lang": "en"}, {"viewport": {"width": 1200, "height": 1020}}),
    Picture("mask", "smollm2", {"view": "mask", "query": 14, "key": 6, "mask": "causal.window-6.documents-9", **HEAD},
            {"viewport": {"width": 1200, "height": 1000}}, "#view-mask .mask-switches"),
    Picture("cache", "smollm2", {"view": "cache", "steps": 6, **HEAD}),
    Picture("phone", "built-in", {"view": "head", "text": CHINESE, "layer": 1, "lang": "zh"},
            {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}),
)  # fmt: skip


def taken(browser: Browser, site: Site, picture: Picture) -> Image.Image:
    """What a person sees at an address, without a pointer and when nothing moves any more."""
    settings = {
        "viewport": {"width": 1200, "height": 860},
        "locale": "en-US",
        "reduced_motion": "reduce",
        **picture.how,
    }
    context = browser.new_context(**settings)
    page = Watched(context.new_page(), site.address).open(**picture.state)
    if picture.top:
        page.page.locator(picture.top).evaluate("(element) => element.scrollIntoView()")
    page.page.wait_for_timeout(300)
    path = FOLDER / f".{picture.name}.png"
    try:
        page.page.screenshot(path=path, animations="disabled", caret="hide")
        with Image.open(path) as image:
            return image.convert("RGB")
    finally:
        path.unlink(missing_ok=True)
        context.close()


def apart(one: Image.Image, other: Image.Image) -> float:
    """How much two pictures differ: the share of coarse fields whose mean colour is another, from 0 to 1."""
    if one.size != other.size:
        return 1.0
    small = (one.width // COARSE, one.height // COARSE)
    fields = [
        np.asarray(each.convert("RGB").resize(small, Image.Resampling.BOX), dtype=np.float64) for each in (one, other)
    ]
    return float((np.abs(fields[0] - fields[1]).max(-1) > 24).mean())


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    sites: dict[str, Site] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=must_exist(), args=list(ARGUMENTS))
        for picture in PICTURES:
            site = sites[picture.model] = sites.get(picture.model) or Site(picture.model)
            image = taken(browser, site, picture).quantize(COLOURS, dither=Image.Dither.NONE)
            image.save(FOLDER / f"{picture.name}.png", optimize=True)
        browser.close()
    for site in sites.values():
        site.end()


if __name__ == "__main__":
    main()

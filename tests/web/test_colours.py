"""The scale of colours: it goes one way in lightness, at an even pace, and keeps doing so for eyes that lack a kind of cone."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.typing import NDArray

from clearhead.web.files import static_files
from tests.web.scripts import told

Numbers = NDArray[np.float64]

LACKING = {
    "none": np.eye(3),
    "red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
"""How linear colours look without a kind of cone (Machado et al. 2009, table 1, severity 1)."""


@pytest.fixture(scope="module")
def scales() -> dict[str, Numbers]:
    """256 colours from 0 to 1 for each theme, as the page has them."""
    both = told("colours.js", "{light: page.scale('light'), dark: page.scale('dark')}")
    return {theme: np.array(each) / 255 for theme, each in both.items()}


def oklab(colours: Numbers, lacking: str = "none") -> Numbers:
    """(n,3) of sRGB -> (n,3) of OKLab (Ottosson 2020), as such eyes see them."""
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    linear = np.clip(linear @ np.array(LACKING[lacking]).T, 0, 1)
    cones = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    lab = [
        [0.2104542553, 0.793617785, -0.0040720468],
        [1.9779984951, -2.428592205, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.808675766],
    ]
    seen: Numbers = np.cbrt(linear @ np.array(cones).T) @ np.array(lab).T
    return seen


def faults(colours: Numbers) -> list[str]:
    """What is wrong with a scale; nothing if it may be used."""
    found = []
    for lacking in LACKING:
        lightness = oklab(colours, lacking)[::8, 0]
        steps = np.diff(lightness) * np.sign(lightness[-1] - lightness[0])
        if steps.min() <= 0:
            found.append(f"{lacking}: lightness turns back")
    # Sixteenths of the way, so that the rounding to 8 bits does not count.
    paces = np.linalg.norm(np.diff(oklab(colours)[::17], axis=0), axis=1)
    if paces.max() > 1.25 * paces.min():
        found.append("uneven")
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_scale_goes_one_way_at_an_even_pace_for_all_eyes(scales: dict[str, Numbers], theme: str) -> None:
    assert faults(scales[theme]) == []


def test_nothing_is_near_the_paper_and_everything_far_from_it(scales: dict[str, Numbers]) -> None:
    light, dark = oklab(scales["light"])[:, 0], oklab(scales["dark"])[:, 0]
    assert light[0] > 0.95
    assert light[-1] < 0.35
    assert dark[0] < 0.3
    assert dark[-1] > 0.9


def test_other_scales_are_found_out() -> None:
    place = np.linspace(0, 1, 256)
    rainbow = np.stack([np.clip(1.5 - np.abs(4 * place - at), 0, 1) for at in (3, 2, 1)], axis=1)
    assert "none: lightness turns back" in faults(rainbow)
    assert "uneven" in faults(np.stack([place**2] * 3, axis=1))
    # From a green to a red that is as light to most eyes as it should be, but not to those that lack the cone for red.
    green_to_red = np.stack([0.1 + 0.9 * place, 0.45 - 0.22 * place, 0.1 + 0 * place], axis=1)
    assert any(fault.startswith("red") for fault in faults(green_to_red))


def twice(styles: str) -> list[str]:
    """Colours that style sheets declare more than once; `--tint`, which each tint sets, apart."""
    names = re.findall(r"^\s*(?:[^\n{}]*\{)?\s*(--[\w-]+):\s*(?:light-dark\(|#)", styles, re.M)
    return sorted({name for name in names if names.count(name) > 1})


def test_a_colour_stands_once_light_and_dark() -> None:
    styles = "\n".join(body.decode() for path, body in static_files().items() if path.endswith(".css"))
    assert twice(styles) == []
    assert len(re.findall(r"light-dark\(", styles)) > 15
    registered = set(re.findall(r"@property (--[\w-]+)", styles))
    assert registered == set(re.findall(r"(--[\w-]+): light-dark\(", styles)), "a script would read words"
    # Planted: a colour for the dark page in a block of its own.
    assert twice(styles + '\n:root[data-theme="dark"] { --ink: #fff; }') == ["--ink"]

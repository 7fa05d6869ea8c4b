"""What every test stands on: one language, one thread for each worker, the same seed, and where real texts are."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest

# The language of messages is the tests' own, whatever the machine speaks; set before anything reads it, and inherited by
# the interpreters that tests start. Several workers share the cores: one thread for each is fastest, and repeatable.
os.environ["CLEARHEAD_LANG"] = "en"
os.environ.pop("PYTHONWARNINGS", None)
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ["OMP_NUM_THREADS"] = "1"

import torch
from hypothesis import settings

if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)

# The same examples each time, and no clock: a busy machine is no fault of the code.
settings.register_profile("clearhead", deadline=None, derandomize=True)
settings.load_profile("clearhead")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest test first, so that no worker is left alone with it at the end."""
    items.sort(key=lambda item: "test_readme.py" not in item.nodeid)


@pytest.fixture(autouse=True)
def _same_seed() -> None:
    """Every test draws the same numbers, alone or among others."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def texts() -> Path:
    """The folder of real texts (shakespeare.txt, tang-song.txt)."""
    folder = os.environ.get("CLEARHEAD_TEXTS")
    if not folder:
        pytest.skip("CLEARHEAD_TEXTS does not name a folder of real texts")
    if not Path(folder).is_dir():
        pytest.fail(f"CLEARHEAD_TEXTS={folder} is not a folder")
    return Path(folder).resolve()

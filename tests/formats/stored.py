"""Run directories without a training."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clearhead.formats.atomic import new_folder, write_json
from clearhead.formats.load import load
from clearhead.formats.run import create_run
from clearhead.formats.weights import own_tensors, save_tensors
from clearhead.messages import UserError
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.text import ByteTokenizer, Tokenizer

CONFIG = DecoderConfig(layers=2, heads=4, width=12, context=10, vocab=256)


def stored(
    path: Path,
    config: DecoderConfig = CONFIG,
    *,
    tokenizer: Tokenizer | None = None,
    step: int = 3,
    val_loss: float | None = 2.5,
    seed: int = 7,
) -> Decoder:
    """Write a run with one checkpoint more; the model that is in it."""
    run = create_run(path, config, tokenizer or ByteTokenizer(), {})
    model = build(config, seed=seed)
    with new_folder(run.new_checkpoint(step)) as folder:
        save_tensors(own_tensors(model), folder / "model.safetensors")
        write_json(folder / "state.json", {"step": step, "val_loss": val_loss})
    return model


def refusal(run: Path) -> str:
    """The one line with which a run is refused."""
    with pytest.raises(UserError) as error:
        load(run)
    assert "\n" not in str(error.value)
    return str(error.value)


def edited(run: Path, name: str, change: Callable[[dict[str, Any]], object]) -> Path:
    """The run with one of its JSON files changed."""
    data = json.loads((run / name).read_text(encoding="utf-8"))
    change(data)
    (run / name).write_text(json.dumps(data), encoding="utf-8")
    return run

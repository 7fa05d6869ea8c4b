"""What a trace or an edit of one head of a long text takes: memory of that head's matrices, not of all heads'."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

T, HEADS = 4096, 12
MATRIX = T * T * 4
"""Bytes of one head's scores."""
SCRIPT = """
import resource, sys, torch
from clearhead.models.build import build
from clearhead.models.choices import Rotary
from clearhead.models.config import DecoderConfig
from clearhead.ops import NO_TAP
from clearhead.tracing import Edit, Editor, Recorder, zero

heads = {"none": [], "one": [5], "all": None, "edit": [5]}[sys.argv[1]]
config = DecoderConfig(vocab=64, layers=2, heads=12, width=96, context=4096, positions=Rotary())
model, ids = build(config, seed=0).eval(), torch.arange(4096)[None] % 64
recorder = Recorder("blocks.1.attention.weights", heads=heads)
editor = Editor(Edit("blocks.1.attention.weights", zero, heads=heads))
with torch.inference_mode():
    model(ids, tap={"none": NO_TAP, "edit": editor}.get(sys.argv[1], recorder))
kept = sum(tensor.untyped_storage().nbytes() for tensor in recorder.tensors.values())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, kept)
"""


def measured(heads: str) -> tuple[int, int]:
    """Largest memory of a process that traces so many heads, and what the trace keeps, in bytes."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, heads],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    most, kept = map(int, done.stdout.split())
    return most, kept


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss is that of Linux")
def test_one_head_of_4096_tokens_takes_the_memory_of_one_head() -> None:
    (nothing, _), (one, kept), (every, _), (edited, _) = (measured(heads) for heads in ("none", "one", "all", "edit"))
    assert kept == MATRIX
    # Scores, hidden scores, weights in one type and another, a mask of booleans: a few matrices of one head.
    assert one - nothing < 7 * MATRIX
    # And what the edit made of them; spread over all heads it would be as much as those.
    assert edited - nothing < 7 * MATRIX
    # The planted fault: all heads would be found by the same number.
    assert every - nothing > 7 * MATRIX

"""A tap handed to the loop: at each token it holds that token's forward, with the cache; what it changes changes the text."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from clearhead.generation.generate import stream
from clearhead.models import choices as c
from clearhead.tracing import Edit, Editor, Recorder, trace, zero
from tests.generation.ready import KINDS, ready
from tests.oracles.compare import assert_within


@pytest.mark.parametrize("kind", ["learned", "rotary", "ALiBi"])
@pytest.mark.parametrize("kernel", [c.Visible(), c.Fused()], ids=str)
def test_each_step_is_the_last_row_of_one_forward_over_all_before(kind: str, kernel: c.Kernel) -> None:
    loaded = ready(replace(KINDS[kind], kernel=kernel))
    recorder, ids = Recorder(["*.weights", "*.middle"]), [1, 2, 3]
    for piece in stream(loaded, ids, max_tokens=5, seed=1, tap=recorder):
        if piece.step is None:
            continue
        whole = trace(loaded, ids, names=["*.weights", "*.middle"], positions=[-1])
        for name, tensor in whole.items():
            assert_within(recorder.tensors[name][:, ..., -1:, :], tensor, 1e-10)
        ids.append(piece.step.id)


def test_an_encoder_decoder_shows_both_parts() -> None:
    loaded, recorder = ready(KINDS["pair"]), Recorder()
    next(stream(loaded, [1, 2], max_tokens=3, tap=recorder))
    assert {name.split(".")[0] for name in recorder.tensors} == {"encoder", "decoder"}
    assert recorder.tensors["decoder.blocks.0.cross_attention.weights"].shape[-1] == 3


def test_an_edit_changes_the_text_and_is_gone_afterwards() -> None:
    loaded = ready(KINDS["rotary"])

    def text(*edits: Edit) -> list[int]:
        steps = [piece.step for piece in stream(loaded, [1, 2, 3], max_tokens=6, temperature=0, tap=Editor(*edits))]
        return [step.id for step in steps if step is not None]

    plain = text()
    assert text(Edit("blocks.0.feedforward.output", zero), Edit("blocks.0.attention.output", zero)) != plain
    assert text() == plain
    before = torch.random.get_rng_state()
    text()
    assert torch.equal(torch.random.get_rng_state(), before)

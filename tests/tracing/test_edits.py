"""Edits one after another, of heads and shapes that are there or not: the same for every kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from clearhead.messages import UserError
from clearhead.models import choices as c
from clearhead.ops.tap import Edited
from clearhead.tracing import Chain, Edit, Editor, Recorder, noise, patch, trace, zero
from clearhead.tracing import replace as replaced
from tests.equalities.variants import VARIANTS, ids_of, model_of
from tests.oracles.compare import assert_same, assert_within

WEIGHTS, SCORES = "blocks.1.attention.weights", "blocks.1.attention.scores"


def rising(size: float) -> Callable[[str, Tensor], Tensor]:
    """Adds more to later keys."""
    return lambda name, part: part + size * torch.arange(part.shape[-1]).to(part)


def halved(name: str, part: Tensor) -> Tensor:
    return part / 2


CHAINS = {
    "other heads": [Edit(WEIGHTS, zero, heads=[0]), Edit(WEIGHTS, halved, heads=[1])],
    "other queries": [Edit(SCORES, rising(0.3), [0], [5]), Edit(SCORES, rising(0.4), [0], [3])],
    "weights, then scores": [Edit(WEIGHTS, halved, heads=[0]), Edit(SCORES, rising(0.4), heads=[0])],
    "scores, then weights": [Edit(SCORES, rising(0.4), heads=[0]), Edit(WEIGHTS, halved, heads=[0])],
    "from the end": [Edit(WEIGHTS, halved, heads=[-1]), Edit(WEIGHTS, halved, heads=[3], positions=[2])],
    "what was one block before": [Edit("blocks.0.attention.weights", zero, [2]), Edit(WEIGHTS, halved, [2])],
}


def seen(edits: list[Edit], kernel: c.Kernel) -> dict[str, Tensor]:
    """What a recorder keeps behind an editor for each edit."""
    model = model_of(replace(VARIANTS["rotary, fused"], kernel=kernel))
    editors, recorder = [Editor(edit) for edit in edits], Recorder()
    with torch.no_grad():
        model(ids_of(), tap=Chain(*editors, recorder))
    assert [editor.applied for editor in editors] == [[1]] * len(edits)
    return recorder.tensors


@pytest.mark.parametrize("kernel", [c.Fused(), c.Blockwise(block=4)], ids=["fused", "blockwise"])
@pytest.mark.parametrize("chain", CHAINS)
def test_editors_one_after_another_do_what_they_do_on_the_kernel_that_holds_weights(
    chain: str, kernel: c.Kernel
) -> None:
    found, wanted = seen(CHAINS[chain], kernel), seen(CHAINS[chain], c.Visible())
    for name, tensor in wanted.items():
        assert_within(found[name], tensor, 1e-12)
    assert (wanted["logits"] - seen(CHAINS[chain][1:], c.Visible())["logits"]).abs().max() > 1e-6


def test_an_editor_that_forgets_the_one_before_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Edited.__new__
    monkeypatch.setattr(
        Edited, "__new__", lambda cls, heads, scores, weights, again: made(cls, heads, scores, weights, ())
    )
    found, wanted = (seen(CHAINS["weights, then scores"], kernel) for kernel in (c.Fused(), c.Visible()))
    assert (found["logits"] - wanted["logits"]).abs().max() > 1e-6


def test_heads_count_from_the_end_and_those_outside_are_refused() -> None:
    model, ids = model_of("rotary, fused"), [1, 2, 3, 4]
    assert_same(
        trace(model, ids, names=WEIGHTS, heads=[-1, 0])[WEIGHTS], trace(model, ids, names=WEIGHTS)[WEIGHTS][:, [3, 0]]
    )
    for names in (WEIGHTS, "blocks.1.attention.mixed"):
        for head in (4, -5):
            with pytest.raises(IndexError, match=f"head {head} is outside 4 heads"):
                trace(model, ids, names=names, heads=[head])
            with pytest.raises(IndexError, match=f"head {head} is outside 4 heads"):
                trace(model, ids, edits=Editor(Edit(names, zero, heads=[head])))


def test_no_positions_are_no_rows() -> None:
    made = trace(model_of("rotary, fused"), [1, 2, 3], names=[WEIGHTS, "norm"], positions=[])
    assert {name: tuple(tensor.shape) for name, tensor in made.items()} == {WEIGHTS: (1, 4, 0, 3), "norm": (1, 0, 24)}


def test_what_broadcasts_takes_the_place_and_other_shapes_are_named() -> None:
    model, ids, name = model_of("learned"), [1, 2, 3], "blocks.0.output"
    vector = torch.arange(24.0).double()
    for change in (replaced(vector), lambda _, part: vector):
        made = trace(model, ids, names=name, edits=Editor(Edit(name, change, positions=[-1])))
        assert_same(made[name][0, -1], vector)
    shorter = trace(model, ids[:2], names=name)
    for change, shape in ((replaced(vector[:7]), r"\(7,\)"), (patch(shorter), r"\(1, 2, 24\)")):
        with pytest.raises(UserError, match=rf"blocks\.0\.output gave {shape} in place of \(1, 3, 24\)"):
            trace(model, ids, edits=Editor(Edit(name, change)))


def test_noise_of_two_names_is_not_the_same() -> None:
    part = torch.zeros(2, 3)
    one, other = (noise(1.0)(name, part) for name in ("blocks.0.middle", "blocks.1.middle"))
    assert not torch.equal(one, other)
    assert torch.equal(one, noise(1.0)("blocks.0.middle", part))
    assert not torch.equal(one, noise(1.0, seed=-1)("blocks.0.middle", part))

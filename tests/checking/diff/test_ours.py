"""A MODEL as a side: every traced tensor a stage, the weights shared by whatever it is changed into."""

from __future__ import annotations

import pytest
import torch

from clearhead.checking.diff.ours import model_side
from clearhead.checking.diff.side import Given, Side
from clearhead.messages import UserError
from clearhead.tracing.trace import trace
from tests.checking.diff.ours_made import GPT, T, V, loaded, side
from tests.checking.diff.test_variations import given


def test_stages_are_the_traced_tensors_and_the_last_is_the_result() -> None:
    model = loaded(GPT)
    one = model_side(model)
    read = given(1)
    walk = one.run(read)
    assert [stage.name for stage in walk.stages] == list(trace(model, read.inputs[0][0].tolist()))
    assert walk.stages[-1].name == "logits"
    assert torch.equal(walk.stages[-1].value, one.model(*read.inputs))
    assert {stage.value.dtype for stage in walk.stages} == {torch.float64}


def test_it_is_a_copy_of_what_was_loaded_and_says_what_it_takes() -> None:
    model = loaded(GPT)
    one = model_side(model)
    assert next(model.model.parameters()).dtype == torch.float32
    like: Side = one
    assert (like.name, like.vocab, one.limit, one.architecture) == ("run", V, GPT.context, "decoder")
    assert one.encode is not None
    assert one.encode("3 1 2") == model.read("3 1 2")
    assert "head.weight" not in one.weights
    assert sum(x.numel() for x in one.weights.values()) == sum(p.numel() for p in model.model.parameters())


def test_it_stops_behind_a_stage_and_behind_one_that_is_not_as_expected() -> None:
    one, read = side("gpt"), given(1)
    whole = {stage.name: stage.value for stage in one.run(read).stages}
    assert one.run(read, until="blocks.0.middle").stages[-1].name == "blocks.0.middle"
    known = {"input": whole["input"], "blocks.0.attention.q": whole["blocks.0.attention.q"] + 1.0}
    assert one.run(read, expected=known).stages[-1].name == "blocks.0.attention.q"
    assert one.run(read, expected={"input": whole["input"]}).stages[-1].name == "logits"


@pytest.mark.parametrize("inputs", [(torch.randn(2, T, 4),), (torch.ones(2, T).long(), torch.ones(2, T).long())])
def test_other_inputs_are_refused(inputs: tuple[torch.Tensor, ...]) -> None:
    with pytest.raises(UserError, match="takes whole numbers"):
        side("gpt").run(Given(inputs, ""))

"""Somebody's code as a side: how it is run, what its stages are called, and what two sides can both be given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.checking.diff.code import CodeSide, Opened, _plain
from clearhead.checking.diff.inputs import inputs_for
from clearhead.checking.diff.side import Given, Tuned
from clearhead.checking.diff.stages import CodeStage
from clearhead.checking.settings import Settings
from clearhead.messages import UserError
from tests.checking.diff.walks import opened, right


def test_stages_of_a_model() -> None:
    """Modules by their paths with the user's line, operations by theirs, views left out, the last is the result."""
    side, given, walk = right()
    names = [stage.name for stage in walk.stages]
    assert names[-1] == "head"
    assert {"tokens", "places", "blocks.0.attention.q", "blocks.0.feedforward.down"} <= set(names)
    assert any(name.startswith("softmax (small_modules.py:") for name in names)
    assert not any(name.startswith(("view", "transpose", "reshape")) for name in names)
    head = walk.stages[-1]
    assert isinstance(head, CodeStage)
    assert (head.made_by, head.where.partition(":")[0]) == ("Linear", "small_modules.py")
    assert [walk.stages[at].name for at in head.parents] == [names[-2]]
    assert torch.equal(head.value, side.module(torch.float64)(given.inputs[0]))
    assert head.value.dtype == walk.narrowest == torch.float64
    tables = [stage for stage in walk.stages if isinstance(stage, CodeStage) and not stage.fed]
    assert {"places"} <= {stage.name for stage in tables}
    assert (side.kind, side.vocab, given.text) == ("lm", 37, "2 x 11 random ids below 37")


class Fused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(12, 36)
        self.out = nn.Linear(12, 12)
        self.out.weight = nn.Parameter(self.out.weight)

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        B, T, D = x.shape
        q, k, v = (y.view(B, T, 3, 4).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(B, T, D)), None


def test_the_fused_kernel_shows_its_scores_and_weights() -> None:
    """By the formula, which gives what it gave."""
    side = opened(Fused())
    walk = side.run(inputs_for(side, side, Tuned()))
    weights = next(stage for stage in walk.stages if stage.name.startswith("scaled_dot_product_attention.weights"))
    assert torch.allclose(weights.value.sum(-1), torch.ones((), dtype=torch.float64))
    assert not bool(weights.value.triu(1).any())
    assert [stage.name.partition(" ")[0] for stage in walk.stages][:4] == ["qkv", "chunk[0]", "chunk[1]", "chunk[2]"]


def test_weights_can_be_put_in_place() -> None:
    """By its own names; the code itself is left as it was."""
    one, other = opened(Fused()), opened(Fused())
    given = inputs_for(one, other, Tuned())
    before = other.run(given).stages[-1].value
    assert not torch.equal(one.run(given).stages[-1].value, before)
    assert torch.equal(other.with_weights(one.weights).run(given).stages[-1].value, one.run(given).stages[-1].value)
    assert torch.equal(other.run(given).stages[-1].value, before)
    assert list(one.weights) == ["qkv.weight", "qkv.bias", "out.weight", "out.bias"]


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(13, 6), nn.Linear(6, 13, bias=False)
        self.fc = nn.Linear(6, 6, bias=False)
        self.head.weight = self.table.weight
        self.register_buffer("scale", torch.ones(2))

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.fc(self.table(ids)).cumsum(1))


def test_tied_tensors_come_once_and_buffers_too() -> None:
    """One storage, one name."""
    assert list(opened(Tied()).weights) == ["table.weight", "fc.weight", "scale"]


class InPlace(nn.Module):
    """Works in place, remembers, and goes through float32."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.calls = nn.Linear(6, 6), 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        y = self.fc(x).add_(self.calls)
        z = torch.zeros_like(y)
        z[:, 1:] = y[:, :-1]
        return (z.float().exp() + 1).to(x.dtype) * 2


def test_code_that_works_in_place_and_remembers() -> None:
    """Each run is a fresh copy's first; the chain of what was made of what is kept through assignments; the narrowest type is said."""
    side = opened(InPlace(), kind="attention")
    given = inputs_for(side, side, Tuned())
    walk, again = side.run(given), side.run(given)
    assert torch.equal(walk.stages[-1].value, again.stages[-1].value)
    assert walk.narrowest == torch.float32
    last, chain = len(walk.stages) - 1, []
    while last:
        stage = walk.stages[last]
        assert isinstance(stage, CodeStage)
        chain.append(stage.name.partition(" ")[0])
        last = max(stage.parents, default=0)
    assert chain == ["mul", "add", "exp", "add_"] or chain[:3] == ["mul", "add", "exp"]


def test_what_fits_no_kind_is_called_by_position() -> None:
    """The inputs are the other's then; alone it cannot be asked what it takes."""

    class Odd(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> dict[str, Tensor]:
            return {"out": x[:, :, None] * y[:, None]}

    odd = CodeSide(opened(Fused()).target, opened(Fused()).opened)
    plain = opened(Odd(), kind=None)
    if plain.kind == "":
        assert plain.run(Given((torch.ones(2, 3), torch.ones(2, 4)), "")).stages[-1].value.shape == (2, 3, 4)
        with pytest.raises(UserError, match="do not take the same"):
            inputs_for(plain, plain, Tuned())
    with pytest.raises(UserError, match="could not be run"):
        odd.run(Given((torch.ones(2, 3),), ""))


def test_ids_of_a_target_go_by_their_name() -> None:
    """What stands second in a published encoder-decoder is a mask."""

    class Both(nn.Module):
        def forward(self, input_ids: Tensor, attention_mask: Any = None, decoder_input_ids: Any = None) -> Tensor:
            assert attention_mask is None
            return input_ids.double() - decoder_input_ids

    side = opened(Both(), kind=None)
    side = CodeSide(side.target, Opened("", None, _plain(side.target, Settings())))
    walk = side.run(Given((torch.full((2, 3), 5), torch.full((2, 3), 2)), ""))
    assert torch.equal(walk.stages[-1].value, torch.full((2, 3), 3.0, dtype=torch.float64))


def test_what_both_can_be_given() -> None:
    """Ids below the smaller vocabulary, a length that both take; refusals say why."""
    side, tied = right()[0], opened(Tied())
    given = inputs_for(side, tied, Tuned(seed=3))
    assert int(given.inputs[0].max()) < 13
    with pytest.raises(UserError, match="do not take the same"):
        inputs_for(side, opened(Fused()), Tuned())
    with pytest.raises(UserError, match="tokenizer"):
        inputs_for(side, tied, Tuned(text="hello"))


def test_a_text_goes_through_the_tokenizer_of_a_model() -> None:
    """Whichever side has one; ids that the other does not know are said."""
    code: Any = opened(Tied())
    model: Any = SimpleNamespace(name="m", vocab=20, encode=lambda text: [len(text), 1], architecture="decoder")
    assert inputs_for(model, code, Tuned(text="hello")).inputs[0].tolist() == [[5, 1]]
    with pytest.raises(UserError, match="id 15"):
        inputs_for(model, code, Tuned(text="a longer hello."))
    model.encode = lambda _: []
    with pytest.raises(UserError, match="no tokens"):
        inputs_for(code, model, Tuned(text="?"))
    del model.encode
    assert inputs_for(model, code, Tuned()).text == "2 x 11 random ids below 13"

"""Whose weights the two have: what is drawn, what is given, and which tensor is which where names do not tell."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.checking.diff import giving, guesses, weights_named
from clearhead.checking.diff.diff import diff
from clearhead.checking.diff.drawn import Drawn, drawn_in
from clearhead.checking.diff.weights import matches
from clearhead.checking.diff.weights_named import paired
from clearhead.checking.diff.weights_recipes import Named
from clearhead.checking.guard import apart
from clearhead.messages import UserError
from clearhead.models import choices
from tests.checking.diff.ours_made import GPT, LLAMA, loaded

D, F = 6, 10
SMALL = replace(GPT, layers=1)


class Pair(nn.Module):
    """Two square layers, and a head that is read only if that is wanted."""

    def __init__(self, names: tuple[str, str] = ("first", "second")) -> None:
        super().__init__()
        self.names = names
        for name in names:
            self.add_module(name, nn.Linear(D, D))

    def forward(self, x: Tensor) -> Tensor:
        one, other = (self.get_submodule(name) for name in self.names)
        return torch.as_tensor(other(one(x).relu()))


def trained() -> Pair:
    torch.manual_seed(4)
    return Pair()


def loading(change: Callable[[Tensor], Tensor]) -> Callable[[], nn.Module]:
    """A factory that loads weights, one of them changed, and draws a head that nothing reads."""

    state = trained().state_dict()

    def factory() -> nn.Module:
        made = Pair()
        made.load_state_dict(state | {"first.weight": change(state["first.weight"])})
        made.value_head = nn.Linear(D, 1)
        return made

    return factory


HEAD = frozenset({"value_head.weight", "value_head.bias"})


def test_what_is_drawn_is_asked_of_each_tensor() -> None:
    assert drawn_in(Pair) == Drawn(every=True)
    assert drawn_in(lambda: Pair) == Drawn(every=True)
    assert drawn_in(lambda: nn.Sequential(nn.Linear(D, D), nn.LayerNorm(D))) == Drawn(every=True)
    assert drawn_in(loading(lambda x: x)) == Drawn(names=HEAD)
    assert drawn_in(loading(lambda x: x * float("nan"))) == Drawn(names=HEAD)
    assert drawn_in(trained()) == drawn_in(trained) == drawn_in(lambda x: x) == Drawn()


def test_a_factory_that_draws_a_head_keeps_what_it_loads() -> None:
    found = diff(trained(), loading(lambda x: x.t()))
    assert not found.ok
    assert [each.id for each in found.reasons] == ["weights.transposed"]
    (note,) = [note for note in found.notes if "value_head.weight" in note]
    assert "draws 2 of them" in note
    assert diff(trained(), loading(lambda x: x)).ok
    # The planted fault: all are thrown away for those of A, and the two are equal.
    assert diff(trained(), loading(lambda x: x.t()), weights="a").ok


def test_nan_in_weights_is_the_reason_and_is_given_to_nobody() -> None:
    for sides in ((Pair, loading(lambda x: x * float("nan"))), (loading(lambda x: x * float("nan")), Pair)):
        found = diff(*sides)
        assert [each.id for each in found.reasons] == ["numbers.nan"]
        assert found.reasons[0].text.startswith("B" if sides[0] is Pair else "A")
        assert any(f"first.weight holds {D * D} of {D * D}" in note for note in found.notes)
    assert matches({"w": torch.ones(3, 4)}, {"w": torch.ones(3, 4) * float("nan")})[0].row.id == "weights.nan"


class Normed(nn.Module):
    """A norm with a gain and, if that is wanted, a shift."""

    def __init__(self, shift: bool = True) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(D))
        self.shift = nn.Parameter(torch.zeros(D)) if shift else None

    def forward(self, x: Tensor) -> Tensor:
        y = (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt() * self.gain
        return y if self.shift is None else y + self.shift


class Unshifted(Normed):
    def __init__(self) -> None:
        super().__init__(shift=False)


def test_a_shift_that_is_zero_at_first_shows_where_a_class_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """On either side: one that both have is drawn once, one that B alone has is drawn, too."""
    for sides in ((Normed, Unshifted), (Unshifted, Normed)):
        found = diff(*sides)
        assert not found.ok
        assert any("gains of 1" in note for note in found.notes)
    assert diff(Normed, type("Other", (Normed,), {})).ok
    monkeypatch.setattr(giving, "unlike", lambda side, *_, **__: (side, 0))
    assert diff(Normed, Unshifted).ok


def test_the_bias_tells_how_a_matrix_lies() -> None:
    """A fused projection's bias is as frequent as the model is wide: no evidence that the matrix is turned."""
    upright = Named({"in_proj.weight": (3 * D, D), "in_proj.bias": (3 * D,), "out_proj.weight": (D, D), "b": (D,)})
    assert not upright.turned
    turned = Named({"c_attn.weight": (D, 3 * D), "c_attn.bias": (3 * D,), "c_proj.weight": (D, D)})
    assert turned.turned >= {"c_attn.weight"}
    assert Named({"net.0.weight": (D, F), "net.0.bias": (F,)}).turned == {"net.0.weight"}
    assert not Named({"net.0.weight": (D, F), "net.0.bias": (D,)}).turned


class Lying(nn.Module):
    """A matrix (in, out) and its bias."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(width, out)), nn.Parameter(torch.zeros(out))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight + self.bias


class Feed(nn.Module):
    def __init__(self, kind: Callable[[int, int], nn.Module], *names: str) -> None:
        super().__init__()
        self.names = names
        self.add_module(names[0], kind(D, F))
        self.add_module(names[1], kind(F, D))

    def forward(self, x: Tensor) -> Tensor:
        return torch.as_tensor(self.get_submodule(self.names[1])(self.get_submodule(self.names[0])(x).relu()))


class Listed(Feed):
    def __init__(self) -> None:
        super().__init__(nn.Linear, "0", "2")


class Laid(Feed):
    def __init__(self) -> None:
        super().__init__(Lying, "c_fc", "c_proj")


@pytest.mark.parametrize("sides", [(Listed, Laid), (Laid, Listed)])
def test_shapes_are_compared_as_a_linear_holds_them(sides: tuple[type, type], monkeypatch: pytest.MonkeyPatch) -> None:
    found = diff(*sides)
    assert found.ok
    assert [row.id for row in found.tensors if row.state == "related"] == ["weights.transposed"] * 2
    monkeypatch.setattr(Named, "laid", lambda self, name: self.shapes[name])
    assert not diff(*sides).ok


def test_a_bias_goes_where_its_weight_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention's output and the feed-forward's end alike, and only their biases are equally long."""
    a = Named({"0.attention.output.weight": (D, D), "0.attention.output.bias": (D,)})
    b = Named({"0.dense.weight": (D, D), "0.dense.bias": (D,), "0.output.weight": (D, F), "0.output.bias": (D,)})
    assert {each.b: each.names[0] for each in paired(a, b).recipes} == {
        "0.dense.weight": "0.attention.output.weight",
        "0.dense.bias": "0.attention.output.bias",
    }
    monkeypatch.setattr(weights_named, "_together", lambda a, b, recipes: recipes)
    assert ("0.output.bias", ("0.attention.output.bias",)) in [(each.b, each.names) for each in paired(a, b).recipes]


class Backwards(Pair):
    """The same, made in the other order under names that do not tell."""

    def __init__(self) -> None:
        super().__init__(("y", "x"))
        self.names = ("x", "y")


def test_where_names_do_not_tell_the_other_orders_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    found = diff(Pair, Backwards)
    assert found.ok
    assert any("found by trying" in note for note in found.notes)
    assert any("in their order" in note for note in found.notes)
    monkeypatch.setattr(guesses, "MOST", 0)
    assert not diff(Pair, Backwards).ok


class Mixed(nn.Module):
    """Square matrices as a Linear has them, beside others (in, out) without a bias."""

    def __init__(self) -> None:
        super().__init__()
        self.attn = nn.ModuleDict({"out_proj": nn.Linear(D, D, bias=False)})
        self.norm = nn.LayerNorm(D)
        self.w_up, self.w_down = nn.Parameter(torch.randn(D, F)), nn.Parameter(torch.randn(F, D))

    def forward(self, x: Tensor) -> Tensor:
        return torch.as_tensor((self.norm(self.attn["out_proj"](x)) @ self.w_up).relu() @ self.w_down)


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attn = nn.ModuleDict({"o_proj": nn.Linear(D, D, bias=False)})
        self.norm = nn.LayerNorm(D)
        self.up, self.down = nn.Linear(D, F, bias=False), nn.Linear(F, D, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.as_tensor(self.down(self.up(self.norm(self.attn["o_proj"](x))).relu()))


def test_how_a_square_matrix_lies_is_a_guess_and_the_other_way_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Named({name: tuple(each.shape) for name, each in Mixed().named_parameters()}).squares == {
        "attn.out_proj.weight"
    }
    assert diff(Plain, Mixed).ok
    monkeypatch.setattr(guesses, "MOST", 0)
    found = diff(Plain, Mixed)
    assert not found.ok
    assert any("square" in note for note in found.notes)


def test_a_head_with_the_numbers_of_the_embedding_is_tied() -> None:
    table, head = torch.randn(5, D), torch.randn(5, D)
    a = {"embedding.weight": table, "head.weight": head}
    found = matches(a, {"embedding.weight": table, "head.weight": table.clone()})
    assert [each.row.id for each in found] == ["", "head.tied"]
    other = matches({"x.weight": table, "y.weight": head}, {"x.weight": table, "y.weight": table.clone()})
    assert [each.row.id for each in other] == ["", "weights.exchanged"]


def test_models_of_other_sizes_say_what_else_their_configurations_tell() -> None:
    found = diff(loaded(SMALL), loaded(replace(LLAMA, layers=1, cycle=())))
    ids = [each.id for each in found.reasons]
    assert ids[0] == "config.sizes"
    assert {"norm.kind", "position.kind", "activation.variant", "head.tied"} <= set(ids)
    assert {each.certainty for each in found.reasons} == {"consistent"}
    same = diff(loaded(SMALL), loaded(replace(SMALL, heads=3, activation=choices.GELUTanh())))
    assert [each.id for each in same.reasons] == ["config.sizes", "activation.variant"]


class Configuration:
    """Of a published model, full size unless something else is said."""

    width = 20_000


class Published(nn.Module):
    config_class = Configuration

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.linear = nn.Linear(config.width, config.width)

    def forward(self, x: Tensor) -> Tensor:
        return torch.as_tensor(self.linear(x))


def test_a_class_that_is_built_full_size_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"400,020,000 numbers.*return Published\(Configuration\("):
        diff(Pair, Published)
    monkeypatch.setattr(Configuration, "width", D)
    assert drawn_in(Published).every
    with pytest.raises(UserError, match="do not take the same inputs"):
        diff(Pair, Published)


class StoppedError(Exception):
    """The process is not started."""


def test_libraries_draw_no_bars_in_the_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, str] = {}

    def started(*_: object, env: dict[str, str], **__: object) -> None:
        seen.update(env)
        raise StoppedError

    monkeypatch.setattr(subprocess, "Popen", started)
    with pytest.raises(StoppedError):
        apart("diff", {}, 1.0, lambda: None)
    assert seen["TQDM_DISABLE"] == seen["HF_HUB_DISABLE_PROGRESS_BARS"] == "1"
    assert "PATH" in seen

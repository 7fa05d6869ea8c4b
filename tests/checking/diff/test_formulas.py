"""Why two modules part, where neither is ours: each habit planted in a small GPT is named, at its line, by the formulas of both."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import pytest
import torch

from clearhead.checking.diff.formulas import formula_reasons
from clearhead.checking.diff.formulas_norm import norms
from clearhead.checking.diff.formulas_rotary import solved
from clearhead.checking.diff.formulas_sight import sight, sight_id
from clearhead.checking.diff.formulas_small import cap_of, factor_words
from clearhead.checking.diff.reading import Reading
from clearhead.checking.diff.side import Walk
from clearhead.checking.diff.stages import CodeStage
from tests.checking.diff import small_modules
from tests.checking.diff.small_modules import gpt, other
from tests.checking.diff.walks import found, right

SOURCE = inspect.getsource(small_modules).splitlines()

FAULTS: list[tuple[dict[str, Any], str, str, str]] = [
    ({"activation": "tanh"}, "activation.variant", "gelu-tanh(x)", "lambda z: 0.5"),
    ({"activation": "relu"}, "activation.variant", "relu(x)", "bent = {"),
    ({"gate": "up"}, "activation.gate", "gelu-erf(x2) · x1", ""),
    ({"eps": 1e-6}, "norm.eps-value", "sqrt(var + 1e-06)", "torch.sqrt(var + eps)"),
    ({"norm": "rms"}, "norm.formula", "x / sqrt(mean(x²) + 1e-05)", ""),
    ({"norm": "unbiased"}, "norm.unbiased-variance", "n/(n - 1)", "x.var("),
    ({"norm": "outside"}, "norm.eps-placement", "(sqrt(var) + 1e-05)", ""),
    ({"norm": "tokens"}, "norm.axis", "[tokens]", "x - x.mean"),
    ({"norm": "unshifted"}, "projection.bias", "x + b", ""),
    ({"scale": "1"}, "scale.missing", "softmax of x over", ""),
    ({"scale": "1/sqrt(D)"}, "scale.model-width", "1 / sqrt(D) = 0.204124", "scores"),
    ({"scale": "sqrt(d)"}, "scale.inverted", "sqrt(d) = 2.44949", "scores"),
    ({"scale": "1/d"}, "scale.twice", "1 / d = 0.166667", "scores"),
    ({"mask": "none"}, "causal.future-leak", "every query sees every key", "weights = scores"),
    ({"mask": "strict"}, "causal.self-masked", "56 of 121", "weights = scores"),
    ({"window": 5}, "attention.window", "the last 5", "weights = scores"),
    ({"softcap": 2.0}, "attention.softcap", "2 · tanh(x / 2)", ""),
    ({"axis": -2}, "softmax.axis", "over the queries", "weights = scores"),
    ({"pairing": "inter"}, "rotary.pairing", "interleaved pairs", ""),
    ({"base": 1000.0}, "rotary.base", "base 1000", "habits.base"),
    ({"turning": 4}, "rotary.partial", "4 of 6", ""),
    ({"grouped": "tile"}, "heads.kv-tiled", "0, 2, 0, 2", "y.repeat("),
    ({"order": "qvk"}, "qkv.layout", "blocks.0.attention.v", ""),
    ({"split": "view"}, "heads.split-without-transpose", "", ""),
    ({"placement": "post"}, "norm.placement", "and add", "self.q(x)"),
    ({"placement": "parallel"}, "block.wiring", "", ""),
    ({"residual": "missing"}, "residual.missing", "x = blocks.0.attention.out in B", ""),
    ({"residual": "norm"}, "residual.from-norm", "blocks.0.norm1 +", "x + f"),
    ({"residual": "scaled"}, "residual.scale", "0.5 · blocks.0.attention.out", "x + f"),
    ({"residual": "stale"}, "residual.stale", "", "return (x if"),
    ({"final": False}, "norm.final-missing", "the matrix of head", "self.head(x)"),
    ({"embedding": 5.0}, "embedding.scale", "5 · tokens", ""),
    ({"positions": 2}, "position.twice", "2 · places", ""),
    ({"positions": 0}, "position.unused", "tokens", ""),
    ({"shift": 1}, "position.offset", "1 positions on", "self.places("),
    ({"cap": 3.0}, "logits.softcap", "3 · tanh(x / 3)", "self.habits.cap *"),
    ({"drop": True}, "dropout.active-in-eval", "dropout in evaluation", "self.down(y)"),
    ({"bias": False}, "projection.bias", "B computes x Wᵀ", "self.down"),
]


QUICK = (
    "tanh",
    "gate",
    "1e-06",
    "rms",
    "unshifted",
    "'1'",
    "strict",
    "-2",
    "inter",
    "tile",
    "post",
    "norm'",
    "False",
    "shift",
    "cap'",
)
"""The rest of the list takes as long again and again, and runs with the slow tests."""


def cases() -> list[Any]:
    """The planted differences; all but one of each family are slow."""
    quick = [any(word in str(habits) for word in QUICK) for habits, *_ in FAULTS]
    return [
        pytest.param(*fault, id=str(fault[0]), marks=[] if fast else [pytest.mark.slow])
        for fault, fast in zip(FAULTS, quick, strict=True)
    ]


@pytest.mark.parametrize(("habits", "name", "words", "line"), cases())
def test_a_planted_difference_is_named(habits: dict[str, Any], name: str, words: str, line: str) -> None:
    """The id, the formulas of both, that nothing remains once A is changed so, and the line at which the two part."""
    _, first, reasons = found(gpt(**habits))
    assert first is not None
    assert first.held == "differs"
    (reason,) = reasons
    assert reason.id == name
    assert words in reason.text
    assert reason.after < 1e-9 < reason.before
    number = int(first.where.partition(":")[2])
    assert first.where.startswith("small_modules.py:")
    assert not line or line in SOURCE[number - 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("habits", "name"),
    [
        ({"activation": "tanh"}, "activation.variant"),
        ({"eps": 1e-6}, "norm.eps-value"),
        ({"mask": "none"}, "causal.future-leak"),
        ({"window": 5}, "attention.window"),
        ({"pairing": "inter"}, "rotary.pairing"),
        ({"final": False}, "norm.final-missing"),
        ({"shift": 1}, "position.offset"),
    ],
    ids=str,
)
def test_by_another_hand_it_is_named_too(habits: dict[str, Any], name: str) -> None:
    """Fused projections and kernels, other names and another order of operations hide nothing."""
    _, _, reasons = found(other(**habits))
    assert [each.id for each in reasons] == [name]


def test_by_another_hand_the_window_is_named() -> None:
    """One of these that is quick."""
    _, _, reasons = found(other(window=5))
    assert [each.id for each in reasons] == ["attention.window"]


def test_no_known_formula_is_no_reason() -> None:
    """Numbers from nowhere are located and not explained; equal walks have no reasons."""
    _, _, walk = right()
    place = next(n for n, stage in enumerate(walk.stages) if stage.name == "blocks.0.feedforward.down")
    stages = list(walk.stages)
    for n in range(place, len(stages)):
        torch.manual_seed(n)
        stages[n] = replace(stages[n], value=torch.randn_like(stages[n].value))
    noise = Walk(tuple(stages))
    pairs, first, _ = found(gpt())
    assert first is None
    assert formula_reasons(walk, noise, pairs[place]) == ()


def read_norm(y: torch.Tensor, x: torch.Tensor) -> list[str]:
    stages = (CodeStage("x", x), CodeStage("y", y, parents=(0,)))
    return [read.words for read in norms(Reading(Walk(stages), {0: 0}, [1], 1e-9), 1)]


def test_norms_are_read_off_their_numbers() -> None:
    """Any eps, also one that nobody uses; what is no norm is none."""
    x = torch.randn(2, 5, 7, dtype=torch.float64)
    c = x - x.mean(-1, keepdim=True)
    assert read_norm(c / (c.square().mean(-1, keepdim=True) + 0.0123).sqrt(), x) == ["(x - mean) / sqrt(var + 0.0123)"]
    assert read_norm(c / (c.square().mean(-1, keepdim=True) + 0.0123), x) == []


def test_a_turn_is_solved_from_its_vectors() -> None:
    """Base, start and direction; a turn that does not grow evenly is none."""
    x = torch.randn(3, 9, 6, dtype=torch.float64)
    places, speeds = torch.arange(9.0, dtype=torch.float64), 50.0 ** (-2 * torch.arange(3, dtype=torch.float64) / 6)

    def turn(at: torch.Tensor) -> torch.Tensor:
        cos, sin = (at[:, None] * speeds).cos(), (at[:, None] * speeds).sin()
        one, two = x[..., :3], x[..., 3:]
        return torch.cat((one * cos - two * sin, one * sin + two * cos), -1)

    made = solved(x, turn(places + 2), 1e-9)
    assert made is not None
    assert (made.pairing, made.turning, round(made.base, 6), made.start, made.direction) == ("half-split", 6, 50, 2, 1)
    backwards = solved(x, turn(-places), 1e-9)
    assert backwards is not None
    assert backwards.direction == -1
    assert solved(x, turn(places**2), 1e-9) is None


def test_small_words() -> None:
    """Caps, factors and who sees whom."""
    assert cap_of(4.0, 3 * float(torch.tensor(4 / 3, dtype=torch.float64).tanh())) == pytest.approx(3)
    assert cap_of(1.0, 2.0) is None
    assert factor_words(24**0.5, 24).startswith("sqrt(D)")
    assert factor_words(0.3, 24) == "0.3"
    low = torch.ones(5, 5, dtype=torch.bool).tril()
    assert sight(low) == "query i sees keys up to i"
    assert sight(low.triu(-1)) == "query i sees keys up to i, the last 2 of them"
    keys = [
        "|".join("".join(str(int(c)) for c in row) for row in each.tolist()) for each in (low.triu(-1), low.triu(-2))
    ]
    assert sight_id(keys[0], keys[1]) == "window.off-by-one"
    top = torch.ones(3, 5, dtype=torch.bool).tril()
    both = ["|".join("".join(str(int(c)) for c in row) for row in each.tolist()) for each in (top, top.roll(0))]
    assert sight_id(both[0], "11100|11110|11111") == "causal.top-left"

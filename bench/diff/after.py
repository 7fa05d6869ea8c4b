"""The second trial: pairs that a newcomer found wanting after the first. What they ask for was mended on these very pairs: no blind count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from bench.diff.after_hands import LAYERS, LONGEST, D, Gpt, H, V
from bench.diff.cases import Trial, moved, ours
from clearhead.formats.load import Loaded
from clearhead.models import choices
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.text.numbers import NumberTokenizer

MODEL = DecoderConfig(
    vocab=V,
    layers=LAYERS,
    heads=H,
    width=D,
    feedforward_width=3 * D,
    context=LONGEST,
    qkv_bias=True,
    bias=True,
    tied=False,
)


def right(*wrong: str, **sizes: int) -> Callable[[], nn.Module]:
    """An instance, with weights of its own."""

    def made() -> nn.Module:
        torch.manual_seed(11)
        return moved(Gpt(*wrong, **sizes))

    return made


def bare(*wrong: str, **sizes: int) -> Callable[[], Any]:
    """What builds it: it is given the weights of A."""
    return lambda: partial(Gpt, *wrong, **sizes)


def exchanged() -> nn.Module:
    """The right one with the weights of q and k in each other's place."""
    made = right()()
    assert isinstance(made, Gpt)
    for block in made.blocks:
        attention = block.get_submodule("attention")
        q, k = attention.get_submodule("q"), attention.get_submodule("k")
        attention.add_module("q", k)
        attention.add_module("k", q)
    return made


def untransposed() -> nn.Module:
    """One with matrices (in, out), filled with those of Linear layers as they lie."""
    made = right("turned")()
    with torch.no_grad():
        for name, tensor in right()().state_dict().items():
            made.get_parameter(name).copy_(tensor)
    return made


def sunk() -> Loaded:
    """A model of ours with sinks that differ from none."""
    config = replace(MODEL, sinks=True)
    return Loaded(moved(build(config, seed=2)), NumberTokenizer(V), config, Path("run"))


def _code(word: str, ids: str, at: str = "") -> Trial:
    return Trial(f"code: {word}", right(), bare(word), frozenset(ids.split()), tuple(at.split()))


def _model(word: str, ids: str, config: DecoderConfig = MODEL) -> Trial:
    return Trial(f"MODEL, code: {word}", ours(config), bare(word), frozenset(ids.split()))


AFTER = [
    _code("features", "projection.order", "out getitem"),
    _code("reversed", "position.order", "flip"),
    _code("after", "causal.after-softmax", "softmax tril"),
    _code("roles", "qkv.layout scores.transposed", "matmul masked_fill"),
    _code("linears", "qkv.layout scores.transposed", "matmul masked_fill"),
    Trial("code: weights of q and k exchanged", right(), exchanged, frozenset(["weights.exchanged"]), ("q", "k")),
    _code("merge", "heads.merge-without-transpose", "out"),
    _code("unplaced", "position.missing", "add"),
    _code("drop", "dropout.active-in-eval", "dropout"),
    _code("finite", "causal.finite-mask", "softmax"),
    _code("heads", "heads.number", "matmul"),
    _code("skipped", "block.number", "blocks.0"),
    Trial("code: a block more", right(), bare(layers=LAYERS + 1), frozenset(["block.number"]), ("blocks.2",)),
    Trial("code: a block less", right(layers=LAYERS + 1), bare(), frozenset(["block.number"]), ("blocks.2",)),
    Trial("code: untransposed", right(), untransposed, frozenset(["load.transposed", "weights.transposed"]), ("out",)),
    _code("axis", "softmax.axis", "softmax"),
    Trial("code: vocabulary cropped", right(), bare(vocab=V - 5), frozenset(["weights.cropped"]), ("head",)),
    Trial("code: vocabulary padded", right(), bare(vocab=V + 5), frozenset(["weights.padded"]), ("head",)),
    Trial(
        "code: MultiheadAttention, scale",
        right("layered"),
        bare("scale"),
        frozenset(["scale.model-width"]),
        ("scores",),
    ),
    Trial(
        "code: eps, scale and relu",
        right(),
        bare("eps", "scale", "relu"),
        frozenset(["norm.eps-value"]),
        ("attention_norm",),
        ("scale.model-width", "activation.variant"),
    ),
    Trial(
        "code: drop and relu",
        right(),
        bare("drop", "relu"),
        frozenset(["dropout.active-in-eval"]),
        ("dropout",),
        ("activation.variant",),
    ),
    Trial(
        "MODEL, code: a bias that MODEL lacks",
        ours(replace(MODEL, qkv_bias=False)),
        bare(),
        frozenset(["projection.bias"]),
    ),
    Trial(
        "MODEL, code: slopes",
        ours(replace(MODEL, positions=choices.NoPositions())),
        bare("slopes", "unplaced"),
        frozenset(["position.kind"]),
    ),
    Trial("MODEL, code: sinks", sunk, bare(), frozenset(["attention.sinks"])),
    Trial("MODEL with a window of 60, code", ours(replace(MODEL, window=60)), bare(), frozenset(["attention.window"])),
    _model("unplaced", "position.missing"),
    _model("heads", "heads.number"),
    _model("finite", "causal.finite-mask"),
    Trial("equal: the last position alone", right(), bare("last")),
    Trial("equal: MODEL, code", ours(MODEL), bare()),
]

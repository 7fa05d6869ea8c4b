"""The pairs of the trial: written before `diff` was run on any of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from bench.diff.hands import HIDDEN, LAYERS, LONGEST, D, H, K, One, Spec, Two, V
from clearhead.formats.load import Loaded
from clearhead.models import choices
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.text.numbers import NumberTokenizer

ROPE = DecoderConfig(
    vocab=V,
    layers=LAYERS,
    heads=H,
    kv_heads=K,
    width=D,
    feedforward_width=HIDDEN,
    context=LONGEST,
    activation=choices.SwiGLU(),
    norm=choices.RMSNorm(eps=1e-5),
    positions=choices.Rotary(),
    tied=False,
)
PLAIN = DecoderConfig(
    vocab=V,
    layers=LAYERS,
    heads=H,
    width=D,
    feedforward_width=HIDDEN,
    context=LONGEST + 1,
    qkv_bias=True,
    bias=True,
    tied=False,
)


@dataclass(frozen=True)
class Trial:
    """A pair.

    Args:
        name: of what differs; "equal ..." if nothing does.
        a: what makes A.
        b: what makes B.
        ids: names of the reason that are right; none for an equal pair.
        at: words of which one stands in the stages or the line where the two part.
        then: names of reasons that must come after the first.
    """

    name: str
    a: Callable[[], Any]
    b: Callable[[], Any]
    ids: frozenset[str] = frozenset()
    at: tuple[str, ...] = field(default=())
    then: tuple[str, ...] = field(default=())


def moved(model: nn.Module, seed: int = 7) -> nn.Module:
    """The model with weights that are all unlike."""
    drawn = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for each in model.parameters():
            each.add_(0.3 * torch.randn(each.shape, generator=drawn) * (float(each.std()) or 1.0))
    return model.eval()


def ours(config: DecoderConfig) -> Callable[[], Loaded]:
    """A MODEL."""
    return lambda: Loaded(moved(build(config, seed=2)), NumberTokenizer(config.vocab), config, Path("run"))


def hand(kind: type[nn.Module], rope: bool, **wrong: Any) -> Callable[[], nn.Module]:
    """An instance, with weights of its own."""

    def made() -> nn.Module:
        torch.manual_seed(11)
        return moved(kind(Spec(rope=rope, **wrong)))

    return made


def bare(kind: type[nn.Module], rope: bool, **wrong: Any) -> Callable[[], Any]:
    """What builds it: it is given the weights of A."""
    return lambda: partial(kind, Spec(rope=rope, **wrong))


def _model(config: DecoderConfig, kind: type[nn.Module], wrong: dict[str, Any], ids: str, at: str) -> Trial:
    rope = config is ROPE
    name = f"MODEL, {kind.__name__}: {next(iter(wrong))}"
    return Trial(name, ours(config), bare(kind, rope, **wrong), frozenset(ids.split()), tuple(at.split()))


def _code(
    kinds: tuple[type[nn.Module], type[nn.Module]], rope: bool, wrong: dict[str, Any], ids: str, at: str
) -> Trial:
    one, other = kinds
    name = f"{one.__name__}, {other.__name__}: {next(iter(wrong))}"
    return Trial(name, hand(one, rope), bare(other, rope, **wrong), frozenset(ids.split()), tuple(at.split()))


MODELS = [
    _model(ROPE, One, {"pairs": True}, "rotary.pairing", "scores q k"),
    _model(ROPE, Two, {"base": 500.0}, "rotary.base", "scores q k"),
    _model(ROPE, One, {"eps": 1e-3}, "norm.eps-value", "attention_norm"),
    _model(ROPE, Two, {"offset": True}, "norm.offset", "attention_norm"),
    _model(ROPE, One, {"tiled": True}, "heads.kv-tiled", "scores k"),
    _model(ROPE, Two, {"window": 6}, "attention.window mask.window", "weights scores softmax"),
    _model(PLAIN, Two, {"bend": "tanh"}, "activation.variant", "hidden"),
    _model(PLAIN, One, {"unbiased": True}, "norm.unbiased-variance", "attention_norm"),
    _model(PLAIN, Two, {"last_norm": False}, "norm.final-missing", "norm logits result head"),
    _model(PLAIN, One, {"out_bias": False}, "projection.bias bias", "attention.output"),
    _model(PLAIN, Two, {"transposed": True}, "load.transposed weights.transposed", "attention.output"),
    _model(PLAIN, One, {"start": 1}, "position.offset positions.offset", "positions input"),
]
CODES = [
    _code((One, Two), True, {"turning": 6}, "rotary.partial", "turned polar stack cat complex mul"),
    _code((One, Two), False, {"order": "qvk"}, "qkv.layout qkv.order", "scores softmax einsum key value"),
    _code((Two, One), False, {"bend": "relu"}, "activation.variant", "gelu relu"),
    _code((One, Two), False, {"post": True}, "norm.placement block.wiring", "norm ln query qkv"),
    _code((Two, One), True, {"scale": D**-0.5}, "scale.model-width scale.value scale.factor", "scores einsum softmax"),
    _code((One, Two), True, {"embedding": D**0.5}, "embedding.scale", "words emb mul"),
    _code((Two, One), False, {"cap": 3.0}, "softcap attention.softcap logits.softcap", "tanh head lm_head"),
    _code((One, Two), False, {"twice": True}, "position.twice positions.twice", "add pos mul"),
    _code((Two, One), True, {"from_norm": True}, "residual.from-norm", "add"),
    _code((One, Two), True, {"window": 7}, "attention.window mask.window", "weights softmax"),
    _code((Two, One), False, {"tied": True}, "head.tied weights.values weights.exchanged", "head linear"),
    _code((One, One), False, {"query_bias": False}, "projection.bias bias", "query"),
]


class Layer(nn.Module):
    """A block of PyTorch's own attention."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(D, H, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return self.attention(x, x, x, attn_mask=seen, need_weights=False)[0]


class Written(nn.Module):
    """The same by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.Module()
        self.attention.in_proj_weight = nn.Parameter(torch.randn(3 * D, D) / D**0.5)
        self.attention.in_proj_bias = nn.Parameter(torch.randn(3 * D))
        self.attention.out_proj = nn.Linear(D, D)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z = torch.nn.functional.linear(x, self.attention.in_proj_weight, self.attention.in_proj_bias)
        q, k, v = (y.unflatten(-1, (H, -1)).movedim(-2, 1) for y in z.chunk(3, -1))
        scores = (q @ k.mT) / (D // H) ** 0.5
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
        return self.attention.out_proj((scores.softmax(-1) @ v).movedim(1, -2).flatten(-2))


EQUAL = [
    Trial("equal: MODEL, One, rotary", ours(ROPE), bare(One, True)),
    Trial("equal: MODEL, Two, rotary", ours(ROPE), bare(Two, True)),
    Trial("equal: MODEL, One, learned", ours(PLAIN), bare(One, False)),
    Trial("equal: MODEL, Two, learned", ours(PLAIN), bare(Two, False)),
    Trial("equal: One, Two, rotary", hand(One, True), bare(Two, True)),
    Trial("equal: Two, One, learned", hand(Two, False), bare(One, False)),
    Trial("equal: One with norms in float32, Two", hand(One, True, single=True), bare(Two, True)),
    Trial("equal: MultiheadAttention, by hand", lambda: moved(Layer()), lambda: Written),
]

"""Changes that no field of a configuration says, done to the built model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.checking.diff.choice_words import called
from clearhead.checking.diff.variation import Change, Variation, looks_in, set_looks, stacks
from clearhead.layers.attention import MultiHeadAttention
from clearhead.layers.encoder_heads import MaskedTokenHead
from clearhead.layers.feedforward import FeedForward, GatedFeedForward
from clearhead.layers.look import both_ways
from clearhead.layers.norm import LayerNorm, OffsetRMSNorm, RMSNorm, ScaledNorm
from clearhead.messages import say
from clearhead.models import choices
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig, StackConfig
from clearhead.models.config_encoders import EncoderConfig
from clearhead.ops.attention import Attend
from clearhead.ops.masks import Causal, Mask
from clearhead.ops.tap import NO_TAP, Tap

LOGIT_CAPS = (30.0, 50.0, 20.0, 15.0, 10.0)
"""What is usual for a soft-cap of logits."""


def quick_gelu(x: Tensor) -> Tensor:
    """x σ(1.702 x), the first approximation of GELU. Source: Hendrycks and Gimpel 2016 §2 (arXiv:1606.08415)."""
    return x * torch.sigmoid(1.702 * x)


def same(x: Tensor) -> Tensor:
    """x itself."""
    return x


PLAIN: dict[str, Callable[[Tensor], Tensor]] = {
    "SiLU": F.silu,
    "quick GELU": quick_gelu,
    "LeakyReLU": F.leaky_relu,
    "ELU": F.elu,
    "Mish": F.mish,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
}
GATED: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid (GLU)": torch.sigmoid,
    "ReLU (ReGLU)": F.relu,
    "quick GELU": quick_gelu,
}


def of_parts(config: StackConfig) -> Iterator[Variation]:
    """Activations that no configuration has, other statistics of norms, the last norm, the cap of logits, directions, groups."""
    yield from _of_activations(config)
    yield from _of_statistics(config)
    yield from _of_last_norm(config)
    if isinstance(config, DecoderConfig):
        for cap in LOGIT_CAPS:
            texts = (
                say("variations.logit_cap", value=say("variations.word.identity")),
                say("variations.logit_cap", value=f"{cap:g}"),
            )
            yield Variation("logits.softcap", config, *texts, capped(cap))
    if isinstance(config, DecoderConfig | EncoderConfig):
        before, both = say("variations.word.before"), say("variations.word.both")
        reads = isinstance(config, EncoderConfig)
        texts = (
            say("variations.sight", value=both if reads else before),
            say("variations.sight", value=before if reads else both),
        )
        yield Variation("attention.causal" if reads else "causal.future-leak", config, *texts, looking_otherwise)
    if 1 < config.key_value_heads < config.heads:
        share = config.heads // config.key_value_heads
        texts = (
            say("variations.groups", value=f"h // {share}"),
            say("variations.groups", value=f"h % {config.key_value_heads}"),
        )
        yield Variation("heads.kv-tiled", config, *texts, tiled)


def _of_activations(config: StackConfig) -> Iterator[Variation]:
    gated = isinstance(config.activation, choices.Gated)
    before = say("variations.activation", value=called(config.activation))
    for name, function in (GATED if gated else PLAIN).items():
        yield Variation(
            "activation.variant", config, before, say("variations.activation", value=name), activated(function)
        )
    none = say("variations.activation", value=say("variations.word.identity"))
    yield Variation("activation.missing", config, before, none, activated(same))
    if gated:
        texts = (
            say("variations.gate", value=say("variations.word.gate")),
            say("variations.gate", value=say("variations.word.up")),
        )
        yield Variation("activation.gate", config, *texts, gate_swapped)


def _of_statistics(config: StackConfig) -> Iterator[Variation]:
    places = (
        say("variations.eps_place", value=say("variations.word.inside")),
        say("variations.eps_place", value=say("variations.word.outside")),
    )
    if isinstance(config.norm, choices.LayerNorm):
        counts = (say("variations.variance", value="n"), say("variations.variance", value="n - 1"))
        yield Variation("norm.unbiased-variance", config, *counts, norms_of(unbiased=True, outside=False))
        yield Variation("norm.eps-placement", config, *places, norms_of(unbiased=False, outside=True))
        both = (f"{counts[0]}, {places[0]}", f"{counts[1]}, {places[1]}")
        # What `x.std()` gives, with eps added to it.
        yield Variation("norm.unbiased-variance", config, *both, norms_of(unbiased=True, outside=True))
        gains = (say("variations.gain", value="w"), say("variations.gain", value="1 + w"))
        yield Variation("norm.offset", config, *gains, gain_plus_one)
    else:
        yield Variation("norm.eps-placement", config, *places, norms_of(unbiased=False, outside=True))


def _of_last_norm(config: StackConfig) -> Iterator[Variation]:
    there = say("variations.last_norm", value=say("variations.word.there"))
    if not isinstance(config.block, choices.PostNorm):
        missing = say("variations.last_norm", value=say("variations.word.missing"))
        yield Variation("norm.final-missing", config, there, missing, without_last_norm)
    if isinstance(config.block, choices.PreNorm):
        texts = (
            say("variations.placement", value=called(config.block)),
            say("variations.placement", value=say("variations.word.post_and_last")),
        )
        yield Variation("norm.placement", config, *texts, post_with_last_norm(config))


class OtherNorm(nn.Module):
    """A norm with other statistics than is usual.

    Args:
        norm: whose weights and eps it has.
        unbiased: whether the variance is divided by n - 1.
        outside: whether eps is added to the root, not under it.
    """

    def __init__(self, norm: LayerNorm | RMSNorm | OffsetRMSNorm, *, unbiased: bool, outside: bool) -> None:
        super().__init__()
        self.norm, self.unbiased, self.outside = norm, unbiased, outside

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., D)."""
        norm, bias = self.norm, None
        centred, count = x, x.shape[-1] - int(self.unbiased)
        if isinstance(norm, LayerNorm):
            centred, bias = x - x.mean(-1, keepdim=True), norm.bias
        square = centred.square().sum(-1, keepdim=True) / count
        root = square.sqrt() + norm.eps if self.outside else (square + norm.eps).sqrt()
        gain = norm.weight + 1.0 if isinstance(norm, OffsetRMSNorm) else norm.weight
        normed = centred / root * gain
        return normed if bias is None else normed + bias


def activated(function: Callable[[Tensor], Tensor]) -> Change:
    """Give all feed-forward parts, and a head that has one, this activation."""

    def change(model: nn.Module) -> None:
        for module in model.modules():
            if isinstance(module, FeedForward | GatedFeedForward | MaskedTokenHead):
                module.activation = function

    return change


def gate_swapped(model: nn.Module) -> None:
    """Let the activation stand on the other half."""
    for name, module in list(model.named_modules()):
        if isinstance(module, GatedFeedForward):
            model.set_submodule(name, UpGated(module))


class UpGated(nn.Module):
    """W₂ (W_g x ⊙ φ(W₁ x)): the activation on the other half.

    Args:
        part: the usual gated part.
    """

    def __init__(self, part: GatedFeedForward) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: Tensor, *, tap: Tap = NO_TAP) -> Tensor:
        """(..., D) -> (..., D)."""
        gate, up = tap("gate", self.part.gate(x)), tap("up", self.part.up(x))
        return tap("output", self.part.down(tap("hidden", gate * self.part.activation(up))))


def norms_of(*, unbiased: bool, outside: bool) -> Change:
    """Give all norms other statistics."""

    def change(model: nn.Module) -> None:
        for name, module in list(model.named_modules(remove_duplicate=False)):
            if isinstance(module, LayerNorm | RMSNorm | OffsetRMSNorm):
                model.set_submodule(name, OtherNorm(module, unbiased=unbiased, outside=outside))

    return change


def gain_plus_one(model: nn.Module) -> None:
    """Let the gain of all LayerNorms be 1 + w."""
    for module in model.modules():
        if isinstance(module, LayerNorm):
            module.weight = nn.Parameter(module.weight + 1.0, requires_grad=False)


def without_last_norm(model: nn.Module) -> None:
    """Leave out the norm before the head."""
    for stack in stacks(model):
        norm = stack.get_submodule("norm")
        stack.norm = ScaledNorm(nn.Identity(), norm.scale) if isinstance(norm, ScaledNorm) else nn.Identity()


def post_with_last_norm(config: StackConfig) -> Change:
    """Build the blocks of the original Transformer from the parts of these, and keep the last norm."""

    def change(model: nn.Module) -> None:
        other = build(replace(config, block=choices.PostNorm()), device="meta").eval()
        for stack, parts in zip(stacks(model), stacks(other), strict=True):
            blocks, posts = stack.get_submodule("blocks"), parts.get_submodule("blocks")
            for block, post in zip(blocks.children(), posts.children(), strict=True):
                for name, part in block.named_children():
                    if hasattr(post, name):
                        setattr(post, name, part)
            stack.blocks = posts

    return change


def capped(cap: float) -> Change:
    """Squeeze the logits into (-cap, cap)."""

    def change(model: nn.Module) -> None:
        for stack in stacks(model):
            stack.head = nn.Sequential(stack.get_submodule("head"), _Capped(cap))

    return change


class _Capped(nn.Module):
    """cap · tanh(x / cap)."""

    def __init__(self, cap: float) -> None:
        super().__init__()
        self.cap = cap

    def forward(self, x: Tensor) -> Tensor:
        return self.cap * torch.tanh(x / self.cap)


def looking_otherwise(model: nn.Module) -> None:
    """Let a stack that looks back look both ways, and one that looks both ways look back."""
    for stack in stacks(model):
        looks = looks_in(stack)
        set_looks(stack, [replace(each, direction=both_ways if each.direction is Causal else Causal) for each in looks])


def tiled(model: nn.Module) -> None:
    """Let query head h read key/value head h mod K."""
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.attend = _Tiled(module.attend)


class _Tiled(nn.Module):
    """A kernel whose keys and values are repeated 0, 1, 0, 1."""

    def __init__(self, attend: Attend) -> None:
        super().__init__()
        self.attend = attend

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        visible: Mask,
        *,
        bias: Tensor | None = None,
        scale: float | None = None,
        dropout: float = 0.0,
        tap: Tap = NO_TAP,
    ) -> Tensor:
        times = q.shape[1] // k.shape[1]
        k, v = k.repeat(1, times, 1, 1), v.repeat(1, times, 1, 1)
        return self.attend(q, k, v, visible, bias=bias, scale=scale, dropout=dropout, tap=tap)

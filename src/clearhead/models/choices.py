"""The choices a model is made of, each a small frozen class. Imports without torch.

A choice is written by its class name in the command line, in YAML and in JSON; its numbers exist only inside it.
"""

from __future__ import annotations

from dataclasses import dataclass

from clearhead.models.checked import Choice, positive
from clearhead.models.choices_positions import (
    ALiBi,
    Learned,
    Linear,
    Llama3,
    NoPositions,
    Positions,
    Relative,
    Rotary,
    Scaling,
    Sinusoidal,
    Stretched,
    Unscaled,
    YaRN,
)

__all__ = [
    "GEGLU",
    "GELU",
    "ALiBi",
    "Activation",
    "AroundNorm",
    "Auto",
    "Block",
    "Blockwise",
    "Choice",
    "EncoderHead",
    "Features",
    "First",
    "Fused",
    "GEGLUTanh",
    "GELUTanh",
    "Gated",
    "Kernel",
    "LayerNorm",
    "Learned",
    "Linear",
    "Llama3",
    "MaskedToken",
    "Max",
    "Mean",
    "NoPositions",
    "Norm",
    "Parallel",
    "Pooled",
    "Pooling",
    "Positions",
    "PostNorm",
    "PreNorm",
    "RMSNorm",
    "ReLU",
    "ReLUSquared",
    "Relative",
    "Rotary",
    "Scaling",
    "Sinusoidal",
    "Stretched",
    "SwiGLU",
    "Unscaled",
    "Visible",
    "YaRN",
]


class Activation(Choice):
    """The non-linearity of the feed-forward part, and whether it gates."""


@dataclass(frozen=True)
class ReLU(Activation):
    """max(x, 0), the activation of the notes' course."""


@dataclass(frozen=True)
class ReLUSquared(Activation):
    """max(x, 0)²."""


@dataclass(frozen=True)
class GELU(Activation):
    """x Φ(x), exact."""


@dataclass(frozen=True)
class GELUTanh(Activation):
    """GPT-2's tanh approximation of GELU."""


class Gated(Activation):
    """A feed-forward part with a gate: φ(gate(x)) ⊙ up(x)."""


@dataclass(frozen=True)
class SwiGLU(Gated):
    """Gated by SiLU: Llama, Mistral, Qwen."""


@dataclass(frozen=True)
class GEGLU(Gated):
    """Gated by exact GELU."""


@dataclass(frozen=True)
class GEGLUTanh(Gated):
    """Gated by the tanh approximation of GELU: Gemma, T5 1.1."""


class Norm(Choice):
    """The normalisation of the blocks and before the head."""

    eps: float

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("norm.eps", self.eps)


@dataclass(frozen=True)
class LayerNorm(Norm):
    """Mean and population variance over the features.

    Args:
        eps: added to the variance, inside the root.
        bias: whether a shift is trained beside the gain.
    """

    eps: float = 1e-5
    bias: bool = True


@dataclass(frozen=True)
class RMSNorm(Norm):
    """Root mean square over the features; no mean is taken off.

    Args:
        eps: added to the mean square, inside the root.
        offset: whether the gain is 1 + w (Gemma) in place of w.
    """

    eps: float = 1e-6
    offset: bool = False


class Kernel(Choice):
    """What computes attention."""


@dataclass(frozen=True)
class Auto(Kernel):
    """The fastest kernel that can do what the model asks for."""


@dataclass(frozen=True)
class Visible(Kernel):
    """Matrix products that can be read: the definition."""


@dataclass(frozen=True)
class Fused(Kernel):
    """PyTorch's scaled_dot_product_attention: the same result, faster."""


@dataclass(frozen=True)
class Blockwise(Kernel):
    """The online softmax over blocks of keys: never holds the T x S matrix of weights. Slower than Fused.

    Args:
        block: how many keys are looked at together.
    """

    block: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("kernel.block", self.block)


class Block(Choice):
    """Where a block has its norms, and in which order its branches run."""


@dataclass(frozen=True)
class PreNorm(Block):
    """A norm before each branch; a last one before the head. GPT-2, Llama."""


@dataclass(frozen=True)
class PostNorm(Block):
    """The norm of the sum after each branch; none before the head. The original Transformer."""


@dataclass(frozen=True)
class AroundNorm(Block):
    """A norm before and one after each branch; a last one before the head. Gemma 2 and 3."""


@dataclass(frozen=True)
class Parallel(Block):
    """Both branches read the same x; a last norm before the head. GPT-J, NeoX.

    Args:
        shared: whether one norm serves both branches.
    """

    shared: bool = False


class Pooling(Choice):
    """How the features of a row become one vector."""


@dataclass(frozen=True)
class First(Pooling):
    """Those of the first real token: BERT's [CLS]."""


@dataclass(frozen=True)
class Mean(Pooling):
    """Their mean over the real tokens: sentence embeddings."""


@dataclass(frozen=True)
class Max(Pooling):
    """Their maximum over the real tokens."""


class EncoderHead(Choice):
    """What is made of an encoder's features."""


@dataclass(frozen=True)
class Features(EncoderHead):
    """Nothing: the features of every position come out."""


@dataclass(frozen=True)
class MaskedToken(EncoderHead):
    """Logits of the token at every position: a layer with activation and norm, then the vocabulary. BERT's."""


@dataclass(frozen=True)
class Pooled(EncoderHead):
    """One vector a row.

    Args:
        pooling: how it is taken from the features.
        dense: whether a trained layer and tanh follow, as in BERT.
        unit: whether the vector is divided by its length, so that products of two are cosines: sentence embeddings.
    """

    pooling: Pooling = First()
    dense: bool = False
    unit: bool = False

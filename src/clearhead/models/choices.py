"""The choices a model is made of, each a small frozen class. Imports without torch.

A choice is written by its class name in the command line, in YAML and in JSON; its numbers exist only inside it.
"""

from __future__ import annotations

from dataclasses import dataclass

from clearhead.messages import UserError, say
from clearhead.models.checked import check_types, in_order, positive


class Choice:
    """Something that a model may have one way or another; the families of choices are its direct subclasses."""

    def __post_init__(self) -> None:
        check_types(self)


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


class Scaling(Choice):
    """How rotary frequencies are stretched for contexts longer than the trained one."""


@dataclass(frozen=True)
class Unscaled(Scaling):
    """Frequencies as they are."""


class Stretched(Scaling):
    """Frequencies are divided, some or all of them."""

    factor: float

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("scaling.factor", self.factor)


@dataclass(frozen=True)
class Linear(Stretched):
    """All frequencies divided.

    Args:
        factor: how many times longer the context becomes.
    """

    factor: float


@dataclass(frozen=True)
class YaRN(Stretched):
    """Slow frequencies divided, fast ones kept, scores made a little steeper.

    Args:
        factor: how many times longer the context becomes.
        original_context: the context of the training.
        fast: turns within it above which a pair is kept.
        slow: turns within it below which a pair is divided.
    """

    factor: float
    original_context: int
    fast: float = 32.0
    slow: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("scaling.original_context", self.original_context)
        positive("scaling.slow", self.slow)
        in_order("scaling.slow", self.slow, "scaling.fast", self.fast)


@dataclass(frozen=True)
class Llama3(Stretched):
    """Llama 3.1's mixture of kept and divided frequencies.

    Args:
        factor: how many times longer the context becomes.
        low: turns within the original context below which a pair is divided.
        high: turns within it above which a pair is kept.
        original_context: the context of the training.
    """

    factor: float = 8.0
    low: float = 1.0
    high: float = 4.0
    original_context: int = 8192

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("scaling.original_context", self.original_context)
        positive("scaling.low", self.low)
        in_order("scaling.low", self.low, "scaling.high", self.high)


class Positions(Choice):
    """How the model knows the order of its tokens."""


@dataclass(frozen=True)
class NoPositions(Positions):
    """Only the causal mask tells something of the order."""


@dataclass(frozen=True)
class Learned(Positions):
    """A trained vector for each position, added to the token embedding once."""


@dataclass(frozen=True)
class Sinusoidal(Positions):
    """The original Transformer's sines and cosines, added to the token embedding once.

    Args:
        base: of the frequencies.
        halves: all sines, then all cosines, in place of interleaved columns.
    """

    base: float = 10_000.0
    halves: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("positions.base", self.base)


@dataclass(frozen=True)
class Rotary(Positions):
    """Queries and keys turned by an angle that grows with the position.

    Args:
        theta: base of the frequencies.
        fraction: which part of a head's features is turned.
        interleaved: pairs of neighbours (the paper, GPT-J) in place of halves (Llama, NeoX).
        scaling: for contexts longer than the trained one.
    """

    theta: float = 10_000.0
    fraction: float = 1.0
    interleaved: bool = False
    scaling: Scaling = Unscaled()

    def __post_init__(self) -> None:
        super().__post_init__()
        in_order("1", 1.0, "positions.theta", self.theta)
        if not 0 < self.fraction <= 1:
            raise UserError(
                say("models.out_of_range", field="positions.fraction", value=self.fraction, wanted="0 < x ≤ 1")
            )

    def turned(self, head_width: int) -> int:
        """How many features of a head are turned: the even number at or below fraction · d."""
        return int(self.fraction * head_width) // 2 * 2


@dataclass(frozen=True)
class ALiBi(Positions):
    """A bias on the scores that falls with the distance, steeper in some heads than in others."""


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

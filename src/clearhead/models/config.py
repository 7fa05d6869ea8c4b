"""What a model is, as frozen values whose illegal states cannot be written. Imports without torch.

A choice (norm, activation, positions, kernel) is a small class; its own numbers exist only inside it. In the command
line, in YAML and in JSON a choice is written by its class name.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from clearhead.messages import UserError, say


class Activation:
    """The non-linearity of the feed-forward part."""


@dataclass(frozen=True)
class ReLU(Activation):
    """max(x, 0), the activation of the notes' course."""


@dataclass(frozen=True)
class GELU(Activation):
    """x Φ(x), exact."""


@dataclass(frozen=True)
class GELUTanh(Activation):
    """GPT-2's tanh approximation of GELU."""


class Norm:
    """The normalisation before each branch and before the head."""


@dataclass(frozen=True)
class LayerNorm(Norm):
    """Mean and population variance over the features.

    Args:
        eps: added to the variance, inside the root.
        bias: whether a shift is trained beside the gain.
    """

    eps: float = 1e-5
    bias: bool = True


class Positions:
    """How the model knows the order of its tokens."""


@dataclass(frozen=True)
class Learned(Positions):
    """A trained vector for each position, added to the token embedding once."""


class Kernel:
    """What computes attention."""


@dataclass(frozen=True)
class Visible(Kernel):
    """Matrix products that can be read: the definition."""


@dataclass(frozen=True)
class Fused(Kernel):
    """PyTorch's scaled_dot_product_attention: the same result, faster."""


class ModelConfig:
    """What a model is. Its kinds are `DecoderConfig` and, later, others."""


@dataclass(frozen=True)
class DecoderConfig(ModelConfig):
    """A decoder-only language model, the GPT of the notes.

    Args:
        vocab: V, how many token ids there are; `clearhead train` takes it from the tokenizer.
        layers: L, how many blocks.
        heads: H, query heads of each block.
        kv_heads: K, key/value heads; as many as heads if not given.
        width: D, features of a position.
        head_width: d, features of a head; width / heads if not given.
        feedforward_width: F, features inside the feed-forward part; 4 * width if not given.
        context: the most positions a forward takes.
        dropout: probability of dropping, in training, attention weights and the outputs of both branches.
        activation: the feed-forward's non-linearity.
        norm: the normalisation.
        positions: how order is known.
        kernel: what computes attention.
        tied: whether the head shares the token embedding's weights.
        qkv_bias: whether the projections to q, k and v have a bias.
        bias: whether the output projection and the feed-forward layers have a bias.
        head_bias: whether the head has a bias.

    Raises:
        UserError: on numbers that do not fit together, naming both.
    """

    vocab: int = 256
    layers: int = 4
    heads: int = 4
    kv_heads: int | None = None
    width: int = 128
    head_width: int | None = None
    feedforward_width: int | None = None
    context: int = 128
    dropout: float = 0.0
    activation: Activation = GELU()
    norm: Norm = LayerNorm()
    positions: Positions = Learned()
    kernel: Kernel = Fused()
    tied: bool = True
    qkv_bias: bool = False
    bias: bool = False
    head_bias: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int) and not isinstance(value, bool) and value < 1 and field.name != "dropout":
                raise UserError(say("models.too_small", field=field.name, value=value, least=1))
        if not 0 <= self.dropout < 1:
            raise UserError(say("models.not_probability", field="dropout", value=self.dropout))
        if self.head_width is None:
            _must_divide("width", self.width, "heads", self.heads)
        _must_divide("heads", self.heads, "kv_heads", self.key_value_heads)

    @property
    def key_value_heads(self) -> int:
        """K."""
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def width_of_head(self) -> int:
        """The width of one head, d."""
        return self.width // self.heads if self.head_width is None else self.head_width

    @property
    def hidden(self) -> int:
        """The feed-forward width, F."""
        return 4 * self.width if self.feedforward_width is None else self.feedforward_width


def _must_divide(larger: str, larger_value: int, smaller: str, smaller_value: int) -> None:
    """Raise a UserError with both numbers unless `smaller` divides `larger`."""
    if larger_value % smaller_value:
        divisors = ", ".join(str(n) for n in range(1, min(larger_value, 64) + 1) if larger_value % n == 0)
        raise UserError(
            say(
                "models.not_divisible",
                larger=larger,
                larger_value=larger_value,
                smaller=smaller,
                smaller_value=smaller_value,
                divisors=divisors,
            )
        )

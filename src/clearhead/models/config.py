"""What a model is, as frozen values whose illegal states cannot be written. Imports without torch."""

from __future__ import annotations

from dataclasses import dataclass, fields

from clearhead.messages import UserError, say
from clearhead.models.checked import check_types, positive
from clearhead.models.choices import (
    GELU,
    Activation,
    Auto,
    Block,
    Choice,
    Fused,
    Kernel,
    LayerNorm,
    Learned,
    NoPositions,
    Norm,
    Positions,
    PreNorm,
    Rotary,
    Sinusoidal,
)


@dataclass(frozen=True)
class Sight(Choice):
    """How the blocks of one kind look, where not all blocks look alike.

    Args:
        window: how many keys a query sees at most, itself included; None for all.
        positions: rotary or no positions of these blocks; the model's own if None.
    """

    window: int | None = None
    positions: Positions | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window is not None and self.window < 1:
            raise UserError(say("models.too_small", field="window", value=self.window, least=1))
        if not isinstance(self.positions, Rotary | NoPositions | None):
            raise UserError(say("models.sight_positions", name=type(self.positions).__name__))


class ModelConfig:
    """What a model is. Its kinds are `DecoderConfig`, `EncoderConfig` and `EncoderDecoderConfig`."""


@dataclass(frozen=True)
class StackConfig(ModelConfig):
    """What every stack of blocks has, whichever way it looks.

    Args:
        vocab: V, how many token ids there are; `clearhead train` takes it from the tokenizer.
        layers: L, how many blocks.
        heads: H, query heads of each block.
        kv_heads: K, key/value heads; as many as heads if not given.
        width: D, features of a position.
        head_width: d, features of a head; width / heads if not given.
        feedforward_width: F, features inside the feed-forward part; 4 * width if not given.
        context: the most positions a forward takes.
        dropout: probability of dropping, in training, attention weights, the outputs of all branches, and features
            of the embedded input.
        activation: the feed-forward's non-linearity, and whether it gates.
        norm: the normalisation.
        block: where the norms stand, and in which order the branches run.
        positions: how order is known.
        kernel: what computes attention.
        attention_scale: multiplies the scores; 1 / sqrt(head width) if not given.
        softcap: squeezes the scores into (-softcap, softcap); not if not given.
        sinks: whether each head has a trained score that takes weight and holds no value.
        qk_norm: whether queries and keys are normalised over a head's features.
        scale_embedding: whether the token embedding is multiplied by sqrt(width).
        embedding_norm: whether the sum of token and position vectors is normalised.
        tied: whether the head shares the token embedding's weights.
        scale_head: whether the features are divided by sqrt(width) before the head.
        qkv_bias: whether the projections to q, k and v have a bias.
        bias: whether the output projection and the feed-forward layers have a bias.
        output_bias: whether attention's output projection has one; as `bias` says if not given.
        head_bias: whether the head has a bias.

    Raises:
        UserError: on numbers or choices that do not fit together, naming both.
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
    block: Block = PreNorm()
    positions: Positions = Learned()
    kernel: Kernel = Auto()
    attention_scale: float | None = None
    softcap: float | None = None
    sinks: bool = False
    qk_norm: bool = False
    scale_embedding: bool = False
    embedding_norm: bool = False
    tied: bool = True
    scale_head: bool = False
    qkv_bias: bool = False
    bias: bool = False
    output_bias: bool | None = None
    head_bias: bool = False

    def __post_init__(self) -> None:
        check_types(self)
        self._check_numbers()
        for clash, first, second, instead in self._clashes():
            if clash:
                raise UserError(say("models.clash", first=first, second=second, instead=instead))
        for positions in map(self.positions_of, self.sights):
            if isinstance(positions, Rotary) and positions.turned(self.width_of_head) < 2:
                raise UserError(say("models.nothing_turned", fraction=positions.fraction, width=self.width_of_head))
        if self.width % 2 and isinstance(self.positions, Sinusoidal):
            raise UserError(say("models.out_of_range", field="width", value=self.width, wanted="even (Sinusoidal)"))

    def _check_numbers(self) -> None:
        for field in fields(self):
            value, least = getattr(self, field.name), self.least(field.name)
            if field.type in ("int", "int | None") and value is not None and value < least:
                raise UserError(say("models.too_small", field=field.name, value=value, least=least))
        if not 0 <= self.dropout < 1:
            raise UserError(say("models.not_probability", field="dropout", value=self.dropout))
        for name in ("attention_scale", "softcap"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        if self.head_width is None:
            _must_divide("width", self.width, "heads", self.heads)
        _must_divide("heads", self.heads, "kv_heads", self.key_value_heads)

    @staticmethod
    def least(field: str) -> int:
        """The smallest value of a whole-number field."""
        return 1

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

    @property
    def mixing_bias(self) -> bool:
        """Whether attention's output projection has a bias."""
        return self.bias if self.output_bias is None else self.output_bias

    @property
    def sights(self) -> tuple[Sight, ...]:
        """How each block looks, one a block."""
        return (Sight(),) * self.layers

    def positions_of(self, sight: Sight) -> Positions:
        """How blocks that look like `sight` know order inside attention."""
        return self.positions if sight.positions is None else sight.positions

    def _clashes(self) -> list[tuple[bool, str, str, str]]:
        """Two choices of which each is legal and both are not: whether they are there, their names, what to choose."""
        fused, other = isinstance(self.kernel, Fused), "kernel Visible or Auto"
        return [
            (fused and self.softcap is not None, "kernel Fused", "softcap", other),
            (fused and self.sinks, "kernel Fused", "sinks", other),
            (self.softcap is not None and self.sinks, "softcap", "sinks", "one of them"),
        ]


@dataclass(frozen=True)
class DecoderConfig(StackConfig):
    """A decoder-only language model, the GPT of the notes.

    Args:
        window: how many keys a query sees at most, itself included; all if not given.
        cycle: how blocks look, block i taking the (i mod n)-th; all alike if empty. As JSON, say two windowed blocks and
            one without rotary: [{"window": 8}, {"window": 8}, {"positions": {"class_path": "NoPositions"}}].

    Raises:
        UserError: on numbers or choices that do not fit together, naming both.
    """

    window: int | None = None
    cycle: tuple[Sight, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "cycle", tuple(self.cycle))
        super().__post_init__()

    @property
    def sights(self) -> tuple[Sight, ...]:
        """How each block looks, one a block."""
        cycle = self.cycle or (Sight(window=self.window),)
        return tuple(cycle[index % len(cycle)] for index in range(self.layers))

    def _clashes(self) -> list[tuple[bool, str, str, str]]:
        own = any(sight.positions is not None for sight in self.cycle)
        model = f"positions {type(self.positions).__name__}"
        return [
            *super()._clashes(),
            (self.window is not None and self.cycle != (), "window", "cycle", "the window inside the cycle"),
            (
                own and not isinstance(self.positions, Rotary),
                model,
                "positions inside the cycle",
                "positions Rotary",
            ),
        ]


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

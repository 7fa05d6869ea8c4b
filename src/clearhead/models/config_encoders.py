"""What an encoder and an encoder-decoder are, as frozen values. Imports without torch."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from clearhead.models.choices import EncoderHead, Features, MaskedToken, Parallel
from clearhead.models.config import DecoderConfig, StackConfig


@dataclass(frozen=True)
class EncoderConfig(StackConfig):
    """An encoder: every position sees every other. It has what every stack has.

    Args:
        segments: how many kinds of segments have a trained vector of their own; none if 0.
        head: what is made of the features.

    Raises:
        UserError: on numbers or choices that do not fit together, naming both.
    """

    segments: int = 0
    head: EncoderHead = MaskedToken()

    @staticmethod
    def least(field: str) -> int:
        """The smallest value of a whole-number field."""
        return 0 if field == "segments" else 1

    def _clashes(self) -> list[tuple[bool, str, str, str]]:
        head, biased = type(self.head).__name__, self.head_bias and not isinstance(self.head, MaskedToken)
        return [*super()._clashes(), (biased, "head_bias", f"head {head}", "head MaskedToken, or no head_bias")]


@dataclass(frozen=True)
class EncoderDecoderConfig(StackConfig):
    """An encoder that reads a source, and a decoder that writes a target and asks the encoder.

    Both stacks have the same sizes and parts; `layers`, `context` and `vocab` are the decoder's.

    Args:
        encoder_layers: how many blocks the encoder has; as many as the decoder if not given.
        source_context: the most positions of a source; as many as of a target if not given.
        source_vocab: how many token ids the source has, with an embedding of its own; one vocabulary and one embedding for
            both if not given.

    Raises:
        UserError: on numbers or choices that do not fit together, naming both.
    """

    encoder_layers: int | None = None
    source_context: int | None = None
    source_vocab: int | None = None

    @property
    def encoder(self) -> EncoderConfig:
        """The encoder's part."""
        return replace(
            # Bias and scale are those of the decoder's head; features have none.
            EncoderConfig(**self._shared() | {"head_bias": False, "scale_head": False}, head=Features()),
            layers=self.layers if self.encoder_layers is None else self.encoder_layers,
            context=self.context if self.source_context is None else self.source_context,
            vocab=self.vocab if self.source_vocab is None else self.source_vocab,
        )

    @property
    def decoder(self) -> DecoderConfig:
        """The decoder's part, its cross-attention aside."""
        return DecoderConfig(**self._shared())

    def _shared(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(StackConfig)}

    def _clashes(self) -> list[tuple[bool, str, str, str]]:
        parallel = isinstance(self.block, Parallel)
        return [
            *super()._clashes(),
            (parallel, "block Parallel", "a decoder with cross-attention", "block PreNorm, PostNorm or AroundNorm"),
        ]

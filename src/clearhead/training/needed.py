"""How much memory an update needs, from its configuration alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from clearhead.models.config import ModelConfig, StackConfig
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.cost import parameters
from clearhead.models.cost_kept import kept
from clearhead.training.tasks import EVALUATION_TOKENS

HELD = 2.0
"""How much memory activations take on a CPU over what they have in it.

Measured with glibc (docs/log.md): it keeps freed blocks in its heap, where those of the next update, or of an evaluation, do not fit in the
same order. With an allocator that gives back everything it is 0.9 to 1.0."""
LOADED = 60_000_000
"""Bytes that PyTorch takes on a CPU when it first trains anything: threads, kernels, workspaces (docs/log.md)."""
HALF_KEPT = 0.6
"""What is kept of activations where the forward is cast to 16 bits: products are halved, the sums of the residual stream are not."""


@dataclass(frozen=True)
class Thrift:
    """What lets an update do with less memory.

    Args:
        micro_batch: rows that go through the model at once; all if None.
        recompute: whether blocks keep their inputs alone.
        logits_at_once: of how many tokens logits are held at once; of all if None.
    """

    micro_batch: int | None = None
    recompute: bool = False
    logits_at_once: int | None = None


class Needed(NamedTuple):
    """Bytes."""

    weights: int
    """And copies of them: in 16 bits where the forward is cast, the masters of weights that have 16 bits."""
    gradients: int
    optimizer: int
    activations: int
    """What a forward keeps for the backward."""
    logits: int
    """What the loss holds beside what it keeps."""
    evaluation: int
    """What an evaluation's forward holds."""
    peak: int
    """The most that is held at once."""


def needed_memory(
    config: StackConfig,
    batch: int,
    *,
    window: int | None = None,
    source: int | None = None,
    dtype: str = "float32",
    optimizer: str = "adamw",
    thrift: Thrift | None = None,
    trained: int | None = None,
    evaluated: int = EVALUATION_TOKENS,
    on_cpu: bool = True,
) -> Needed:
    """Bytes that an update takes beside what the process has before there is a model.

    On a CPU weights + optimiser + gradients + 2·(activations + logits + evaluation) and 60 MB, as measured (`HELD`, `LOADED`); elsewhere
    weights + optimiser + gradients + max(activations + logits, evaluation). An evaluation of n tokens at a time holds n · max(D + 2·F, 2·V + D) numbers.
    In float32 with P parameters of which Q are trained: weights 4·P, gradients 4·Q, AdamW's two means 8·Q; Muon has one for
    the matrices of the blocks. Activations are those of `models.cost_kept.kept`, of the rows that go through together, and
    what dropout keeps: on a CPU 4 bytes for each feature that it may drop, (2·L + 1)·T·D a row, and 9 for each attention
    weight, L·H·T·S, as the kernel that does without them has no dropout there; elsewhere 1 for each feature. Where
    blocks are computed again, T·D numbers for each block and one whole block. The loss holds 2·V float32 numbers a token beside
    those that it keeps, 3·V where logits are held of some tokens at a time. An autocast forward keeps 0.6 of the activations and a
    copy of the weights in 16 bits; weights in 16 bits have masters, and their gradients are copied to 32 bits.

    Args:
        config: of the model.
        batch: B, rows of an update, or pairs.
        window: T, tokens of a row, or of the longest target, where they are fewer than the context.
        source: M, tokens of the longest source, where they are fewer than the encoder's context.
        dtype: as in the settings of a training.
        optimizer: "adamw" or "muon".
        thrift: what lets it do with less; nothing if None.
        trained: Q, where fewer than all parameters are trained.
        evaluated: tokens that go through the model together in an evaluation.
        on_cpu: whether it runs on a CPU.
    """
    thrift = Thrift() if thrift is None else thrift
    parts = parameters(config)
    config = _filled(config, window, source)
    count = sum(parts.values())
    moved = count if trained is None else trained
    in_blocks = sum(parts[name] for name in ("attention", "feedforward", "cross_attention") if name in parts)
    spared = 4 * in_blocks if optimizer == "muon" and trained is None else 0
    rows = batch if thrift.micro_batch is None else min(batch, thrift.micro_batch)
    tokens = rows * config.context
    at_once = tokens if thrift.logits_at_once is None else min(tokens, thrift.logits_at_once)
    weights, gradients = _of_weights(dtype, count, moved)
    a_row = _kept(config, thrift) - (thrift.logits_at_once is not None) * config.context * config.vocab
    small = 1.0 if dtype == "float32" else HALF_KEPT
    activations = int(rows * (4 * small * max(0, a_row) + _dropped(config, thrift, on_cpu=on_cpu)))
    logits = 4 * config.vocab * at_once * (2 if thrift.logits_at_once is None else 3)
    evaluation = 4 * evaluated * max(config.width + 2 * config.hidden, 2 * config.vocab + config.width)
    update = activations + logits
    highest = int(HELD * (update + evaluation)) + LOADED if on_cpu else max(update, evaluation)
    means = 8 * moved - spared
    return Needed(weights, gradients, means, activations, logits, evaluation, weights + means + gradients + highest)


def _filled(config: StackConfig, window: int | None, source: int | None) -> StackConfig:
    """The configuration with contexts that are no longer than what fills them."""
    if isinstance(config, EncoderDecoderConfig) and source is not None:
        config = replace(config, source_context=min(source, config.encoder.context))
    return config if window is None else replace(config, context=min(window, config.context))


def _of_weights(dtype: str, count: int, moved: int) -> tuple[int, int]:
    """Bytes of weights and of gradients."""
    match dtype:
        case "float32":
            return 4 * count, 4 * moved
        case "bfloat16-weights":
            return 2 * count + 4 * moved, (2 + 4) * moved
    return (4 + 2) * count, 4 * moved


def _kept(config: ModelConfig, thrift: Thrift) -> int:
    """Numbers that a row keeps."""
    if not thrift.recompute:
        return kept(config)
    assert isinstance(config, StackConfig)
    one = kept(_with_layers(config, 1))
    layers, places = config.layers, config.context
    if isinstance(config, EncoderDecoderConfig):
        layers, places = max(layers, config.encoder.layers), places + config.encoder.context
    return one + layers * places * config.width


def _with_layers(config: StackConfig, layers: int) -> StackConfig:
    if isinstance(config, EncoderDecoderConfig):
        return replace(config, layers=layers, encoder_layers=layers)
    return replace(config, layers=layers)


def _dropped(config: StackConfig, thrift: Thrift, *, on_cpu: bool) -> int:
    """Bytes that dropout keeps of a row."""
    if not config.dropout:
        return 0
    length, layers = config.context, 1 if thrift.recompute else config.layers
    features, weights = (2 * layers + 1) * length, layers * length**2
    if isinstance(config, EncoderDecoderConfig):
        source, blocks = config.encoder.context, 1 if thrift.recompute else config.encoder.layers
        features += layers * length + (2 * blocks + 1) * source
        weights += layers * length * source + blocks * source**2
    return (4 if on_cpu else 1) * features * config.width + on_cpu * 9 * weights * config.heads

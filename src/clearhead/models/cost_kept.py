"""What a forward keeps for the backward, from the configuration alone; a part of `cost`. Imports without torch."""

from __future__ import annotations

from clearhead.models import choices
from clearhead.models.choices import MaskedToken, Max, Pooled
from clearhead.models.config import DecoderConfig, ModelConfig, StackConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig


def kept(config: ModelConfig) -> int:
    """Numbers that the forward of one row keeps for the backward, at a full context, with the fused kernel.

    A block keeps, per token, the input and the output of each norm, q, k, v, the mixed values, and the feed-forward
    around its activation: 4·D + (H + 2K)·d + H·d + 2·F numbers (and H for the softmax) with pre-norm and GELU. Turned or
    normalised q and k are kept beside v, and the mixed values then twice (after RMSNorm once): (2H + K)·d more. A gate
    makes it 4·F; an RMSNorm keeps what it has normalised, too. Outside the blocks the inputs of the last norm and of the
    head are kept, the sum that an embedding norm takes, and the log-softmax of the logits.

    An encoder keeps the same. MaskedToken's layer adds 2·D around GELU, and D after its norm. Pooled keeps nothing of the
    features but, for Max, the D that were looked through; of a row's one vector it keeps D for Max and 2·D for its dense
    layer. What a loss of features or of pooled vectors keeps is that loss's own.

    An encoder-decoder keeps, for a token of the source, what its encoder keeps, the features, and 2K·d keys and values
    for each block of the decoder. For a token of the target it keeps what a decoder keeps, and in each block 2·D + 2H·d +
    H for cross-attention: the norm, the queries, the mixed values, the softmax. Norms of q and k add as much to
    cross-attention as to self-attention, k's part for each token of the source.

    Left out: ids and other whole numbers, mean and spread of a norm, rotary's angles, the masks of dropout; masks and
    biases of attention (padding, windows, ALiBi, Relative); and what other kernels keep, such as the (T,S) scores and
    weights of the visible kernel, of soft-capping and of sinks.
    """
    match config:
        case DecoderConfig():
            return config.context * (_stack(config) + _last(config) + config.width + config.vocab)
        case EncoderConfig():
            a_token = _stack(config) + _last(config) + _encoder_head(config)
            return config.context * a_token + _pooled(config)
        case EncoderDecoderConfig():
            return _of_both(config)
    raise TypeError(f"nothing counts {config!r}")


def _of_both(config: EncoderDecoderConfig) -> int:
    """Numbers kept of one source and one target."""
    encoder, decoder = config.encoder, config.decoder
    keys, queries = config.key_value_heads * config.width_of_head, config.heads * config.width_of_head
    rms = isinstance(config.norm, choices.RMSNorm)
    normed = config.qk_norm * (1 + rms)
    a_source = _stack(encoder) + _last(encoder) + config.width + config.layers * (2 + normed) * keys
    stream = (3 if isinstance(config.block, choices.AroundNorm) else 2) * config.width
    stream += rms * config.width * (2 if isinstance(config.block, choices.AroundNorm) else 1)
    crossing = stream + (2 + normed + _other_layout(config)) * queries + config.heads
    a_target = _stack(decoder) + config.layers * crossing + _last(decoder) + config.width + config.vocab
    return encoder.context * a_source + decoder.context * a_target


def _stack(config: DecoderConfig | EncoderConfig) -> int:
    """Numbers kept per token by the embedding's norm and the blocks."""
    return config.embedding_norm * _norm(config) + config.layers * _block(config)


def _norm(config: StackConfig) -> int:
    """Numbers that a norm keeps per token beside its output: its input, and as RMSNorm what it has normalised."""
    return config.width * (2 if isinstance(config.norm, choices.RMSNorm) else 1)


def _last(config: StackConfig) -> int:
    """The norm after the blocks; a post-norm block has had its own."""
    return 0 if isinstance(config.block, choices.PostNorm) else _norm(config)


def _encoder_head(config: EncoderConfig) -> int:
    """Numbers kept per token behind the last norm; without a head to read them, the features are not kept."""
    width = config.width
    match config.head:
        case MaskedToken():
            # The output of an activation is the norm's input; the gate of a gated activation is one like any other.
            act = {choices.ReLU: 1, choices.ReLUSquared: 3}.get(type(config.activation), 2)
            return width + act * width + _norm(config) + config.vocab
        case Pooled(pooling=Max()):
            return width
    return 0


def _pooled(config: EncoderConfig) -> int:
    """Numbers kept of the one vector of a row: what Max has found, the dense layer's input and tanh, what is divided by its length."""
    match config.head:
        case Pooled(pooling=pooling, dense=dense, unit=unit):
            # The output of a tanh is kept by the tanh already.
            return config.width * (isinstance(pooling, Max) + 2 * dense + (unit and not dense))
    return 0


def _block(config: DecoderConfig | EncoderConfig) -> int:
    """Numbers that a block keeps for the backward, per token."""
    turned = any(isinstance(config.positions_of(sight), choices.Rotary) for sight in config.sights)
    heads, kv_heads, head_width = config.heads, config.key_value_heads, config.width_of_head
    rms = isinstance(config.norm, choices.RMSNorm)
    match config.block:
        case choices.AroundNorm():
            stream, norms = 6 * config.width, 4
        case choices.Parallel():
            stream, norms = 3 * config.width, 2  # a norm that serves both branches runs twice, too
        case _:
            stream, norms = 4 * config.width, 2
    hidden = {choices.ReLU: 1, choices.ReLUSquared: 3}.get(type(config.activation), 2)
    hidden = 4 if isinstance(config.activation, choices.Gated) else hidden
    # Beside v: the output of the norms of q and k and what an RMSNorm has normalised, or of the rotation, which keeps no input.
    beside = (heads + kv_heads) * (1 + rms if config.qk_norm else turned)
    copied = heads * (turned or _other_layout(config))
    stream += norms * config.width * rms
    return stream + qkv_width(config) + (heads + beside + copied) * head_width + hidden * config.hidden + heads


def _other_layout(config: StackConfig) -> bool:
    """Whether normalised queries lie in memory in another order than projected ones, as a LayerNorm leaves them.

    The kernel returns the order that it was given, and merging the heads then makes a copy. So does a rotation.
    """
    return config.qk_norm and isinstance(config.norm, choices.LayerNorm)


def each_norm(config: StackConfig) -> int:
    """Trained numbers of a norm for each feature: a gain, and perhaps a shift."""
    return 2 if isinstance(config.norm, choices.LayerNorm) and config.norm.bias else 1


def qkv_width(config: StackConfig) -> int:
    """Output features of the fused projection: H·d queries, K·d keys, K·d values."""
    return (config.heads + 2 * config.key_value_heads) * config.width_of_head

"""What a model costs: parameters, arithmetic and memory, from its configuration alone. Imports without torch."""

from __future__ import annotations

from dataclasses import dataclass

from clearhead.models import choices
from clearhead.models.choices import MaskedToken, Pooled
from clearhead.models.config import DecoderConfig, ModelConfig, StackConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.models.cost_kept import each_norm, kept, qkv_width


def parameters(config: ModelConfig) -> dict[str, int]:
    """Trained numbers by part; a tied head counts only what it has beyond the embedding. The sum is the model's.

    An encoder has the part `segments`, and in `head` all that its head has: for MaskedToken a layer, a norm and the
    vocabulary, for Pooled its dense layer. An encoder-decoder has the parts of both its stacks added, an embedding that
    they share once, and `cross_attention`.
    """
    match config:
        case DecoderConfig():
            return {**_stack_parameters(config), "head": _vocabulary_head(config)}
        case EncoderConfig():
            return {
                **_stack_parameters(config),
                "segments": config.segments * config.width,
                "head": _encoder_head(config),
            }
        case EncoderDecoderConfig():
            return _parameters_of_both(config)
    raise TypeError(f"nothing counts {config!r}")


def _stack_parameters(config: DecoderConfig | EncoderConfig) -> dict[str, int]:
    """Trained numbers of a stack of blocks and what is before it."""
    width, hidden = config.width, config.hidden
    matrices = 3 if isinstance(config.activation, choices.Gated) else 2
    biases = (matrices - 1) * hidden + width
    return {
        "embedding": config.vocab * width,
        "positions": _position_numbers(config),
        "attention": config.layers * _attention(config),
        "feedforward": config.layers * (matrices * width * hidden + biases * config.bias),
        "norms": _norms(config),
    }


def _parameters_of_both(config: EncoderDecoderConfig) -> dict[str, int]:
    """Trained numbers of an encoder-decoder; each block of the decoder has a second attention, and norms for it."""
    encoder, decoder = _stack_parameters(config.encoder), _stack_parameters(config.decoder)
    added = {part: encoder[part] + decoder[part] for part in decoder}
    if config.source_vocab is None:
        added["embedding"] = decoder["embedding"]
    around = 2 if isinstance(config.block, choices.AroundNorm) else 1
    cross_norms = around * config.width + 2 * config.qk_norm * config.width_of_head
    added["norms"] += config.layers * each_norm(config) * cross_norms
    crossing = {"cross_attention": config.layers * _attention(config)}
    return {**added, **crossing, "head": _vocabulary_head(config)}


def _attention(config: StackConfig) -> int:
    """Trained numbers of one attention, self or across; norms of queries and keys are counted with the norms."""
    width, qkv, mixed = config.width, qkv_width(config), config.heads * config.width_of_head
    return (
        width * qkv + qkv * config.qkv_bias + mixed * width + width * config.mixing_bias + config.heads * config.sinks
    )


def _vocabulary_head(config: StackConfig) -> int:
    return config.vocab * config.width * (not config.tied) + config.vocab * config.head_bias


def _encoder_head(config: EncoderConfig) -> int:
    layer = config.width * config.width + config.width
    match config.head:
        case MaskedToken():
            return layer + each_norm(config) * config.width + _vocabulary_head(config)
        case Pooled(dense=True):
            return layer
    return 0


def _position_numbers(config: StackConfig) -> int:
    """Trained numbers of positions: a vector for each, or T5's number for each range of distances and head."""
    match config.positions:
        case choices.Learned():
            return config.context * config.width
        case choices.Relative(buckets=buckets):
            return buckets * config.heads
    return 0


def _norms(config: StackConfig) -> int:
    """Trained numbers of all norms of a stack: of the blocks, after them, of the embedding, of queries and keys."""
    of_head = 2 * config.layers * config.qk_norm
    return each_norm(config) * (_norms_of_width(config) * config.width + of_head * config.width_of_head)


def _norms_of_width(config: StackConfig) -> int:
    """How many norms there are over the features of a position; one that serves two branches is one."""
    match config.block:
        case choices.AroundNorm():
            of_blocks = 4 * config.layers + 1
        case choices.PostNorm():
            of_blocks = 2 * config.layers
        case choices.Parallel(shared=True):
            of_blocks = config.layers + 1
        case _:
            of_blocks = 2 * config.layers + 1
    return of_blocks + config.embedding_norm


def flops_per_token(config: ModelConfig, length: int | None = None, *, source: int | None = None) -> dict[str, int]:
    """Floating-point operations of one token's forward, by part; a multiplication and an addition count as two.

    Matrix products alone are counted. Scores and mixing are those of a token that looks at `length` keys (the context
    if not given, at most a block's window): 2·S·H·d each. A backward costs twice a forward, so a training step three
    times this per token.

    An encoder's token looks at all keys. A pooled head's dense layer runs once a row, not once a token: 2·D² a row
    are not counted.

    Of an encoder-decoder one token of the target is counted, with `cross_attention`: in each block 4·D·H·d for its two
    projections and 4·M·H·d to look at the M tokens of the source. Beside it, as the part `encoder`, one token of the
    source is counted: the encoder's blocks, and 4·D·K·d for the keys and values that each block of the decoder asks.
    A target of T tokens costs T times the other parts, its source M times `encoder`.

    Args:
        config: of the model.
        length: how many keys of its own sequence the token looks at; the context if not given.
        source: M, how many tokens of the source the token looks at; the source's context if not given. For
            an encoder-decoder alone; others have no use for it.

    Source: Kaplan et al. 2020 §2.1 (arXiv:2001.08361).
    """
    match config:
        case DecoderConfig():
            length = config.context if length is None else length
            return {**_stack_flops(config, length), "head": 2 * config.width * config.vocab}
        case EncoderConfig():
            length = config.context if length is None else length
            masked = isinstance(config.head, MaskedToken)
            return {**_stack_flops(config, length), "head": masked * 2 * config.width * (config.width + config.vocab)}
        case EncoderDecoderConfig():
            return _flops_of_both(config, length, source)
    raise TypeError(f"nothing counts {config!r}")


def _stack_flops(config: DecoderConfig | EncoderConfig, length: int) -> dict[str, int]:
    """One token's operations in a stack of blocks."""
    keys = sum(min(length, length if sight.window is None else sight.window) for sight in config.sights)
    matrices = 3 if isinstance(config.activation, choices.Gated) else 2
    mixed = config.heads * config.width_of_head
    return {
        "qkv": config.layers * 2 * config.width * qkv_width(config),
        "scores": 2 * keys * mixed,
        "mixing": 2 * keys * mixed,
        "output": config.layers * 2 * mixed * config.width,
        "feedforward": config.layers * 2 * matrices * config.width * config.hidden,
    }


def _flops_of_both(config: EncoderDecoderConfig, length: int | None, source: int | None) -> dict[str, int]:
    length = config.context if length is None else length
    source = config.encoder.context if source is None else source
    mixed, asked = config.heads * config.width_of_head, 2 * config.key_value_heads * config.width_of_head
    encoder = sum(_stack_flops(config.encoder, source).values())
    return {
        **_stack_flops(config.decoder, length),
        "cross_attention": config.layers * (4 * config.width * mixed + 4 * source * mixed),
        "head": 2 * config.width * config.vocab,
        "encoder": encoder + config.layers * 2 * config.width * asked,
    }


@dataclass(frozen=True)
class Memory:
    """Bytes."""

    weights: int
    gradients: int
    optimizer: int
    activations: int

    @property
    def total(self) -> int:
        """All four together."""
        return self.weights + self.gradients + self.optimizer + self.activations


def training_memory(config: ModelConfig, batch: int, *, bytes_each: int = 4) -> Memory:
    """Bytes that training needs: weights, gradients, AdamW's two means, and what a forward keeps for the backward.

    Rows are as long as the context, sources as long as theirs. `cost_kept.kept` says what is kept, and what is left out.

    Args:
        config: of the model.
        batch: rows of an update, B; of an encoder-decoder pairs of source and target.
        bytes_each: of a number.
    """
    total = sum(parameters(config).values()) * bytes_each
    return Memory(total, total, 2 * total, batch * kept(config) * bytes_each)


def cache_elements(config: ModelConfig, batch: int, keys: int, *, source: int | None = None) -> int:
    """Numbers in a KV cache: 2 · L · B · S · K · d, keys and values of every block; an encoder has no cache.

    Beside it an encoder-decoder keeps 2 · L · B · M · K · d keys and values of its source.

    Args:
        config: of the model.
        batch: B.
        keys: S, tokens that the cache holds.
        source: M, tokens of the source; its context if not given. For an encoder-decoder alone.

    Source: transformer-notes §13, §16.
    """
    match config:
        case EncoderConfig():
            return 0
        case DecoderConfig():
            held = keys
        case EncoderDecoderConfig():
            held = keys + (config.encoder.context if source is None else source)
        case _:
            raise TypeError(f"nothing counts {config!r}")
    return 2 * config.layers * batch * held * config.key_value_heads * config.width_of_head


@dataclass(frozen=True)
class GenerationMemory:
    """Bytes."""

    weights: int
    cache: int
    activations: int

    @property
    def total(self) -> int:
        """All three together."""
        return self.weights + self.cache + self.activations


def generation_memory(config: StackConfig, *, bytes_each: int = 4) -> GenerationMemory:
    """Bytes that one text needs at a full context: weights, KV cache, and the widest tensors of its prefill.

    An encoder writes nothing and has no cache; its forward is counted. An encoder-decoder reads its source before it
    writes, so its widest tensors are those of one of the two; its cache holds the keys and values of a full source, too.
    """
    return GenerationMemory(
        bytes_each * sum(parameters(config).values()),
        bytes_each * cache_elements(config, 1, config.context),
        bytes_each * _widest(config),
    )


def _widest(config: StackConfig) -> int:
    """Numbers in the widest tensors of a forward over a full context."""
    match config:
        case EncoderDecoderConfig():
            return max(_widest(config.encoder), _widest(config.decoder))
        case DecoderConfig() | EncoderConfig():
            logits = isinstance(config, DecoderConfig) or isinstance(config.head, MaskedToken)
            widest = max(config.hidden, qkv_width(config), config.vocab * logits) + 2 * config.width
            return config.context * widest
    raise TypeError(f"nothing counts {config!r}")

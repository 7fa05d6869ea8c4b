"""What a model costs: parameters, arithmetic and memory, from its configuration alone. Imports without torch."""

from __future__ import annotations

from dataclasses import dataclass

from clearhead.models import choices
from clearhead.models.config import DecoderConfig


def parameters(config: DecoderConfig) -> dict[str, int]:
    """Trained numbers by part; a tied head counts only what it has beyond the embedding. The sum is the model's."""
    width, hidden, qkv = config.width, config.hidden, _qkv(config)
    mixed = config.heads * config.width_of_head
    matrices = 3 if isinstance(config.activation, choices.Gated) else 2
    biases = (matrices - 1) * hidden + width
    return {
        "embedding": config.vocab * width,
        "positions": _position_numbers(config),
        "attention": config.layers
        * (width * qkv + qkv * config.qkv_bias + mixed * width + width * config.bias + config.heads * config.sinks),
        "feedforward": config.layers * (matrices * width * hidden + biases * config.bias),
        "norms": _norms(config),
        "head": config.vocab * width * (not config.tied) + config.vocab * config.head_bias,
    }


def _position_numbers(config: DecoderConfig) -> int:
    """Trained numbers of positions: a vector for each, or T5's number for each range of distances and head."""
    match config.positions:
        case choices.Learned():
            return config.context * config.width
        case choices.Relative(buckets=buckets):
            return buckets * config.heads
    return 0


def _norms(config: DecoderConfig) -> int:
    """Trained numbers of all norms: of the blocks, before the head, of the embedding, of queries and keys."""
    each = 2 if isinstance(config.norm, choices.LayerNorm) and config.norm.bias else 1
    of_head = 2 * config.layers * config.qk_norm
    return each * (_norms_of_width(config) * config.width + of_head * config.width_of_head)


def _norms_of_width(config: DecoderConfig) -> int:
    """How many norms there are over the features of a position."""
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


def flops_per_token(config: DecoderConfig, length: int | None = None) -> dict[str, int]:
    """Floating-point operations of one token's forward, by part; a multiplication and an addition count as two.

    Matrix products alone are counted. Scores and mixing are those of a token that looks at `length` keys (the context
    if not given, at most a block's window): 2·S·H·d each. A backward costs twice a forward, so a training step three times this per token.

    Source: Kaplan et al. 2020 §2.1 (arXiv:2001.08361).
    """
    length = config.context if length is None else length
    keys = sum(min(length, length if sight.window is None else sight.window) for sight in config.sights)
    matrices = 3 if isinstance(config.activation, choices.Gated) else 2
    mixed = config.heads * config.width_of_head
    return {
        "qkv": config.layers * 2 * config.width * _qkv(config),
        "scores": 2 * keys * mixed,
        "mixing": 2 * keys * mixed,
        "output": config.layers * 2 * mixed * config.width,
        "feedforward": config.layers * 2 * matrices * config.width * config.hidden,
        "head": 2 * config.width * config.vocab,
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


def training_memory(config: DecoderConfig, batch: int, *, bytes_each: int = 4) -> Memory:
    """Bytes that training needs: weights, gradients, AdamW's two means, and what a forward keeps for the backward.

    With the fused kernel a block keeps, per token, the input and the output of each norm, q, k, v, the mixed values, and
    the feed-forward around its activation: 4·D + (H + 2K)·d + H·d + 2·F numbers (and H for the softmax) with pre-norm
    and GELU. Turned or normalised q and k are kept beside v, and the mixed values then twice: (2H + K)·d more. A gate
    makes it 4·F; an RMSNorm keeps what it has normalised, too. Outside the blocks the input of the last norm and of the
    head, and the log-softmax of the logits, are kept. Dropout's masks, masks and biases of attention, and the (T,S)
    weights of the visible kernel, come on top.
    """
    total = sum(parameters(config).values()) * bytes_each
    each = config.layers * _kept_by_block(config) + 2 * config.width + config.vocab
    norms = _norms_of_width(config) if isinstance(config.norm, choices.RMSNorm) else 0
    each += norms * config.width
    return Memory(total, total, 2 * total, batch * config.context * each * bytes_each)


def _kept_by_block(config: DecoderConfig) -> int:
    """Numbers that a block keeps for the backward, per token; what an RMSNorm of the width keeps beside is not among them."""
    turned = config.qk_norm or any(isinstance(config.positions_of(s), choices.Rotary) for s in config.sights)
    heads, kv_heads, head_width = config.heads, config.key_value_heads, config.width_of_head
    match config.block:
        case choices.AroundNorm():
            stream = 6 * config.width
        case choices.Parallel():
            stream = 3 * config.width
        case _:
            stream = 4 * config.width
    hidden = {choices.ReLU: 1, choices.ReLUSquared: 3}.get(type(config.activation), 2)
    hidden = 4 if isinstance(config.activation, choices.Gated) else hidden
    beside = (2 * heads + kv_heads) * head_width * turned
    if config.qk_norm and isinstance(config.norm, choices.RMSNorm):
        beside += (heads + kv_heads) * head_width
    return stream + _qkv(config) + heads * head_width + beside + hidden * config.hidden + heads


def cache_elements(config: DecoderConfig, batch: int, keys: int) -> int:
    """Numbers in a KV cache: 2 · L · B · S · K · d, keys and values of every block.

    Source: transformer-notes §16.
    """
    return 2 * config.layers * batch * keys * config.key_value_heads * config.width_of_head


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


def generation_memory(config: DecoderConfig, *, bytes_each: int = 4) -> GenerationMemory:
    """Bytes that one text needs at a full context: weights, KV cache, and the widest tensors of its prefill."""
    widest = max(config.hidden, _qkv(config), config.vocab) + 2 * config.width
    return GenerationMemory(
        bytes_each * sum(parameters(config).values()),
        bytes_each * cache_elements(config, 1, config.context),
        bytes_each * config.context * widest,
    )


def _qkv(config: DecoderConfig) -> int:
    """Output features of the fused projection: H·d queries, K·d keys, K·d values."""
    return (config.heads + 2 * config.key_value_heads) * config.width_of_head

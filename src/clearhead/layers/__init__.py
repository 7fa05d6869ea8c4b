"""The parts: Modules built from numbers and Modules, never from a configuration."""

from clearhead.layers.attention import MultiHeadAttention
from clearhead.layers.block import ParallelBlock, PostNormBlock, SequentialBlock
from clearhead.layers.cross_block import PostNormCrossBlock, SequentialCrossBlock
from clearhead.layers.embedding import ScaledTokenEmbedding, TokenEmbedding
from clearhead.layers.encoder_heads import FeaturesHead, MaskedTokenHead, PoolingHead
from clearhead.layers.feedforward import FeedForward, GatedFeedForward
from clearhead.layers.look import Alibi, Look, RelativeBias, RotaryTurn, Seen, both_ways
from clearhead.layers.lora import LowRankLinear
from clearhead.layers.memory import CrossStore, Memory
from clearhead.layers.norm import LayerNorm, OffsetRMSNorm, RMSNorm
from clearhead.layers.positions import LearnedPositions, NoPositions, SinusoidalPositions
from clearhead.layers.segments import NoSegments, SegmentEmbedding
from clearhead.layers.sinks import SinkAttention
from clearhead.layers.store import NO_STORE, LayerStore, NoStore, Places, Store

__all__ = [
    "NO_STORE",
    "Alibi",
    "CrossStore",
    "FeaturesHead",
    "FeedForward",
    "GatedFeedForward",
    "LayerNorm",
    "LayerStore",
    "LearnedPositions",
    "Look",
    "LowRankLinear",
    "MaskedTokenHead",
    "Memory",
    "MultiHeadAttention",
    "NoPositions",
    "NoSegments",
    "NoStore",
    "OffsetRMSNorm",
    "ParallelBlock",
    "Places",
    "PoolingHead",
    "PostNormBlock",
    "PostNormCrossBlock",
    "RMSNorm",
    "RelativeBias",
    "RotaryTurn",
    "ScaledTokenEmbedding",
    "Seen",
    "SegmentEmbedding",
    "SequentialBlock",
    "SequentialCrossBlock",
    "SinkAttention",
    "SinusoidalPositions",
    "Store",
    "TokenEmbedding",
    "both_ways",
]

"""The parts: Modules built from numbers and Modules, never from a configuration."""

from clearhead.layers.attention import MultiHeadAttention
from clearhead.layers.block import ParallelBlock, PostNormBlock, SequentialBlock
from clearhead.layers.embedding import ScaledTokenEmbedding, TokenEmbedding
from clearhead.layers.feedforward import FeedForward, GatedFeedForward
from clearhead.layers.look import Alibi, Look, RotaryTurn, Seen
from clearhead.layers.norm import LayerNorm, OffsetRMSNorm, RMSNorm
from clearhead.layers.positions import LearnedPositions, NoPositions, SinusoidalPositions
from clearhead.layers.sinks import SinkAttention
from clearhead.layers.store import NO_STORE, LayerStore, NoStore, Places, Store

__all__ = [
    "NO_STORE",
    "Alibi",
    "FeedForward",
    "GatedFeedForward",
    "LayerNorm",
    "LayerStore",
    "LearnedPositions",
    "Look",
    "MultiHeadAttention",
    "NoPositions",
    "NoStore",
    "OffsetRMSNorm",
    "ParallelBlock",
    "Places",
    "PostNormBlock",
    "RMSNorm",
    "RotaryTurn",
    "ScaledTokenEmbedding",
    "Seen",
    "SequentialBlock",
    "SinkAttention",
    "SinusoidalPositions",
    "Store",
    "TokenEmbedding",
]

"""The parts: Modules built from numbers and Modules, never from a configuration."""

from clearhead.layers.attention import MultiHeadAttention
from clearhead.layers.block import PreNormBlock
from clearhead.layers.embedding import LearnedPositions, TokenEmbedding
from clearhead.layers.feedforward import FeedForward
from clearhead.layers.norm import LayerNorm

__all__ = ["FeedForward", "LayerNorm", "LearnedPositions", "MultiHeadAttention", "PreNormBlock", "TokenEmbedding"]

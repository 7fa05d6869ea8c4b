"""Any model that may be written, for hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from clearhead.models import choices as kinds
from clearhead.models.config import DecoderConfig, Sight, StackConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig

SIZE = st.integers(1, 6)
POSITIVE = st.floats(1e-12, 1e6)
ABOVE_1, BELOW_1 = st.floats(1.001, 1e6), st.floats(1e-6, 1.0)
NORMS = st.builds(kinds.LayerNorm, eps=POSITIVE, bias=st.booleans()) | st.builds(
    kinds.RMSNorm, eps=POSITIVE, offset=st.booleans()
)
PLAIN = [kinds.ReLU(), kinds.ReLUSquared(), kinds.GELU(), kinds.GELUTanh()]
GATED = [kinds.SwiGLU(), kinds.GEGLU(), kinds.GEGLUTanh()]
ACTIVATIONS = st.sampled_from([*PLAIN, *GATED])
KERNELS = st.sampled_from([kinds.Auto(), kinds.Visible(), kinds.Fused()]) | st.builds(kinds.Blockwise, block=SIZE)
BLOCKS = st.sampled_from([kinds.PreNorm(), kinds.PostNorm(), kinds.AroundNorm()]) | st.builds(
    kinds.Parallel, shared=st.booleans()
)
SCALINGS = (
    st.just(kinds.Unscaled())
    | st.builds(kinds.Linear, factor=POSITIVE)
    | st.builds(kinds.YaRN, factor=POSITIVE, original_context=SIZE, fast=ABOVE_1, slow=BELOW_1)
    | st.builds(kinds.Llama3, factor=POSITIVE, low=BELOW_1, high=ABOVE_1, original_context=SIZE)
)
ROTARY = st.builds(kinds.Rotary, theta=ABOVE_1, fraction=st.floats(0.3, 1), interleaved=st.booleans(), scaling=SCALINGS)
POSITIONS = (
    st.sampled_from([kinds.NoPositions(), kinds.Learned(), kinds.ALiBi()])
    | st.builds(kinds.Sinusoidal, base=POSITIVE, halves=st.booleans())
    | st.builds(kinds.Relative, buckets=st.sampled_from([4, 8, 32]), farthest=st.integers(17, 200))
    | ROTARY
)
SIGHTS = st.builds(Sight, window=st.none() | SIZE, positions=st.none() | ROTARY | st.just(kinds.NoPositions()))
WINDOWS = st.builds(Sight, window=st.none() | SIZE)


SWITCHES = ("qk_norm", "scale_embedding", "scale_head", "embedding_norm", "tied", "qkv_bias", "bias", "head_bias")
POOLINGS = st.sampled_from([kinds.First(), kinds.Mean(), kinds.Max()])
HEADS = st.sampled_from([kinds.Features(), kinds.MaskedToken()]) | st.builds(
    kinds.Pooled, pooling=POOLINGS, dense=st.booleans(), unit=st.booleans()
)


@st.composite
def shared(draw: st.DrawFn) -> dict[str, Any]:
    """The fields that every stack has; what does not go together is not drawn together."""
    kv_heads, group, head_width = draw(SIZE), draw(SIZE), draw(st.sampled_from([8, 10]))
    given_width, kernel = draw(st.booleans()), draw(KERNELS)
    twist = draw(st.sampled_from(["nothing", "cap", "sinks"])) if not isinstance(kernel, kinds.Fused) else "nothing"
    even = st.integers(1, 499).map(lambda half: 2 * half)
    return {
        "vocab": draw(st.integers(1, 10**6)),
        "layers": draw(SIZE),
        "heads": kv_heads * group,
        "kv_heads": draw(st.sampled_from([kv_heads, None])),
        "width": draw(even) if given_width else kv_heads * group * head_width,
        "head_width": head_width if given_width else None,
        "feedforward_width": draw(st.none() | SIZE),
        "context": draw(SIZE),
        "dropout": draw(st.floats(0, 1, exclude_max=True)),
        "activation": draw(ACTIVATIONS),
        "norm": draw(NORMS),
        "block": draw(BLOCKS),
        "positions": draw(POSITIONS),
        "kernel": kernel,
        "attention_scale": draw(st.none() | POSITIVE),
        "softcap": draw(POSITIVE) if twist == "cap" else None,
        "sinks": twist == "sinks",
        "output_bias": draw(st.none() | st.booleans()),
        **{name: draw(st.booleans()) for name in SWITCHES},
    }


@st.composite
def decoders(draw: st.DrawFn) -> DecoderConfig:
    """Any decoder."""
    fields = draw(shared())
    sights = SIGHTS if isinstance(fields["positions"], kinds.Rotary) else WINDOWS
    cycle = tuple(draw(st.lists(sights, max_size=3)))
    return DecoderConfig(**fields, cycle=cycle, window=draw(st.none() | SIZE) if cycle == () else None)


@st.composite
def encoders(draw: st.DrawFn) -> EncoderConfig:
    """Any encoder; logits alone may have a bias."""
    fields, head = draw(shared()), draw(HEADS)
    fields["head_bias"] &= isinstance(head, kinds.MaskedToken)
    return EncoderConfig(**fields, segments=draw(st.integers(0, 3)), head=head)


@st.composite
def encoder_decoders(draw: st.DrawFn) -> EncoderDecoderConfig:
    """Any encoder-decoder; cross-attention has no place in a parallel block."""
    fields = draw(shared().filter(lambda drawn: not isinstance(drawn["block"], kinds.Parallel)))
    given = {name: draw(st.none() | SIZE) for name in ("encoder_layers", "source_context", "source_vocab")}
    return EncoderDecoderConfig(**fields, **given)


def models() -> st.SearchStrategy[StackConfig]:
    """Any model of any kind."""
    return decoders() | encoders() | encoder_decoders()

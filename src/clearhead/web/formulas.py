"""The formula of each tensor of a forward, as text: for every model in one table, and as a model's own choices make it.

The letters are those of the notes: x is what a block reads, u the stream after attention (w after cross-attention), z what the block
gives; N is the norm, φ the activation, h a head, t a query, s a key. Words stand in braces, for the page to put in the language that is
read: {normal} is what its texts call `formula.normal`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from clearhead.models import choices
from clearhead.models.choices_positions import ALiBi, Learned, Positions, Relative, Rotary, Sinusoidal
from clearhead.models.config import DecoderConfig, StackConfig
from clearhead.models.config_encoders import EncoderConfig

FORMULAS: dict[str, str] = {
    "embedding": "E[id]",
    "segments": "G[segment]",
    "positions": "P[t]",
    "input": "x = E[id] + P[t]",
    "blocks.*.attention_norm": "n = N(x)",
    "blocks.*.attention.q": "q = n W_Q",
    "blocks.*.attention.k": "k = n W_K",
    "blocks.*.attention.v": "v = n W_V",
    "blocks.*.attention.scores": "scores = q kᵀ / √d",
    "blocks.*.attention.weights": "weights = softmax(scores + mask)",
    "blocks.*.attention.mixed": "mixed = weights v",
    "blocks.*.attention.output": "a = [mixed₁ … mixed_H] W_O",
    "blocks.*.middle": "u = x + a",
    "blocks.*.cross_attention_norm": "n = N(u)",
    "blocks.*.cross_attention.q": "q = n W_Q",
    "blocks.*.cross_attention.k": "k = m W_K, m {features}",
    "blocks.*.cross_attention.v": "v = m W_V, m {features}",
    "blocks.*.cross_attention.scores": "scores = q kᵀ / √d",
    "blocks.*.cross_attention.weights": "weights = softmax(scores)",
    "blocks.*.cross_attention.mixed": "mixed = weights v",
    "blocks.*.cross_attention.output": "c = [mixed₁ … mixed_H] W_O",
    "blocks.*.crossed": "w = u + c",
    "blocks.*.feedforward_norm": "n = N(u)",
    "blocks.*.feedforward.gate": "gate = n W_g",
    "blocks.*.feedforward.up": "up = n W₁",
    "blocks.*.feedforward.hidden": "hidden = φ(up)",
    "blocks.*.feedforward.output": "f = hidden W₂",
    "blocks.*.output": "z = u + f",
    "norm": "y = N(z)",
    "logits": "logits = y W_V",
    "head.transformed": "N(φ(y W))",
    "head.logits": "logits = N(φ(y W)) W_V",
    "head.pooled": "p = pool(y)",
    "head.output": "p",
}
"""Name -> formula of the plainest model, keyed as `tracing.names.NAMES`."""

_ACTIVATIONS: dict[type[choices.Activation], str] = {
    choices.ReLU: "φ(x) = max(0, x)",
    choices.ReLUSquared: "φ(x) = max(0, x)²",
    choices.GELU: "φ(x) = x Φ(x), Φ {normal}",
    choices.GELUTanh: "φ(x) = x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))",
    choices.SwiGLU: "φ(x) = x / (1 + e⁻ˣ)",
    choices.GEGLU: "φ(x) = x Φ(x), Φ {normal}",
    choices.GEGLUTanh: "φ(x) = x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))",
}

_POOLS: dict[type[choices.Pooling], str] = {
    choices.First: "p = y[0]",
    choices.Mean: "p = {mean} y[t]",
    choices.Max: "p = {largest} y[t]",
}


def row_of(name: str) -> str:
    """The key of a tensor in the tables: "decoder.blocks.3.attention.q" -> "blocks.*.attention.q"."""
    return re.sub(r"^blocks\.\d+\.", "blocks.*.", re.sub(r"^(encoder|decoder)\.", "", name))


def formula(name: str, config: StackConfig) -> str:
    """How the tensor is computed in a model of this configuration; "" for one that no table knows.

    Args:
        name: of the tensor.
        config: of the stack that it belongs to: of the encoder for "encoder.*".
    """
    row = row_of(name)
    if row not in FORMULAS:
        return ""
    found = re.match(r"(?:\w+\.)?blocks\.(\d+)\.", name)
    inside = config.positions_of(config.sights[int(found[1])]) if found else config.positions
    own = _OWN.get(row.rpartition(".")[2] if "attention." in row else row)
    return FORMULAS[row] if own is None else own(_Of(row, config, inside, "w" if name.startswith("decoder.") else "u"))


class _Of(NamedTuple):
    """A tensor, and what its formula depends on."""

    row: str
    config: StackConfig
    inside: Positions
    """How its block knows order inside attention."""
    stream: str
    """What the feed-forward's residual starts from: what attention made, or cross-attention after it."""


Own = Callable[[_Of], str]


def _embedding(of: _Of) -> str:
    return "√D · E[id]" if of.config.scale_embedding else FORMULAS[of.row]


def _positions(of: _Of) -> str:
    if not isinstance(of.config.positions, Sinusoidal):
        return "P[t], {row}"
    base = f"{of.config.positions.base:g}"
    if of.config.positions.halves:
        return f"P[t] = [sin(t / {base}^(2i/D)), cos(t / {base}^(2i/D))], {{sines}}"
    return f"P[t, 2i] = sin(t / {base}^(2i/D)), P[t, 2i+1] = cos(t / {base}^(2i/D))"


def _input(of: _Of) -> str:
    terms = [_embedding(of._replace(row="embedding"))]
    terms += ["P[t]"] if isinstance(of.config.positions, Learned | Sinusoidal) else []
    terms += ["G[segment]"] if isinstance(of.config, EncoderConfig) and of.config.segments else []
    total = " + ".join(terms)
    return f"x = N({total}); {_norm(of.config)}" if of.config.embedding_norm else f"x = {total}"


def _normed(of: _Of) -> str:
    what = {"feedforward_norm": _before_feedforward(of), "norm": "z"}.get(of.row.rpartition(".")[2])
    what = ("u" if "cross" in of.row else "x") if what is None else what
    if of.row != "norm":
        return f"n = N({what}); {_norm(of.config)}"
    if isinstance(of.config.block, choices.PostNorm):
        return "y = z / √D" if of.config.scale_head else "y = z"
    return f"y = N(z){' / √D' if of.config.scale_head else ''}; {_norm(of.config)}"


def _projected(of: _Of) -> str:
    letter = of.row[-1]
    made = f"{_read(of)} W_{letter.upper()}" + f" + b_{letter.upper()}" * of.config.qkv_bias
    if of.config.qk_norm and letter != "v":
        made = f"N({made})"
    if isinstance(of.inside, Rotary) and letter != "v" and "cross" not in of.row:
        made = f"R(t) ({made}), R(t) {{turns}} t θᵢ"
    beside = ", m {features}" if "cross" in of.row and letter != "q" else ""
    return f"{letter} = {made}{beside}"


def _scores(of: _Of) -> str:
    scale = "/ √d" if of.config.attention_scale is None else f"· {of.config.attention_scale:g}"
    made = f"q kᵀ {scale}"
    if of.config.softcap is not None:
        made = f"c · tanh({made} / c), c = {of.config.softcap:g}"
    if "cross" in of.row:
        return f"scores = {made}"
    match of.inside:
        case ALiBi():
            made += " − m_h · |t − s|"
        case Relative():
            made += " + r_h[bucket(s − t)]"
    return f"scores = {made}"


def _weights(of: _Of) -> str:
    masked = isinstance(of.config, DecoderConfig) and "cross" not in of.row
    made = "exp(scores) / (Σ exp(scores) + exp(sink_h))" if of.config.sinks else "softmax(scores)"
    return f"weights = {made}" + (", scores = −∞ {hidden}" if masked else "")


def _mixed(of: _Of) -> str:
    return "mixed[t] = Σₛ weights[t, s] v[s]"


def _attended(of: _Of) -> str:
    letter = "c" if "cross" in of.row else "a"
    return f"{letter} = [mixed₁ … mixed_H] W_O" + " + b_O" * of.config.mixing_bias


def _middle(of: _Of) -> str:
    return f"u = {_summed('x', 'a', of.config)}"


def _crossed(of: _Of) -> str:
    return f"w = {_summed('u', 'c', of.config)}"


def _output(of: _Of) -> str:
    if isinstance(of.config.block, choices.Parallel):
        return "z = x + a + f"
    return f"z = {_summed(of.stream, 'f', of.config)}"


def _up(of: _Of) -> str:
    name, weight = ("gate", "W_g") if of.row.endswith("gate") else ("up", "W₁")
    read = of.stream if isinstance(of.config.block, choices.PostNorm) else "n"
    return f"{name} = {read} {weight}" + (" + b_g" if name == "gate" else " + b₁") * of.config.bias


def _hidden(of: _Of) -> str:
    made = "φ(gate) ⊙ up" if isinstance(of.config.activation, choices.Gated) else "φ(up)"
    return f"hidden = {made}; {_ACTIVATIONS[type(of.config.activation)]}"


def _down(of: _Of) -> str:
    return "f = hidden W₂" + " + b₂" * of.config.bias


def _logits(of: _Of) -> str:
    weight = "Eᵀ" if of.config.tied else "W_V"
    return f"logits = {'N(φ(y W + b))' if of.row.startswith('head') else 'y'} {weight}" + " + b_V" * of.config.head_bias


def _transformed(of: _Of) -> str:
    return f"N(φ(y W + b)); {_ACTIVATIONS[type(of.config.activation)]}; {_norm(of.config)}"


def _pooled(of: _Of) -> str:
    head = of.config.head if isinstance(of.config, EncoderConfig) else None
    return _POOLS[type(head.pooling)] if isinstance(head, choices.Pooled) else FORMULAS[of.row]


def _vector(of: _Of) -> str:
    head = of.config.head if isinstance(of.config, EncoderConfig) else None
    if not isinstance(head, choices.Pooled):
        return FORMULAS[of.row]
    made = "tanh(p W + b)" if head.dense else "p"
    return f"o / |o|, o = {made}" if head.unit else made


_OWN: dict[str, Own] = {
    "embedding": _embedding,
    "positions": _positions,
    "input": _input,
    **dict.fromkeys(("blocks.*.attention_norm", "blocks.*.cross_attention_norm", "blocks.*.feedforward_norm"), _normed),
    "norm": _normed,
    **dict.fromkeys(("q", "k", "v"), _projected),
    "scores": _scores,
    "weights": _weights,
    "mixed": _mixed,
    "output": _attended,
    "blocks.*.middle": _middle,
    "blocks.*.crossed": _crossed,
    "blocks.*.feedforward.gate": _up,
    "blocks.*.feedforward.up": _up,
    "blocks.*.feedforward.hidden": _hidden,
    "blocks.*.feedforward.output": _down,
    "blocks.*.output": _output,
    "logits": _logits,
    "head.transformed": _transformed,
    "head.logits": _logits,
    "head.pooled": _pooled,
    "head.output": _vector,
}
"""What a model's choices change. Inside attention the key is the last word, for self- and cross-attention are one layer."""


def _norm(config: StackConfig) -> str:
    match config.norm:
        case choices.LayerNorm(bias=bias):
            return "N(x) = γ (x − μ) / √(σ² + ε)" + " + β" * bias
        case choices.RMSNorm(offset=offset):
            return f"N(x) = {'(1 + γ)' if offset else 'γ'} x / √(mean(x²) + ε)"
    return "N {norm}"


def _before_feedforward(of: _Of) -> str:
    return "x" if isinstance(of.config.block, choices.Parallel) else of.stream


def _read(of: _Of) -> str:
    """What an attention's projection reads."""
    if "cross" in of.row and of.row[-1] != "q":
        return "m"
    if isinstance(of.config.block, choices.PostNorm):
        return "u" if "cross" in of.row else "x"
    return "n"


def _summed(stream: str, branch: str, config: StackConfig) -> str:
    match config.block:
        case choices.PostNorm():
            return f"N({stream} + {branch}); {_norm(config)}"
        case choices.AroundNorm():
            return f"{stream} + N({branch}); {_norm(config)}"
    return f"{stream} + {branch}"

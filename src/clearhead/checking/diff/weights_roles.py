"""What a tensor is for, read off its name: the names of the usual libraries, papers and courses."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

WRAPPERS = re.compile(r"^(module|_orig_mod|model|transformer|base_model|net|network|gpt_neox|bert|backbone|self)\.")
"""What wrapping a model puts before its names."""

PREFIXES = re.compile(r"^(module|_orig_mod|model|transformer)\.")
"""Those that change no name's meaning."""


class Role(NamedTuple):
    """What a tensor is for.

    Args:
        stack: "encoder" or "decoder" where a model has both.
        numbers: of its block, and what further numbers there are.
        part: "qkv", "q", "attention.output", "up", "norm.attention" ...
        kind: "weight" or "bias".
    """

    stack: str
    numbers: tuple[int, ...]
    part: str
    kind: str


_Q = r"(w_?q|q|queries|query|q_?(proj|lin|linear|layer|weight|net)|query_?(proj|projection|layer|linear|weight)|(w|to|lin|linear|proj|fc|c|in)_?(q|query|queries))"
_NORM = r"(layer_?norm|layernorm|rms_?norm|norm|ln)"

_ANYWHERE = [
    ("norm.q", rf"(q_?{_NORM}|{_NORM}_?q|query_{_NORM})"),
    ("norm.k", rf"(k_?{_NORM}|{_NORM}_?k|key_{_NORM})"),
    ("norm.cross", rf"(cross_?att(entio)?n_{_NORM}|encoder_attn_layer_norm)"),
    ("norm.attention", rf"(input_layernorm|(pre_?|self_)?(att(entio)?n|sa)_?{_NORM}|{_NORM}_?att(entio)?n|self_attn_layer_norm)"),
    ("norm.feedforward", rf"(post_attention_layernorm|(pre_?)?(ffn?|feed_?forward|mlp|ffwd)_?{_NORM}|{_NORM}_?(ffn?|mlp))"),
    ("norm.1", rf"{_NORM}_?1"),
    ("norm.2", rf"{_NORM}_?2"),
    ("norm.3", rf"{_NORM}_?3"),
    ("norm", rf"({_NORM}(_?(f|final|out))?|(final|last|output)_?{_NORM}|emb_ln)"),
    ("qkv", r"(w?_?qkv(_?proj)?|(attn_|to_|w_?|in_)?qkv|c_attn|query_key_value|in_proj|kqv)"),
    ("kv", r"((to_|w_?|c_)?kv(_?proj)?|key_value)"),
    ("q", _Q),
    ("k", _Q.replace("queries", "keys").replace("query", "key").replace("q", "k")),
    ("v", _Q.replace("queries", "values").replace("query", "value").replace("q", "v")),
    ("gate_up", r"(gate_up(_proj)?|w12|gate_and_up)"),
    ("gate", r"(gate(_proj)?|w_?gate|fc_gate|linear_gate|wi_0)"),
    ("up", r"(up(_proj)?|w_?up|c_fc|fc_?(1|in)|lin(ear)?_?1|dense_h_to_4h|wi|wi_1|expand)"),
    ("down", r"(down(_proj)?|w_?down|fc_?(2|out)|lin(ear)?_?2|dense_4h_to_h|contract)"),
    ("positions", r"(wpe|pos(ition)?(s|al)?(_?(emb\w*|enc\w*|table))?(\.(table|weight))?|embed_positions|position_embedding_table)"),
    ("types", r"(token_type_embeddings?|segment_emb\w*|types)"),
    ("embedding", r"(wte|embed_tokens|tok(en)?s?_?emb\w*|word_?emb\w*|embed(ding)?s?|embed_in|emb|shared|input_emb\w*)"),
]  # fmt: skip

_ATTENTION = [("attention.output", r"(w_?o|o|out|output|proj|dense|projection|(o|out|c|output)_?proj(ection)?|to_out|out_lin|unify(_?heads)?|fc|fc_out|(lin|linear|fc)_?o(ut)?|output\.dense)")]  # fmt: skip

_FEED = [
    ("up", r"(w_?in|dense|in_proj|input|intermediate)"),
    ("down", r"(w_?out|c_proj|proj|out_proj|output|out|wo)"),
    ("w1", r"w_?1"),
    ("w2", r"w_?2"),
    ("w3", r"w_?3"),
]

_ALONE = [("head", r"(lm_head|head|embed_out|unembed(ding)?|to_logits|logits|classifier|out|output|out_head|decoder|generator|fc_out|vocab_proj|predictions)")]  # fmt: skip


def plain_name(name: str) -> str:
    """A name without what wrapping puts before it: "module.", "_orig_mod.", "model.", "transformer."."""
    while PREFIXES.match(name):
        name = PREFIXES.sub("", name, count=1)
    return name


def bare_name(name: str) -> str:
    """A name without any word that only says which model it is of: those, "gpt_neox.", "bert.", "backbone."."""
    while WRAPPERS.match(name):
        name = WRAPPERS.sub("", name, count=1)
    return name


def roles(names: Collection[str]) -> dict[str, Role]:
    """What the tensors with these names are for, by name; those whose names say nothing are left out.

    Args:
        names: of all tensors of a model.
    """
    both = all(any(f"{word}." in name for name in names) for word in ("encoder", "decoder"))
    found = {name: role for name in names if (role := _role(name, both)) is not None}
    # Llama's first code: w1 is the gate where there is a w3.
    gated = any(role.part == "w3" for role in found.values())
    meant = {"w1": "gate" if gated else "up", "w2": "down", "w3": "up"}
    numbered = {"norm.1": "norm.attention", "norm.2": "norm.feedforward"}
    if any(role.part == "norm.3" for role in found.values()):
        numbered = {"norm.1": "norm.attention", "norm.2": "norm.cross", "norm.3": "norm.feedforward"}
    meant |= numbered
    return {name: role._replace(part=meant.get(role.part, role.part)) for name, role in found.items()}


def _role(name: str, both: bool) -> Role | None:
    path, kind = _kind(bare_name(name))
    words, numbers = [], []
    for word in path.lower().split("."):
        counted = re.fullmatch(r"(?:(?:block|layer|h|l)_?)?(\d+)", word)
        if counted:
            numbers.append(int(counted[1]))
        else:
            words.append(word)
    if not words:
        return None
    stack = next((word for word in words if word in ("encoder", "decoder")), "") if both else ""
    part = _part(words, bool(numbers))
    if part is None:
        return None
    return Role(stack, tuple(numbers), part, kind)


def _kind(path: str) -> tuple[str, str]:
    """The path without its last word, if that only tells weight from bias."""
    for pattern, kind in (
        (r"[._](weight|gamma|table)$|^(weight|gamma)$", "weight"),
        (r"[._](bias|beta)$|^(bias|beta)$", "bias"),
    ):
        if re.search(pattern, path):
            return re.sub(pattern, "", path), kind
    # A bias that is named after its matrix: b_Q beside W_Q.
    leaf = re.search(r"(^|\.)b_(\w+)$", path)
    return (f"{path[: leaf.start()]}{leaf[1]}w_{leaf[2]}", "bias") if leaf else (path, "weight")


def _part(words: list[str], numbered: bool) -> str | None:
    """What the words of a name say; the last ones weigh most."""
    whole, leaf, last = ".".join(words), words[-1], ".".join(words[-2:])
    feed = re.search(r"mlp|ffn?\b|ffwd|feed_?forward|intermediate|\bff|boom", whole) is not None
    attention = re.search(r"att(entio)?n|\bsa\b|mha|\bself\b", whole) is not None
    cross = re.search(r"cross|encoder_attn|encdec|multihead_attn", whole) is not None
    for part, pattern in [*(_FEED if feed and not attention else []), *(_ATTENTION if attention else []), *_ANYWHERE]:
        if re.fullmatch(pattern, leaf) or re.fullmatch(pattern, last):
            if part == "norm" and numbered and (attention or last == "output.layernorm"):
                return "norm.attention" if attention else "norm.feedforward"
            return f"cross.{part}" if cross and not part.startswith("norm") else part
    if not numbered and not attention:
        return next((part for part, pattern in _ALONE if re.fullmatch(pattern, leaf)), None)
    return "down" if last == "output.dense" else None

"""TransformerLens' names of the same tensors, so that a notebook ports.

Theirs have the heads behind the positions, (batch, pos, head, d_head); ours before them, (B,H,T,d). Scores and weights have the same
axes in both.

Where a name of theirs means something a little different: their scores stand behind the mask, with -∞ in them, ours before it; what
their RMSNorm shows is before its gain, ours is what the norm gives; in a gated feed-forward part their `hook_pre` is our `gate`, and
their `hook_pre_linear` our `up`.

Source: TransformerLens' documentation of its activation names (Nanda and Bloom 2022).
"""

from __future__ import annotations

ALIASES: dict[str, str] = {
    "hook_embed": "embedding",
    "hook_pos_embed": "positions",
    "blocks.*.ln1.hook_normalized": "blocks.*.attention_norm",
    "blocks.*.attn.hook_q": "blocks.*.attention.q",
    "blocks.*.attn.hook_k": "blocks.*.attention.k",
    "blocks.*.attn.hook_v": "blocks.*.attention.v",
    "blocks.*.attn.hook_attn_scores": "blocks.*.attention.scores",
    "blocks.*.attn.hook_pattern": "blocks.*.attention.weights",
    "blocks.*.attn.hook_z": "blocks.*.attention.mixed",
    "blocks.*.hook_attn_out": "blocks.*.attention.output",
    "blocks.*.hook_resid_mid": "blocks.*.middle",
    "blocks.*.ln2.hook_normalized": "blocks.*.feedforward_norm",
    "blocks.*.mlp.hook_pre": "blocks.*.feedforward.up",
    "blocks.*.mlp.hook_pre_linear": "blocks.*.feedforward.up",
    "blocks.*.mlp.hook_post": "blocks.*.feedforward.hidden",
    "blocks.*.hook_mlp_out": "blocks.*.feedforward.output",
    "blocks.*.hook_resid_post": "blocks.*.output",
    "ln_final.hook_normalized": "norm",
}
"""Theirs -> ours; `*` stands for the number of a block. Their `hook_rot_q` and `hook_rot_k` are our `q` and `k`, which are turned
already; `blocks.0.hook_resid_pre` is our `input`, and that of a later block the `output` of the block before."""

_ROTATED = {"blocks.*.attn.hook_rot_q": "blocks.*.attention.q", "blocks.*.attn.hook_rot_k": "blocks.*.attention.k"}


def own_pattern(pattern: str) -> str:
    """The pattern in our names: `blocks.3.attn.hook_pattern` -> `blocks.3.attention.weights`; ours stay as they are."""
    if "hook_" not in pattern:
        return pattern
    head, middle, rest = _split(pattern)
    if rest == "hook_resid_pre":
        return "input" if middle in ("", "0") else f"blocks.{int(middle) - 1}.output" if middle.isdecimal() else pattern
    theirs = f"blocks.*.{rest}" if head else rest
    ours = {**ALIASES, **_ROTATED}.get(theirs, pattern)
    return ours.replace("*", middle, 1) if head else ours


def _split(pattern: str) -> tuple[str, str, str]:
    """`blocks.3.attn.hook_q` -> ("blocks", "3", "attn.hook_q"); a name outside the blocks has two empty parts."""
    if not pattern.startswith("blocks."):
        return "", "", pattern
    head, middle, rest = [*pattern.split(".", 2), ""][:3]
    return head, middle, rest

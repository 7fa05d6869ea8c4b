"""curated-transformers: attention, norms, positions, and the models built of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.checking.public.subject import Subject

PACKAGE = "curated-transformers"
D, H, V = 32, 4, 61


def _attention(kv_heads: int = H, mode: str = "SEPARATE", **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        from curated_transformers.layers import attention  # noqa: PLC0415
        from curated_transformers.layers.embeddings import QueryKeyRotaryEmbeddings  # noqa: PLC0415

        heads = attention.AttentionHeads.key_value_broadcast(
            n_query_heads=H, n_key_value_heads=kv_heads, qkv_split=attention.QkvSplitGroupedByKVHeads()
        )
        biases = None
        if options.get("alibi"):
            biases = attention.AttentionLinearBiases(n_attention_heads=H, is_causal=True, is_inverted=False)
        rotary = QueryKeyRotaryEmbeddings(fraction=options["rotary"], head_width=8) if "rotary" in options else None
        return attention.SelfAttention(
            attention_heads=heads,
            attention_scorer=attention.ScaledDotProductAttention(dropout_prob=0.1, linear_biases=biases),
            hidden_width=D,
            qkv_mode=attention.QkvMode[mode],
            rotary_embeds=rotary,
            use_bias=True,
        )

    return make


def _all_seen(module: Any, ids: Any) -> Any:
    """With the mask that the package's own class holds; it hides nothing."""
    import torch  # noqa: PLC0415
    from curated_transformers.layers.attention import AttentionMask  # noqa: PLC0415

    found = module(ids, AttentionMask(torch.ones(ids.shape[:2], dtype=torch.bool)))
    if isinstance(found, tuple):
        return found[0]
    return found.logits if hasattr(found, "logits") else found.last_hidden_layer_state


def _causal(module: Any, x: Any) -> Any:
    import torch  # noqa: PLC0415
    from curated_transformers.layers.attention import AttentionMask  # noqa: PLC0415

    return module(x, AttentionMask(torch.ones(x.shape[:2], dtype=torch.bool)), use_causal_mask=True)[0]


def _norm() -> Any:
    from curated_transformers.layers.normalization import RMSNorm  # noqa: PLC0415

    return RMSNorm(D, eps=1e-6)


def _sinusoids(normalize: bool) -> Callable[[], Any]:
    def make() -> Any:
        from curated_transformers.layers.embeddings import SinusoidalPositionalEmbedding  # noqa: PLC0415

        return SinusoidalPositionalEmbedding(width=D, max_len=64, normalize=normalize)

    return make


def _rotary() -> Any:
    from curated_transformers.layers.embeddings import RotaryEmbeddings  # noqa: PLC0415

    return RotaryEmbeddings(8)


SIZES = {"hidden_width": D, "n_hidden_layers": 2, "n_pieces": V}


def _model(name: str, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        import torch  # noqa: PLC0415
        from curated_transformers import models  # noqa: PLC0415

        base = name.removesuffix("CausalLM").removesuffix("Encoder")
        config = getattr(models, f"{base}Config")(**SIZES, **options)
        return getattr(models, name)(config, device=torch.device("cpu"))

    return make


def _lm(name: str, **options: Any) -> Subject:
    return Subject(PACKAGE, name, _model(name, **options), "lm", {"vocab": V, "call": _all_seen})


SUBJECTS: list[Subject] = [
    Subject(PACKAGE, "SelfAttention", _attention(), "attention", {"call": _all_seen}),
    Subject(PACKAGE, "SelfAttention, causal", _attention(), "attention", {"call": _causal, "causal": True}),
    Subject(PACKAGE, "SelfAttention, grouped", _attention(2), "attention", {"call": _all_seen, "kv_heads": 2}),
    Subject(
        PACKAGE,
        "SelfAttention, grouped, merged",
        _attention(2, "MERGED_SPLIT_AFTER"),
        "attention",
        {"call": _all_seen, "kv_heads": 2},
    ),
    Subject(PACKAGE, "SelfAttention, merged", _attention(mode="MERGED_SPLIT_BEFORE"), "attention", {"call": _all_seen}),
    Subject(PACKAGE, "SelfAttention, rotary", _attention(rotary=1.0), "attention", {"call": _all_seen}),
    Subject(PACKAGE, "SelfAttention, half rotary", _attention(rotary=0.5), "attention", {"call": _all_seen}),
    Subject(
        PACKAGE,
        "SelfAttention, ALiBi",
        _attention(alibi=True),
        "attention",
        {"call": _causal, "causal": True},
        blind={"scale.missing": "scores beside a bias may go without a scale, as in T5"},
    ),
    Subject(PACKAGE, "RMSNorm", _norm, "norm"),
    Subject(PACKAGE, "SinusoidalPositionalEmbedding", _sinusoids(False), "positions"),
    Subject(PACKAGE, "SinusoidalPositionalEmbedding, normalize", _sinusoids(True), "positions"),
    Subject(PACKAGE, "RotaryEmbeddings", _rotary, "rotary"),
    _lm("LlamaCausalLM", intermediate_width=48, n_query_heads=H, n_key_value_heads=2, rotary_embedding_fraction=1.0),
    _lm("GPTNeoXCausalLM", intermediate_width=48, n_attention_heads=H),
    _lm("MPTCausalLM", n_attention_heads=H, model_max_length=64),
    _lm("FalconCausalLM", n_query_heads=H, n_key_value_heads=1),
    Subject(
        PACKAGE,
        "BERTEncoder",
        _model("BERTEncoder", intermediate_width=48, n_attention_heads=H),
        "encoder",
        {"vocab": V, "call": _all_seen},
    ),
]

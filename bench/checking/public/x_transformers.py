"""x-transformers: attention, layers and models, with their many options."""

from __future__ import annotations

from typing import Any

from bench.checking.public.making import given, later
from bench.checking.public.subject import Subject

D, H, E, VOCAB, CONTEXT = 24, 3, 8, 61, 96
X = "x_transformers.x_transformers:"


def _attention(name: str, **values: Any) -> Subject:
    make = later(f"{X}Attention", D, dim_head=E, heads=values.pop("heads", H), **values)
    confirmed = ("heads.kv-tiled",) if "kv_heads" in values else ()
    if "orthog_projected_values" in values:
        confirmed = ("causal.future-leak", "mask.ignored")
    return Subject("x-transformers", f"Attention, {name}", make, "attention", confirmed=confirmed)


def _layers(name: str, kind: str = "Decoder", **values: Any) -> Subject:
    make = later(f"{X}{kind}", dim=D, depth=2, heads=H, attn_dim_head=E, verbose=False, **values)
    confirmed = ("mask.ignored",) if "shift_tokens" in values else ()
    return Subject("x-transformers", f"{kind}, {name}", make, "encoder", confirmed=confirmed)


def _model(name: str, layers: str = "Decoder", wrapper: dict[str, Any] | None = None, **values: Any) -> Subject:
    inner = later(f"{X}{layers}", dim=D, depth=2, heads=H, attn_dim_head=E, verbose=False, **values)
    make = later(f"{X}TransformerWrapper", num_tokens=VOCAB, max_seq_len=CONTEXT, attn_layers=inner, **(wrapper or {}))
    kind = "lm" if layers == "Decoder" else "encoder"
    return Subject("x-transformers", f"TransformerWrapper, {layers}, {name}", make, kind, {"vocab": VOCAB})


def _part(name: str, kind: str, *positional: Any, **named: Any) -> Subject:
    title = ", ".join([name, *(str(key) for key in named)])
    return Subject("x-transformers", title, later(f"{X}{name}", *positional, **named), kind)


def _logits(model: Any, pair: Any) -> Any:
    """The model gives the loss; the logits are those of what it wraps."""
    source, target = pair
    return model.decoder.net(target, context=model.encoder(source, return_embeddings=True))


def _sampler(name: str) -> Subject:
    return Subject("x-transformers", name, lambda: given(f"x_transformers.autoregressive_wrapper:{name}"), "sampler")


SUBJECTS: list[Subject] = [
    _attention("plain"),
    _attention("causal", causal=True),
    _attention("flash", flash=True),
    _attention("flash, causal", flash=True, causal=True),
    _attention("kv_heads", heads=4, kv_heads=2),
    _attention("kv_heads, flash, causal", heads=4, kv_heads=2, flash=True, causal=True),
    _attention("one_kv_head", one_kv_head=True),
    _attention("dropout", dropout=0.1, causal=True),
    _attention("qk_norm", qk_norm=True),
    _attention("qk_rmsnorm", qk_rmsnorm=True, causal=True),
    _attention("talking heads", pre_talking_heads=True, post_talking_heads=True),
    _attention("head_scale", head_scale=True),
    _attention("sparse_topk", sparse_topk=3),
    _attention("num_mem_kv", num_mem_kv=2, causal=True),
    _attention("add_zero_kv", add_zero_kv=True, causal=True),
    _attention("head_learned_sink", head_learned_sink=True, causal=True),
    _attention("gate_values", gate_values=True),
    _attention("gate_value_heads", gate_value_heads=True),
    _attention("on_attn", on_attn=True),
    _attention("max_attend_past", max_attend_past=4, causal=True),
    _attention("sigmoid", sigmoid=True, causal=True),
    _attention("l2_distance", l2_distance=True),
    _attention("softclamp_logits", softclamp_logits=True, causal=True),
    _attention("selective", selective=True, causal=True),
    _attention("cog_signed", cog_signed=True, causal=True),
    _attention("laser", laser=True, causal=True),
    _attention("data_dependent_alibi", data_dependent_alibi=True, causal=True),
    _attention("use_cope", use_cope=True, causal=True),
    _attention("use_latent_kv", use_latent_kv=True, dim_latent_kv=12, causal=True),
    _attention("value_dim_head", value_dim_head=5),
    _attention("orthog_projected_values", orthog_projected_values=True),
    _attention("orthog_projected_values, causal", orthog_projected_values=True, causal=True),
    _attention("inverted_attention", inverted_attention=True),
    _layers("plain"),
    _layers("plain", "Encoder"),
    _layers("rotary_pos_emb", rotary_pos_emb=True),
    _layers("rotary_xpos", rotary_xpos=True),
    _layers("polar_pos_emb", polar_pos_emb=True),
    _layers("alibi_pos_bias", alibi_pos_bias=True),
    _layers("alibi_pos_bias", "Encoder", alibi_pos_bias=True),
    _layers("rel_pos_bias", rel_pos_bias=True),
    _layers("rel_pos_bias", "Encoder", rel_pos_bias=True),
    _layers("dynamic_pos_bias", dynamic_pos_bias=True),
    _layers("use_rmsnorm", use_rmsnorm=True),
    _layers("use_simple_rmsnorm", use_simple_rmsnorm=True),
    _layers("use_scalenorm", use_scalenorm=True),
    _layers("use_dynamic_tanh", use_dynamic_tanh=True),
    _layers("post-norm", pre_norm=False),
    _layers("sandwich_norm", sandwich_norm=True),
    _layers("macaron", "Encoder", macaron=True),
    _layers("residual_attn", residual_attn=True),
    _layers("gate_residual", gate_residual=True),
    _layers("scale_residual", scale_residual=True),
    _layers("shift_tokens", shift_tokens=1),
    _layers("ff_glu", ff_glu=True, ff_swish=True),
    _layers("ff_relu_squared", ff_relu_squared=True),
    _layers("use_layerscale", use_layerscale=True),
    _layers("add_value_residual", add_value_residual=True),
    _layers("num_residual_streams", num_residual_streams=2),
    _layers("unet_skips", "Encoder", unet_skips=True),
    _layers("integrate_layers", integrate_layers=True),
    _layers("attn_flash", attn_flash=True),
    _model("plain"),
    _model("rotary", rotary_pos_emb=True),
    _model("rotary, flash", rotary_pos_emb=True, attn_flash=True),
    _model("rotary, kv heads", rotary_pos_emb=True, attn_kv_heads=1),
    _model("alibi", alibi_pos_bias=True),
    _model("relative", rel_pos_bias=True),
    _model("tied", wrapper={"tie_embedding": True}),
    _model("sinusoids", wrapper={"scaled_sinu_pos_emb": True}),
    _model("memory tokens", wrapper={"num_memory_tokens": 2}),
    _model("l2norm", wrapper={"l2norm_embed": True}),
    _model("mixture of softmax", wrapper={"mixture_of_softmax": True}),
    _model("shifted tokens", shift_tokens=1),
    _model("window", attn_max_attend_past=4),
    _model("plain", "Encoder"),
    _model("rotary", "Encoder", rotary_pos_emb=True),
    _model("relative", "Encoder", rel_pos_bias=True),
    Subject(
        "x-transformers",
        "XTransformer",
        later(
            f"{X}XTransformer",
            dim=D,
            enc_num_tokens=VOCAB,
            enc_depth=1,
            enc_heads=H,
            enc_max_seq_len=CONTEXT,
            dec_num_tokens=VOCAB,
            dec_depth=1,
            dec_heads=H,
            dec_max_seq_len=CONTEXT,
        ),
        "seq2seq",
        {"vocab": VOCAB, "call": _logits},
    ),
    _part("LayerNorm", "norm", D),
    _part("RMSNorm", "norm", D),
    _part("RMSNorm", "norm", D, unit_offset=True),
    _part("SimpleRMSNorm", "norm", D),
    _part("ScaleNorm", "norm", D),
    _part("RotaryEmbedding", "rotary", E),
    _part("AbsolutePositionalEmbedding", "positions", D, CONTEXT),
    _part("ScaledSinusoidalEmbedding", "positions", D),
    _sampler("top_p"),
    _sampler("top_k"),
    _sampler("top_a"),
    _sampler("min_p"),
]

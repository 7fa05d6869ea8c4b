"""Small packages of one idea each: linear, local, grouped, memory-efficient, axial attention and more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench.checking.public.making import given, later
from bench.checking.public.subject import Subject

D, H, E, VOCAB, CONTEXT = 24, 3, 8, 61, 64


def _of(package: str, name: str, kind: str, place: str, *positional: Any, **named: Any) -> Subject:
    options: dict[str, Any] = {"vocab": VOCAB} if kind == "lm" else {}
    if package == "area-attention":
        # Its memory is a grid of one size.
        options["context"] = 6
    if package == "linformer-pytorch" and kind != "positions":
        # It takes inputs of one length alone.
        options["context"] = 12
        if named.get("causal"):
            # It keeps no word of it.
            options["causal"] = True
    return Subject(package, name, later(place, *positional, **named), kind, options)


def _known(
    confirmed: tuple[str, ...], package: str, name: str, kind: str, place: str, *positional: Any, **named: Any
) -> Subject:
    return replace(_of(package, name, kind, place, *positional, **named), confirmed=confirmed)


_EFFICIENT = "memory-efficient-attention-pytorch"
_CONFORMER = {"dim": D, "depth": 2, "dim_head": E, "heads": H, "attn_dropout": 0.2, "ff_dropout": 0.2, "conv_dropout": 0.2, "conv_kernel_size": 3, "conv_causal": True}  # fmt: skip
_LINFORMER = "linformer_pytorch:Linformer"
_AREA = {"area_key_mode": "mean", "area_value_mode": "mean", "max_area_width": 1, "memory_width": 6}

SUBJECTS: list[Subject] = [
    Subject("conformer", "Conformer, dropout", lambda: given("conformer:Conformer"), "encoder", {"values": _CONFORMER}, ("dropout.never-active",)),
    _known(("mask.ignored",), "conformer", "ConformerBlock", "block", "conformer:ConformerBlock", dim=D, dim_head=E, heads=H, conv_kernel_size=3, conv_causal=True),
    _of("conformer", "Attention", "attention", "conformer.conformer:Attention", D, heads=H, dim_head=E, max_pos_emb=16),
    _of(_EFFICIENT, "Attention", "attention", "memory_efficient_attention_pytorch:Attention", dim=D, heads=H, dim_head=E),
    _known(("dropout.never-active",), _EFFICIENT, "Attention, dropout", "attention", "memory_efficient_attention_pytorch:Attention", dim=D, heads=H, dim_head=E, dropout=0.2, causal=True),
    _known(("causal.top-left",), _EFFICIENT, "Attention, memory_efficient, causal", "attention", "memory_efficient_attention_pytorch:Attention", dim=D, heads=H, dim_head=E, memory_efficient=True, causal=True, q_bucket_size=3, k_bucket_size=2),
    _of(_EFFICIENT, "CosineSimAttention", "attention", "memory_efficient_attention_pytorch:CosineSimAttention", dim=D, heads=H, dim_head=E, seq_len=CONTEXT),
    _of(_EFFICIENT, "FlashAttention, causal", "attention", "memory_efficient_attention_pytorch:FlashAttention", dim=D, heads=H, dim_head=E, causal=True, q_bucket_size=4, k_bucket_size=4),
    _of(_EFFICIENT, "Transformer, causal", "lm", "memory_efficient_attention_pytorch.transformer:Transformer", num_tokens=VOCAB, max_seq_len=CONTEXT, dim=D, depth=2, heads=H, dim_head=E, causal=True),
    _of("linformer", "LinformerSelfAttention", "attention", "linformer:LinformerSelfAttention", D, 16, k=6, heads=H),
    _of("linformer", "Linformer", "encoder", "linformer:Linformer", D, 16, 2, k=6, heads=H),
    _known(("norm.final-missing",), "linformer", "LinformerLM", "encoder", "linformer:LinformerLM", VOCAB, D, 16, 2, k=6, heads=H),
    _of("linformer-pytorch", "Linformer", "encoder", _LINFORMER, 12, D, dim_k=6, nhead=H, depth=2),
    _known(("causal.future-leak",), "linformer-pytorch", "Linformer, causal", "encoder", _LINFORMER, 12, D, dim_k=6, nhead=H, depth=2, causal=True),
    _of("linformer-pytorch", "Linformer, full_attention, causal", "encoder", _LINFORMER, 12, D, dim_k=6, nhead=H, depth=2, full_attention=True, causal=True),
    _known(("causal.future-leak",), "linformer-pytorch", "LinformerLM, causal", "encoder", "linformer_pytorch:LinformerLM", VOCAB, 12, D, dim_k=6, nhead=H, depth=2, causal=True, return_emb=True),
    _of("linformer-pytorch", "PositionalEmbedding", "positions", "linformer_pytorch.linformer_pytorch:PositionalEmbedding", D),
    _known(("scale.model-width",), "mega-pytorch", "SingleHeadedAttention", "attention", "mega_pytorch.mega_pytorch:SingleHeadedAttention", dim=D, dim_qk=E, dim_value=D, causal=True),
    _known(("scale.model-width",), "mega-pytorch", "MegaLayer", "encoder", "mega_pytorch:MegaLayer", dim=D, ema_heads=4, attn_dim_qk=E, attn_dim_value=32),
    _known(("scale.model-width",), "mega-pytorch", "Mega", "lm", "mega_pytorch:Mega", dim=D, num_tokens=VOCAB, depth=2, ema_heads=4, attn_dim_qk=E, attn_dim_value=32, causal=True),
    _of("local-attention", "LocalMHA, causal", "attention", "local_attention:LocalMHA", dim=D, window_size=4, dim_head=E, heads=H, causal=True),
    _of("local-attention", "LocalMHA, qk_rmsnorm", "attention", "local_attention:LocalMHA", dim=D, window_size=4, dim_head=E, heads=H, qk_rmsnorm=True),
    _of("local-attention", "LocalAttention", "sdpa", "local_attention:LocalAttention", window_size=4, dim=E, autopad=True),
    _known(("cache.mismatch", "position.left-padding"), "local-attention", "LocalTransformer", "lm", "local_attention:LocalTransformer", num_tokens=VOCAB, max_seq_len=CONTEXT, dim=D, depth=2, local_attn_window_size=8, dim_head=E, heads=H),
    _of("axial-attention", "SelfAttention", "attention", "axial_attention.axial_attention:SelfAttention", D, H),
    _of("area-attention", "MultiHeadAreaAttention", "attention", "area_attention:MultiHeadAreaAttention", later("area_attention:AreaAttention", E, **_AREA), H, D, E, D, E),
    _of("rotary-embedding-torch", "RotaryEmbedding", "rotary", "rotary_embedding_torch:RotaryEmbedding", E),
    _of("performer-pytorch", "SelfAttention", "attention", "performer_pytorch:SelfAttention", D, heads=H, dim_head=E, nb_features=16),
    _of("performer-pytorch", "SelfAttention, causal", "attention", "performer_pytorch:SelfAttention", D, heads=H, dim_head=E, nb_features=16, causal=True),
    _known(("causal.future-leak",), "performer-pytorch", "PerformerLM, causal", "lm", "performer_pytorch:PerformerLM", num_tokens=VOCAB, max_seq_len=CONTEXT, dim=D, depth=2, heads=H, dim_head=E, nb_features=16, causal=True),
    _of("performer-pytorch", "FixedPositionalEmbedding", "positions", "performer_pytorch.performer_pytorch:FixedPositionalEmbedding", D, CONTEXT),
    _of("linear-attention-transformer", "SelfAttention", "attention", "linear_attention_transformer.linear_attention_transformer:SelfAttention", D, H),
    _of("linear-attention-transformer", "SelfAttention, causal", "attention", "linear_attention_transformer.linear_attention_transformer:SelfAttention", D, H, causal=True),
    _of("linear-attention-transformer", "LinearAttentionTransformerLM, causal", "lm", "linear_attention_transformer:LinearAttentionTransformerLM", num_tokens=VOCAB, dim=D, depth=2, max_seq_len=CONTEXT, heads=H, dim_head=E, causal=True, use_axial_pos_emb=False),
    _of("reformer-pytorch", "LSHSelfAttention, full", "attention", "reformer_pytorch:LSHSelfAttention", D, heads=H, bucket_size=4, n_hashes=2, use_full_attn=True),
    _of("reformer-pytorch", "LSHSelfAttention, full, causal", "attention", "reformer_pytorch:LSHSelfAttention", D, heads=H, bucket_size=4, n_hashes=2, use_full_attn=True, causal=True),
    _known(("position.unused",), "reformer-pytorch", "ReformerLM, full, causal", "lm", "reformer_pytorch:ReformerLM", num_tokens=VOCAB, dim=D, depth=2, max_seq_len=CONTEXT, heads=H, dim_head=E, bucket_size=4, causal=True, use_full_attn=True, full_attn_thres=CONTEXT),
    _of("reformer-pytorch", "FixedPositionalEmbedding", "positions", "reformer_pytorch.reformer_pytorch:FixedPositionalEmbedding", D),
    _of("perceiver-pytorch", "Attention", "attention", "perceiver_pytorch.perceiver_pytorch:Attention", D, heads=H, dim_head=E),
    _of("block-recurrent-transformer-pytorch", "LayerNorm", "norm", "block_recurrent_transformer_pytorch.block_recurrent_transformer_pytorch:LayerNorm", D),
    _of("block-recurrent-transformer-pytorch", "BlockRecurrentTransformer", "lm", "block_recurrent_transformer_pytorch:BlockRecurrentTransformer", num_tokens=VOCAB, dim=D, depth=2, dim_head=E, heads=H, max_seq_len=CONTEXT, block_width=4),
    _of("tab-transformer-pytorch", "Attention", "attention", "tab_transformer_pytorch.tab_transformer_pytorch:Attention", D, heads=H, dim_head=E),
]  # fmt: skip

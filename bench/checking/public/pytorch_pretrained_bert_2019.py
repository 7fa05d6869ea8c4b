"""pytorch-pretrained-bert: BERT, GPT and GPT-2 as they were in 2019."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.checking.public.absent import absent
from bench.checking.public.subject import Subject

PACKAGE = "pytorch-pretrained-bert"
D, H, V = 32, 4, 61
FINITE = ("causal.finite-mask",)
NEEDS = ("boto3", "botocore", "botocore.exceptions")


def _bert(name: str, *more: Any) -> Callable[[], Any]:
    def make() -> Any:
        with absent(*NEEDS):
            from pytorch_pretrained_bert import modeling  # noqa: PLC0415

        config = modeling.BertConfig(V, D, 2, H, 48, max_position_embeddings=64)
        return getattr(modeling, name)(config, *more)

    return make


def _gpt2(name: str, *before: Any, scale: bool | None = None) -> Callable[[], Any]:
    def make() -> Any:
        with absent(*NEEDS):
            from pytorch_pretrained_bert import modeling_gpt2  # noqa: PLC0415

        config = modeling_gpt2.GPT2Config(V, 64, 64, D, 2, H)
        return getattr(modeling_gpt2, name)(*before, config, *(() if scale is None else (scale,)))

    return make


def _openai(name: str, *before: Any, scale: bool | None = None) -> Callable[[], Any]:
    def make() -> Any:
        with absent(*NEEDS):
            from pytorch_pretrained_bert import modeling_openai  # noqa: PLC0415

        config = modeling_openai.OpenAIGPTConfig(V, 0, 64, 64, D, 2, H)
        return getattr(modeling_openai, name)(*before, config, *(() if scale is None else (scale,)))

    return make


def _norm() -> Any:
    with absent(*NEEDS):
        from pytorch_pretrained_bert import modeling  # noqa: PLC0415

    return modeling.BertLayerNorm(D)


def _last(module: Any, ids: Any) -> Any:
    """What the last layer gives: all of them are returned."""
    return module(ids, output_all_encoded_layers=False)[0]


def _unmasked(module: Any, x: Any) -> Any:
    """A mask that is added and hides nothing."""
    return module(x, x.new_zeros(x.shape[0], 1, 1, x.shape[1]))


SUBJECTS: list[Subject] = [
    Subject(PACKAGE, "BertSelfAttention", _bert("BertSelfAttention"), "attention"),
    Subject(PACKAGE, "BertLayer", _bert("BertLayer"), "block"),
    Subject(PACKAGE, "BertLayerNorm", _norm, "norm"),
    Subject(PACKAGE, "BertModel", _bert("BertModel"), "encoder", {"vocab": V, "call": _last}),
    Subject(
        PACKAGE, "BertForMaskedLM", _bert("BertForMaskedLM"), "encoder", {"vocab": V}, (*FINITE, "parameter.unused")
    ),
    Subject(PACKAGE, "gpt2.Attention", _gpt2("Attention", D, 64, scale=True), "attention", confirmed=FINITE),
    Subject(PACKAGE, "gpt2.Block", _gpt2("Block", 64, scale=True), "block", confirmed=FINITE),
    Subject(PACKAGE, "GPT2LMHeadModel", _gpt2("GPT2LMHeadModel"), "lm", {"vocab": V}, FINITE),
    Subject(PACKAGE, "openai.Attention", _openai("Attention", D, 64, scale=True), "attention"),
    Subject(PACKAGE, "openai.Block", _openai("Block", 64, scale=True), "block"),
    Subject(PACKAGE, "OpenAIGPTLMHeadModel", _openai("OpenAIGPTLMHeadModel"), "lm", {"vocab": V}),
]

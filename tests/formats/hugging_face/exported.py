"""Small models that have a family, and how what was exported is looked at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import transformers
from torch import Tensor

from clearhead.formats.assemble import assemble
from clearhead.formats.hugging_face.folder import open_folder
from clearhead.formats.load import Loaded
from clearhead.formats.weights import own_tensors
from clearhead.messages import UserError
from clearhead.models import choices as kinds
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig, Sight, StackConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.text import CharacterTokenizer, MarkedTokenizer, Tokenizer

LETTERS = CharacterTokenizer.of("abcdefghijklmnopqrstuvwxyz .,小猫")
MARKED = MarkedTokenizer(LETTERS)
MASKED = MarkedTokenizer(LETTERS, masked=True)
SIZES: dict[str, Any] = {"layers": 3, "heads": 4, "width": 24, "feedforward_width": 28, "context": 13}
ROTARY: dict[str, Any] = {"norm": kinds.RMSNorm(eps=1e-5), "activation": kinds.SwiGLU(), "positions": kinds.Rotary()}
T5: dict[str, Any] = {
    "norm": kinds.RMSNorm(),
    "activation": kinds.GEGLUTanh(),
    "positions": kinds.Relative(buckets=8, farthest=6),
    "attention_scale": 1.0,
    "head_width": 8,
}
BERT: dict[str, Any] = {"block": kinds.PostNorm(), "embedding_norm": True, "qkv_bias": True, "bias": True}
SHORT = Sight(window=4, positions=kinds.Rotary())


class Kind(NamedTuple):
    """A model that has its family."""

    config: StackConfig
    family: str
    tokenizer: Tokenizer = LETTERS


def decoder(family: str, **choices: Any) -> Kind:
    return Kind(DecoderConfig(**SIZES | {"vocab": LETTERS.size} | choices), family)


KINDS = {
    "as clearhead train makes it": decoder("gpt2"),
    "nanoGPT": decoder("gpt2", norm=kinds.LayerNorm(bias=False)),
    "GPT-2": decoder("gpt2", activation=kinds.GELUTanh(), qkv_bias=True, bias=True, tied=False),
    "relu, no scale": decoder("gpt2", activation=kinds.ReLU(), attention_scale=1.0),
    "NeoX": decoder(
        "gpt_neox", block=kinds.Parallel(), positions=kinds.Rotary(fraction=0.5, theta=500.0), head_width=None, width=32
    ),
    "NeoX, not parallel": decoder("gpt_neox", positions=kinds.Rotary(), width=32, tied=False, qkv_bias=True, bias=True),
    "Llama": decoder("llama", **ROTARY, kv_heads=2, tied=False),
    "Llama, wide heads": decoder("llama", **ROTARY, head_width=10, kv_heads=1),
    "Llama with biases": decoder("llama", **ROTARY, width=32, qkv_bias=True, bias=True),
    "Llama 3": decoder(
        "llama",
        **ROTARY
        | {"width": 32, "positions": kinds.Rotary(500_000.0, scaling=kinds.Llama3(original_context=8, factor=4.0))},
    ),
    "Mistral": decoder("mistral", **ROTARY, window=5, width=32, kv_heads=2, tied=False),
    "Qwen 2": decoder("qwen2", **ROTARY, width=32, kv_heads=2, qkv_bias=True, output_bias=False),
    "Qwen 3": decoder("qwen3", **ROTARY, kv_heads=2, head_width=8, qk_norm=True),
    "Gemma 3": decoder(
        "gemma3_text",
        norm=kinds.RMSNorm(offset=True),
        activation=kinds.GEGLUTanh(),
        block=kinds.AroundNorm(),
        positions=kinds.Rotary(theta=1e6),
        cycle=(SHORT, SHORT, Sight()),
        scale_embedding=True,
        qk_norm=True,
        head_width=8,
        kv_heads=2,
        attention_scale=9**-0.5,
    ),
    "BERT": Kind(EncoderConfig(**SIZES | BERT, vocab=MASKED.size, segments=2, head_bias=True), "bert", MASKED),
    "BERT, no segments": Kind(
        EncoderConfig(**SIZES | BERT | {"bias": False, "qkv_bias": False}, vocab=MASKED.size), "bert", MASKED
    ),
    "T5": Kind(EncoderDecoderConfig(**SIZES | T5, vocab=MARKED.size, tied=True, scale_head=True), "t5", MARKED),
    "T5 1.1": Kind(EncoderDecoderConfig(**SIZES | T5, vocab=MARKED.size, tied=False, encoder_layers=2), "t5", MARKED),
}
AUTO = {
    DecoderConfig: transformers.AutoModelForCausalLM,
    EncoderConfig: transformers.AutoModelForMaskedLM,
    EncoderDecoderConfig: transformers.AutoModelForSeq2SeqLM,
}


def loaded(kind: Kind, dtype: torch.dtype = torch.float32) -> Loaded:
    """A model of that kind; every weight is random, gains and biases too."""
    model = build(kind.config, seed=5)
    generator = torch.Generator().manual_seed(6)
    with torch.no_grad():
        for tensor in own_tensors(model).values():
            tensor.add_(torch.randn(tensor.shape, generator=generator), alpha=0.2)
    return Loaded(model.to(dtype).eval(), kind.tokenizer, kind.config, Path("a run"))


def theirs(model: Loaded, folder: Path) -> Any:
    """What `transformers` makes of the folder; it finds every tensor that it asks for, and no other."""
    made, told = AUTO[type(model.config)].from_pretrained(folder, output_loading_info=True)
    assert {name: [*found] for name, found in told.items() if found} == {}
    return made.eval()


@torch.no_grad()
def difference(model: Loaded, made: Any) -> float:
    """The largest difference of the logits, which are about 1."""
    ids = torch.randint(0, model.config.vocab, (2, 11), generator=torch.Generator().manual_seed(1))
    if isinstance(model.config, EncoderDecoderConfig):
        ours, found = model.model(ids, ids[:, :7]), made(input_ids=ids, decoder_input_ids=ids[:, :7]).logits
    else:
        ours, found = model.model(ids), made(ids).logits
    assert ours.std() > 0.1
    return (ours - found).abs().max().item()


def returned(folder: Path, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """The tensors that a reader of the folder gets."""
    return own_tensors(assemble(open_folder(folder), dtype, "cpu")[0])


def changed(before: Loaded, after: dict[str, Tensor]) -> list[str]:
    """The tensors that are not what they were bit for bit; those that were added are zeros."""
    own = own_tensors(before.model)
    assert after.keys() >= own.keys()
    return [name for name, tensor in after.items() if not torch.equal(tensor, own.get(name, torch.zeros_like(tensor)))]


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(UserError) as error:
        call()
    assert "\n" not in str(error.value)
    return str(error.value)

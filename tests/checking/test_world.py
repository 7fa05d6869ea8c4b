"""Right code as it is written elsewhere is let pass: PyTorch's modules, layers of transformers, and styles that are seldom met."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.checking.check import check

SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
GROUPED = {"num_key_value_heads": 2}
IDS = {"vocab_size": 61, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
BART = {
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
}
GPT2 = {"n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "bos_token_id": 1, "eos_token_id": 2}
T5 = {"d_model": 32, "d_ff": 48, "num_layers": 2, "num_heads": 4, "d_kv": 8}
FAMILIES: dict[str, tuple[str, dict[str, object]]] = {
    "Llama": ("LlamaModel", SIZES | GROUPED | IDS),
    "Mistral": ("MistralModel", SIZES | GROUPED | IDS | {"sliding_window": 4}),
    "Qwen3": ("Qwen3Model", SIZES | GROUPED | IDS | {"head_dim": 8}),
    "Gemma2": ("Gemma2Model", SIZES | GROUPED | IDS | {"head_dim": 8, "sliding_window": 4}),
    "Phi": ("PhiModel", SIZES | IDS),
    "GPTNeoX": ("GPTNeoXModel", SIZES | IDS),
    "GPT2": ("GPT2Model", GPT2 | {"vocab_size": 61}),
    "Bloom": ("BloomModel", {"hidden_size": 32, "n_layer": 2, "n_head": 4} | IDS),
    "Mpt": ("MptModel", {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64, "vocab_size": 61}),
    "Falcon": ("FalconModel", {k: v for k, v in SIZES.items() if k != "intermediate_size"} | IDS),
    "Bert": ("BertModel", SIZES | {"vocab_size": 61}),
    "T5": ("T5Model", T5 | {"vocab_size": 61}),
    "Bart": ("BartModel", BART | IDS),
    "GptOss": (
        "GptOssModel",
        SIZES | GROUPED | IDS | {"head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 4},
    ),
}

QUICK = [
    ("Llama", "LlamaDecoderLayer", "block"),
    ("Qwen3", "Qwen3Attention", "attention"),
    ("Mistral", "MistralAttention", "attention"),
    ("Bert", "BertSelfAttention", "attention"),
    ("Bert", "BertAttention", "attention"),
    ("T5", "T5LayerSelfAttention", "attention"),
    ("Mpt", "MptAttention", "attention"),
    ("Bloom", "BloomAttention", "attention"),
]
SLOW = [
    ("Bart", "BartDecoderLayer", "block"),
    ("Llama", "LlamaAttention", "attention"),
    ("Gemma2", "Gemma2Attention", "attention"),
    ("Gemma2", "Gemma2DecoderLayer", "block"),
    ("Phi", "PhiDecoderLayer", "block"),
    ("GPTNeoX", "GPTNeoXLayer", "block"),
    ("GPTNeoX", "GPTNeoXAttention", "attention"),
    ("GPT2", "GPT2Block", "block"),
    ("GPT2", "GPT2Attention", "attention"),
    ("Bloom", "BloomBlock", "block"),
    ("Falcon", "FalconDecoderLayer", "block"),
    ("Bert", "BertLayer", "block"),
    ("T5", "T5Block", "block"),
    ("T5", "T5LayerCrossAttention", "attention"),
    ("Bart", "BartAttention", "attention"),
    ("GptOss", "GptOssAttention", "attention"),
]


def layer(family: str, name: str, backend: str = "sdpa") -> nn.Module:
    """The first layer of that class in a tiny model."""
    model, sizes = FAMILIES[family]
    torch.manual_seed(0)
    made = getattr(transformers, model)(getattr(transformers, f"{family}Config")(**sizes))
    if backend == "eager":
        made.set_attn_implementation("eager")
    return next(m for m in made.modules() if type(m).__name__ == name)


def passes(module: nn.Module | type, kind: str) -> None:
    report = check(module)
    assert (report.kind, [(f.id, f.evidence) for f in report.faults]) == (kind, [])
    assert report.ok


@pytest.mark.parametrize(("family", "name", "kind"), QUICK)
def test_layers_of_transformers_pass(family: str, name: str, kind: str) -> None:
    passes(layer(family, name), kind)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "name", "kind"), SLOW)
def test_more_layers_of_transformers_pass(family: str, name: str, kind: str) -> None:
    passes(layer(family, name), kind)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "name", "kind"), [*QUICK, *SLOW])
def test_layers_of_transformers_pass_as_they_are_written_out(family: str, name: str, kind: str) -> None:
    passes(layer(family, name, "eager"), kind)


OWN: list[tuple[Callable[[], nn.Module], str]] = [
    (lambda: nn.MultiheadAttention(32, 4), "attention"),
    (lambda: nn.TransformerDecoderLayer(32, 4, 48, batch_first=True), "block"),
]
MORE: list[tuple[Callable[[], nn.Module], str]] = [
    (lambda: nn.MultiheadAttention(32, 4, batch_first=True, add_bias_kv=True), "attention"),
    (lambda: nn.MultiheadAttention(32, 4, batch_first=True, add_zero_attn=True), "attention"),
    (lambda: nn.TransformerEncoderLayer(32, 4, 48, norm_first=True), "block"),
    (lambda: nn.TransformerDecoderLayer(32, 4, 48, norm_first=True), "block"),
    (lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(32, 4, 48, batch_first=True), 2), "encoder"),
]


@pytest.mark.parametrize(("make", "kind"), OWN)
def test_modules_of_pytorch_pass(make: Callable[[], nn.Module], kind: str) -> None:
    passes(make(), kind)


@pytest.mark.slow
@pytest.mark.parametrize(("make", "kind"), MORE)
def test_more_modules_of_pytorch_pass(make: Callable[[], nn.Module], kind: str) -> None:
    passes(make(), kind)


class Plain(nn.Module):
    """Four heads over 32 features."""

    def __init__(self, dim: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        return q, k, v

    def merged(self, y: Tensor) -> Tensor:
        return self.out(y.transpose(1, 2).flatten(2))


class Prefix(Plain):
    """Causal but for a prefix that all may see."""

    def forward(self, x: Tensor, prefix_mask: Tensor | None = None) -> Tensor:
        keep = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()[None]
        if prefix_mask is not None:
            keep = keep | prefix_mask[:, None].bool()
        return self.merged(F.scaled_dot_product_attention(*self.parts(x), attn_mask=keep[:, None]))


class OneMore(Plain):
    """One more in the denominator of the softmax."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.parts(x)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        top = scores.amax(-1, keepdim=True).clamp(min=0)
        powers = (scores - top).exp()
        return self.merged(powers / (powers.sum(-1, keepdim=True) + (-top).exp()) @ v)


class Normed(Plain):
    """Queries and keys are normalised, and three keys are seen."""

    def __init__(self, dim: int = 32, heads: int = 4, window: int = 3) -> None:
        super().__init__(dim, heads)
        self.window = window
        self.q_norm, self.k_norm = nn.RMSNorm(dim // heads, eps=1e-6), nn.RMSNorm(dim // heads, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.parts(x)
        places = torch.arange(x.shape[1])
        back = places[:, None] - places
        keep = (back >= 0) & (back < self.window)
        return self.merged(F.scaled_dot_product_attention(self.q_norm(q), self.k_norm(k), v, attn_mask=keep))


@pytest.mark.parametrize("kind_of", [Prefix, OneMore, Normed])
def test_seldom_styles_pass(kind_of: type[Plain]) -> None:
    passes(kind_of, "attention")


class Masked(Plain):
    """A mask of pairs is the caller's."""

    def __init__(self) -> None:
        super().__init__()
        self.is_causal = True

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        return self.merged(F.scaled_dot_product_attention(*self.parts(x), attn_mask=attention_mask))


class CausalMasked(Masked):
    """A mask of pairs is taken."""


class Half(Masked):
    """Looks two steps ahead."""

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        if attention_mask is None:
            attention_mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril(2)
        return self.merged(F.scaled_dot_product_attention(*self.parts(x), attn_mask=attention_mask))


class Upside(Plain):
    """The triangle the wrong way round."""

    def forward(self, x: Tensor) -> Tensor:
        places = torch.arange(x.shape[1])
        return self.merged(F.scaled_dot_product_attention(*self.parts(x), attn_mask=places[:, None] <= places))


def test_causality_is_left_to_a_mask_of_pairs_only_where_nothing_else_claims_it() -> None:
    passes(Masked, "attention")
    for kind_of in (CausalMasked, Half, Upside):
        assert check(kind_of).faults[0].id == "causal.future-leak"


class Unmixed(Plain):
    """Heads side by side."""

    def forward(self, x: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(*self.parts(x)).transpose(1, 2).flatten(2)


class Alone(Unmixed):
    """Heads side by side, and no class is built around them."""


class MixedAttention(nn.Module):
    """What mixes the heads of another class."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = Unmixed()
        self.mix = nn.Linear(32, 32)

    def forward(self, x: Tensor) -> Tensor:
        return self.mix(self.heads(x))


def test_an_output_projection_may_be_that_of_the_class_around() -> None:
    passes(Unmixed, "attention")
    assert "projection.output-missing" in [fault.id for fault in check(Alone).faults]

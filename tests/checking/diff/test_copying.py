"""A module is given another one's weights, whatever it calls them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel, GPTNeoXConfig, GPTNeoXForCausalLM, LlamaConfig, LlamaForCausalLM

from clearhead.checking.diff.copying import Copied, copied, fitted
from clearhead.formats.weights import own_tensors
from clearhead.models.build import build
from clearhead.models.choices import GELU, GELUTanh, LayerNorm, Parallel, RMSNorm, Rotary, SwiGLU
from clearhead.models.config import DecoderConfig
from tests.checking.diff.test_weights import tensors

V, L, H, D, F, T = 23, 2, 3, 12, 20, 9

GPT = DecoderConfig(
    vocab=V, layers=L, heads=H, width=D, feedforward_width=F, context=T, activation=GELUTanh(), qkv_bias=True, bias=True
)


class NanoBlock(nn.Module):
    """A block under nanoGPT's names, with Linears."""

    def __init__(self) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attn = nn.ModuleDict({"c_attn": nn.Linear(D, 3 * D), "c_proj": nn.Linear(D, D)})
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(D, F), "c_proj": nn.Linear(F, D)})


class Nano(nn.Module):
    """A model under nanoGPT's names, tied."""

    def __init__(self) -> None:
        super().__init__()
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(V, D),
                "wpe": nn.Embedding(T, D),
                "h": nn.ModuleList(NanoBlock() for _ in range(L)),
                "ln_f": nn.LayerNorm(D),
            }
        )
        self.lm_head = nn.Linear(D, V, bias=False)
        self.lm_head.weight = self.transformer["wte"].weight
        self.double()


class OwnAttention(nn.Module):
    """Separate projections, named as people name them."""

    def __init__(self, words: tuple[str, str, str, str]) -> None:
        super().__init__()
        for word in words:
            self.add_module(word, nn.Linear(D, D))


class OwnBlock(nn.Module):
    """A block under nobody's names."""

    def __init__(self, words: tuple[str, str, str, str]) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(D)
        self.attention = OwnAttention(words)
        self.norm2 = nn.LayerNorm(D)
        self.ff = nn.Sequential(nn.Linear(D, F), nn.GELU(), nn.Linear(F, D))


class Own(nn.Module):
    """A model under nobody's names, not tied, with a mask among its buffers."""

    def __init__(self, words: tuple[str, str, str, str] = ("W_q", "W_k", "W_v", "out_proj")) -> None:
        super().__init__()
        self.tok_emb, self.pos_emb = nn.Embedding(V, D), nn.Embedding(T, D)
        self.layers = nn.ModuleList(OwnBlock(words) for _ in range(L))
        self.final_norm = nn.LayerNorm(D)
        self.head = nn.Linear(D, V, bias=False)
        self.register_buffer("mask", torch.ones(T, T).tril())
        self.double()


def filled(module: nn.Module) -> nn.Module:
    """The module with random numbers in every parameter, biases too."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) / 5)
    return module


def named(module: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach() for name, parameter in module.named_parameters()}


def result_of(own: dict[str, Tensor], config: DecoderConfig, ids: Tensor) -> Tensor:
    """What our own model computes with these weights."""
    model = build(config, seed=0).double().eval()
    with torch.no_grad():
        for name, tensor in own_tensors(model).items():
            tensor.copy_(own[name])
        logits: Tensor = model(ids)
    return logits


def whole(found: Copied) -> bool:
    return all(row.state in ("same", "related") for row in found.rows)


IDS = torch.randint(V, (2, 7), generator=torch.Generator().manual_seed(3))


def gpt2() -> nn.Module:
    sizes = {"n_embd": D, "n_head": H, "n_layer": L, "n_inner": F, "n_positions": T, "vocab_size": V}
    return GPT2LMHeadModel(GPT2Config(**sizes, attn_implementation="eager")).double().eval()


def neox() -> nn.Module:
    config = GPTNeoXConfig(
        vocab_size=V,
        hidden_size=24,
        num_hidden_layers=L,
        num_attention_heads=H,
        intermediate_size=F,
        max_position_embeddings=T,
        attn_implementation="eager",
    )
    return GPTNeoXForCausalLM(config).double().eval()


def llama() -> nn.Module:
    config = LlamaConfig(
        vocab_size=V,
        hidden_size=24,
        num_hidden_layers=L,
        num_attention_heads=6,
        num_key_value_heads=2,
        intermediate_size=F,
        max_position_embeddings=T,
        rms_norm_eps=1e-6,
        attn_implementation="eager",
    )
    return LlamaForCausalLM(config).double().eval()


NEOX = DecoderConfig(
    vocab=V,
    layers=L,
    heads=H,
    width=24,
    feedforward_width=F,
    context=T,
    activation=GELU(),
    norm=LayerNorm(),
    block=Parallel(),
    positions=Rotary(fraction=0.25),
    tied=False,
    qkv_bias=True,
    bias=True,
)

LLAMA = DecoderConfig(
    vocab=V,
    layers=L,
    heads=6,
    kv_heads=2,
    width=24,
    feedforward_width=F,
    context=T,
    activation=SwiGLU(),
    norm=RMSNorm(eps=1e-6),
    positions=Rotary(),
    tied=False,
)


@pytest.mark.parametrize(("made", "config"), [(gpt2, GPT), (neox, NEOX), (llama, LLAMA)])
def test_a_published_model_computes_what_ours_does_with_our_weights(made, config: DecoderConfig) -> None:  # type: ignore[no-untyped-def]
    own, module = tensors(config), made()
    found = copied(module, own, config=config)
    assert whole(found), found.rows
    with torch.no_grad():
        logits = module(IDS).logits
    expected = result_of(own, config, IDS)
    assert float((logits - expected).abs().max() / expected.abs().max()) < 3e-6  # their rotary angles are float32


def test_without_the_order_of_a_known_library_neox_is_wrong() -> None:
    own, module = tensors(NEOX), neox()
    copied(module, own)
    with torch.no_grad():
        logits = module(IDS).logits
    expected = result_of(own, NEOX, IDS)
    assert float((logits - expected).abs().max() / expected.abs().max()) > 1e-2


@pytest.mark.parametrize(("made", "config"), [(gpt2, GPT), (neox, NEOX), (llama, LLAMA)])
def test_ours_is_given_a_published_models_weights(made, config: DecoderConfig) -> None:  # type: ignore[no-untyped-def]
    own, module = tensors(config), filled(made())
    found = fitted({name: tuple(each.shape) for name, each in own.items()}, named(module), own=config)
    assert found.tensors.keys() == own.keys()
    assert {row.state for row in found.rows} <= {"same", "related"}
    with torch.no_grad():
        logits = module(IDS).logits
    expected = result_of(found.tensors, config, IDS)
    assert float((logits - expected).abs().max() / expected.abs().max()) < 3e-6


def test_gpt2s_weights_go_into_nanogpt_and_back() -> None:
    theirs, nano = filled(gpt2()), Nano()
    found = copied(nano, named(theirs))
    assert whole(found), found.rows
    assert torch.equal(
        nano.get_parameter("transformer.h.1.mlp.c_fc.weight"),
        theirs.get_parameter("transformer.h.1.mlp.c_fc.weight").t(),
    )
    square = "transformer.h.0.attn.c_proj.weight"
    assert torch.equal(nano.get_parameter(square), theirs.get_parameter(square).t())
    again = gpt2()
    assert whole(copied(again, named(nano)))
    assert all(torch.equal(each, named(theirs)[name]) for name, each in named(again).items())


def test_ours_go_into_separate_projections_and_untied_heads() -> None:
    own, module = tensors(GPT), Own()
    found = copied(module, own)
    assert whole(found), found.rows
    assert torch.equal(
        module.get_parameter("layers.1.attention.W_k.weight"), own["blocks.1.attention.qkv.weight"][D : 2 * D]
    )
    assert torch.equal(module.get_parameter("layers.1.attention.W_v.bias"), own["blocks.1.attention.qkv.bias"][2 * D :])
    assert torch.equal(module.get_parameter("layers.0.ff.2.weight"), own["blocks.0.feedforward.down.weight"])
    assert torch.equal(module.get_parameter("head.weight"), own["embedding.weight"])
    assert torch.equal(module.get_buffer("mask"), torch.ones(T, T, dtype=torch.float64).tril())


@pytest.mark.parametrize(
    ("words", "order"),
    [
        (("query", "key", "value", "dense"), (0, 1, 2)),
        (("q_proj", "k_proj", "v_proj", "o_proj"), (0, 1, 2)),
        (("wk", "wq", "wv", "wo"), (1, 0, 2)),
        (("toqueries", "tokeys", "tovalues", "unifyheads"), (0, 1, 2)),
        (("value_layer", "key_layer", "query_layer", "projection"), (2, 1, 0)),
        (("to_q", "to_k", "to_v", "to_out"), (0, 1, 2)),
    ],
)
def test_words_for_q_k_and_v_in_any_order(words: tuple[str, str, str, str], order: tuple[int, ...]) -> None:
    own, module = tensors(GPT), Own(words)
    assert whole(copied(module, own))
    for word, place in zip(words[:3], order, strict=True):
        wanted = own["blocks.0.attention.qkv.weight"][place * D : (place + 1) * D]
        assert torch.equal(module.get_parameter(f"layers.0.attention.{word}.weight"), wanted)


def test_names_that_say_nothing_go_in_order_and_it_is_said() -> None:
    own, module = named(filled(Own())), Own(("alpha", "beta1", "gamma1", "delta"))
    found = copied(module, own)
    assert whole(found), found.rows
    assert torch.equal(module.get_parameter("layers.1.attention.beta1.weight"), own["layers.1.attention.W_k.weight"])
    assert any("beta1" in note for note in found.notes)


def test_what_has_no_partner_is_told_and_keeps_its_numbers() -> None:
    own, module = tensors(GPT), Own()
    extra = nn.Linear(5, 7)
    module.add_module("adapter", extra)
    before = extra.weight.clone()
    own["blocks.0.more"] = torch.ones(3)
    rows = copied(module, own).rows
    rest = {(row.a, row.b): row.state for row in rows if row.state not in ("same", "related")}
    assert rest == {
        ("blocks.0.more", ""): "missing",
        ("", "adapter.weight"): "unexpected",
        ("", "adapter.bias"): "unexpected",
    }
    assert torch.equal(extra.weight, before)


def test_a_tensor_of_another_shape_is_not_forced_in() -> None:
    own = tensors(GPT)
    found = fitted({"embedding.weight": (V + 1, D), "norm.weight": (D,)}, own)
    assert found.tensors.keys() == {"norm.weight"}
    assert ("", "embedding.weight") in {(row.a, row.b) for row in found.rows}

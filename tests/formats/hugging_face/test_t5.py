"""T5 of transformers, small and with random weights, and ours read from its configuration and its tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.formats.assemble import assemble
from clearhead.formats.rows import Change, Part, Row
from clearhead.formats.tensors import HeldTensors
from clearhead.generation.stores import GrowingStore
from clearhead.messages import UserError
from clearhead.models import choices as kinds
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.tracing import Recorder
from tests.formats.hugging_face.given import SOURCE, V, as_saved, assert_near, opened, ours_of, random_weights, read

hf = pytest.importorskip("transformers", reason="transformers is not installed")

B, T, M, D, H, d, FF, READS, WRITES = 3, 7, 11, 12, 4, 5, 14, 3, 2
FLOAT64, AS_IT_IS, FLOAT32 = 1e-12, 1e-6, 1e-5
REAL = torch.arange(M) < torch.tensor([[M], [6], [2]])
SIZES: dict[str, Any] = {
    "vocab_size": V,
    "d_model": D,
    "d_kv": d,
    "d_ff": FF,
    "num_heads": H,
    "num_layers": READS,
    "num_decoder_layers": WRITES,
    # As many ranges as heads: a table of the wrong way round fits.
    "relative_attention_num_buckets": 4,
    "relative_attention_max_distance": 5,
    "layer_norm_epsilon": 1e-5,
    "decoder_start_token_id": 0,
    "eos_token_id": None,
}
VARIANTS: dict[str, dict[str, Any]] = {
    "1.0": {},
    "1.0, several ranges": {"relative_attention_num_buckets": 8, "num_heads": 3, "d_kv": 4},
    "1.1": {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    "1.1, silu": {"feed_forward_proj": "gated-silu", "tie_word_embeddings": False, "num_decoder_layers": READS},
}


def theirs_of(name: str = "1.0") -> Any:
    """A model with random weights; 1.1 with a head of its own, as a file that holds one gives it."""
    config = hf.T5Config(**SIZES | VARIANTS[name])
    config._attn_implementation = "eager"
    theirs = hf.T5ForConditionalGeneration(config)
    if not config.scale_decoder_outputs:
        theirs.lm_head.weight = nn.Parameter(torch.empty(V, D))
    return random_weights(theirs)


def norms_in_float64(theirs: Any) -> Any:
    """The same model in float64, whose norms take their mean square in float64, too."""

    def forward(self: Any, x: Tensor) -> Tensor:
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)

    for module in theirs.double().modules():
        if isinstance(module, hf.models.t5.modeling_t5.T5LayerNorm):
            module.forward = forward.__get__(module)
    return theirs


@torch.no_grad()
def check(theirs: Any, dtype: torch.dtype, within: float, *, real: Tensor | None = REAL, **faults: Any) -> None:
    """Logits, and what enters the first block and leaves each one, of both stacks."""
    ours, recorder = ours_of(theirs, dtype, **faults), Recorder()
    source, target = torch.randint(V, (B, M)), torch.randint(V, (B, T))
    mask = None if real is None else real.long()
    made = theirs(source, attention_mask=mask, decoder_input_ids=target, output_hidden_states=True, use_cache=False)
    found = ours(source, target, source_real=real, tap=recorder)
    places = {"encoder": torch.ones(B, M) > 0 if real is None else real, "decoder": torch.ones(B, T) > 0}
    for stack, states in (("encoder", made.encoder_hidden_states), ("decoder", made.decoder_hidden_states)):
        blocks = [f"{stack}.blocks.{index}.output" for index in range(len(states) - 2)]
        for name, expected in zip([f"{stack}.input", *blocks], states[:-1], strict=True):
            assert_near(recorder.tensors[name][places[stack]], expected[places[stack]], within)
    # The last of theirs is after the last norm; ours, in the decoder, is divided as well, where it is.
    last = recorder.tensors["decoder.norm"] * (D**0.5 if theirs.config.scale_decoder_outputs else 1)
    assert_near(last, made.decoder_hidden_states[-1], within)
    assert_near(
        recorder.tensors["encoder.norm"][places["encoder"]], made.encoder_last_hidden_state[places["encoder"]], within
    )
    assert_near(found, made.logits, within)


@pytest.mark.parametrize("real", [None, REAL, REAL.flip(-1)], ids=["no padding", "right", "left"])
@pytest.mark.parametrize("name", VARIANTS)
def test_logits_and_blocks(name: str, real: Tensor | None) -> None:
    check(theirs_of(name), torch.float32, FLOAT32, real=real)
    check(norms_in_float64(theirs_of(name)), torch.float64, FLOAT64, real=real)


@pytest.mark.parametrize("name", VARIANTS)
def test_in_float64_as_it_is(name: str) -> None:
    """Norms take their mean square in float32; wide weights, whose scores nothing divides, make more of that than 1e-6."""
    theirs = theirs_of(name)
    with torch.no_grad():
        for tensor in theirs.parameters():
            tensor.mul_(1.0 if tensor.dim() == 1 else 0.5)
    check(theirs, torch.float64, AS_IT_IS)


def turned(row: Row) -> Row:
    """The table of distances, the wrong way round."""
    if "biases" not in row.ours:
        return row
    return replace(row, parts=(replace(row.parts[0], change=Change(Tensor.t, Tensor.t)),))


def exchanged(row: Row) -> Row:
    """The encoder's table of distances in the decoder, and the other way round."""
    if "biases" not in row.ours:
        return row
    stacks = ("encoder", "decoder") if row.parts[0].name.startswith("encoder") else ("decoder", "encoder")
    return replace(row, parts=(Part(row.parts[0].name.replace(*stacks)),))


def kept(**fields: Any) -> dict[str, Callable[[EncoderDecoderConfig], EncoderDecoderConfig]]:
    return {"change": lambda config: replace(config, **fields)}


FAULTS: dict[str, dict[str, Any]] = {
    "distances the wrong way round": {"move": turned},
    "distances of the other stack": {"move": exchanged},
    "farthest": kept(positions=kinds.Relative(4, 9)),
    "scores scaled": kept(attention_scale=None),
    "epsilon": kept(norm=kinds.RMSNorm(eps=1e-6)),
    "gelu": kept(activation=kinds.GELU()),
    "embedding scaled": kept(scale_embedding=True),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_not_t5_is_caught(fault: str) -> None:
    with pytest.raises(AssertionError, match=r"^differs by"):
        check(norms_in_float64(theirs_of()), torch.float64, FLOAT64, **FAULTS[fault])


def test_a_head_that_is_not_divided_is_caught() -> None:
    """And a 1.1 that is."""
    for name, scaled in (("1.0", False), ("1.1", True)):
        with pytest.raises(AssertionError, match=r"^differs by"):
            check(norms_in_float64(theirs_of(name)), torch.float64, FLOAT64, **kept(scale_head=scaled))


# Greedy texts

STEPS = 7


def greedy(ours: EncoderDecoder, source: Tensor, *, cached: bool) -> Tensor:
    """The best token at each step, the start included."""
    memory = ours.remember(source, real=REAL)
    store, written = memory.beside(GrowingStore(ours.decoder)), torch.zeros(B, 1, dtype=torch.long)
    for _ in range(STEPS):
        logits = ours.decoder(written[:, -1:], store=store) if cached else ours.decoder(written, store=memory)
        written = torch.cat([written, logits[:, -1:].argmax(-1)], -1)
    return written


@torch.no_grad()
def check_greedy(name: str, **faults: Any) -> int:
    """A batch with padding, cached and not, by both; how many different tokens there were in a row at most."""
    theirs = theirs_of(name).double()
    for tensor in theirs.parameters():
        if tensor.dim() > 1:
            tensor.mul_(2)
    ours, source = ours_of(theirs, torch.float64, **faults), torch.randint(V, (B, M))
    options = {"max_new_tokens": STEPS, "do_sample": False, "attention_mask": REAL.long()}
    for cached in (True, False):
        expected = theirs.generate(source, use_cache=cached, **options)
        assert greedy(ours, source, cached=cached).tolist() == expected.tolist()
    return max(len(set(row)) for row in expected.tolist())


@pytest.mark.parametrize("name", ["1.0, several ranges", "1.1, silu"])
def test_greedy_texts(name: str) -> None:
    assert max(check_greedy(name) for _ in range(2)) > 3


def test_greedy_texts_of_another_model_are_caught() -> None:
    with pytest.raises(AssertionError):
        [check_greedy("1.1, silu", **kept(attention_scale=None)) for _ in range(3)]


# Files

COPIES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")


def held(theirs: Any, *left: str) -> Any:
    """The tensors of a file without some of them, each its own."""
    found = {name: tensor.clone() for name, tensor in theirs.state_dict().items() if name not in left}
    return replace(opened(theirs), tensors=HeldTensors(SOURCE, found))


@pytest.mark.parametrize("left", [(), COPIES, ("shared.weight",), ("shared.weight", COPIES[0], "lm_head.weight")])
def test_one_name_of_the_embedding_will_do(left: tuple[str, ...]) -> None:
    theirs = theirs_of()
    model, report = assemble(held(theirs, *left), torch.float32, "cpu")
    assert torch.equal(model.encoder.embedding.weight, theirs.shared.weight)
    assert model.decoder.head.weight is model.decoder.embedding.weight is model.encoder.embedding.weight
    there = {*COPIES, "shared.weight", "lm_head.weight"} - {*left}
    assert len(there & report.retied.keys()) == len(there) - 1


@pytest.mark.parametrize("name", [*COPIES, "lm_head.weight"])
def test_a_copy_must_be_one(name: str) -> None:
    found = held(theirs_of())
    found.tensors.held[name] += 1
    with pytest.raises(UserError, match=name):
        assemble(found, torch.float32, "cpu")


def test_without_an_embedding_nothing_is_loaded() -> None:
    with pytest.raises(UserError, match=r"shared\.weight"):
        assemble(held(theirs_of(), "shared.weight", *COPIES), torch.float32, "cpu")


def test_a_head_of_its_own_may_be_the_embedding_after_all() -> None:
    """As transformers 5 saves a 1.1 that it has made itself."""
    theirs = theirs_of("1.1")
    own, _ = assemble(held(theirs), torch.float32, "cpu")
    assert torch.equal(own.decoder.head.weight, theirs.lm_head.weight)
    shared, _ = assemble(held(theirs, "lm_head.weight"), torch.float32, "cpu")
    assert torch.equal(shared.decoder.head.weight, theirs.shared.weight)


def test_a_table_that_was_never_read() -> None:
    found, name = held(theirs_of()), "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    found.tensors.held[name] = torch.ones(4, H)
    assert assemble(found, torch.float32, "cpu")[1].unused == (name,)


def test_its_own_files_say_what_they_are() -> None:
    """What transformers saves of a 1.1 calls the head tied, and says in another field that it is not divided."""
    saved = as_saved(theirs_of("1.1").config)
    assert saved["tie_word_embeddings"]
    assert not read(saved).scale_head
    assert not read(saved).tied
    assert read(as_saved(theirs_of().config)).scale_head

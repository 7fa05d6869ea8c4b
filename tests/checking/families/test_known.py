"""What a module is recognised by, and which of its tensors becomes which of ours, wrapped, bare or incomplete."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from clearhead.checking.families.known import ours_of, place, recognised
from clearhead.messages import UserError
from tests.checking.families.models import bare, bert, decoder, found_in, made
from tests.checking.families.plants import Louder
from tests.oracles.hf_pairs import hf


def test_a_module_is_recognised_by_its_configuration_and_its_class() -> None:
    module = made(decoder("gpt2"))
    known = recognised(module)
    assert known is not None
    assert (known.family.name, known.home.__name__) == ("gpt2", "GPT2LMHeadModel")
    assert recognised(nn.Linear(3, 5)) is None
    # A part of it has the configuration, too, and is no model.
    assert recognised(module.transformer.h[0].attn) is None


def test_a_class_of_another_task_is_not_recognised() -> None:
    config = hf.BertConfig(vocab_size=23, hidden_size=12, num_hidden_layers=1, num_attention_heads=3)
    assert recognised(hf.BertForSequenceClassification(config)) is None


def test_a_derived_class_is_recognised() -> None:
    class Mine(hf.GPT2LMHeadModel):  # type: ignore[misc, name-defined]
        pass

    known = recognised(Mine(made(decoder("gpt2")).config))
    assert known is not None
    assert known.home.__name__ == "GPT2LMHeadModel"


@pytest.mark.parametrize("wrap", [False, True])
def test_ours_has_their_weights_whatever_they_are_wrapped_in(wrap: bool) -> None:
    module = made(decoder("gpt2"))
    wanted = module.transformer.h[1].attn.c_attn.weight.detach().t().double()
    if wrap:
        module.transformer.h[1].attn = Louder(Louder(module.transformer.h[1].attn))
    known = recognised(module)
    assert known is not None
    ours = ours_of(known)
    assert torch.equal(ours.model.get_submodule("blocks.1.attention.qkv").weight, wanted)
    assert (ours.missing, ours.further, ours.untied) == ((), (), ())


def test_a_bare_model_gives_the_head_its_embedding() -> None:
    known = recognised(made(bare("LlamaModel", "llama")))
    assert known is not None
    assert ours_of(known).config.tied


def test_a_bias_that_was_taken_away_is_named() -> None:
    module = made(bert)
    module.bert.encoder.layer[1].intermediate.dense.bias = None
    (fault,) = found_in(module).faults
    assert fault.id == "projection.bias"
    assert fault.where == "bert.encoder.layer.1.intermediate.dense"


def test_a_head_that_was_untied_is_named() -> None:
    module = made(decoder("gpt2"))
    module.lm_head.weight = nn.Parameter(1.5 * module.lm_head.weight.detach())
    (fault,) = found_in(module).faults
    assert fault.id == "tying.lost"


def test_a_further_parameter_is_a_note() -> None:
    module = made(decoder("gpt2"))
    module.transformer.h[0].attn.gate = nn.Parameter(torch.ones(3))
    found = found_in(module)
    assert not found.faults
    assert any("transformer.h.0.attn.gate" in note for note in found.notes)


def test_what_a_configuration_of_ours_cannot_say_is_skipped_with_the_reason() -> None:
    module = made(decoder("gpt2"))
    module.config.scale_attn_by_inverse_layer_idx = True
    known = recognised(module)
    assert known is not None
    with pytest.raises(UserError, match="scale_attn_by_inverse_layer_idx"):
        ours_of(known)
    (check,) = found_in(module).checks
    assert (check.id, check.verdict) == ("family.model", "skipped")
    assert "scale_attn_by_inverse_layer_idx" in check.evidence


def test_paths_are_found_by_what_remains() -> None:
    there = ["h.1.attn", "h.1.attn.inner", "h.1.attn.inner.c_proj", "h.1.mlp.c_proj"]
    assert place("transformer.h.1.attn.c_proj", "transformer.", there) == "h.1.attn.inner.c_proj"
    assert place("transformer.h.1.attn", "transformer.", there) == "h.1.attn"
    assert not place("transformer.h.2.attn", "transformer.", there)

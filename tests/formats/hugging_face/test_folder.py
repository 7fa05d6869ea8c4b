"""Hugging Face folders: which family a folder is of, under which names its tensors lie, and one line for what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from clearhead.formats.assemble import assemble
from clearhead.formats.hugging_face import folder
from clearhead.formats.hugging_face.folder import open_folder
from clearhead.formats.opened import Report
from clearhead.formats.safetensors_files import INDEX
from clearhead.formats.weights import own_tensors
from clearhead.messages import UserError
from clearhead.models.config import DecoderConfig
from clearhead.text.numbers import NumberTokenizer
from tests.formats.safetensors_made import write_shards

V, D, H, L, T = 23, 12, 3, 2, 10
WEIGHTS = "model.safetensors"


@pytest.fixture
def gpt2(tmp_path: Path) -> Path:
    """A folder as transformers writes it, without a tokenizer."""
    config = GPT2Config(vocab_size=V, n_embd=D, n_head=H, n_layer=L, n_positions=T, bos_token_id=1, eos_token_id=2)
    GPT2LMHeadModel(config).save_pretrained(tmp_path / "gpt2")
    return tmp_path / "gpt2"


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    """The same of a model whose head is its own."""
    config = LlamaConfig(
        vocab_size=V, hidden_size=D, num_attention_heads=H, num_hidden_layers=L, intermediate_size=17, bos_token_id=1
    )
    LlamaForCausalLM(config).save_pretrained(tmp_path / "llama")
    return tmp_path / "llama"


def loaded(path: Path) -> tuple[dict[str, Tensor], Report]:
    model, report = assemble(open_folder(path), torch.float32, "cpu")
    return own_tensors(model), report


def refusal(path: Path) -> str:
    """The one line with which a folder is refused, opened or filled."""
    with pytest.raises(UserError) as error:
        loaded(path)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 1000
    return str(error.value)


def edited(path: Path, changes: dict[str, Any]) -> Path:
    """The folder with these fields of its configuration changed; None takes one away."""
    data = json.loads((path / "config.json").read_text(encoding="utf-8")) | changes
    data = {name: value for name, value in data.items() if value is not None}
    (path / "config.json").write_text(json.dumps(data), encoding="utf-8")
    return path


def rewritten(path: Path, change: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> Path:
    """The folder with its tensors changed."""
    tensors = change(load_file(path / WEIGHTS))
    (path / WEIGHTS).unlink()
    save_file({name: tensor.contiguous().clone() for name, tensor in tensors.items()}, path / WEIGHTS)
    return path


def test_a_folder_opens(gpt2: Path) -> None:
    opened = open_folder(gpt2)
    assert (opened.origin, opened.source) == ("Hugging Face gpt2", gpt2)
    assert isinstance(opened.config, DecoderConfig)
    assert (opened.config.vocab, opened.config.layers) == (V, L)
    assert isinstance(opened.tokenizer, NumberTokenizer)
    ours, report = loaded(gpt2)
    assert report.loaded == len(ours)
    theirs = load_file(gpt2 / WEIGHTS)
    assert torch.equal(ours["blocks.1.feedforward.up.weight"], theirs["transformer.h.1.mlp.c_fc.weight"].t())


def same(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> bool:
    return found.keys() == wanted.keys() and all(torch.equal(found[name], wanted[name]) for name in wanted)


def prefixed(before: str) -> Callable[[dict[str, Tensor]], dict[str, Tensor]]:
    return lambda tensors: {before + name: tensor for name, tensor in tensors.items()}


def bare(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """As the first GPT-2 files are: without the prefix, with masks that nobody uses."""
    masks = {f"h.{index}.attn.bias": torch.ones(1, 1, T, T) for index in range(L)}
    return {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()} | masks


@pytest.mark.parametrize(
    "change",
    [bare, *map(prefixed, ["_orig_mod.", "module.", "_orig_mod.module.", "module._orig_mod.module."]),
     lambda tensors: prefixed("module.")(bare(tensors))],
    ids=["bare", "compiled", "distributed", "both", "both again", "distributed and bare"],
)  # fmt: skip
def test_names_that_other_programs_give(gpt2: Path, change: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> None:
    wanted = loaded(gpt2)[0]
    found, report = loaded(rewritten(gpt2, change))
    assert same(found, wanted)
    assert all("attn.bias" in name for name in report.unused)


def test_a_bare_model_may_keep_its_head(llama: Path) -> None:
    wanted = loaded(llama)[0]
    strip = lambda tensors: {name.removeprefix("model."): tensor for name, tensor in tensors.items()}  # noqa: E731
    assert "lm_head.weight" in load_file(rewritten(llama, strip) / WEIGHTS)
    assert same(loaded(llama)[0], wanted)


@pytest.mark.parametrize(("name", "value"), [("WRAPPERS", ("x.",)), ("RenamedTensors", lambda inner, names: inner)])
def test_a_name_that_is_not_mended_is_caught(
    gpt2: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: Any
) -> None:
    rewritten(gpt2, prefixed("module."))
    monkeypatch.setattr(folder, name, value)
    assert "lacks" in refusal(gpt2)


def test_two_tensors_of_one_name_are_refused(gpt2: Path) -> None:
    rewritten(gpt2, lambda tensors: tensors | prefixed("module.")(tensors))
    assert "twice" in refusal(gpt2)


def test_several_files(gpt2: Path) -> None:
    wanted, tensors = loaded(gpt2)[0], load_file(gpt2 / WEIGHTS)
    (gpt2 / WEIGHTS).unlink()
    write_shards(gpt2, {name: tensor.clone() for name, tensor in tensors.items()})
    assert same(loaded(gpt2)[0], wanted)
    (gpt2 / INDEX).write_text("{", encoding="utf-8")
    assert INDEX in refusal(gpt2)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"model_type": "lama", "architectures": None}, "the nearest that it knows: llama"),
        ({"model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"]}, "knows: gemma3_text"),
        ({"model_type": "mixtral"}, "all: gpt2, gpt_neox, llama, mistral, qwen2, qwen3, gemma3_text, bert, t5"),
        ({"model_type": None, "architectures": ["LlamaForCausalML"]}, "LlamaForCausalML"),
        ({"model_type": None, "architectures": None}, "model_type None"),
        ({"model_type": 7}, "model_type is 7 and must be str"),
        ({"model_type": "x" * 10_000}, "xxx"),
        ({"model_type": "gpt2\n"}, r"'gpt2\n'"),
        (
            {"architectures": ["GPT2ForSequenceClassification"]},
            "the architecture GPT2ForSequenceClassification of a gpt2",
        ),
        ({"architectures": ["GPT2LMHeadModel", "GPT2DoubleHeadsModel"]}, "GPT2DoubleHeadsModel"),
        ({"architectures": ["LlamaForCausalLM"]}, "LlamaForCausalLM of a gpt2"),
        ({"architectures": "GPT2LMHeadModel"}, "architectures is 'GPT2LMHeadModel' and must be list"),
        ({"architectures": [7]}, "must be list"),
    ],
)
def test_a_model_of_no_known_family(gpt2: Path, changes: dict[str, Any], named: str) -> None:
    assert named in refusal(edited(gpt2, changes))


def test_the_class_names_the_family_where_the_type_is_not_there(gpt2: Path) -> None:
    wanted = open_folder(gpt2).config
    assert open_folder(edited(gpt2, {"model_type": None})).config == wanted
    assert open_folder(edited(gpt2, {"model_type": "gpt2", "architectures": None})).config == wanted
    assert open_folder(edited(gpt2, {"architectures": ["GPT2Model"]})).config == wanted


def test_a_classifier_of_a_known_family_is_refused_by_name(tmp_path: Path) -> None:
    config = BertConfig(
        vocab_size=V, hidden_size=D, num_attention_heads=H, num_hidden_layers=L, intermediate_size=17,
        architectures=["BertForSequenceClassification"],
    )  # fmt: skip
    BertModel(config).save_pretrained(tmp_path)
    edited(tmp_path, {"architectures": ["BertForSequenceClassification"]})
    line = refusal(tmp_path)
    assert "BertForSequenceClassification of a bert" in line
    assert "BertModel" in line


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"auto_map": {"AutoModel": "modeling.Own"}}, "auto_map"),
        ({"per_layer_config": {"0": {}}}, "per_layer_config"),
        ({"pruned_heads": {"1": [0]}}, "pruned_heads"),
        ({"add_cross_attention": True}, "add_cross_attention"),
        ({"is_encoder_decoder": True}, "is_encoder_decoder"),
        ({"tie_encoder_decoder": True}, "tie_encoder_decoder"),
        ({"cross_attention_hidden_size": 8}, "cross_attention_hidden_size"),
        ({"of_next_year": 0}, "of_next_year"),
        ({"n_layer": L + 1}, "lacks 12 of the model's tensors, transformer.h.2"),
        ({"n_embd": 2 * D}, "(23, 12), the configuration wants (23, 24)"),
        ({"vocab_size": V + 1}, "(23, 12), the configuration wants (24, 12)"),
        ({"n_positions": 2**30, "n_embd": D}, "describes a model of"),
        ({"vocab_size": 2**31 - 1, "n_embd": 2**31 - 1, "n_head": 1}, "describes a model of"),
        ({"vocab_size": 2**60}, "vocab_size"),
        ({"n_layer": 10**9}, "n_layer"),
        ({"n_layer": -1}, "n_layer = -1 must be at least 1"),
        ({"n_head": 0}, "n_head = 0 must be at least 1"),
        ({"n_head": 5}, "n_embd = 12 is not divisible by n_head = 5;"),
        ({"n_embd": "12"}, "n_embd"),
        ({"layer_norm_epsilon": -1.0}, "eps"),
        # As fuzzing found: words that would clear a screen, or fill it.
        ({"activation_function": "\x1b[2J"}, r"'\x1b[2J'"),
        ({"activation_function": "n" * 5000}, "nnn"),
        ({"a\nb": 1}, r"'a\nb'"),
    ],
)
def test_a_configuration_that_is_not_understood_or_not_of_these_weights(
    gpt2: Path, changes: dict[str, Any], named: str
) -> None:
    assert named in refusal(edited(gpt2, changes))


@pytest.mark.parametrize("name", ["max_length", "temperature", "chunk_size_feed_forward", "id2label", "torch_dtype"])
def test_fields_that_no_forward_asks_for(gpt2: Path, name: str) -> None:
    wanted = open_folder(gpt2).config
    assert open_folder(edited(gpt2, {name: {"anything": [1, 2.5]}})).config == wanted


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"7", b'{"a": 1}}', b"\xff\xfe{}", b"[" * 100_000, b'{"a": NaN}', b'{"a": 1e999}',
     b'{"a": ' + b"9" * 5000 + b"}", b'{"a": -Infinity}', b" " * (1 << 24), '{"文": 1}'.encode("gb18030")],
)  # fmt: skip
def test_a_configuration_that_is_no_object(gpt2: Path, content: bytes) -> None:
    (gpt2 / "config.json").write_bytes(content)
    assert "config.json" in refusal(gpt2)


def test_a_mark_of_utf_8_is_no_trouble(gpt2: Path) -> None:
    wanted, path = open_folder(gpt2).config, gpt2 / "config.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert open_folder(gpt2).config == wanted


def test_folders_that_lack_something(gpt2: Path, tmp_path: Path) -> None:
    assert "config.json is not there" in refusal(tmp_path)
    (tmp_path / "adapter_config.json").write_text("{}", encoding="utf-8")
    assert "LoRA" in refusal(tmp_path)
    (gpt2 / WEIGHTS).rename(gpt2 / "pytorch_model.bin")
    assert "pickles" in refusal(gpt2)


@pytest.mark.parametrize(
    ("name", "change", "named"),
    [
        ("transformer.wte.weight", lambda x: x[1:], "transformer.wte.weight has shape (22, 12)"),
        ("transformer.h.1.attn.c_attn.weight", lambda x: x.t(), "c_attn.weight has shape (36, 12)"),
        ("transformer.ln_f.bias", lambda x: x.repeat(2), "(24,), the configuration wants (12,)"),
        ("transformer.ln_f.bias", lambda x: x.sum(), "(), the configuration wants (12,)"),
        (
            "transformer.wpe.weight",
            lambda x: x.index_fill(1, torch.tensor([4]), float("nan")),
            "wpe.weight holds a number",
        ),
        ("transformer.h.0.mlp.c_fc.weight", lambda x: x.clone().fill_(float("-inf")), "c_fc.weight holds a number"),
        ("transformer.h.0.ln_1.weight", lambda x: x.long(), "ln_1.weight is of type I64"),
        ("transformer.h.0.ln_1.weight", lambda x: x.to(torch.float8_e4m3fn), "ln_1.weight is of type F8_E4M3"),
        ("transformer.h.9.ln_1.weight", lambda _: torch.ones(D), "h.9.ln_1.weight"),
        ("lm_head.weight", lambda _: torch.ones(V, D), "lm_head.weight differs from transformer.wte.weight"),
    ],
)
def test_tensors_that_are_not_those_of_the_configuration(
    gpt2: Path, name: str, change: Callable[[Tensor], Tensor], named: str
) -> None:
    rewritten(gpt2, lambda tensors: tensors | {name: change(tensors.get(name, torch.ones(1)))})
    assert named in refusal(gpt2)


def test_a_tensor_that_is_missing_is_named(gpt2: Path) -> None:
    rewritten(gpt2, lambda tensors: {name: x for name, x in tensors.items() if "h.1.ln_2.bias" not in name})
    assert "lacks 1 of the model's tensors, transformer.h.1.ln_2.bias" in refusal(gpt2)


def test_a_second_copy_of_a_tied_head_is_told(gpt2: Path) -> None:
    rewritten(gpt2, lambda tensors: tensors | {"lm_head.weight": tensors["transformer.wte.weight"]})
    assert loaded(gpt2)[1].retied["lm_head.weight"] == "transformer.wte.weight"

"""A model as others load it: `transformers` computes the same, and what comes back is the same bit for bit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import transformers
from hypothesis import given, settings
from safetensors import safe_open
from torch import Tensor

from clearhead.formats.assemble import assemble
from clearhead.formats.hugging_face import export as module
from clearhead.formats.hugging_face.export import export, family_for, lost_in, size_of
from clearhead.formats.hugging_face.families import FAMILIES
from clearhead.formats.hugging_face.folder import open_folder
from clearhead.formats.load import Loaded
from clearhead.formats.rows import AS_IS, Part, Row
from clearhead.formats.weights import own_tensors
from clearhead.messages import UserError
from clearhead.models import choices as kinds
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig, Sight, StackConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.models.presets import preset
from clearhead.text import ByteTokenizer, CharacterTokenizer, MarkedTokenizer, Tokenizer
from tests.models.choices_drawn import models

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


@pytest.mark.parametrize("name", KINDS)
def test_others_compute_the_same_and_nothing_is_lost(name: str, tmp_path: Path) -> None:
    model, folder = loaded(KINDS[name]), tmp_path / "there"
    assert export(model, folder) == KINDS[name].family
    assert difference(model, theirs(model, folder)) <= 1e-5
    assert changed(model, returned(folder)) == []
    family = family_for(model.config)
    back, wanted = (replace(each, dropout=0.0) for each in (open_folder(folder).config, family.completed(model.config)))
    assert back == wanted


def test_a_row_moved_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = loaded(KINDS["Llama"])
    family = family_for(model.config)

    def wrong(config: Any) -> list[Row]:
        return [_turned(row) if row.ours.endswith("qkv.weight") else row for row in family.rows(config)]

    export(model, tmp_path / "there", families=[family._replace(rows=wrong)])
    assert difference(model, theirs(model, tmp_path / "there")) > 1e-3
    assert changed(model, returned(tmp_path / "there")) == [f"blocks.{n}.attention.qkv.weight" for n in range(3)]


def _turned(row: Row) -> Row:
    """q, k and v in another order of names: shapes of k and v agree."""
    q, k, v = row.parts
    assert k.change is AS_IS
    return Row(row.ours, (q, Part(v.name, k.rows), Part(k.name, v.rows)))


def test_a_field_forgotten_is_seen(tmp_path: Path) -> None:
    model = loaded(KINDS["Llama"])
    family = family_for(model.config)
    faulty = family._replace(write=lambda config: family.write(config) | {"rms_norm_eps": 0.5})
    assert "llama, differs in norm RMSNorm(eps=1e-05" in refusal(lambda: family_for(model.config, [faulty]))


@settings(max_examples=30)
@given(models())
def test_every_model_has_a_family_or_is_refused_in_a_line(config: Any) -> None:
    lost = [lost_in(family, config) for family in FAMILIES if module._kind(family) is type(config)]
    if [] in lost:
        assert family_for(config) in FAMILIES
    else:
        assert refusal(lambda: family_for(config)).startswith("no Hugging Face architecture")


REFUSED = {
    "course": (preset("course"), "head_bias True"),
    "ALiBi": (DecoderConfig(**SIZES, positions=kinds.ALiBi()), "positions ALiBi"),
    "sinks": (DecoderConfig(**SIZES, **ROTARY, sinks=True), "sinks True"),
    "softcap": (DecoderConfig(**SIZES, softcap=30.0), "softcap 30.0"),
    "squared": (replace(KINDS["Llama"].config, norm=kinds.LayerNorm()), "norm LayerNorm"),
    "odd heads": (replace(KINDS["Llama"].config, width=20), "llama, differs in head_width 5"),
    "window": (DecoderConfig(**SIZES, window=4), "gpt2, differs in window 4"),
    "encoder": (EncoderConfig(**SIZES, positions=kinds.Sinusoidal()), "positions Sinusoidal"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_architecture_has_is_named(name: str, tmp_path: Path) -> None:
    config, part = REFUSED[name]
    model = Loaded(build(config, device="meta"), LETTERS, config, tmp_path)  # type: ignore[arg-type]
    assert part in refusal(lambda: export(model, tmp_path / "there"))
    assert not any(tmp_path.iterdir())


def test_the_description(tmp_path: Path) -> None:
    export(loaded(KINDS["T5"]), tmp_path / "t5")
    described = json.loads((tmp_path / "t5" / "config.json").read_text(encoding="utf-8"))
    assert described["architectures"] == ["T5ForConditionalGeneration"]
    assert (described["model_type"], described["torch_dtype"]) == ("t5", "float32")
    ids = {"bos_token_id": MARKED.begin, "eos_token_id": MARKED.end, "decoder_start_token_id": MARKED.begin}
    assert described | ids == described
    generation = json.loads((tmp_path / "t5" / "generation_config.json").read_text(encoding="utf-8"))
    assert generation == ids | {"pad_token_id": MARKED.end}
    export(loaded(KINDS["Llama"]), tmp_path / "llama")
    described = json.loads((tmp_path / "llama" / "config.json").read_text(encoding="utf-8"))
    assert (described["bos_token_id"], described["eos_token_id"], described["pad_token_id"]) == (None, None, None)
    assert not (tmp_path / "llama" / "generation_config.json").exists()


def test_the_type_is_kept(tmp_path: Path) -> None:
    model = loaded(KINDS["Qwen 2"], torch.bfloat16)
    export(model, tmp_path / "there")
    with safe_open(tmp_path / "there" / "model.safetensors", "pt") as file:
        assert {file.get_tensor(name).dtype for name in file.keys()} == {torch.bfloat16}  # noqa: SIM118 - not a mapping
        assert file.metadata() == {"format": "pt"}
    assert theirs(model, tmp_path / "there").dtype is torch.bfloat16
    assert changed(model, returned(tmp_path / "there", torch.bfloat16)) == []


def test_several_files_with_an_index(tmp_path: Path) -> None:
    model, moved = loaded(KINDS["Mistral"]), []
    export(model, tmp_path / "there", limit=10_000, written=moved.append)
    files = sorted(file.name for file in (tmp_path / "there").glob("*.safetensors"))
    assert files[:2] == [f"model-0000{n}-of-{len(files):05d}.safetensors" for n in (1, 2)]
    assert all((tmp_path / "there" / name).stat().st_size < 12_000 for name in files)
    index = json.loads((tmp_path / "there" / "model.safetensors.index.json").read_text(encoding="utf-8"))
    assert sorted({*index["weight_map"].values()}) == files
    assert index["metadata"]["total_size"] == sum(moved) == size_of(model)
    assert difference(model, theirs(model, tmp_path / "there")) <= 1e-5
    assert changed(model, returned(tmp_path / "there")) == []


def test_nothing_is_written_over(tmp_path: Path) -> None:
    model = loaded(KINDS["nanoGPT"])
    (tmp_path / "empty").mkdir()
    export(model, tmp_path / "empty")
    before = {file.name: file.read_bytes() for file in (tmp_path / "empty").iterdir()}
    assert "is there already" in refusal(lambda: export(model, tmp_path / "empty"))
    assert {file.name: file.read_bytes() for file in (tmp_path / "empty").iterdir()} == before
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    assert "is there already" in refusal(lambda: export(model, tmp_path / "file"))
    export(model, tmp_path / "new" / "deeper")
    assert (tmp_path / "new" / "deeper" / "config.json").exists()


def test_stopped_halfway_it_leaves_nothing(tmp_path: Path) -> None:
    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(loaded(KINDS["nanoGPT"]), tmp_path / "there", written=stop)
    assert [*tmp_path.iterdir()] == []
    # What a process that was killed could not clear away itself goes with the next export to the same place, and nothing else.
    for name in (".partial-99999-there", ".partial-99999-their", "mine"):
        (tmp_path / name).mkdir()
    export(loaded(KINDS["nanoGPT"]), tmp_path / "there")
    assert sorted(each.name for each in tmp_path.iterdir()) == [".partial-99999-their", "mine", "there"]


@contextmanager
def full(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A disk without room for weights."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(module, "write_safetensors", refuse)
        yield


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with full(monkeypatch):
        line = refusal(lambda: export(loaded(KINDS["nanoGPT"]), tmp_path / "there"))
    assert "cannot be written: No space left on device" in line
    assert [*tmp_path.iterdir()] == []


TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"
WORDS = {
    "T5": loaded(KINDS["T5"]),
    "BERT": loaded(KINDS["BERT"]),
    "BERT with marks": replace(loaded(KINDS["BERT"]), opening=(MASKED.begin,), closing=(MASKED.end,)),
    "NeoX with marks": replace(
        loaded(KINDS["NeoX"]._replace(config=replace(KINDS["NeoX"].config, vocab=MARKED.size), tokenizer=MARKED)),
        opening=(MARKED.begin,),
        chat_template=TEMPLATE,
    ),
    "Llama": loaded(KINDS["Llama"]),
}


@pytest.mark.parametrize("name", WORDS)
def test_what_came_with_the_model_comes_back(name: str, tmp_path: Path) -> None:
    model, text = WORDS[name], "the cat 小猫 sat."
    export(model, tmp_path / "there")
    back = open_folder(tmp_path / "there")
    read = transformers.AutoTokenizer.from_pretrained(tmp_path / "there")
    assert read(text).input_ids == model.read(text)
    assert back.tokenizer.encode(text) == model.tokenizer.encode(text)
    marks = [(each.begin, each.end) for each in (back.tokenizer, model.tokenizer)]
    around = [(each.opening, each.closing, each.chat_template) for each in (back, model)]
    assert (marks[0], around[0]) == (marks[1], around[1])
    assert read.chat_template == model.chat_template


def test_a_run_of_bytes(tmp_path: Path) -> None:
    config = DecoderConfig(**SIZES, vocab=256)
    export(loaded(Kind(config, "gpt2", ByteTokenizer())), tmp_path / "there")
    assert open_folder(tmp_path / "there").tokenizer.encode("é小") == list("é小".encode())

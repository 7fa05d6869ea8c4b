"""A model as others load it: `transformers` computes the same, and what comes back is the same bit for bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import transformers
from hypothesis import given, settings

from clearhead.formats.hugging_face import export as module
from clearhead.formats.hugging_face.export import export, family_for, lost_in
from clearhead.formats.hugging_face.families import FAMILIES
from clearhead.formats.hugging_face.folder import open_folder
from clearhead.formats.load import Loaded
from clearhead.formats.rows import AS_IS, Part, Row
from clearhead.models import choices as kinds
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderConfig
from clearhead.models.presets import preset
from clearhead.text import ByteTokenizer
from tests.formats.hugging_face.exported import (
    KINDS,
    LETTERS,
    MARKED,
    MASKED,
    ROTARY,
    SIZES,
    Kind,
    changed,
    difference,
    loaded,
    refusal,
    returned,
    theirs,
)
from tests.models.choices_drawn import models


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


@settings(max_examples=12)
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

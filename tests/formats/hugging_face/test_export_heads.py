"""Encoders without a head of tokens: features as they are, the pooler, and what sentence-transformers makes of features."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModel

from clearhead.formats.hugging_face.bert import head_of
from clearhead.formats.hugging_face.export import export, family_for
from clearhead.formats.hugging_face.export_heads import head_files
from clearhead.formats.load import Loaded
from clearhead.messages import UserError
from clearhead.models.build import build
from clearhead.models.choices import EncoderHead, Features, First, Max, Mean, Pooled, PostNorm
from clearhead.models.config_encoders import EncoderConfig
from clearhead.text.numbers import NumberTokenizer

CONFIG = EncoderConfig(
    vocab=23,
    layers=2,
    heads=3,
    width=24,
    feedforward_width=28,
    context=13,
    block=PostNorm(),
    embedding_norm=True,
    qkv_bias=True,
    bias=True,
    segments=2,
    head=Features(),
)
HEADS = (Features(), Pooled(First(), dense=True), Pooled(Mean()), Pooled(Mean(), unit=True), Pooled(Max()), Pooled())


def loaded(head: EncoderHead) -> Loaded:
    config = replace(CONFIG, head=head)
    return Loaded(build(config, seed=4).eval(), NumberTokenizer(23), config, Path("a run"))


@pytest.mark.parametrize("head", HEADS, ids=repr)
@torch.no_grad()
def test_the_folder_says_what_is_made_of_the_features(head: EncoderHead, tmp_path: Path) -> None:
    model, folder, ids = loaded(head), tmp_path / "there", torch.randint(0, 23, (3, 7))
    assert export(model, folder) == "bert"
    theirs, told = AutoModel.from_pretrained(folder, output_loading_info=True)
    made = theirs.eval()(ids)
    expected: Any = {
        Features(): made.last_hidden_state,
        Pooled(First(), dense=True): made.pooler_output,
        Pooled(Mean()): made.last_hidden_state.mean(1),
        Pooled(Mean(), unit=True): torch.nn.functional.normalize(made.last_hidden_state.mean(1), dim=-1),
        Pooled(Max()): made.last_hidden_state.amax(1),
        Pooled(): made.last_hidden_state[:, 0],
    }[head]
    assert (model.model(ids) - expected).abs().max() <= 1e-5  # type: ignore[operator]
    # The pooler is the one thing that theirs always has and nobody asks.
    assert {name.partition(".")[0] for name in told["missing_keys"]} <= {"pooler"}
    assert not told["unexpected_keys"]
    names = [f"bert.{name}" for name in theirs.state_dict() if name not in told["missing_keys"]]
    assert head_of(folder, ["BertModel"], names) == head


def test_another_pooling_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = head_files(replace(CONFIG, head=Pooled(Max())))
    monkeypatch.setattr("clearhead.formats.hugging_face.export.head_files", lambda _: files)
    export(loaded(Pooled(Mean())), tmp_path / "there")
    assert head_of(tmp_path / "there", ["BertModel"], []) == Pooled(Max())


def test_a_layer_after_another_pooling_is_refused() -> None:
    with pytest.raises(UserError, match=r"bert, differs in head Pooled\(pooling=Mean, dense=True, unit=False\);"):
        family_for(replace(CONFIG, head=Pooled(Mean(), dense=True)))

"""BERT's own mask: folders of other people's encoders are scored and continued as ours are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, BertTokenizer

from clearhead.formats.hugging_face.export import export
from clearhead.formats.imported import import_model
from clearhead.formats.load import load
from clearhead.messages import UserError
from clearhead.text import LibraryTokenizer
from clearhead.training.masking import hiding_of
from clearhead.training.plan import new_plan
from clearhead.training.scoring_masked import score_masked

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "saw", "a", "bird", "."]
MASK, V = WORDS.index("[MASK]"), len(WORDS) + 3
TEXT = "The cats saw a bird. A bird saw the [MASK] cat.\n" * 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As transformers saves it; its vocabulary is padded."""
    path = tmp_path / "bert"
    config = BertConfig(
        vocab_size=V,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=12,
        max_position_embeddings=14,
    )
    BertForMaskedLM(config).save_pretrained(path)
    (path / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    BertTokenizer.from_pretrained(path).save_pretrained(path)
    (path / "vocab.txt").unlink(missing_ok=True)
    return path


def test_the_mask_of_a_folder_hides(folder: Path) -> None:
    loaded = load(folder, device="cpu")
    hiding = hiding_of(loaded.tokenizer)
    assert hiding is not None
    assert (hiding.mask, hiding.vocab) == (MASK, V)
    # Neither marks nor ids without a token stand for a word; a text that spells the mask does not hide.
    assert set(hiding.drawn.tolist()) == {1, *range(5, len(WORDS))}
    assert MASK not in loaded.tokenizer.encode(TEXT)
    found = score_masked(loaded, [TEXT])
    assert 0.5 * torch.tensor(float(V)).log() < found.loss < 2 * torch.tensor(float(V)).log()


def test_older_files_need_not_declare_it(folder: Path) -> None:
    for each in folder.glob("*token*"):
        each.unlink()
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    hiding = hiding_of(load(folder, device="cpu").tokenizer)
    assert hiding is not None
    assert hiding.mask == MASK


def test_runs_trainings_and_exports_keep_it(folder: Path, tmp_path: Path) -> None:
    loaded = load(folder, device="cpu")
    import_model(loaded, tmp_path / "run")
    export(load(tmp_path / "run", device="cpu"), tmp_path / "again")
    assert BertTokenizer.from_pretrained(tmp_path / "again").mask_token_id == MASK
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    texts, cpu = [str(tmp_path / "text.txt")], torch.device("cpu")
    plan = new_plan(tmp_path / "new", texts, {"steps": 1, "batch": 2}, init=str(folder), device=cpu)
    batch = plan.objective.batches(0)
    assert (batch.inputs == MASK).any()
    for tokenizer in (
        load(tmp_path / "run", device="cpu").tokenizer,
        load(tmp_path / "again", device="cpu").tokenizer,
        plan.run.tokenizer,
    ):
        assert isinstance(tokenizer, LibraryTokenizer)
        assert tokenizer.mask == MASK


def test_a_folder_that_has_none_is_told_what_it_lacks(folder: Path, tmp_path: Path) -> None:
    """The planted fault: a mask that the file says is none."""
    declared = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    (folder / "tokenizer_config.json").write_text(json.dumps({**declared, "mask_token": None}), encoding="utf-8")
    loaded = load(folder, device="cpu")
    assert hiding_of(loaded.tokenizer) is None
    with pytest.raises(UserError, match=r"tokenizer_config\.json names a mask_token"):
        score_masked(loaded, [TEXT])
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    with pytest.raises(UserError, match=r"tokenizer_config\.json names a mask_token"):
        new_plan(tmp_path / "new", [str(tmp_path / "text.txt")], {}, init=str(folder), device=torch.device("cpu"))

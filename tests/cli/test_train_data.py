"""`clearhead train` on every kind of material: folders, documents, hidden tokens, conversations, trained tokenizers, other models."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from clearhead.formats.load import load
from clearhead.formats.run import read_run
from clearhead.models.encoder import Encoder
from clearhead.text import CharacterTokenizer, MarkedTokenizer
from clearhead.text.library import LibraryTokenizer
from tests.cli.runs import SIZES, TEXT, Clearhead

QUICK = ("--steps", "4", "--batch", "2")
LINES = [
    f"Story {number}: the {['cat', 'dog', 'bird'][number % 3]} saw {number * 7 % 11} trees." for number in range(60)
]


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """Sixty documents, a line each."""
    path = tmp_path / "documents.jsonl"
    path.write_text("".join(json.dumps({"text": line, "other": "no"}) + "\n" for line in LINES), encoding="utf-8")
    return path


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """Thirty conversations."""
    path = tmp_path / "questions.jsonl"
    talks = [
        [{"role": "user", "content": f"What is {n} and 1?"}, {"role": "assistant", "content": str(n + 1)}]
        for n in range(30)
    ]
    path.write_text("".join(json.dumps({"messages": talk}) + "\n" for talk in talks), encoding="utf-8")
    return path


def test_many_documents_are_packed_and_have_ends(clearhead: Clearhead, documents: Path, tmp_path: Path) -> None:
    said = clearhead("train", documents, "--out", tmp_path / "run", *QUICK, *SIZES)
    assert said.status == 0, said.err
    assert "documents train and" in said.err
    loaded = load(tmp_path / "run")
    assert isinstance(loaded.tokenizer, MarkedTokenizer)
    kept = [load_file(tmp_path / "run/tokens" / f"{side}.tokens") for side in ("train", "validation")]
    texts = []
    for tokens in kept:
        assert tokens["ids"].dtype == np.uint16
        begins = [0, *tokens["ends"][:-1]]
        texts += [loaded.tokenizer.decode(tokens["ids"][a:b]) for a, b in zip(begins, tokens["ends"], strict=True)]
    assert sorted(texts) == sorted(LINES)
    # A document begins with its mark, so nothing need be typed to get one.
    assert clearhead("generate", tmp_path / "run", "-p", "", "--max-tokens", 5).status == 0


def test_what_packed_documents_see_is_a_choice_that_a_resumption_keeps(
    clearhead: Clearhead, documents: Path, tmp_path: Path
) -> None:
    losses = {}
    for mask in ("true", "false"):
        out = tmp_path / mask
        flags = ("--document-mask", mask, "--lr", 0.1, *QUICK, *SIZES, "--model.context=60")
        assert clearhead("train", documents, "--out", out, *flags).status == 0
        lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        losses[mask] = [round(json.loads(line)["loss"], 4) for line in lines]
    assert losses["true"] != losses["false"]
    said = clearhead("train", "--out", out, "--resume", "--steps", 6, "--document-mask", "true")
    assert "document_mask" in said.mistake
    assert clearhead("train", "--out", out, "--resume", "--steps", 6).status == 0


def test_a_folder_of_files_compressed_or_not_is_one_text(clearhead: Clearhead, tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    (folder / "more").mkdir(parents=True)
    (folder / "a.txt").write_text(TEXT, encoding="utf-16")
    (folder / "more/b.md.gz").write_bytes(gzip.compress(TEXT[::-1].encode()))
    (folder / "c.png").write_bytes(b"\x89PNG\0\0")
    said = clearhead("train", folder, "--out", tmp_path / "run", *QUICK, *SIZES)
    assert said.status == 0, said.err
    assert "UTF-16" in said.err
    assert load_file(tmp_path / "run/tokens/train.tokens")["ends"].shape == (2,)


def test_token_files_are_used_again_and_written_anew_when_damaged(
    clearhead: Clearhead, text: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    assert clearhead("train", text, "--out", out, *QUICK, *SIZES).status == 0
    kept = out / "tokens/train.tokens"
    before, whole = kept.stat().st_mtime_ns, kept.read_bytes()
    assert clearhead("train", "--out", out, "--resume", "--steps", 5).status == 0
    assert kept.stat().st_mtime_ns == before
    kept.write_bytes(whole[:-3])
    assert clearhead("train", "--out", out, "--resume", "--steps", 6).status == 0
    assert kept.read_bytes() == whole


def test_nothing_half_written_is_left_when_a_text_cannot_be_used(
    clearhead: Clearhead, documents: Path, tmp_path: Path
) -> None:
    with documents.open("a", encoding="utf-8") as file:
        file.write('{"text": "broken in the mid')
    said = clearhead("train", documents, "--out", tmp_path / "run", *QUICK, *SIZES)
    assert f"{documents}" in said.mistake
    assert "61" in said.mistake
    assert not (tmp_path / "run").exists()
    said = clearhead("train", documents, "--field", "body", "--out", tmp_path / "run", *QUICK, *SIZES)
    assert "body" in said.mistake


def test_a_context_of_nothing_and_a_vocabulary_of_one(clearhead: Clearhead, tmp_path: Path) -> None:
    """Smallest things: one character a thousand times is handled; a single token is nothing to learn from."""
    path = tmp_path / "a.txt"
    path.write_text("a" * 1_200, encoding="utf-8")
    assert clearhead("train", path, "--out", tmp_path / "one", *QUICK, *SIZES).status == 0
    tokens = tmp_path / "tokenizer.json"
    assert clearhead("tokenizer", "train", path, "--vocab", 300, "--out", tokens).status == 0
    said = clearhead("train", path, "--tokenizer", tokens, "--out", tmp_path / "two", *QUICK, *SIZES)
    assert said.status in (0, 2)
    if said.status == 2:
        assert said.mistake
        assert not (tmp_path / "two").exists()


@pytest.mark.parametrize("form", ["bpe", "file"])
def test_a_trained_tokenizer(clearhead: Clearhead, text: Path, tmp_path: Path, form: str) -> None:
    chosen = ["--tokenizer", "bpe", "--vocab", "300"]
    if form == "file":
        assert clearhead("tokenizer", "train", text, "--vocab", 300, "--out", tmp_path / "t.json").status == 0
        chosen = ["--tokenizer", str(tmp_path / "t.json")]
    said = clearhead("train", text, "--out", tmp_path / "run", *chosen, *QUICK, *SIZES)
    assert said.status == 0, said.err
    loaded = load(tmp_path / "run")
    assert isinstance(loaded.tokenizer, LibraryTokenizer)
    assert loaded.tokenizer.decode(loaded.tokenizer.encode(TEXT)) == TEXT
    assert clearhead("train", "--out", tmp_path / "run", "--resume", "--steps", 6, *chosen).status == 0
    assert "byte" in clearhead("train", "--out", tmp_path / "run", "--resume", "--tokenizer", "byte").mistake


def test_an_encoder_learns_hidden_tokens(clearhead: Clearhead, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    said = clearhead("train", text, "--model", "Encoder", "--out", out, *QUICK, *SIZES)
    assert said.status == 0, said.err
    assert "hidden token" in said.out
    assert f"eval {out} {text}" in said.out
    loaded = load(out)
    assert isinstance(loaded.model, Encoder)
    assert isinstance(loaded.tokenizer, MarkedTokenizer)
    assert loaded.tokenizer.mask == loaded.config.vocab - 1
    assert clearhead("eval", out, text).status == 0
    assert "encoder" in clearhead("generate", out, "-p", "a").mistake
    assert clearhead("train", "--out", out, "--resume", "--steps", 6).status == 0


def test_conversations_are_learnt_by_their_answers(clearhead: Clearhead, questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    said = clearhead("train", questions, "--out", out, *QUICK, *SIZES[:-1])
    assert said.status == 0, said.err
    assert "answers" in said.out
    assert f"chat {out}" in said.out
    assert (out / "chat_template.jinja").read_text(encoding="utf-8").startswith("{% for message")
    assert "answers_right" in (out / "metrics.jsonl").read_text(encoding="utf-8")
    assert clearhead("train", "--out", out, "--resume", "--steps", 6).status == 0
    (out / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}", encoding="utf-8")
    assert clearhead("train", "--out", out, "--resume", "--steps", 8).status == 2
    # The same file as plain documents: its field is named.
    said = clearhead("train", questions, "--field", "messages", "--out", tmp_path / "text", *QUICK, *SIZES)
    assert "messages" in said.mistake


def test_a_model_is_continued_whole_and_at_low_rank(
    clearhead: Clearhead, trained: Path, text: Path, tmp_path: Path
) -> None:
    whole, low = tmp_path / "whole", tmp_path / "low"
    assert clearhead("train", text, "--init", trained, "--out", whole, *QUICK).status == 0
    said = clearhead("train", text, "--init", trained, "--lora.rank", 2, "--out", low, *QUICK, "--lr", 0.1)
    assert said.status == 0, said.err
    assert "bit for bit" in said.out
    assert read_run(low).lora is not None
    assert load(whole).config == load(low).config == load(trained).config
    before = dict(load(trained).model.named_parameters())
    after = dict(load(low).model.named_parameters())
    changed = {name for name, tensor in before.items() if not tensor.equal(after[name])}
    assert changed
    assert all("attention" in name or "feedforward" in name for name in changed)
    assert clearhead("generate", low, "-p", "On day", "--max-tokens", 5).status == 0
    assert clearhead("train", "--out", low, "--resume", "--steps", 6).status == 0


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--lora.rank", "2"], "--init"),
        (["--init", "RUN", "--tokenizer", "byte"], "tokenizer"),
        (["--init", "RUN", "--model.width", "12"], "--model.width"),
        (["--init", "RUN", "--lora.rank", "2", "--lora.targets", '["*.nothing"]'], "nothing"),
        (["--init", "RUN", "--lora.rank", "0"], "lora.rank"),
        (["--init", "nowhere"], "nowhere"),
        (["--vocab", "300"], "bpe"),
        (["--tokenizer", "bpe", "--vocab", "3"], "256"),
        (["--errors", "ignore"], "strict"),
        (["--tokenizer", "nothing.json"], "nothing.json"),
    ],
    ids=str,
)
def test_what_does_not_go_together_is_one_line_and_makes_nothing(
    clearhead: Clearhead, trained: Path, text: Path, tmp_path: Path, *, flags: list[str], named: str
) -> None:
    flags = [str(trained) if flag == "RUN" else flag for flag in flags]
    assert named in clearhead("train", text, "--out", tmp_path / "run", *QUICK, *flags).mistake
    assert not (tmp_path / "run").exists()


def test_the_tokenizer_of_a_run_is_that_of_its_characters(trained: Path) -> None:
    """Running text has no marks, as before."""
    assert isinstance(load(trained).tokenizer, CharacterTokenizer)

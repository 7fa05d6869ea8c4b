"""`clearhead eval`: what is scored and how is said, the numbers are those of Python and of the training, mistakes are one line."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from torch import nn

from clearhead.formats.load import load
from clearhead.formats.run import create_run, read_run
from clearhead.formats.weights import own_tensors, save_tensors
from clearhead.generation.chat import CHAT_TEMPLATE
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig, ModelConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.text import ByteTokenizer, CharacterTokenizer, MarkedTokenizer, Pair, Tokenizer, split_document
from clearhead.text.documents import Reading
from clearhead.text.messages_file import read_conversations
from clearhead.training.scoring import score
from clearhead.training.scoring_conversations import score_conversations
from clearhead.training.scoring_masked import score_masked
from clearhead.training.scoring_pairs import score_pairs
from tests.cli.runs import TEXT, Clearhead

PAIRS = [f"word {n}\t{n} 词" for n in range(40)]


def saved(folder: Path, config: ModelConfig, tokenizer: Tokenizer, model: nn.Module | None = None) -> Path:
    """A run of a model that has learnt nothing."""
    run = create_run(folder / "run", config, tokenizer, {})
    checkpoint = run.new_checkpoint(3)
    checkpoint.mkdir()
    save_tensors(own_tensors(model or build(config, seed=0)), checkpoint / "model.safetensors")
    (checkpoint / "state.json").write_text("{}", encoding="utf-8")
    return run.path


@pytest.fixture(scope="module")
def answering(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder-decoder; pairs stand beside it."""
    folder = tmp_path_factory.mktemp("answering")
    (folder / "pairs.tsv").write_text("\n".join(PAIRS) + "\n", encoding="utf-8")
    tokenizer = MarkedTokenizer(CharacterTokenizer.of("".join(PAIRS)))
    config = EncoderDecoderConfig(
        layers=1, heads=2, width=8, context=5, source_context=8, vocab=tokenizer.size, dropout=0.1
    )
    return saved(folder, config, tokenizer)


@pytest.fixture(scope="module")
def guessing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder."""
    tokenizer = MarkedTokenizer(ByteTokenizer(), masked=True)
    config = EncoderConfig(layers=1, heads=2, width=8, context=16, vocab=tokenizer.size)
    return saved(tmp_path_factory.mktemp("guessing"), config, tokenizer)


@pytest.fixture(scope="module")
def talking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decoder that knows how conversations are written; some stand beside it."""
    folder = tmp_path_factory.mktemp("talking")
    said = [{"role": role, "content": role[::-1]} for role in ("user", "assistant", "user", "assistant")]
    lines = [json.dumps({"messages": said[:count]}) + "\n" for count in (2, 4, 2)]
    (folder / "talk.jsonl").write_text("".join(lines), encoding="utf-8")
    tokenizer = MarkedTokenizer(ByteTokenizer())
    config = DecoderConfig(layers=1, heads=2, width=8, context=96, vocab=tokenizer.size)
    path = saved(folder, config, tokenizer)
    (path / "chat_template.jinja").write_text(CHAT_TEMPLATE, encoding="utf-8")
    return path


def numbers(said: object) -> dict[str, float]:
    """The one JSON object that was printed, and nothing beside it."""
    status, out, err = said
    assert (status, err) == (0, "")
    found: dict[str, float] = json.loads(out)
    return found


def test_the_numbers_are_those_of_python(clearhead: Clearhead, trained: Path, text: Path) -> None:
    found = numbers(clearhead("eval", trained, text, "--json"))
    wanted = score(load(trained), TEXT)
    assert set(found) == {
        *("model", "files", "loss", "perplexity", "bits_per_byte", "bits_per_character"),
        *("tokens", "ends", "documents", "bytes", "characters", "unknown", "context", "stride"),
    }
    assert (found["model"], found["files"]) == (str(read_run(trained).best().path), [str(text)])
    assert (found["loss"], found["bits_per_byte"]) == (wanted.loss, wanted.bits_per_byte)
    assert (found["tokens"], found["characters"]) == (len(TEXT) - 1, len(TEXT) - 1)
    assert found["bytes"] == len(TEXT[1:].encode())
    assert (found["context"], found["stride"], found["unknown"], found["ends"]) == (12, 12, 0, 0)


def test_it_is_the_validation_loss_of_the_training(clearhead: Clearhead, trained: Path, tmp_path: Path) -> None:
    """The same windows of the same text. The training sums in float32, so the last digits are not compared."""
    recorded = read_run(trained).best().val_loss
    file = tmp_path / "validation.txt"
    file.write_text(split_document(TEXT, 12).validation, encoding="utf-8")
    assert numbers(clearhead("eval", trained, file, "--json"))["loss"] == pytest.approx(recorded, rel=1e-6)
    # The planted fault: other windows give another number, and so does a text with one character less.
    assert numbers(clearhead("eval", trained, file, "--stride", 6, "--json"))["loss"] != pytest.approx(
        recorded, rel=1e-6
    )
    file.write_text(split_document(TEXT, 12).validation[1:], encoding="utf-8")
    assert numbers(clearhead("eval", trained, file, "--json"))["loss"] != pytest.approx(recorded, rel=1e-6)


def test_neither_batch_nor_threads_change_a_number(clearhead: Clearhead, trained: Path, text: Path) -> None:
    asked = ("eval", trained, text, "--json", "--dtype", "float64", "--device", "cpu")
    first = numbers(clearhead(*asked))
    for batch in (1, 3, 1000):
        found = numbers(clearhead(*asked, "--batch", batch, "--threads", 1))
        assert found["loss"] == pytest.approx(first["loss"], rel=1e-12, abs=0)
        assert found["perplexity"] == pytest.approx(first["perplexity"], rel=1e-11, abs=0)
        assert [found[name] for name in ("tokens", "bytes")] == [first[name] for name in ("tokens", "bytes")]


def test_stride_limit_and_several_files(clearhead: Clearhead, trained: Path, text: Path, tmp_path: Path) -> None:
    loaded = load(trained)
    found = numbers(clearhead("eval", trained, text, "--stride", 5, "--limit", 100, "--json"))
    wanted = score(loaded, TEXT, stride=5, limit=100)
    assert (found["loss"], found["tokens"], found["stride"]) == (wanted.loss, 100, 5)
    other = tmp_path / "other.txt"
    other.write_text(TEXT[::-1], encoding="utf-8")
    both = numbers(clearhead("eval", trained, text, other, "--json"))
    assert (both["loss"], both["documents"]) == (score(loaded, [TEXT, TEXT[::-1]]).loss, 2)


def test_a_field_of_lines_and_wrong_bytes(clearhead: Clearhead, trained: Path, tmp_path: Path) -> None:
    loaded, lines = load(trained), [TEXT[:600], TEXT[600:1300]]
    file = tmp_path / "lines.jsonl"
    file.write_text("".join(json.dumps({"body": line}) + "\n" for line in lines), encoding="utf-8")
    found = numbers(clearhead("eval", trained, file, "--field", "body", "--json"))
    assert (found["loss"], found["documents"]) == (score(loaded, lines).loss, 2)
    wrong = tmp_path / "wrong.txt"
    wrong.write_bytes(TEXT.encode() + b"\xff")
    assert "0xFF" in clearhead("eval", trained, wrong).mistake
    said = clearhead("eval", trained, wrong, "--errors", "replace", "--json")
    assert json.loads(said.out)["unknown"] == 1


def test_in_words(clearhead: Clearhead, trained: Path, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = clearhead("eval", trained, text)
    assert (said.status, said.err) == (0, "")
    assert "1,779 tokens" in said.out
    assert "12 tokens that touch" in said.out
    assert f"{math.log(load(trained).tokenizer.size):.4f} (ln V)" in said.out
    assert "end marks" not in said.out
    assert "not known" not in said.out
    assert "from 10 to 12 before it" in clearhead("eval", trained, text, "--stride", 3).out
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    assert "每字节比特数" in clearhead("eval", trained, text).out


def test_unknown_characters_are_noted(clearhead: Clearhead, trained: Path, text: Path) -> None:
    text.write_text(TEXT + "ß狗", encoding="utf-8")
    assert "2 characters are not known" in clearhead("eval", trained, text).out


def test_pairs(clearhead: Clearhead, answering: Path) -> None:
    file = answering.parent / "pairs.tsv"
    found = numbers(clearhead("eval", answering, file, "--json"))
    pairs = [Pair(*line.split("\t")) for line in PAIRS]
    wanted = score_pairs(load(answering), pairs)
    assert set(found) == {"model", "files", "loss", "perplexity", "exact_match", "tokens", "right", "pairs"}
    assert (found["loss"], found["tokens"]) == (wanted.loss, sum(len(pair.target) + 1 for pair in pairs))
    assert (found["right"], found["pairs"]) == (wanted.right, 40)
    said = clearhead("eval", answering, file, "--batch", 3)
    assert (said.status, said.err) == (0, "")
    assert "pairs: 40" in said.out


def test_hidden_tokens(clearhead: Clearhead, guessing: Path, text: Path) -> None:
    found = numbers(clearhead("eval", guessing, text, "--json"))
    wanted = score_masked(load(guessing), TEXT)
    assert set(found) == {"model", "files", "loss", "perplexity", "accuracy", "tokens", "right", "seed", "context"}
    assert (found["loss"], found["tokens"], found["seed"]) == (wanted.loss, wanted.tokens, 0)
    other = numbers(clearhead("eval", guessing, text, "--seed", 1, "--batch", 3, "--json"))
    assert (other["tokens"], other["loss"] == found["loss"]) == (found["tokens"], False)
    assert "chosen by seed 0" in clearhead("eval", guessing, text).out


def test_conversations(clearhead: Clearhead, talking: Path, trained: Path, text: Path) -> None:
    file = talking.parent / "talk.jsonl"
    found = numbers(clearhead("eval", talking, file, "--json"))
    wanted = score_conversations(load(talking), read_conversations([str(file)], Reading()).conversations)
    assert set(found) == {
        *("model", "files", "loss", "perplexity", "answers_right", "tokens", "right", "answers", "conversations"),
    }
    assert (found["loss"], found["tokens"]) == (wanted.loss, 4 * len("assistant."))
    assert (found["answers"], found["conversations"], found["right"]) == (4, 3, wanted.right)
    said = clearhead("eval", talking, file, "--batch", 1)
    assert (said.status, said.err) == (0, "")
    assert "40 tokens of 4 answers" in said.out
    assert "holds conversations and" in clearhead("eval", talking, file, text).mistake
    assert "chat_template.jinja" in clearhead("eval", trained, file).mistake
    assert "--stride has no meaning" in clearhead("eval", talking, file, "--stride", 3).mistake
    # Who names a field wants that text.
    assert "role" in clearhead("eval", talking, file, "--field", "role").mistake
    # With marks every character of a text is scored, and its end.
    plain = numbers(clearhead("eval", talking, text, "--json"))
    assert (plain["tokens"], plain["ends"], plain["bytes"]) == (len(TEXT.encode()) + 1, 1, len(TEXT.encode()))
    assert "1 of the tokens are end marks" in clearhead("eval", talking, text).out


def test_mistakes_are_one_line(
    clearhead: Clearhead, trained: Path, answering: Path, text: Path, tmp_path: Path
) -> None:
    pairs = answering.parent / "pairs.tsv"
    assert "stride = 13 must be 1 ... 12" in clearhead("eval", trained, text, "--stride", 13).mistake
    assert "stride = 0 must be 1 ... 12" in clearhead("eval", trained, text, "--stride", 0).mistake
    assert "batch = 0" in clearhead("eval", trained, text, "--batch", 0).mistake
    assert "batch = 0" in clearhead("eval", answering, pairs, "--batch", 0).mistake
    assert "errors = ignore" in clearhead("eval", trained, text, "--errors", "ignore").mistake
    assert "nowhere.txt" in clearhead("eval", trained, tmp_path / "nowhere.txt").mistake
    assert "--seed has no meaning" in clearhead("eval", trained, text, "--seed", 1).mistake
    assert "--stride has no meaning" in clearhead("eval", answering, pairs, "--stride", 2).mistake
    assert "Line 2" in clearhead("eval", answering, _lines(tmp_path, "a\tb", "a")).mistake
    assert clearhead("eval", trained).status == 2
    assert clearhead("eval", tmp_path / "no-run", text).status == 2


def test_a_pair_that_is_too_long_is_named(clearhead: Clearhead, answering: Path, tmp_path: Path) -> None:
    source = clearhead("eval", answering, _lines(tmp_path, "a\tb", "", "word 11 and more\tb")).mistake
    assert source.startswith("the source of line 3 of ")
    assert "needs 17 positions" in source
    assert "the target of line 1 of" in clearhead("eval", answering, _lines(tmp_path, "a\tlonger", "a\tb")).mistake


def test_one_token_is_nothing_to_score(clearhead: Clearhead, trained: Path, tmp_path: Path) -> None:
    file = tmp_path / "one.txt"
    file.write_text("c", encoding="utf-8")
    assert "at least two tokens" in clearhead("eval", trained, file).mistake


def test_a_model_that_went_wrong_is_valid_json(clearhead: Clearhead, trained: Path, text: Path, tmp_path: Path) -> None:
    """JSON has no NaN."""
    loaded = load(trained)
    with torch.no_grad():
        loaded.model.embedding.weight.fill_(math.nan)
    run = saved(tmp_path, loaded.config, loaded.tokenizer, loaded.model)
    assert numbers(clearhead("eval", run, text, "--json"))["loss"] is None
    assert "nan  loss" in clearhead("eval", run, text).out


def _lines(folder: Path, *lines: str) -> Path:
    path = folder / "lines.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path

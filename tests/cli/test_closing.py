"""The card that closes a training: what stands in it for each kind of data, in a frame that holds in both languages."""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch

from clearhead.cli.closing import closing, framed
from clearhead.formats.load import load
from clearhead.formats.run import read_run
from clearhead.messages import say
from clearhead.text import bigram_loss, unigram_loss
from clearhead.text.columns import columns_of
from clearhead.training.masking import Hiding
from clearhead.training.plan import Plan, resumed_plan
from clearhead.training.run import Training
from clearhead.training.scoring import score
from clearhead.training.tasks import HiddenTokens, PackedDocuments, RunningText
from clearhead.training.text_data import TextData
from tests.cli.runs import SIZES, Clearhead, Said


def card(said: Said | str) -> dict[str, str]:
    """The rows of the card: label -> number."""
    text = said if isinstance(said, str) else said.out
    rows = [line.strip("│| ") for line in text.splitlines() if line.startswith(("│", "|"))]
    pairs = [row.rsplit("  ", 1) if "  " in row else row.rsplit(" ", 1) for row in rows[1:]]
    return {label.strip(): number.strip() for label, number in pairs}


def of(rows: Mapping[str, str], key: str) -> str:
    """The number beside a label that is known by its key, or by its beginning."""
    (found,) = (value for label, value in rows.items() if label.lstrip("> ").startswith(key))
    return found


def widths(lines: list[str]) -> set[int]:
    return {columns_of(line) for line in lines}


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_frame_is_straight_in_both_languages(monkeypatch: pytest.MonkeyPatch, language: str, plain: bool) -> None:
    monkeypatch.setenv("CLEARHEAD_LANG", language)
    rows = [(say("closing.level.uniform"), "4.127"), (say("closing.row.perplexity"), "18.1")]
    made = framed(say("closing.title"), [rows, [], rows[1:]], plain=plain)
    assert len(widths(made)) == 1
    assert len(made) == 3 + 3 + 3 - 1
    assert all(line.isascii() for line in made) is (plain and language == "en")
    assert ("┌" in made[0]) is not plain


def test_a_frame_that_counts_signs_for_columns_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clearhead.cli.closing.columns_of", len)
    assert len(widths(framed("标题", [[("损失", "1.0"), ("loss", "2.0")]], plain=True))) > 1


@pytest.fixture
def ended(trained: Path) -> tuple[Plan, Training]:
    """The finished run, evaluated once more, as if it had just ended."""
    plan = resumed_plan(trained, [str(trained.parent / "text.txt")], {})
    objective = plan.data.objective(plan.run.model, batch=plan.settings.batch, seed=0)
    training = Training(plan.run, plan.settings, objective, torch.device("cpu"))
    training.evaluated = training.evaluate()
    return plan, training


def wrong_rows(plan: Plan, training: Training) -> set[str]:
    """The rows of a text's card that differ from what `eval`, the tables and the metrics have."""
    rows, best, data = card("\n".join(closing(plan, training))), plan.run.best(), plan.data
    assert isinstance(data, TextData)
    assert best.val_loss is not None
    train, validation, size = data.ids["train"], data.ids["validation"], data.tokenizer.size
    held = [data.tokenizer.decode(document[0 : len(document)].tolist()) for document in validation]
    lines = [json.loads(line) for line in plan.run.metrics.read_text(encoding="utf-8").splitlines()]
    mean = sum(line["loss"] for line in lines) / len(lines)
    wanted = {
        "guessing": f"{math.log(size):.3f}",
        "a table of single tokens": f"{unigram_loss(train, validation, size):.3f}",
        "a table of token pairs": f"{bigram_loss(train, validation, size):.3f}",
        f"this model (validation loss, step {best.step})": f"{best.val_loss:.3f}",
        "perplexity": f"{math.exp(best.val_loss):,.3f}",
        "bits per byte": f"{score(load(plan.run.path), held).bits_per_byte:.3f}",
        "training loss": f"{mean:.3f}",
        "gap": f"{lines[-1]['val_loss'] - mean:+.3f}",
        "tokens learnt": f"{6 * 3 * 12}",
    }
    ladder = [float(value) for value in list(rows.values())[:4]]
    unsorted = {"ladder"} if ladder != sorted(ladder, reverse=True) else set()
    return unsorted | {label for label, number in wanted.items() if of(rows, label) != number}


def test_the_card_of_a_text_has_the_right_numbers(ended: tuple[Plan, Training]) -> None:
    """The run has six updates: they all are its end."""
    assert wrong_rows(*ended) == set()


@pytest.mark.parametrize(
    ("what", "instead", "found"),
    [
        ("clearhead.training.text_data.TextData.tokens_per_byte", 1.0, "bits per byte"),
        ("clearhead.training.text_data.TextData.uniform", 9.0, "guessing"),
        ("clearhead.cli.closing._levels", lambda _: {"unigram": 2.0, "bigram": 1.0}, "a table of token pairs"),
        ("clearhead.cli.closing.perplexity", lambda loss: 2**loss, "perplexity"),
        ("clearhead.cli.closing.read_record", lambda _: [{"step": 6, "loss": 1.0, "val_loss": 2.0}], "gap"),
        ("clearhead.training.text_data.TextData.tokens_a_step", lambda *_: 5.0, "tokens learnt"),
        ("clearhead.cli.closing.sorted", lambda rows, key: rows, "ladder"),
    ],
)
def test_a_wrong_number_in_the_card_is_found(
    ended: tuple[Plan, Training], monkeypatch: pytest.MonkeyPatch, what: str, instead: object, found: str
) -> None:
    monkeypatch.setattr(what, instead, raising=not what.endswith("sorted"))
    assert found in wrong_rows(*ended)


def test_the_levels_of_each_task() -> None:
    """Tables of counts; with marks these are among the tokens; of hidden tokens only the single ones."""
    plain = [[[1, 2, 3, 1, 2, 3, 1, 2], [4, 1]], [[1, 2, 3, 1], [4, 2, 2]]]
    train, validation = ([np.array(document) for document in side] for side in plain)
    both = {"unigram": unigram_loss(train, validation, 7), "bigram": bigram_loss(train, validation, 7)}
    assert RunningText().levels(train, validation, 7) == both
    marked = [[np.array([5, *document, 6]) for document in side] for side in plain]
    packed = PackedDocuments(5, 6).levels(train, validation, 7)
    assert packed == {"unigram": unigram_loss(*marked, 7), "bigram": bigram_loss(*marked, 7)}
    assert packed != both
    assert HiddenTokens(None, None, Hiding(6, 6)).levels(train, validation, 7) == {"unigram": both["unigram"]}


def test_the_card_of_documents_hidden_tokens_and_conversations(clearhead: Clearhead, tmp_path: Path) -> None:
    texts = tmp_path / "texts.jsonl"
    texts.write_text(
        "\n".join(json.dumps({"text": f"story {n} of {n % 7} birds"}) for n in range(60)), encoding="utf-8"
    )
    flags = ("--steps", 2, "--batch", 2, *SIZES)
    packed = card(clearhead("train", texts, "--out", tmp_path / "packed", *flags))
    assert {"bits per byte", "perplexity"} <= set(packed)
    assert of(packed, "a table of token pairs")
    hidden = card(clearhead("train", texts, "--out", tmp_path / "hidden", "--model", "Encoder", *flags))
    assert not any(label.startswith(("bits", "a table of token pairs")) for label in hidden)
    assert of(hidden, "a table of single")
    asked = tmp_path / "asked.jsonl"
    turns = [[{"role": "user", "content": f"what {n}?"}, {"role": "assistant", "content": "yes"}] for n in range(40)]
    asked.write_text("\n".join(json.dumps({"messages": each}) for each in turns), encoding="utf-8")
    said = clearhead(
        "train", asked, "--out", tmp_path / "asked", "--steps", 2, "--batch", 2, *SIZES[:3], "--model.context=99"
    )
    assert said.status == 0, said
    assert of(card(said), "answers wholly right, in 4").endswith("%")
    assert not any(label.lstrip("> ").startswith("a table") for label in card(said))


def test_the_best_checkpoint_is_the_model_of_the_card(clearhead: Clearhead, tmp_path: Path) -> None:
    """Where the last evaluation is worse, both are there, and it is said since when."""
    text = tmp_path / "text.txt"
    signs = "".join(random.Random(0).choices([chr(0x4E00 + sign) for sign in range(150)], k=700))
    text.write_text(signs, encoding="utf-8")
    sizes = ("--model.layers=1", "--model.heads=2", "--model.width=32", "--model.context=12", "--model.dropout=0")
    flags = ("--steps", 90, "--eval-every", 15, "--lr", "3e-2", "--batch", 8)
    said = clearhead("train", text, "--out", tmp_path / "run", *flags, *sizes)
    best = read_run(tmp_path / "run").best()
    assert best.step < 90
    rows = card(said)
    assert of(rows, f"this model (validation loss, step {best.step})") == f"{best.val_loss:.3f}"
    assert float(of(rows, "validation loss at the end, step 90")) > float(of(rows, "this model"))
    assert f"since step {best.step} the validation loss has risen" in said.out


def test_the_card_of_a_run_that_goes_on_knows_its_beginning(clearhead: Clearhead, text: Path, tmp_path: Path) -> None:
    flags = ("--out", tmp_path / "run", "--batch", 2, *SIZES)
    clearhead("train", text, *flags, "--steps", 4)
    rows = card(clearhead("train", text, "--out", tmp_path / "run", "--resume", "--steps", 7))
    assert of(rows, "tokens learnt") == f"{7 * 2 * 12}"


def test_a_run_whose_metrics_are_lost_gets_its_card(
    clearhead: Clearhead, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clearhead.cli.closing.read_record", lambda _: [])
    said = clearhead("train", text, "--out", tmp_path / "run", "--batch", 2, *SIZES, "--steps", 2)
    assert said.status == 0
    assert of(card(said), "training loss") == "nan"


def test_a_console_without_frames_gets_one_of_ascii(
    clearhead: Clearhead, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clearhead.cli.closing.plain_signs", lambda stream: stream is sys.stdout)
    said = clearhead("train", text, "--out", tmp_path / "run", "--batch", 2, *SIZES, "--steps", 1)
    assert said.out.startswith("+--")
    assert of(card(said), "perplexity")

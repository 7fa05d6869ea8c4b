"""What is decided before a training starts, and what stops it from starting."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clearhead.formats.run import read_run
from clearhead.messages import UserError
from clearhead.models.config import DecoderConfig, ModelConfig
from clearhead.training import choosing
from clearhead.training.choosing import Given
from clearhead.training.plan import Plan, new_plan, resumed_plan
from clearhead.training.run import Training, measured_speed
from clearhead.training.sizing import (
    CORPUS_SECONDS,
    FEWEST_STEPS,
    LARGE,
    LARGE_FROM,
    SMALL,
    STORIES,
    TEXT_SECONDS,
    pick_lr,
    pick_size,
    pick_steps,
)
from clearhead.training.text_data import TextData
from tests.training.toy import CPU, TINY, objective

TEXT = "".join(f"第{n}天 the cat saw {n % 7} birds.\n" for n in range(90))
SIZES = DecoderConfig(layers=1, heads=2, width=8, context=12)


@pytest.fixture
def text(tmp_path: Path) -> str:
    """A file of a few KB."""
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return str(path)


def planned(tmp_path: Path, *files: str, steps: int = 20, model: ModelConfig | None = SIZES, **given: float) -> Plan:
    return new_plan(tmp_path / "run", files, {"steps": steps, **given}, model=model, device=CPU)


def refusal(out: Path, *files: str, model: ModelConfig | None = None, **given: float | str) -> str:
    """The one line with which a resumption is refused."""
    with pytest.raises(UserError) as error:
        resumed_plan(out, files, given, model=model)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_text_from_300_000_characters_gets_the_larger_model() -> None:
    assert pick_size(LARGE_FROM) == LARGE
    assert pick_size(LARGE_FROM - 1) == SMALL
    assert pick_size(None) == STORIES


@pytest.mark.parametrize(
    ("speed", "seconds", "per_step", "tokens", "steps"),
    [
        (10_000, 70, 1_536, 10**9, 450),  # 455.7 fit the time
        (100_000, 225, 1_536, 10**9, 14_000),  # 14,648 fit the time
        (100_000, 225, 1_536, 100_000, 1_900),  # 30 passes are 1,953
        (1_000, 70, 1_536, 10**9, FEWEST_STEPS),  # 45 fit the time
        (10**6, 225, 1_536, 900, FEWEST_STEPS),
    ],
)
def test_steps_fit_the_time_and_the_text(speed: float, seconds: float, per_step: int, tokens: int, steps: int) -> None:
    found = pick_steps(tokens_per_second=speed, seconds=seconds, tokens_per_step=per_step, train_tokens=tokens)
    assert found == steps


def test_the_learning_rate_falls_with_the_width() -> None:
    assert (pick_lr(128), pick_lr(192)) == (3e-3, 2e-3)


def test_without_steps_the_speed_of_this_machine_decides(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "measured_speed", lambda *_, lora, settings: 240.0)
    plan = new_plan(tmp_path / "run", [text], {"batch": 2}, model=SIZES, device=CPU)
    assert plan.settings.steps == 2_200 == int(TEXT_SECONDS * 240 / 24 / 100) * 100
    assert "2200" in plan.reasons[0].replace(",", "")
    assert TEXT_SECONDS != CORPUS_SECONDS


def test_the_measured_speed_is_a_speed_and_draws_nothing_from_the_caller() -> None:
    import torch  # noqa: PLC0415

    before = torch.get_rng_state()
    assert measured_speed(TINY, objective(), CPU, updates=3) > 0
    assert torch.equal(torch.get_rng_state(), before)


def test_sizes_are_told_when_they_were_chosen_and_not_when_given(tmp_path: Path, text: str) -> None:
    chosen = new_plan(tmp_path / "chosen", [text], {"steps": 5}, device=CPU)
    assert len(chosen.reasons) == 1
    assert f"{STORIES.layers} blocks" in chosen.reasons[0]
    assert planned(tmp_path, text).reasons == ()


@pytest.mark.parametrize(
    ("steps", "warmup", "rhythm"), [(20, 2, 100), (501, 50, 101), (3, 0, 100), (5_000, 100, 1_000)], ids=str
)
def test_the_rhythm_follows_from_the_steps(tmp_path: Path, text: str, steps: int, warmup: int, rhythm: int) -> None:
    settings = planned(tmp_path, text, steps=steps).settings
    assert (settings.warmup, settings.eval_every, settings.checkpoint_every) == (warmup, rhythm, rhythm)


def test_checkpoints_follow_evaluations_unless_said_otherwise(tmp_path: Path, text: str) -> None:
    assert planned(tmp_path, text, eval_every=7).settings.checkpoint_every == 7


def test_the_vocabulary_is_the_texts_own(tmp_path: Path, text: str) -> None:
    plan = planned(tmp_path, text)
    assert isinstance(plan.run.model, DecoderConfig)
    assert plan.run.model.vocab == plan.data.tokenizer.size == len(set(TEXT)) + 1


def test_the_run_records_what_its_numbers_depend_on(tmp_path: Path, text: str) -> None:
    planned(tmp_path, text)
    recorded = json.loads((tmp_path / "run/config.json").read_text(encoding="utf-8"))
    assert recorded["format_version"] == 1
    assert recorded["training"]["steps"] == 20
    assert recorded["data"]["files"] == [text]
    assert len(recorded["data"]["sha256"]) == 64
    assert {"clearhead", "torch", "python", "platform", "threads"} <= recorded["versions"].keys()


def test_a_text_of_1_kb_trains(tmp_path: Path) -> None:
    """Its context shrinks, and it says so."""
    path = tmp_path / "small.txt"
    path.write_text(TEXT[:1_000], encoding="utf-8")
    plan = new_plan(tmp_path / "run", [str(path)], {"steps": 3, "batch": 2}, device=CPU)
    assert plan.run.model.context == 99  # one less than the 100 characters for validation
    assert any("99" in note for note in plan.data.notes)
    trained = Training(plan.run, plan.settings, plan.data.objective(plan.run.model, batch=2, seed=0), CPU)
    assert [event.step for event in trained.events()][-1] == 3
    assert trained.val_loss is not None


def test_a_run_in_the_way_is_refused(tmp_path: Path, text: str) -> None:
    planned(tmp_path, text)
    with pytest.raises(UserError, match="--resume"):
        planned(tmp_path, text)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_an_out_in_use_is_refused_and_left_alone(tmp_path: Path, text: str, kind: str) -> None:
    precious = tmp_path / "run" if kind == "file" else tmp_path / "run/precious"
    precious.parent.mkdir(exist_ok=True)
    precious.write_text("mine")
    with pytest.raises(UserError, match="not empty"):
        planned(tmp_path, text)
    assert precious.read_text() == "mine"


def test_an_empty_out_is_taken(tmp_path: Path, text: str) -> None:
    (tmp_path / "run").mkdir()
    assert planned(tmp_path, text).run.path == tmp_path / "run"


@pytest.mark.parametrize(
    "given",
    [{"steps": 0}, {"steps": -5}, {"batch": 0}, {"lr": 0.0}, {"clip": -1.0}, {"beta2": 1.0}, {"seed": -1}],
    ids=str,
)
def test_a_number_out_of_range_is_refused_and_makes_no_run(tmp_path: Path, text: str, given: Given) -> None:
    with pytest.raises(UserError, match=next(iter(given))):
        planned(tmp_path, text, **given)
    assert not (tmp_path / "run").exists()


def test_a_resumption_keeps_what_is_not_named(tmp_path: Path, text: str) -> None:
    first = planned(tmp_path, text, lr=0.5)
    second = resumed_plan(tmp_path / "run", [], {"steps": 30, "eval_every": 3})
    assert (second.settings.lr, second.settings.steps, second.settings.eval_every) == (0.5, 30, 3)
    assert read_run(tmp_path / "run").details["training"]["steps"] == 30
    assert isinstance(first.data, TextData)
    assert isinstance(second.data, TextData)
    assert second.data.ids["train"][0][:].tolist() == first.data.ids["train"][0][:].tolist()


def test_a_resumption_that_names_the_same_again_is_the_same(tmp_path: Path, text: str) -> None:
    planned(tmp_path, text, lr=0.5)
    assert resumed_plan(tmp_path / "run", [text], {"lr": 0.5, "steps": 20}, model=SIZES).settings.lr == 0.5


def test_a_resumption_may_not_become_another_training(tmp_path: Path, text: str) -> None:
    planned(tmp_path, text, lr=0.5)
    assert "0.5, not 0.25" in refusal(tmp_path / "run", lr=0.25)
    assert "float32, not bfloat16" in refusal(tmp_path / "run", dtype="bfloat16")
    assert "model" in refusal(tmp_path / "run", model=DecoderConfig(layers=2, heads=2, width=8, context=12))


def test_a_changed_text_is_found_by_its_hash(tmp_path: Path, text: str) -> None:
    planned(tmp_path, text)
    Path(text).write_text(TEXT.replace("cat", "cow", 1), encoding="utf-8")
    assert "sha256" in refusal(tmp_path / "run")


def test_a_text_that_moved_may_be_named_anew(tmp_path: Path, text: str) -> None:
    planned(tmp_path, text)
    moved = Path(text).rename(tmp_path / "moved.txt")
    assert "text.txt" in refusal(tmp_path / "run")
    assert resumed_plan(tmp_path / "run", [str(moved)], {}).settings.steps == 20


def test_no_run_to_go_on_with(tmp_path: Path) -> None:
    assert "no such model" in refusal(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    assert "config.json" in refusal(tmp_path / "empty")


@pytest.mark.parametrize("damage", ["training", "data", "beta2", "sha256"])
def test_a_damaged_description_is_one_line(tmp_path: Path, text: str, damage: str) -> None:
    planned(tmp_path, text)
    path = tmp_path / "run/config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    for part in (config, config["training"], config["data"]):
        part.pop(damage, None)
    path.write_text(json.dumps(config), encoding="utf-8")
    assert damage in refusal(tmp_path / "run")

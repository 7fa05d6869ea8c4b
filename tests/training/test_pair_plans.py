"""Plans of trainings on pairs: a record that a resumption is held to, and no bit lost by a stop."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from clearhead.formats.run import read_run
from clearhead.messages import UserError
from clearhead.models.config import DecoderConfig, ModelConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.text import MarkedTokenizer
from clearhead.training import choosing
from clearhead.training.data_choice import DataChoice
from clearhead.training.pair_data import PairData
from clearhead.training.pairs import PairBatch, Shuffled
from clearhead.training.plan import new_plan, resumed_plan
from clearhead.training.run import Evaluated, Saved, Training
from tests.training.toy import CPU, differing, state
from tests.training.toy_pairs import LINES, TINY, planned, training_of, written


@pytest.fixture
def pairs(tmp_path: Path) -> str:
    return written(tmp_path / "pairs.tsv")


def refusal(out: Path, *files: str, model: ModelConfig | None = None, typed: frozenset[str] | None = None) -> str:
    """The one line with which a resumption is refused."""
    with pytest.raises(UserError) as error:
        resumed_plan(out, files, {}, model=model, typed=typed)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_the_run_records_the_pairs_and_its_tokenizer_with_marks(tmp_path: Path, pairs: str) -> None:
    plan = planned(tmp_path / "run", pairs)
    recorded = json.loads((tmp_path / "run/config.json").read_text(encoding="utf-8"))["data"]
    assert recorded == plan.data.source
    assert (recorded["pairs"], len(recorded["sha256"])) == ([pairs], 64)
    run = read_run(tmp_path / "run")
    assert run.model == replace(TINY, vocab=plan.data.tokenizer.size)
    assert run.tokenizer == plan.data.tokenizer
    assert isinstance(run.tokenizer, MarkedTokenizer)


def test_sizes_are_told_when_they_were_picked_and_not_when_given(tmp_path: Path, pairs: str) -> None:
    told = new_plan(tmp_path / "picked", [pairs], {"steps": 2}, model=TINY, typed=frozenset({"width"}), device=CPU)
    assert len(told.reasons) == 1
    assert "32 pairs" in told.reasons[0]
    assert planned(tmp_path / "given", pairs).reasons == ()


def test_without_steps_the_speed_and_the_pairs_decide(
    tmp_path: Path, pairs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "measured_speed", lambda *_, lora, settings: 1e9)
    plan = new_plan(tmp_path / "run", [pairs], {"batch": 2}, model=TINY, device=CPU)
    assert isinstance(plan.data, PairData)
    # 30 passes over 29 pairs, two at a time; a number of steps is rounded down to two digits.
    assert len(plan.data.train) == 29
    assert plan.settings.steps == 430
    assert "430" in plan.reasons[0]


def test_no_run_is_made_of_what_is_refused(tmp_path: Path, pairs: str) -> None:
    for model in (replace(TINY, context=6), replace(TINY, source_vocab=9), EncoderConfig()):
        with pytest.raises(UserError):
            new_plan(tmp_path / "run", [pairs], {"steps": 1}, model=model, device=CPU)
    assert not (tmp_path / "run").exists()


def test_a_resumption_on_the_same_pairs_is_the_same(tmp_path: Path, pairs: str) -> None:
    first = planned(tmp_path / "run", pairs)
    again = resumed_plan(tmp_path / "run", [pairs], {"steps": 8, "batch": 7}, model=TINY)
    assert again.settings == first.settings
    batches = [plan.data.objective(plan.run.model, batch=7, seed=0).batches(5) for plan in (first, again)]
    assert all(torch.equal(*tensors) for tensors in zip(*batches, strict=True))


def test_changed_pairs_are_found_and_moved_ones_may_be_named(tmp_path: Path, pairs: str) -> None:
    planned(tmp_path / "run", pairs)
    moved = str(Path(pairs).rename(tmp_path / "moved.tsv"))
    assert "pairs.tsv" in refusal(tmp_path / "run")
    assert resumed_plan(tmp_path / "run", [moved], {"steps": 30}).settings.steps == 30
    assert "sha256" in refusal(tmp_path / "run", written(tmp_path / "one less.tsv", LINES[1:]))
    written(Path(pairs), [*LINES[1:], LINES[0]])
    assert "sha256" in refusal(tmp_path / "run")


@pytest.mark.parametrize(
    ("model", "typed", "said"),
    [
        (replace(TINY, width=16), {"width"}, "model.width: .* 8, not 16"),
        (replace(TINY, layers=2), None, "model.layers: .* 1, not 2"),
        (replace(TINY, encoder_layers=3), {"encoder_layers"}, "model.encoder_layers"),
        (replace(TINY, context=40), {"context"}, "model.context: .* 8, not 40"),
        (replace(TINY, source_context=13), {"source_context"}, "model.source_context: .* 12, not 13"),
        (DecoderConfig(), {"width"}, "EncoderDecoderConfig, not DecoderConfig"),
    ],
    ids=["width", "layers", "encoder_layers", "context", "source_context", "kind"],
)
def test_another_model_is_refused_by_name(
    tmp_path: Path, pairs: str, model: ModelConfig, typed: set[str] | None, said: str
) -> None:
    planned(tmp_path / "run", pairs)
    with pytest.raises(UserError, match=said):
        resumed_plan(tmp_path / "run", [], {}, model=model, typed=None if typed is None else frozenset(typed))
    # What has not been typed is not asked for.
    unasked = frozenset[str]()
    if isinstance(model, EncoderDecoderConfig):
        assert resumed_plan(tmp_path / "run", [], {}, model=model, typed=unasked).run.model != model


SAME = {"encoder_layers": 1, "source_context": 8, "kv_heads": 2, "head_width": 4, "feedforward_width": 32}


@pytest.mark.parametrize("field", SAME)
def test_a_size_may_be_written_out_or_left_to_follow(tmp_path: Path, field: str) -> None:
    """Both ways round: the run has the number and the user leaves it out, or the user types what the run left out."""
    pairs = written(tmp_path / "pairs.tsv", LINES[:30])
    left = replace(TINY, source_context=None)
    for name, started, asked in (
        ("left", left, replace(left, **{field: SAME[field]})),
        ("written", replace(left, **{field: SAME[field]}), left),
    ):
        new_plan(tmp_path / name, [pairs], {"steps": 1}, model=started, device=CPU)
        assert resumed_plan(tmp_path / name, [], {}, model=asked, typed=frozenset({field})).settings.steps == 1
        assert resumed_plan(tmp_path / name, [], {}, model=asked).run.model == read_run(tmp_path / name).model
        other = replace(asked, **{field: 2 * SAME[field] if field != "kv_heads" else 1})
        said = refusal(tmp_path / name, model=other, typed=frozenset({field}))
        assert said.startswith(f"model.{field}: ")
        assert f" {SAME[field]}, not " in said


def test_the_tokenizer_is_named_by_what_stands_between_its_marks(tmp_path: Path, pairs: str) -> None:
    planned(tmp_path / "run", pairs)
    assert (
        resumed_plan(tmp_path / "run", [], {}, choice=DataChoice(tokenizer="character", encoding="auto")).settings.steps
        == 8
    )
    with pytest.raises(UserError, match=r"tokenizer: .* character, not byte"):
        resumed_plan(tmp_path / "run", [], {}, choice=DataChoice(tokenizer="byte"))


def test_a_decoders_run_does_not_go_on_as_an_encoder_decoder(tmp_path: Path) -> None:
    path = written(tmp_path / "pairs.tsv", LINES * 4)
    new_plan(tmp_path / "run", [path], {"steps": 2}, model=DecoderConfig(layers=1, width=8, heads=2), device=CPU)
    assert "DecoderConfig, not EncoderDecoderConfig" in refusal(tmp_path / "run", model=TINY)


def trained(out: Path, pairs: str, *stops: int) -> Training:
    """Train to the end, in a new `Training` after each of `stops` (numbers of events, counted from its beginning)."""
    planned(out, pairs, eval_every=3, checkpoint_every=2)
    for stop in (*stops, None):
        training = training_of(resumed_plan(out, [], {}))
        for number, _ in enumerate(training.events(), start=1):
            if number == stop:
                break
        training.save_if_new()
        torch.manual_seed(number)
    return training


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tensor]:
    """The state of a training that nobody stopped."""
    folder = tmp_path_factory.mktemp("whole")
    return state(trained(folder / "run", written(folder / "pairs.tsv")))


@pytest.mark.parametrize("stops", [(1,), (4,), (7,), (10,), (1, 2, 5)], ids=str)
def test_a_stop_after_any_event_changes_no_bit(
    tmp_path: Path, pairs: str, whole: dict[str, Tensor], stops: tuple[int, ...]
) -> None:
    """Eight updates of seven pairs of 29: the fifth lies in two epochs."""
    assert differing(state(trained(tmp_path / "run", pairs, *stops)), whole) == []


def test_what_a_stop_could_lose_is_found(
    tmp_path: Path, pairs: str, whole: dict[str, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted faults: dropout's random numbers, and a place in the data that is counted."""
    with monkeypatch.context() as patch:
        patch.setattr(torch, "set_rng_state", lambda _: None)
        assert differing(state(trained(tmp_path / "forgotten", pairs, 7)), whole)
    right = Shuffled.__call__

    def counting(shuffled: Shuffled, _step: int) -> PairBatch:
        shuffled.calls = getattr(shuffled, "calls", -1) + 1  # type: ignore[attr-defined]
        return right(shuffled, shuffled.calls)  # type: ignore[attr-defined]

    monkeypatch.setattr(Shuffled, "__call__", counting)
    assert differing(state(trained(tmp_path / "counted", pairs)), whole) == []
    assert differing(state(trained(tmp_path / "counted and stopped", pairs, 7)), whole)


def test_an_evaluation_tells_the_share_of_right_answers(tmp_path: Path, pairs: str) -> None:
    plan = planned(tmp_path / "run", pairs, eval_every=3, checkpoint_every=100)
    training = training_of(plan)
    events = list(training.events())
    told = [event for event in events if isinstance(event, Evaluated)]
    assert [event.step for event in told] == [3, 6, 8]
    assert isinstance(plan.data, PairData)
    shares = [n / len(plan.data.validation) for n in range(len(plan.data.validation) + 1)]
    assert all(event.measures.keys() == {"exact_match"} for event in told)
    assert all(event.measures["exact_match"] in shares for event in told)
    # The loss alone chooses the best checkpoint.
    assert plan.run.best().val_loss == min(event.val_loss for event in told)
    assert {event.step for event in events if isinstance(event, Saved)} >= {told[-1].step}

"""What a training works with: sizes that fit the pairs, and what the user typed laid over them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from clearhead.messages import UserError
from clearhead.models.build import build
from clearhead.models.choices import Features, Rotary
from clearhead.models.config import DecoderConfig, ModelConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.text import MarkedTokenizer
from clearhead.training import sizing
from clearhead.training.asked import Asked, Material
from clearhead.training.data_choice import NOTHING_SAID, DataChoice
from clearhead.training.material import new_material
from clearhead.training.pair_data import PairData
from clearhead.training.pairs import PairBatch
from clearhead.training.plan import new_plan
from clearhead.training.sizing import PAIRS_BATCH
from clearhead.training.text_data import TextData
from tests.training.toy import CPU
from tests.training.toy_pairs import LINES, TINY, written


@pytest.fixture
def pairs(tmp_path: Path) -> str:
    return written(tmp_path / "pairs.tsv")


def material(
    *files: str,
    model: ModelConfig | None = None,
    typed: frozenset[str] | None = frozenset(),
    choice: DataChoice = NOTHING_SAID,
) -> Material:
    model = EncoderDecoderConfig() if model is None else model
    # Pairs need no token files.
    return new_material(Asked(files, choice, Path("nowhere"), model, typed))


def config_of(made: Material) -> EncoderDecoderConfig:
    assert isinstance(made.config, EncoderDecoderConfig)
    return made.config


def test_the_contexts_hold_the_longest_pair_and_no_more(pairs: str) -> None:
    made = material(pairs)
    config = config_of(made)
    assert (config.source_context, config.encoder.context, config.context) == (10, 10, 7)
    assert isinstance(made.data, PairData)
    assert config.vocab == config.encoder.vocab == made.data.tokenizer.size
    assert made.batch == PAIRS_BATCH
    assert all(f" {number}" in made.sizes for number in (32, config.layers, config.heads, config.width, 10, 7))


def test_every_pair_goes_through_the_model_that_was_picked(pairs: str) -> None:
    """The longest source and the longest target fit, by a hair."""
    made = material(pairs, model=replace(TINY, layers=2), typed=frozenset({"layers", "width", "heads"}))
    assert config_of(made).context == 7
    objective = made.data.objective(made.config, batch=40, seed=0)
    model = build(made.config, seed=0)
    batch = objective.batches(0)
    assert isinstance(batch, PairBatch)
    assert (batch.source.shape[1], batch.inputs.shape[1]) == (10, 7)
    assert objective.loss(model, batch)[0].isfinite()


def test_bytes_need_more_positions_than_characters(pairs: str) -> None:
    config = config_of(material(pairs, choice=DataChoice(tokenizer="byte")))
    # Three birds of three bytes each, two digits.
    assert (config.encoder.context, config.context, config.vocab) == (10, 12, 258)
    with pytest.raises(UserError, match=r"word.*character"):
        material(pairs, choice=DataChoice(tokenizer="word"))


def test_what_was_typed_is_laid_over_what_was_picked(pairs: str) -> None:
    model = EncoderDecoderConfig(layers=3, encoder_layers=1, width=20, positions=Rotary(), dropout=0.0)
    made = config_of(material(pairs, model=model, typed=frozenset({"layers", "encoder_layers", "width", "positions"})))
    assert (made.layers, made.encoder.layers, made.width, made.positions) == (3, 1, 20, Rotary())
    picked = sizing.pick_pairs_config(len(LINES))
    assert (made.heads, made.dropout, made.context) == (picked.heads, picked.dropout, 7)
    assert picked.dropout > 0


def test_all_of_a_model_is_taken_where_nothing_is_to_be_picked(pairs: str) -> None:
    made = config_of(material(pairs, model=TINY, typed=None))
    assert made == replace(TINY, vocab=made.vocab)
    assert made.vocab == len(set("".join(LINES).replace("\t", ""))) + 3  # the unknown character and two marks


def test_many_pairs_need_no_dropout(monkeypatch: pytest.MonkeyPatch, pairs: str) -> None:
    for few, dropout in ((33, 0.1), (32, 0.0)):
        monkeypatch.setattr(sizing, "FEW_PAIRS", few)
        assert config_of(material(pairs)).dropout == dropout


@pytest.mark.parametrize(
    ("source", "target", "typed", "batch"),
    [
        # 2^25 weights are 64 pairs of 4 heads in 2 blocks that read 256; there are targets of 7 positions beside them.
        (252, 1, {}, 63),
        (251, 1, {}, 64),
        (999, 1, {}, 4),
        (1, 999, {}, 4),
        (999, 999, {}, 1),
        (9999, 1, {}, 1),
        (999, 1, {"heads": 1}, 16),
        (999, 1, {"encoder_layers": 1}, 8),
        (1, 999, {"encoder_layers": 1}, 4),
        (1, 999, {"layers": 8}, 1),
    ],
    ids=str,
)
def test_long_pairs_are_fewer_an_update_and_the_user_is_told(
    tmp_path: Path, source: int, target: int, typed: dict[str, int], batch: int
) -> None:
    """One is enough: it makes every row of its update as long."""
    lines = [*LINES, f"{'s' * source}\t{'t' * target}"]
    model = EncoderDecoderConfig(**typed)  # type: ignore[arg-type]
    made = material(written(tmp_path / "long.tsv", lines), model=model, typed=frozenset(typed))
    assert made.batch == batch
    assert (made.few is None) == (batch == PAIRS_BATCH)
    if made.few is not None:
        numbers = [int(number) for number in re.findall(r"\d+", made.few)]
        assert numbers == [batch, PAIRS_BATCH, max(10, source + 1), max(7, target + 1)]


def test_a_smaller_batch_is_picked_only_where_none_is_given(tmp_path: Path) -> None:
    path = written(tmp_path / "long.tsv", [*LINES, f"{'s' * 999}\tt"])
    plan = new_plan(
        tmp_path / "picked", [path], {"steps": 1}, model=EncoderDecoderConfig(), typed=frozenset(), device=CPU
    )
    assert plan.settings.batch == 4
    assert sum("--batch" in reason for reason in plan.reasons) == 1
    given = {"steps": 1, "batch": 5}
    plan = new_plan(tmp_path / "given", [path], given, model=EncoderDecoderConfig(), typed=frozenset(), device=CPU)
    assert plan.settings.batch == 5
    assert not any("--batch" in reason for reason in plan.reasons)


@pytest.mark.parametrize(
    ("side", "field", "needed"), [("source", "source_context", 10), ("target", "context", 7)], ids=["source", "target"]
)
def test_a_context_must_hold_the_longest_pair(pairs: str, side: str, field: str, needed: int) -> None:
    room = EncoderDecoderConfig(context=50, source_context=50)
    for length in (needed, needed + 1, 40):
        made = config_of(material(pairs, model=replace(room, **{field: length}), typed=frozenset({field})))
        assert getattr(made, field) == length
    line = LINES.index({"source": "longest!!\tshort", "target": "short\tlonger"}[side]) + 1
    said = rf"longest {side}, in line {line} of {pairs}, .* {needed} .*is {needed - 1};.* --model.{field},"
    with pytest.raises(UserError, match=said):
        material(pairs, model=replace(room, **{field: needed - 1}), typed=frozenset({field}))


def test_one_context_for_both_must_hold_both(pairs: str) -> None:
    """A model of which nothing is to be picked, and whose sources may be as long as its targets."""
    both = EncoderDecoderConfig(context=10)
    assert config_of(material(pairs, model=both, typed=None)).encoder.context == 10
    with pytest.raises(UserError, match=r"source.*10 .*9"):
        material(pairs, model=replace(both, context=9), typed=None)


@pytest.mark.parametrize(
    ("model", "named"),
    [(EncoderDecoderConfig(source_vocab=40), "source_vocab"), (EncoderConfig(head=Features()), "Features")],
    ids=["two vocabularies", "an encoder of features"],
)
def test_what_is_not_trained_is_named(pairs: str, model: ModelConfig, named: str) -> None:
    with pytest.raises(UserError, match=named) as error:
        material(pairs, model=model, typed=frozenset({"source_vocab", "head"}))
    assert "\n" not in str(error.value)


def test_pairs_must_be_given() -> None:
    with pytest.raises(UserError, match="pairs"):
        material()


@pytest.mark.parametrize("model", [None, DecoderConfig(layers=1)], ids=["none", "a decoder"])
def test_a_decoder_learns_from_the_same_file_as_from_any_text(tmp_path: Path, model: DecoderConfig | None) -> None:
    path = written(tmp_path / "pairs.tsv", LINES * 4)
    made = new_material(Asked([path], NOTHING_SAID, tmp_path / "tokens", model, frozenset({"layers"})))
    assert isinstance(made.config, DecoderConfig)
    assert isinstance(made.data, TextData)
    assert not isinstance(made.data.tokenizer, MarkedTokenizer)
    assert made.data.tokenizer.decode(made.data.tokenizer.encode("\t")) == "\t"
    assert made.data.source["files"] == [path]

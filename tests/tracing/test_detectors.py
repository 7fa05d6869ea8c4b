"""Heads whose weights were written down are found, as what they are and as nothing else; planted faults are caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from clearhead.formats.load import Loaded
from clearhead.messages import UserError, say
from clearhead.models import choices as c
from clearhead.text import CharacterTokenizer
from clearhead.tracing import Edit, Editor, detect_heads, detectors, trace, zero
from clearhead.tracing.detectors import PATTERNS, THRESHOLDS, repeated_ids
from tests.equalities.variants import VARIANTS, model_of
from tests.oracles.compare import assert_same, assert_within
from tests.tracing.known_heads import HEADS_OF, known

# --- the patterns, by hand


def pairs(kind: str, text: str) -> set[tuple[int, int]]:
    """The (query, key) pairs of a kind in a text."""
    return {(t, s) for t, s in PATTERNS[kind](torch.tensor([ord(each) for each in text])).nonzero().tolist()}


def test_the_patterns_by_hand() -> None:
    assert pairs("previous_token", "abcd") == {(2, 1), (3, 2)}
    assert pairs("first_token", "abcd") == {(2, 0), (3, 0)}
    assert pairs("duplicate_token", "abcab") == {(3, 0), (4, 1)}
    assert pairs("duplicate_token", "aaba") == {(1, 0), (3, 0), (3, 1)}
    assert pairs("induction", "abcab") == {(3, 1), (4, 2)}
    # Behind each of two copies; a copy right before the query is followed by the query itself.
    assert pairs("induction", "abacaa") == {(2, 1), (4, 1), (4, 3), (5, 1), (5, 3)}
    assert pairs("induction", "aa") == set()
    for kind in PATTERNS:
        assert pairs(kind, "a") == set()


@pytest.mark.parametrize("kind", PATTERNS)
def test_a_pattern_never_points_ahead_or_at_itself(kind: str) -> None:
    ids = torch.randint(4, (30,), generator=torch.Generator().manual_seed(1))
    assert not PATTERNS[kind](ids).triu().any()


# --- known heads


def check_known(kernel: c.Kernel = c.Fused()) -> None:  # noqa: B008
    found = detect_heads(known(kernel))
    for kind, place in HEADS_OF.items():
        assert float(found.scores[kind][place]) > 0.999, kind
        assert found.passing(kind) == [place], kind
        assert found.best(kind) == place
        others = found.scores[kind].clone()
        others[place] = 0.0
        assert float(others.max()) < 0.35, kind


@pytest.mark.parametrize(
    "kernel", [c.Fused(), c.Visible(), c.Blockwise(block=5)], ids=["fused", "visible", "blockwise"]
)
def test_every_known_head_is_found_as_what_it_is(kernel: c.Kernel) -> None:
    check_known(kernel)


def test_the_induction_head_needs_the_head_before_it() -> None:
    """Two blocks: without the head that writes the token before, there is nothing to match."""
    plain = detect_heads(known())
    without = detect_heads(known(), edits=Editor(Edit("blocks.0.attention.mixed", zero, heads=[0])))
    assert float(plain.scores["induction"][1, 0]) > 0.999
    assert float(without.scores["induction"][1, 0]) < 0.1
    # What was ablated still looks where it looked: a weight is not a cause.
    assert float(without.scores["previous_token"][0, 0]) > 0.999


def test_a_head_that_looks_a_fixed_way_back_is_no_induction_head(monkeypatch: pytest.MonkeyPatch) -> None:
    model = known()
    assert float(detect_heads(model).scores["induction"][1, 1]) < 0.35
    # Measured on one period alone, whose copies stand just that far apart, it would pass.
    monkeypatch.setattr(detectors, "SEQUENCES", 1)
    assert float(detect_heads(model).scores["induction"][1, 1]) > 0.9
    with pytest.raises(AssertionError):
        check_known()


def _shift(kind: str, rows: int, columns: int) -> Callable[[Tensor], Tensor]:
    own = PATTERNS[kind]
    return lambda ids: own(ids).roll((rows, columns), (0, 1)).tril()


def _itself_too(ids: Tensor) -> Tensor:
    return (ids[:, None] == ids).tril()


FAULTS: dict[str, tuple[str, Callable[[Tensor], Tensor]]] = {
    "previous: two back": ("previous_token", _shift("previous_token", 1, 0)),
    "previous: itself": ("previous_token", _shift("previous_token", 0, 1)),
    "first: the second": ("first_token", _shift("first_token", 0, 1)),
    "duplicate: itself too": ("duplicate_token", _itself_too),
    "duplicate: what follows": ("duplicate_token", PATTERNS["induction"]),
    "induction: the copy itself": ("induction", PATTERNS["duplicate_token"]),
    "induction: two behind the copy": ("induction", _shift("induction", 0, 1)),
    "induction: keys for queries": ("induction", lambda ids: detectors.induction_pattern(ids).T),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_detector_that_is_off_by_one_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_known()
    monkeypatch.setitem(PATTERNS, *FAULTS[fault])
    with pytest.raises(AssertionError):
        check_known()


# --- the score, by the loops of its definition


def looped(weights: Tensor, ids: list[int], kind: str) -> tuple[float, int]:
    """Σ and how many queries, of one head (T,T)."""
    total, queries = 0.0, 0
    for t in range(len(ids)):
        keys = {
            "previous_token": [t - 1] if t >= 2 else [],
            "first_token": [0] if t >= 2 else [],
            "duplicate_token": [s for s in range(t) if ids[s] == ids[t]],
            "induction": [s for s in range(1, t) if ids[s - 1] == ids[t]],
        }[kind]
        total += sum(float(weights[t, s]) for s in keys)
        queries += bool(keys)
    return total, queries


@pytest.mark.parametrize("variant", ["learned", "rotary, fused", "window", "sinks", "soft-cap", "ALiBi, MQA", "cycle"])
def test_scores_are_those_of_the_definition(variant: str) -> None:
    model = model_of(variant)
    found = detect_heads(model, period=7)
    made = [trace(model, ids, names="*.attention.weights") for ids in found.sequences]
    for kind, scores in found.scores.items():
        assert scores.shape == (VARIANTS[variant].layers, 4)
        assert float(scores.min()) >= 0.0
        assert float(scores.max()) <= 1.0
        for block, head in ((0, 0), (1, 3)):
            parts = [
                looped(each[f"blocks.{block}.attention.weights"][0, head], ids, kind)
                for each, ids in zip(made, found.sequences, strict=True)
            ]
            total, queries = (sum(column) for column in zip(*parts, strict=True))
            assert queries == found.queries[kind]
            assert abs(float(scores[block, head]) - total / queries) < 1e-12


# --- the sequences, texts, and the table


def test_sequences_are_repeated_once_and_differ_in_period() -> None:
    model = known()
    rows = repeated_ids(model, period=24, seed=0)
    assert [len(row) for row in rows] == [48, 42, 36, 30]
    for row in rows:
        half = len(row) // 2
        assert_same(row[:half], row[half:])
        assert len(set(row.tolist())) == half
    for one, two in zip(rows, repeated_ids(model, seed=0), strict=True):
        assert_same(one, two)
    assert not torch.equal(rows[0], repeated_ids(model, seed=1)[0])
    assert not torch.equal(rows[0][:15], rows[3][:15])


def test_sequences_fit_the_context_and_the_vocabulary() -> None:
    model = model_of("learned")  # 16 positions, 11 ids
    assert [len(row) for row in repeated_ids(model, period=99)] == [16, 14, 12, 10]
    wide = model_of(replace(VARIANTS["learned"], context=40))
    rows = repeated_ids(wide, period=20)
    assert max(len(row) for row in rows) == 40
    assert all(int(row.min()) >= 0 and int(row.max()) < 11 for row in rows)
    with pytest.raises(UserError, match="context of 5"):
        detect_heads(model_of(replace(VARIANTS["learned"], context=5)))


def test_a_text_is_measured_in_place_of_random_ids() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz小猫0123"
    model = known()
    loaded = Loaded(model, CharacterTokenizer(letters), replace(VARIANTS["learned"]), Path("here"))
    found = detect_heads(loaded, "小猫abc小猫abc")
    assert found.queries == {"previous_token": 8, "first_token": 8, "duplicate_token": 5, "induction": 5}
    assert found.sequences == [loaded.tokenizer.encode("小猫abc小猫abc")]
    for kind, place in HEADS_OF.items():
        assert float(found.scores[kind][place]) > 0.999
    nothing = detect_heads(loaded, "abc")
    assert nothing.queries["induction"] == 0
    assert float(nothing.scores["induction"].max()) == 0.0
    assert nothing.passing("induction") == []
    assert repr(nothing).splitlines()[1].split()[-2:] == ["-", "-"]


def test_the_table_says_who_passes_and_the_warning() -> None:
    found = detect_heads(known())
    lines = repr(found).splitlines()
    assert len(lines) == 1 + 6 + 1 + 1
    assert lines[0].split() == ["head", *THRESHOLDS]
    for kind, (block, head) in HEADS_OF.items():
        row = lines[1 + 3 * block + head]
        assert row.startswith(f"blocks.{block}.attention.heads.{head} ")
        assert row.split()[1 + list(THRESHOLDS).index(kind)] == "1.00*"
    assert sum(line.count("*") for line in lines) == 4
    assert lines[-1] == say("tracing.not_a_cause")
    assert max(found.differences.values()) < 1e-12


def test_a_threshold_is_reached_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    found = detect_heads(known())
    score = float(found.scores["induction"][1, 1])
    for least, wanted in ((score, [(1, 0), (1, 1)]), (score + 1e-9, [(1, 0)])):
        assert replace(found, thresholds={**THRESHOLDS, "induction": least}).passing("induction") == wanted


def test_nothing_stays_on_the_model_and_training_with_dropout_is_refused() -> None:
    model = known()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    ids = torch.arange(9)[None]
    with torch.no_grad():
        logits = model(ids)
        detect_heads(model)
        assert_within(model(ids), logits, 0.0)
    for name, tensor in model.state_dict().items():
        assert_same(tensor, before[name])
    with pytest.raises(UserError, match="eval"):
        detect_heads(model_of(replace(VARIANTS["learned"], dropout=0.1)).train())

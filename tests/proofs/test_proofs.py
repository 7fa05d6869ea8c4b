"""The proofs say what they measure: the cheap ones run, the others run shortened; bars, pictures and pages are what they say."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

from clearhead import DecoderConfig, EncoderConfig, build
from clearhead.models.choices import ALiBi, Learned, NoPositions
from clearhead.ops.loss import IGNORED
from proofs import __main__ as command
from proofs import copying, induction, order, scale
from proofs.claims import Picture, Report, Table, Words, at_least, at_most
from proofs.pages import PAGES, write
from proofs.pictures import curves, heat_maps
from proofs.repeats import Repeats
from tests.house.source import ROOT

MOST_BYTES = 60_000
SIZES = {"vocab": order.VOCAB, "layers": 2, "heads": 4, "width": 32, "context": 12}


def report(measured: float) -> Report:
    return Report(
        [at_least("some | share", "某个比例", measured, 0.5)],
        [Table(Words("a table", "表"), [("d", "宽")], [["7"]])],
        [Picture("line", Words("a line", "线"), curves({"a": [(0, 1), (1, 2)]}, x="x", y="y"))],
    )


@pytest.mark.parametrize(
    ("claim", "right"),
    [
        (at_least("", "", 0.5, 0.5), True),
        (at_least("", "", 0.499, 0.5), False),
        (at_most("", "", 0.5, 0.5), True),
        (at_most("", "", 0.501, 0.5), False),
        (at_least("", "", math.nan, 0.5), False),
        (at_most("", "", math.nan, 0.5), False),
    ],
)
def test_a_bar_is_a_bar(claim: object, right: bool) -> None:
    assert claim.right is right  # type: ignore[attr-defined]


def test_curves_are_drawn_where_the_numbers_are() -> None:
    svg = ElementTree.fromstring(curves({"a < b": [(0, 0), (5, math.nan), (10, 4)]}, x="x", y="y"))
    lines = [each.get("points", "") for each in svg.iter("{http://www.w3.org/2000/svg}polyline")]
    assert lines[0] == "58.0,244.0 458.0,14.0"
    assert "a < b" in [each.text for each in svg.iter("{http://www.w3.org/2000/svg}text")]


def test_long_curves_stay_small_and_keep_their_mean() -> None:
    drawn = curves({"a": [(x, x % 2) for x in range(100_000)]}, x="x", y="y", log=False)
    assert len(drawn) < MOST_BYTES / 4


def test_powers_of_ten_are_evenly_spaced() -> None:
    svg = ElementTree.fromstring(curves({"a": [(0, 1e-4), (1, 1e-2), (2, 1.0)]}, x="x", y="y", log=True))
    points = next(svg.iter("{http://www.w3.org/2000/svg}polyline")).get("points", "").split()
    heights = [float(point.split(",")[1]) for point in points]
    assert heights[0] - heights[1] == pytest.approx(heights[1] - heights[2])


def test_a_heat_map_is_darker_where_the_number_is_larger() -> None:
    matrix = torch.tensor([[1.0, 0.0, 0.0], [0.25, 0.75, 0.0]])
    svg = ElementTree.fromstring(heat_maps({"m": matrix}, x="x", y="y", cell=10))
    cells = [each for each in svg.iter("{http://www.w3.org/2000/svg}rect") if each.get("fill-opacity")]
    assert [(each.get("x"), each.get("y"), each.get("fill-opacity")) for each in cells] == [
        ("30", "26", "1.00"),
        ("30", "36", "0.25"),
        ("40", "36", "0.75"),
    ]


def test_the_pages_say_the_same_and_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "proofs").mkdir()
    (tmp_path / "proofs" / "old.svg").write_text("", encoding="utf-8")
    title, about = Words("Title", "题"), Words("About.", "说明。")
    write(tmp_path, {"one": (title, about, report(0.75)), "two": (title, about, report(0.25))})
    english, chinese = ((tmp_path / name).read_text(encoding="utf-8") for name in PAGES.values())
    assert english.count("**WRONG**") == chinese.count("**不成立**") == 1
    for number in ("75.0%", "25.0%", "≥ 50.0%", "| 7 |"):
        assert english.count(number) == chinese.count(number) > 0
    assert [path.name for path in (tmp_path / "proofs").iterdir()] == ["line.svg"]


def test_the_pages_of_the_repository_are_those_of_all_proofs() -> None:
    english, chinese = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in PAGES.values())
    for name in command.NAMES:
        assert f"`python -m proofs {name}`" in english
        assert f"`python -m proofs {name}`" in chinese
    assert "WRONG" not in english
    pictures = list((ROOT / "docs" / "proofs").glob("*.svg"))
    assert {f"proofs/{path.name}" for path in pictures} == set(_linked(english)) == set(_linked(chinese))
    assert max(path.stat().st_size for path in pictures) < MOST_BYTES


def _linked(page: str) -> list[str]:
    return [part.partition(")")[0] for part in page.split("](")[1:] if part.startswith("proofs/")]


def test_the_command_ends_with_1_if_a_bar_is_missed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["scale"]) == 0
    monkeypatch.setattr(scale, "prove", lambda: report(0.25))
    assert command.main(["scale"]) == 1
    assert "WRONG  scale" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["no-such"], ["scale", "--write"]])
def test_a_command_that_cannot_be_done(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2


# --- scale ---


def test_with_the_scale_nothing_depends_on_the_width_and_without_it_all_does() -> None:
    assert all(claim.right for claim in scale.prove(seed=3).claims)


def test_a_scale_that_is_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: both are measured without the scale."""
    right = scale.measured
    monkeypatch.setattr(scale, "measured", lambda width, _, seed: right(width, 1.0, seed))
    assert not scale.prove().claims[0].right


# --- repeats, induction ---


def test_rows_repeat_and_targets_begin_where_they_can_be_known() -> None:
    rows = Repeats(length=20, shortest=3, longest=9, batch=50)
    batch, period = rows.draw(0)
    for ids, targets, each in zip(batch.inputs, batch.targets, period.flatten().tolist(), strict=True):
        assert torch.equal(ids[each:], ids[:-each])
        assert len(set(ids[:each].tolist())) == each
        assert (targets[:each] == IGNORED).all()
        assert torch.equal(targets[each:-1], ids[each + 1 :])
    assert not torch.equal(batch.inputs, rows(1).inputs)
    assert torch.equal(batch.inputs, rows(0).inputs)


def test_what_is_not_learnt_misses_its_bar() -> None:
    """Planted: too few updates. What one block cannot do holds all the same."""
    claims = induction.prove(steps=6).claims
    assert [claim.right for claim in claims[:4]] == [True, False, False, False]


def test_an_ablation_that_does_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = induction.learnt(2, 2, steps=2, seed=0)
    ids = Repeats()(0).inputs
    as_it_is, without = model(ids), induction.Without(model, (1, 0))(ids)
    assert not torch.equal(as_it_is, without)
    assert torch.equal(as_it_is, model(ids)), "something stayed on the model"
    monkeypatch.setattr(induction, "zero", lambda name, part: part)
    torch.testing.assert_close(induction.Without(model, (1, 0))(ids), as_it_is)


def test_copying_is_not_claimed_before_it_is_learnt() -> None:
    assert [claim.right for claim in copying.prove(steps=3).claims] == [False] * 4


# --- order ---


def test_without_positions_and_mask_order_is_invisible() -> None:
    assert order.unmoved(EncoderConfig(**SIZES, positions=NoPositions()), 0) <= 1e-12


@pytest.mark.parametrize(
    "seeing",
    [
        EncoderConfig(**SIZES, positions=Learned()),
        EncoderConfig(**SIZES, positions=ALiBi()),
        DecoderConfig(**SIZES, positions=NoPositions()),
    ],
    ids=["learned", "ALiBi", "causal"],
)
def test_whatever_sees_order_is_found(seeing: DecoderConfig | EncoderConfig) -> None:
    """Planted: positions, or a mask."""
    assert order.unmoved(seeing, 0) > 1e-4


def test_who_cannot_see_order_is_right_once_in_eight() -> None:
    shares = []
    for positions in (NoPositions(), Learned()):
        model = build(EncoderConfig(**SIZES, positions=positions), seed=0).double()
        for parameter in model.parameters():  # far from fresh weights, with which all places look alike
            parameter.data.mul_(10)
        shares.append(order.right_at(model, 3, rows=20, seed=0))
    assert shares[0] == 1 / order.PLACES
    assert shares[1] != 1 / order.PLACES


def test_the_answer_is_the_token_at_the_place_asked() -> None:
    batch = order.Questions(50, 0)(0)
    for ids, targets in zip(batch.inputs.tolist(), batch.targets.tolist(), strict=True):
        assert targets == [IGNORED] * order.PLACES + [ids[ids[-1] - order.TOKENS]]

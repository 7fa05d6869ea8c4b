"""`clearhead plot`: where the numbers stand in a terminal, an SVG and a page, what a PNG is drawn with, mistakes."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from xml.dom import minidom

import numpy as np
import pytest

from clearhead.cli import plot_fonts
from clearhead.cli.plot_figure import number, png, svg
from clearhead.cli.plot_page import ROWS, page
from clearhead.cli.plot_panels import Plot
from clearhead.cli.plot_text import HEIGHT
from clearhead.cli.plot_words import english_words, words
from clearhead.formats.run import create_run
from clearhead.training.curves import Curves, read_curves, running_mean
from tests.cli.runs import Clearhead
from tests.training.curves_files import LOSSES, VALIDATION, lines, recorded


def plotted(*paths: Path, columns: tuple[str, ...] = ("loss",), window: int = 3, log: bool = False) -> Plot:
    return Plot(read_curves(paths), columns, "step", window, log)


def points(drawn: str, name: str) -> np.ndarray:
    """The corners of the line called `name` in an SVG: (N,2)."""
    (group,) = [
        each for each in minidom.parseString(drawn).getElementsByTagName("g") if each.getAttribute("id") == name
    ]
    if markers := group.getElementsByTagName("use"):
        return np.array([[float(each.getAttribute("x")), float(each.getAttribute("y"))] for each in markers])
    path = group.getElementsByTagName("path")[0].getAttribute("d")
    return np.array([[float(x), float(y)] for x, y in re.findall(r"[ML] (\S+) (\S+)", path)])


def scales(drawn: str, transform: Callable[[float], float] = float) -> tuple[np.ndarray, np.ndarray]:
    """From (step, loss) to pixels, as the thin line says: slopes and offsets; the line must be straight in both."""
    seen = points(drawn, "loss-loss-thin-0")
    known = np.array([[step, transform(loss)] for step, loss in enumerate(LOSSES, 1)])
    across, up = (np.polyfit(known[:, axis], seen[:, axis], 1) for axis in (0, 1))
    slopes, offsets = np.array([across[0], up[0]]), np.array([across[1], up[1]])
    np.testing.assert_allclose(seen, known * slopes + offsets, atol=1e-3)
    assert slopes[0] > 0 > slopes[1], "to the right and upwards"
    return slopes, offsets


def expect(
    drawn: str, name: str, wanted: list[tuple[float, float]], transform: Callable[[float], float] = float
) -> None:
    """The line `name` goes through these (step, value)s, by the scales of the thin line."""
    slopes, offsets = scales(drawn, transform)
    there = np.array([[step, transform(value)] for step, value in wanted])
    np.testing.assert_allclose(points(drawn, name), there * slopes + offsets, atol=1e-3)


@pytest.mark.parametrize("transform", [float, math.log], ids=["plain", "log"])
def test_the_points_of_an_svg_are_the_numbers(tmp_path: Path, transform: Callable[[float], float]) -> None:
    run = recorded(tmp_path / "x")
    create_run(run.path, run.model, run.tokenizer, {"levels": {"bigram": 3.125}})
    drawn = svg(plotted(run.path, log=transform is math.log), english_words())
    means = running_mean(np.array(LOSSES), 3)
    expect(drawn, "loss-loss-strong-0", list(enumerate(means.tolist(), 1)), transform)
    expect(drawn, "loss-val_loss-points-0", list(VALIDATION.items()), transform)
    expect(drawn, "loss-val_loss-best-0", [(6, 3.25)], transform)
    slopes, offsets = scales(drawn, transform)
    np.testing.assert_allclose(
        points(drawn, "loss-level-1")[:, 1], transform(3.125) * slopes[1] + offsets[1], atol=1e-3
    )
    for fault in ([(6, 3.26)], [(7, 3.25)]):
        with pytest.raises(AssertionError):
            expect(drawn, "loss-val_loss-best-0", fault, transform)
    shifted = list(enumerate([*means[1:].tolist(), 2.0], 1))
    with pytest.raises(AssertionError):
        expect(drawn, "loss-loss-strong-0", shifted, transform)


def test_an_svg_holds_words_as_text_and_is_the_same_each_time(tmp_path: Path) -> None:
    plot = plotted(
        recorded(tmp_path / "a<b&c $x$").path, recorded(tmp_path / "_小猫").path, columns=("loss", "lr", "grad_norm")
    )
    drawn = svg(plot, english_words())
    assert svg(plot, english_words()) == drawn
    texts = [each.firstChild.data.strip() for each in minidom.parseString(drawn).getElementsByTagName("text")]
    for wanted in (
        "a<b&c $x$: best 3.25 at 6",
        "_小猫: best 3.25 at 6",
        "mean of 3 updates",
        "learning rate",
        "updates",
    ):
        assert wanted in texts
    assert texts.count("mean of 3 updates") == 1
    assert "Noto Sans CJK SC" in drawn
    assert points(drawn, "lr-lr-strong-1").shape == (10, 2)
    assert "lr-lr-thin-1" not in drawn, "there is nothing to smooth in a learning rate"


def test_a_level_far_from_the_curves_is_named_and_does_not_press_them_flat(tmp_path: Path) -> None:
    run = recorded(tmp_path / "x")
    create_run(run.path, run.model, run.tokenizer, {"levels": {"entropy": 40.0, "unigram": 3.0}})
    plot = plotted(run.path)
    assert math.log(run.model.vocab) > 5.5  # type: ignore[attr-defined]
    (panel,) = plot.panels(english_words(), plot.names)
    shown = {level.label: level.near for level in panel.levels}
    assert shown == {
        f"guessing, ln V {plot.runs[0].levels['uniform']:.3f}": True,
        "entropy, the floor 40.000 (outside)": False,
        "token frequencies 3.000": True,
    }
    drawn = svg(plot, english_words())
    assert "loss-level-1" not in drawn
    assert "(outside)" in drawn


def test_levels_that_runs_share_stand_once(tmp_path: Path) -> None:
    first, second = recorded(tmp_path / "a"), recorded(tmp_path / "b")
    create_run(second.path, second.model, second.tokenizer, {"levels": {"bigram": 3.0}})
    plot = plotted(first.path, second.path)
    (panel,) = plot.panels(english_words(), plot.names)
    assert [(level.label.startswith("guessing"), level.run) for level in panel.levels] == [(True, None), (False, 1)]
    assert panel.levels[1].label == "table of pairs 3.000 (b)"


def grid(said: str) -> list[str]:
    """The rows of the first chart in a terminal."""
    return [line.partition("|")[2] for line in said.splitlines() if re.match(r" *[\d.,e+-]* \|", line)][:HEIGHT]


def test_a_chart_in_a_terminal_stands_where_the_numbers_are(
    clearhead: Clearhead, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    falling = [10.0 - 0.5 * step for step in range(17)]
    path = recorded(tmp_path / "x", lines(falling, {1: 2.0, 17: 10.0})).path
    said = clearhead("plot", path, "--smooth", 1)
    assert (said.status, said.err) == (0, "")
    rows = grid(said.out)
    assert len(rows) == HEIGHT
    width = max(map(len, rows))
    assert 45 < width <= 60
    assert rows[16][0] == rows[0][width - 1] == "A"
    for step in range(1, 16):
        assert rows[step][round(step / 16 * (width - 1))] == "a", step
    assert rows[0][0] == "a", "an unshifted start"
    assert rows[1][0] != "a", "and no other row there"
    assert "last loss 2" in said.out
    assert "best validation loss 2 at step 1" in said.out
    assert all(len(line) <= 60 for line in said.out.splitlines() if "|" in line)


def test_several_runs_have_letters_and_steep_curves_no_holes(clearhead: Clearhead, tmp_path: Path) -> None:
    one = recorded(tmp_path / "one", lines([9.0] * 20 + [1.0] * 20, {})).path
    two = recorded(tmp_path / "小猫", lines([5.0, 5.0], {2: 5.0})).path
    said = clearhead("plot", one, two, "--smooth", 1, "--what", "loss,val_loss")
    rows = grid(said.out)
    assert all("a" in row for row in rows)
    assert re.search(r"^  a +one$", said.out, re.MULTILINE)
    assert re.search(r"^  b B +小猫$", said.out, re.MULTILINE)
    assert said.err == "[one has not recorded val_loss]\n"


def test_a_chart_of_one_update_or_of_equal_numbers_is_a_chart(clearhead: Clearhead, tmp_path: Path) -> None:
    for content in (lines([2.0], {}), lines([0.0, 0.0], {}), lines([2.0, None], {})):
        path = recorded(tmp_path / "x", content).path
        said = clearhead("plot", path)
        assert (said.status, said.err) == (0, "")
        assert "a" in "".join(grid(said.out))
        assert clearhead("plot", path, "--out", tmp_path / "x.svg", "--force").status == 0


def test_the_page_has_the_numbers_and_nothing_from_elsewhere(clearhead: Clearhead, tmp_path: Path) -> None:
    many = [5.0 + math.sin(step) for step in range(950)]
    path = recorded(tmp_path / "<i>x", lines(many, {303: 4.0, 950: 3.5})).path
    assert clearhead("plot", path, "--out", tmp_path / "p.html").out == f"{tmp_path / 'p.html'} written\n"
    written = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "<i>" not in written
    assert "<script" not in written
    without_names = re.sub(r'xmlns(:\w+)?="[^"]*"|<metadata>.*?</metadata>', "", written, flags=re.DOTALL)
    assert not re.search(r"https?:|@import|url\((?!#)", without_names)
    assert "default-src 'none'" in written
    assert "currentColor" in written
    assert "#ffffff" not in written, "the ground is the page's"
    assert "#1c1e22; stroke" not in written, "ink follows the ground"
    rows = dict(re.findall(r"<tr><td>([\d,]+)</td><td>([\d.]+)</td>", written))
    assert len(rows) == ROWS + 1
    assert {"1", "303", "950"} <= set(rows)
    assert all(float(value) == pytest.approx(many[int(step) - 1], rel=1e-4) for step, value in rows.items())
    assert "<td>950</td>" in written
    assert "3.5" in written


@pytest.mark.filterwarnings("error")
def test_a_png_without_a_font_is_in_english(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    monkeypatch.setattr(plot_fonts, "CJK_FONTS", ())
    paths = recorded(tmp_path / "小猫").path, recorded(tmp_path / "cat").path
    drawn, own = png(plotted(*paths), words())
    assert not own
    english, _ = png(plotted(recorded(tmp_path / "2" / "run 1").path, paths[1]), english_words())
    assert drawn == english, "and the run that cannot be named has a number"
    assert drawn.startswith(b"\x89PNG")
    chinese = svg(plotted(*paths), words())
    assert "验证" in chinese
    assert "小猫" in chinese
    assert png(plotted(paths[1]), english_words())[1]


def test_signs_are_looked_up_in_the_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plot_fonts, "CJK_FONTS", ())
    assert plot_fonts.drawable("loss é Ω …")
    assert not plot_fonts.drawable("loss 损")
    assert plot_fonts.installed() == [plot_fonts.FONT]


def test_chinese_is_spoken(clearhead: Clearhead, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    said = clearhead("plot", recorded(tmp_path / "x").path, "--what", "loss,lr", "--out", tmp_path / "x.html").out
    assert said == f"已写入 {tmp_path / 'x.html'}\n"
    written = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert '<html lang="zh">' in written
    assert "最佳验证损失" in written
    assert "learning rate" not in written


def test_a_broken_line_is_said(clearhead: Clearhead, tmp_path: Path) -> None:
    run = recorded(tmp_path / "x")
    run.metrics.write_text("{broken\n" + run.metrics.read_text(encoding="utf-8") + '{"step": 11, "lo', encoding="utf-8")
    said = clearhead("plot", run.path)
    assert said.status == 0
    assert said.err == f"[{run.path}: 1 lines cannot be read and are left out]\n"


def test_a_trained_run_can_be_plotted(clearhead: Clearhead, trained: Path, tmp_path: Path) -> None:
    for ending in ("svg", "png", "html"):
        assert clearhead("plot", trained, "--out", tmp_path / f"x.{ending}").status == 0
    assert "6 updates" in clearhead("plot", trained).out


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("", "run directories"),
        ("nowhere", "nowhere"),
        ("RUN --what los", "did you mean loss"),
        ("RUN --what loss,", "--what :"),
        ("RUN --what loss,vall_loss", "did you mean val_loss"),
        ("RUN --x time", "step, tokens, seconds"),
        ("RUN --x tokens", "--x step"),
        ("RUN --smooth 0", "smooth"),
        ("RUN --smooth many", "--smooth"),
        ("RUN --out x.pdf", ".svg"),
        ("RUN --out nowhere/x.svg", "no folder nowhere"),
        ("RUN --out THERE", "--force"),
        ("RUN --what zero --log", "--log"),
        ("RUN --what gone", "finite"),
        ("RUN --wat loss", "--what"),
    ],
)
def test_a_mistake_is_one_line(clearhead: Clearhead, tmp_path: Path, typed: str, named: str) -> None:
    content = [{"step": step, "loss": 2.0, "val_loss": 3.0, "zero": 0, "gone": math.inf} for step in (1, 2)]
    there = tmp_path / "there.svg"
    there.write_text("mine", encoding="utf-8")
    words_of = {"RUN": str(recorded(tmp_path / "x", content).path), "THERE": str(there)}
    assert named in clearhead("plot", *(words_of.get(word, word) for word in typed.split())).mistake
    assert there.read_text(encoding="utf-8") == "mine"


def test_force_writes_over_and_a_missing_matplotlib_is_one_line(
    clearhead: Clearhead, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, there = recorded(tmp_path / "x").path, tmp_path / "there.SVG"
    there.write_text("mine", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for ending in ("svg", "png", "html"):
        assert "clearhead[plot]" in clearhead("plot", path, "--out", tmp_path / f"y.{ending}").mistake
    assert clearhead("plot", path).status == 0, "a terminal needs nothing"
    monkeypatch.undo()
    assert clearhead("plot", path, "--out", there, "--force").status == 0
    assert "<svg" in there.read_text(encoding="utf-8")


def test_ticks_are_short() -> None:
    ticks = [number(each) for each in (0.0003, 2.5, 10, 1200, 45_000, 1_500_000, 2e9)]
    assert ticks == ["0.0003", "2.5", "10", "1,200", "45k", "1.5M", "2G"]


def test_a_page_of_many_runs_keeps_them_apart(tmp_path: Path) -> None:
    runs: list[Curves] = read_curves([recorded(tmp_path / str(place) / "same").path for place in range(9)])
    written = page(Plot(runs, ("loss",), "step", 1, False), english_words())
    assert all(f"<td>{place}/same</td>" in written for place in range(9))
    looks = {re.search(rf'id="loss-loss-strong-{place}">.*?style="(.*?)"', written, re.DOTALL)[1] for place in range(9)}  # type: ignore[index]
    assert len(looks) == 9, "by colour, then by dashes"

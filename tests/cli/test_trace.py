"""`clearhead trace`: the walk of shapes, one head as a picture, files, mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from xml.dom import minidom

import pytest
import torch
from safetensors.torch import load_file

from clearhead import load
from clearhead.tracing import effect_of_weight, trace
from clearhead.tracing.pictures import SHADES, heat_svg, heat_text
from tests.cli.runs import Clearhead

PICTURE = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.19, 0.21, 0.6]])


def test_the_walk_names_every_tensor_with_its_numbers(clearhead: Clearhead, trained: Path) -> None:
    said = clearhead("trace", trained, "-p", "the cat")
    made = trace(load(trained), "the cat")
    assert said.status == 0
    lines = {line.split()[0]: line for line in said.out.splitlines() if line}
    for name, tensor in made.items():
        assert "×".join(map(str, tensor.shape)) in lines[name]
        assert f"{tensor.numel() * 4:,}" in lines[name]
    assert "blocks.0.attention.weights" in made
    answer = json.loads(clearhead("trace", trained, "-p", "the cat", "--json").out)
    assert [each["name"] for each in answer["tensors"]] == list(made)
    (weights,) = [each for each in answer["tensors"] if each["name"] == "blocks.0.attention.weights"]
    assert weights["axes"] == ["B", "H", "T", "S"]
    assert weights["mean"] == pytest.approx(float(made["blocks.0.attention.weights"].mean()))
    assert answer["tokens"] == list("the cat")


def test_names_and_positions_choose(clearhead: Clearhead, trained: Path, tmp_path: Path) -> None:
    flags = ("--names", "*.weights", "norm", "--positions", -1, 2, "--save", tmp_path / "t.safetensors")
    clearhead("trace", trained, "-p", "the cat", *flags)
    saved = load_file(tmp_path / "t.safetensors")
    whole = trace(load(trained), "the cat")
    assert set(saved) == {"blocks.0.attention.weights", "norm"}
    assert torch.equal(saved["norm"], whole["norm"][:, [6, 2]])
    assert torch.equal(saved["blocks.0.attention.weights"], whole["blocks.0.attention.weights"][:, :, [6, 2]])


def test_a_head_is_shown_with_its_weights_and_the_warning(clearhead: Clearhead, trained: Path, tmp_path: Path) -> None:
    said = clearhead(
        "trace", trained, "-p", "小猫 cat", "--head", "0.1", "--svg", tmp_path / "h.svg", "--png", tmp_path / "h.png"
    )
    weights = trace(load(trained), "小猫 cat", names="*.weights", heads={0: [1]})["blocks.0.attention.weights"][0, 0]
    assert heat_text(weights, "小猫 cat", "小猫 cat") in said.out
    assert "not what the answer depends on" in said.out
    drawn = minidom.parse(str(tmp_path / "h.svg"))
    assert len(drawn.getElementsByTagName("title")) == 36
    assert (tmp_path / "h.png").read_bytes().startswith(b"\x89PNG")
    answer = json.loads(clearhead("trace", trained, "-p", "小猫 cat", "--head", "0.1", "--json").out)
    assert torch.tensor(answer["weights"]).allclose(weights)
    assert answer["differences"]["blocks.0.attention.weights"] < 1e-5


def test_beside_a_weight_stands_what_the_answer_is_without_it(clearhead: Clearhead, trained: Path) -> None:
    said = clearhead("trace", trained, "-p", "the cat", "--head", "0.1", "--weight", -1, 2)
    found = effect_of_weight(load(trained), "the cat", 0, 1, -1, 2)
    assert said.out.endswith(f"{found}\n")
    assert "query 6" in str(found)


def test_only_the_asked_query_is_shown(clearhead: Clearhead, trained: Path) -> None:
    answer = json.loads(clearhead("trace", trained, "-p", "cat", "--head", "0.1", "--positions", 1, "--json").out)
    assert (answer["queries"], answer["keys"]) == (["a"], ["c", "a", "t"])
    assert len(answer["weights"]) == 1


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("", "-p"),
        ("-p a --head 7.0", "last block is 0"),
        ("-p a --head 0.7", "last is 1"),
        ("-p a --head seven", "3.2"),
        ("-p a --kind encoder --head 0.0", "attention"),
        ("-p a --names nothing_like_it", "nothing_like_it"),
        ("-p a --svg x.svg", "--head"),
        ("-p a --weight 0 0", "--head"),
        ("-p a --head 0.0 --names norm", "--names"),
        ("-p a --target b", "target"),
        ("-p a --kind encoder", "--head"),
        ("-p a --head 0.0 --weight 0 9", "9"),
        ("-p a --head 0.0 --weight 0", "--weight"),
        ("-p a --positions 4", "position 4"),
        ("-p a --head 0.0 --svg nowhere/x.svg", "nowhere"),
        ("-p aaaaaaaaaaaaaaaaaaaa", "12"),
    ],
)
def test_a_mistake_is_one_line(clearhead: Clearhead, trained: Path, typed: str, named: str) -> None:
    assert named in clearhead("trace", trained, *typed.split()).mistake


def test_a_mistake_is_said_in_chinese(clearhead: Clearhead, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    line = clearhead("trace", trained, "-p", "a", "--positions", 4).mistake
    assert "位置 4 不在 1 个 token 之内" in line
    assert "outside" not in line


def test_everything_is_saved(clearhead: Clearhead, trained: Path, tmp_path: Path) -> None:
    assert clearhead("trace", trained, "-p", "the cat", "--save", tmp_path / "all.safetensors").status == 0
    saved, whole = load_file(tmp_path / "all.safetensors"), trace(load(trained), "the cat")
    assert saved.keys() == whole.keys()
    assert all(torch.equal(saved[name], tensor) for name, tensor in whole.items())


def test_a_query_of_the_source_is_labelled_by_its_token(clearhead: Clearhead, tmp_path: Path) -> None:
    pairs, out = tmp_path / "pairs.tsv", tmp_path / "run"
    pairs.write_text("".join(f"word {n}\t{n} 词\n" for n in range(40)), encoding="utf-8")
    sizes = ("--model.layers", 1, "--model.width", 8, "--model.heads", 2, "--batch", 4)
    clearhead("train", pairs, "--model", "EncoderDecoder", "--out", out, *sizes, "--steps", 2)
    asked = ("trace", out, "-p", "word", "--target", "1", "--head", "0.1", "--positions", -1, "--json")
    for kind, query in (("encoder", "<end>"), ("cross_attention", "1"), ("attention", "1")):
        assert json.loads(clearhead(*asked, "--kind", kind).out)["queries"] == [query]


def test_shades_tell_weights_apart_and_columns_stay_in_line() -> None:
    lines = heat_text(PICTURE, ["a", "猫", "\n"], ["a", "猫", "long"]).splitlines()
    assert lines[0] == "   a 猫lo"
    assert lines[1] == " a " + SHADES[4] * 2
    assert lines[2] == "猫 " + SHADES[2] * 4
    assert lines[3] == " ↵ " + SHADES[0] * 2 + SHADES[1] * 2 + SHADES[3] * 2
    fault = heat_text(PICTURE.T, ["a", "猫", "\n"], ["a", "猫", "long"])
    assert fault.splitlines() != lines, "keys shown as queries are told apart"


def test_an_svg_escapes_what_tokens_hold() -> None:
    drawn = minidom.parseString(heat_svg(PICTURE, ["<", "&", '"'], ["<", "&", '"'], "a < b"))
    tips = [each.firstChild.data for each in drawn.getElementsByTagName("title")]
    assert tips[3] == "& → <: 0.5000"

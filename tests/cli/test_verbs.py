"""The verbs that look at a run, and what all verbs have in common."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

from clearhead import __version__
from clearhead.cli.main import VERBS
from clearhead.formats.load import load
from clearhead.formats.run import read_run
from clearhead.generation.generate import generate
from clearhead.models.config import DecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.training.plan import new_plan
from tests.cli.runs import Clearhead
from tests.oracles.faulty_attention import NoMask


@pytest.mark.parametrize("typed", [[], ["--help"], ["-h"], ["help"]], ids=str)
def test_help_names_every_verb(clearhead: Clearhead, typed: list[str]) -> None:
    said = clearhead(*typed)
    assert (said.status, said.err) == (0, "")
    assert all(f"\n  {verb} " in said.out for verb in VERBS)


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version(clearhead: Clearhead, flag: str) -> None:
    assert clearhead(flag) == (0, f"clearhead {__version__}\n", "")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_in_both_languages(
    clearhead: Clearhead, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    english = clearhead(verb, "--help")
    assert (english.status, english.err) == (0, "")
    assert f"usage: clearhead {verb}" in english.out
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    chinese = clearhead(verb, "--help")
    assert any("\u4e00" <= sign <= "\u9fff" for sign in chinese.out)
    assert not any("\u4e00" <= sign <= "\u9fff" for sign in english.out)


def test_the_names_that_stay(clearhead: Clearhead) -> None:
    stay = {
        "train": "--out --steps --batch --lr --seed --eval-every --checkpoint-every --resume --config --device --dtype "
        "--threads --encoding --model --print_config",
        "generate": "-p --prompt --max-tokens --temperature --top-k --seed --json --device --dtype --threads",
        "info": "--json --batch --model",
        "check": "--json",
        "doctor": "--json --device --dtype --threads",
    }
    for verb, flags in stay.items():
        words = clearhead(verb, "--help").out.replace("[", " ").replace(",", " ").replace("]", " ").split()
        assert set(flags.split()) <= set(words), verb


def test_generate_writes_the_prompt_and_its_continuation(clearhead: Clearhead, trained: Path) -> None:
    said = clearhead("generate", trained, "-p", "小猫", "--max-tokens", 9, "--seed", 4)
    wanted = generate(load(trained), "小猫", max_tokens=9, temperature=0.8, seed=4)
    assert said[:2] == (0, f"小猫{wanted.text}\n")
    assert "9 tokens" in said.err
    assert len(said.err.splitlines()) == 1


def test_generate_as_json(clearhead: Clearhead, trained: Path) -> None:
    said = clearhead("generate", trained, "-p", "小猫", "--max-tokens", 9, "--temperature", 0.5, "--top_k", 3, "--json")
    answer = json.loads(said.out)
    assert set(answer) == {"model", "prompt", "seed", "text", "ids", "logprobs", "finish_reason"}
    wanted = generate(load(trained), "小猫", max_tokens=9, temperature=0.5, top_k=3)
    assert (answer["text"], answer["ids"], answer["logprobs"]) == (wanted.text, wanted.ids, wanted.logprobs)
    assert (answer["prompt"], answer["seed"]) == ("小猫", 0)
    assert len(answer["ids"]) == 9


def test_generate_settings_reach_the_model(clearhead: Clearhead, trained: Path) -> None:
    def text(*flags: object) -> str:
        said = clearhead("generate", trained, "-p", "cat", "--max-tokens", 30, *flags)
        assert said.status == 0
        return said.out

    assert text("--seed", 1) == text("--seed", 1) != text("--seed", 2)
    assert text("--temperature", 0, "--seed", 1) == text("--top-k", 1, "--seed", 2)
    assert text("--dtype", "bfloat16")
    assert text("--device", "cpu", "--threads", 1) == text()


def test_generate_names_what_the_model_has_never_seen(clearhead: Clearhead, trained: Path) -> None:
    said = clearhead("generate", trained, "-p", "cat狗ß狗", "--max-tokens", 1)
    assert said.status == 0
    assert "never seen ß 狗;" in said.err
    assert r"never seen '\x07' '\t';" in clearhead("generate", trained, "-p", "c\ta\at", "--max-tokens", 1).err
    assert "never seen" not in clearhead("generate", trained, "-p", "cat", "--max-tokens", 1).err


def test_generate_takes_a_checkpoint(clearhead: Clearhead, trained: Path) -> None:
    latest = read_run(trained).latest().path
    answer = json.loads(clearhead("generate", latest, "--max-tokens", 1, "--json").out)
    assert answer["model"] == str(latest)


def test_check_of_a_right_model(clearhead: Clearhead, trained: Path) -> None:
    said = clearhead("check", trained)
    assert (said.status, said.err) == (0, "")
    assert said.out.count("right") == 4
    answer = json.loads(clearhead("check", trained, "--json").out)
    assert {"target", "kind", "ok", "checks", "faults"} <= set(answer)
    assert (answer["ok"], answer["kind"], answer["faults"]) == (True, "lm", [])
    assert {key for check in answer["checks"] for key in check} == {"id", "verdict", "largest", "evidence"}


def test_check_of_a_wrong_model_says_no(clearhead: Clearhead, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Status 1: it could be done, and the answer is no."""
    right = Decoder.forward

    def wrong(model: Decoder, ids: torch.Tensor, **options: object) -> torch.Tensor:
        for block in model.blocks:
            block.attention.attend = NoMask()
        return right(model, ids, **options)

    monkeypatch.setattr(Decoder, "forward", wrong)
    said = clearhead("check", trained)
    assert said.status == 1
    assert "WRONG" in said.out
    assert json.loads(clearhead("check", trained, "--json").out)["ok"] is False


def test_doctor(clearhead: Clearhead, monkeypatch: pytest.MonkeyPatch) -> None:
    said = clearhead("doctor")
    assert (said.status, said.err) == (0, "")
    assert torch.__version__ in said.out
    facts = json.loads(clearhead("doctor", "--dtype", "bfloat16", "--device", "cpu", "--json").out)
    assert facts["parity"]["ok"]
    assert {"torch", "python", "platform", "threads", "device", "dtype", "compile", "cuda", "mps"} <= set(facts)
    from clearhead.checking import machine  # noqa: PLC0415

    monkeypatch.setattr(machine, "ROUNDINGS", 0)
    assert clearhead("doctor").status == 1


def test_chinese(clearhead: Clearhead, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    assert "训练" in clearhead().out
    assert "参数量" in clearhead("info", trained).out
    assert "正确" in clearhead("check", trained).out
    assert "是不是 --max-tokens" in clearhead("generate", trained, "--max-tokns", 3).mistake


def test_a_log_probability_is_one(clearhead: Clearhead, trained: Path) -> None:
    answer = json.loads(clearhead("generate", trained, "--max-tokens", 5, "--json").out)
    assert all(0 < math.exp(value) <= 1 for value in answer["logprobs"])


def test_generate_uses_the_best_checkpoint(clearhead: Clearhead, trained: Path) -> None:
    answer = json.loads(clearhead("generate", trained, "--max-tokens", 1, "--json").out)
    assert answer["model"] == str(read_run(trained).best().path)


def test_a_run_without_a_checkpoint_says_how_to_go_on(clearhead: Clearhead, text: Path, tmp_path: Path) -> None:
    model = DecoderConfig(layers=1, heads=2, width=8, context=12)
    new_plan(tmp_path / "run", [str(text)], {"steps": 2, "batch": 1}, model=model, device=torch.device("cpu"))
    line = clearhead("generate", tmp_path / "run").mistake
    command = line[line.index("clearhead train") : line.rindex("`")]
    assert clearhead(*command.split()[1:]).status == 0
    assert clearhead("generate", tmp_path / "run", "--max-tokens", 1).status == 0


@pytest.mark.parametrize("kind", ["DecoderConfig", "EncoderConfig", "EncoderDecoderConfig"])
def test_help_says_what_every_field_of_a_model_means(clearhead: Clearhead, kind: str) -> None:
    """Those of the class itself, and those that every stack of blocks has."""
    said = " ".join(clearhead("train", f"--model.help={kind}").out.split())
    own = {"DecoderConfig": "how blocks look, block i", "EncoderConfig": "how many kinds of segments"}
    assert own.get(kind, "how many blocks the encoder has") in said
    assert "F, features inside the feed-forward part" in said


@pytest.mark.parametrize("common", ["StackConfig", "Stack", "ModelConfig"])
def test_info_of_what_models_have_in_common_names_the_models(clearhead: Clearhead, common: str) -> None:
    """The option takes every class of its family; only three of them are models."""
    line = clearhead("info", "--model", common).mistake
    assert line.startswith(f"--model {common}")
    assert line.endswith("there are DecoderConfig, EncoderConfig, EncoderDecoderConfig")


@pytest.mark.parametrize("first", [("bert",), ("--model", "EncoderDecoder"), ("--model.layers", 2)], ids=str)
def test_info_takes_one_model_or_two_to_compare(clearhead: Clearhead, first: tuple[object, ...]) -> None:
    """None of what was typed is left out in silence."""
    assert "one of them" in clearhead("info", *first, "--explain", "bert", "t5").mistake
    assert "one of them" in clearhead("info", "gpt2", "--model", "EncoderDecoder").mistake

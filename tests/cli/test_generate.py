"""`clearhead generate`: settings, many prompts, samples, beams, drafts, what is told beside the text."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from jsonargparse import Namespace

from clearhead import Request, SamplingSettings, beam_search, generate, generate_batch, load
from clearhead.cli.sampling import stops_of
from clearhead.cli.written import on_one_line
from clearhead.formats.load import Loaded
from clearhead.generation import writing
from clearhead.generation.writing import Piece
from tests.cli.runs import Clearhead

PROMPTS = ["cat", "小猫", "a", "the cat"]


@pytest.fixture(scope="module")
def loaded(trained: Path) -> Loaded:
    return load(trained)


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    file = tmp_path / "prompts.txt"
    file.write_text("\n".join(PROMPTS), encoding="utf-8")
    return file


def test_each_setting_reaches_the_model(clearhead: Clearhead, trained: Path, loaded: Loaded) -> None:
    """Each flag is the setting of the same name in Python, and each changes the text."""
    cut: dict[str, object] = {"top_k": 3, "top_p": 0.1, "min_p": 0.995, "logit_bias": {3: 9.0}}
    penalties: dict[str, object] = {"repetition_penalty": 1e6, "presence_penalty": 9.0, "frequency_penalty": 9.0}
    # A bold text draws what is cut off; a timid one repeats itself.
    for temperature, flags in ((3.0, cut), (0.05, penalties)):
        plain = generate(loaded, "cat", max_tokens=12, temperature=temperature).text
        for name, value in flags.items():
            typed = ("--temperature", temperature, f"--{name.replace('_', '-')}", json.dumps(value))
            said = clearhead("generate", trained, "-p", "cat", "--max-tokens", 12, *typed)
            wanted = generate(loaded, "cat", max_tokens=12, temperature=temperature, **{name: value})  # type: ignore[arg-type]
            assert said.out == f"cat{wanted.text}\n", name
            assert wanted.text != plain, name


def test_the_order_of_the_steps(clearhead: Clearhead, trained: Path, loaded: Loaded) -> None:
    said = clearhead(
        "generate", trained, "-p", "cat", "--temperature", 3, "--top-p", 0.7, "--order", "top_p", "temperature"
    )
    sampling = SamplingSettings(temperature=3, top_p=0.7, order=("top_p", "temperature"))
    wanted, other = (
        generate_batch(loaded, [Request("cat", 300, settings)])[0].text
        for settings in (sampling, SamplingSettings(temperature=3, top_p=0.7))
    )
    assert said.out == f"cat{wanted}\n" != f"cat{other}\n"


def test_prompts_of_a_file_get_a_result_a_line_each_as_alone(clearhead: Clearhead, trained: Path, lines: Path) -> None:
    said = clearhead("generate", trained, "--prompts", lines, "--max-tokens", 30)
    alone = [clearhead("generate", trained, "-p", prompt, "--max-tokens", 30).out for prompt in PROMPTS]
    assert said.out.splitlines() == [on_one_line(text.removesuffix("\n")) for text in alone]
    answers = clearhead("generate", trained, "--prompts", lines, "--max-tokens", 5, "--json").out.splitlines()
    assert [json.loads(answer)["prompt"] for answer in answers] == PROMPTS


def test_prompts_from_standard_input(clearhead: Clearhead, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("\ufeffcat\r\n小猫\r\n".encode())))
    said = clearhead("generate", trained, "--prompts", "-", "--max-tokens", 4, "--json")
    assert [json.loads(line)["prompt"] for line in said.out.splitlines()] == ["cat", "小猫"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("第天，小猫看见只鸟。\n".encode("gb18030"))))
    said = clearhead("generate", trained, "--prompts", "-", "--max-tokens", 1, "--json")
    assert json.loads(said.out)["prompt"] == "第天，小猫看见只鸟。"
    assert "GB18030" in said.err
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(bytes(range(256)))))
    assert "-" in clearhead("generate", trained, "--prompts", "-").mistake


def test_what_is_done_is_shown_in_order_as_soon_as_it_is(
    clearhead: Clearhead, trained: Path, lines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third text ends first and the run is stopped before the second has ended."""
    right, limits = writing.pieces, [3, 30, 1, 5]

    def some(loaded: Loaded, requests: list[Request], **more: object) -> Iterator[tuple[int, Piece]]:
        limited = [replace(each, max_tokens=limit) for each, limit in zip(requests, limits, strict=True)]
        for number, found in enumerate(right(loaded, limited, **more)):  # type: ignore[arg-type]
            if number == 20:
                raise KeyboardInterrupt
            yield found

    monkeypatch.setattr(writing, "pieces", some)
    said = clearhead("generate", trained, "--prompts", lines, "--json")
    assert said.status == 130
    assert [json.loads(line)["prompt"] for line in said.out.splitlines()] == PROMPTS[:1]


def test_samples_have_seeds_one_after_another(clearhead: Clearhead, trained: Path, loaded: Loaded) -> None:
    said = clearhead("generate", trained, "-p", "cat", "--n", 3, "--seed", 5, "--max-tokens", 8)
    texts = [
        f"# seed {seed}\ncat{generate(loaded, 'cat', max_tokens=8, temperature=0.8, seed=seed).text}"
        for seed in (5, 6, 7)
    ]
    assert said.out == "\n".join(texts) + "\n"
    assert "24 tokens" in said.err


def test_beams(clearhead: Clearhead, trained: Path, loaded: Loaded) -> None:
    found = beam_search(loaded, "cat", beams=3, max_tokens=6)
    assert (
        "6 tokens of the best text" in clearhead("generate", trained, "-p", "cat", "--beams", 3, "--max-tokens", 6).err
    )
    assert clearhead("generate", trained, "-p", "cat", "--beams", 3, "--max-tokens", 6).out == f"cat{found[0].text}\n"
    said = clearhead("generate", trained, "-p", "cat", "--beams", 3, "--n", 2, "--max-tokens", 6, "--json")
    answers = [json.loads(line) for line in said.out.splitlines()]
    assert [(each["text"], each["score"]) for each in answers] == [(each.text, each.score) for each in found[:2]]


def test_beams_past_the_context_say_so(clearhead: Clearhead, trained: Path, loaded: Loaded) -> None:
    context = loaded.model.context  # type: ignore[union-attr]
    for flags, named in (("recompute", "read anew"), ("window", "the model saw the last"), ("stop", "is full")):
        long = clearhead("generate", trained, "-p", "cat", "--beams", 2, "--max-tokens", context, "--overflow", flags)
        assert named in long.err
    fits = clearhead("generate", trained, "-p", "cat", "--beams", 2, "--max-tokens", context - 2, "--overflow", "stop")
    assert fits.err.count("[") == 1


def test_drafts_write_the_same_at_temperature_0_and_tell_how_it_went(clearhead: Clearhead, trained: Path) -> None:
    plain = clearhead("generate", trained, "-p", "cat", "--max-tokens", 60, "--temperature", 0, "--overflow", "window")
    for flags in (["--lookup"], ["--draft", str(trained)]):
        said = clearhead(
            "generate", trained, "-p", "cat", "--max-tokens", 60, "--temperature", 0, "--overflow", "window", *flags
        )
        assert said.out == plain.out
        assert "propos" in said.err
        assert "propos" not in plain.err


def test_logprobs(clearhead: Clearhead, trained: Path, loaded: Loaded) -> None:
    wanted = generate(loaded, "cat", max_tokens=4, temperature=0.8, alternatives=2)
    said = clearhead("generate", trained, "-p", "cat", "--max-tokens", 4, "--logprobs", 2)
    table = said.out.splitlines()[-4:]
    assert [float(line.split()[0]) for line in table] == [round(logprob, 3) for logprob in wanted.logprobs]
    answer = json.loads(clearhead("generate", trained, "-p", "cat", "--max-tokens", 4, "--logprobs", 2, "--json").out)
    assert answer["tokens"] == loaded.tokenizer.pieces(wanted.ids)
    assert [[(each["id"], each["logprob"]) for each in place] for place in answer["alternatives"]] == [
        list(place) for place in wanted.alternatives
    ]


def test_the_end_of_the_context_is_never_silent(clearhead: Clearhead, trained: Path, loaded: Loaded) -> None:
    context = loaded.model.context  # type: ignore[union-attr]
    for overflow, named in (("stop", "full"), ("window", "--overflow recompute"), ("recompute", "--overflow window")):
        said = clearhead("generate", trained, "-p", "cat", "--max-tokens", 3 * context, "--overflow", overflow)
        assert named in said.err, overflow
        assert f" {context} tokens" in said.err
        within = clearhead("generate", trained, "-p", "c", "--max-tokens", context, "--overflow", overflow)
        assert "context" not in within.err, "the last token is drawn, not read"
    said = clearhead("generate", trained, "-p", "c" * (context + 1), "--overflow", "stop")
    assert f"{context + 1} tokens" in said.mistake
    assert said.out == "", "nothing is printed before the mistake is known"


def test_stop_strings_as_they_are_typed(clearhead: Clearhead, trained: Path) -> None:
    asked = Namespace(stop=[r"\n\n", r"a\tb", r"\\n", r"\d", "猫", "\\"])
    assert stops_of(asked) == ["\n\n", "a\tb", r"\n", r"\d", "猫", "\\"]
    whole = clearhead("generate", trained, "-p", "cat", "--max-tokens", 60).out
    stop = whole[30]
    cut = clearhead("generate", trained, "-p", "cat", "--max-tokens", 60, "--stop", "zz", stop.replace("\n", r"\n")).out
    assert cut == whole[: whole.index(stop, 3)] + "\n"


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("--top-p 1.5", "top_p"),
        ("--min-p -1", "min_p"),
        ("--repetition-penalty 0.5", "repetition_penalty"),
        ("--presence-penalty -1", "presence_penalty"),
        ("--frequency-penalty nan", "frequency-penalty"),
        ("--order top_p nothing", "nothing"),
        ("--logit-bias 3", "--logit-bias"),
        ('--logit-bias {"9999":1}', "9999"),
        ("--eos 9999", "9999"),
        ("--overflow forget", "window"),
        ("--n 0", "n = 0"),
        ("--beams 0", "beams = 0"),
        ("--beams 2 --n 3", "3 texts"),
        ("--beams 2 --temperature 1", "--temperature"),
        ("--beams 2 --top-p 0.5", "--top-p"),
        ("--beams 2 --lookup", "--lookup"),
        ("--length-penalty 1", "--beams"),
        ("--beams 2 --length-penalty -1", "length_penalty"),
        ("--lookup --draft x", "--draft"),
        ("--draft nowhere", "nowhere"),
        ("--logprobs -1", "logprobs"),
        ("-p a --prompts b", "--prompts"),
        ("--prompts nowhere.txt", "nowhere.txt"),
    ],
)
def test_what_is_out_of_range_is_one_line(clearhead: Clearhead, trained: Path, typed: str, named: str) -> None:
    assert named in clearhead("generate", trained, *typed.split()).mistake


def test_an_empty_line_of_prompts_is_named(clearhead: Clearhead, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("cat\n\ncat\n", encoding="utf-8")
    assert "line 2" in clearhead("generate", trained, "--prompts", tmp_path / "p.txt").mistake
    (tmp_path / "q.txt").write_text("", encoding="utf-8")
    assert "no line" in clearhead("generate", trained, "--prompts", tmp_path / "q.txt").mistake


def test_on_one_line_can_be_undone() -> None:
    for text in ("a\nb", r"a\nb", "\\\n", "a\r\nb\\"):
        line = on_one_line(text)
        assert "\n" not in line
        assert line.encode("latin-1").decode("unicode_escape") == text

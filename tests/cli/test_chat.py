"""`clearhead chat`: turns, commands, a template, Ctrl-C."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clearhead import generate, load
from clearhead.generation import writing
from clearhead.generation.writing import Piece
from tests.cli.runs import Clearhead, Said

TEMPLATE = "{% for m in messages %}{{ m.role[0] }}{{ m.content }}{% endfor %}"
Talk = Callable[..., Said]


@pytest.fixture
def talk(clearhead: Clearhead, monkeypatch: pytest.MonkeyPatch) -> Talk:
    """`clearhead chat MODEL FLAGS` with lines typed."""

    def typed(model: Path, *lines: str, flags: tuple[object, ...] = ()) -> Said:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return clearhead("chat", model, "--max-tokens", 6, *flags)

    return typed


@pytest.fixture
def templated(trained: Path, tmp_path: Path) -> Path:
    """The run with a chat template beside its tokenizer."""
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    (run / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    return run


def test_a_base_model_says_that_it_has_no_template_and_continues_all_turns(talk: Talk, trained: Path) -> None:
    said = talk(trained, "cat", "小猫", "/quit", "never read", flags=("--seed", 4))
    assert said.status == 0
    assert "no chat template" in said.err
    loaded = load(trained)
    first = generate(loaded, "cat", max_tokens=6, temperature=0.8, seed=4).text
    second = generate(loaded, f"cat\n{first}\n小猫", max_tokens=6, temperature=0.8, seed=5).text
    assert said.out == f"{first}\n{second}\n"
    assert said.err.count("6 tokens,") == 2


def test_a_template_writes_the_conversation_down(talk: Talk, templated: Path) -> None:
    said = talk(templated, "cat", "/system a", "/reset", "b", flags=("--json", "--system", "t"))
    assert "no chat template" not in said.err
    loaded = load(templated)
    asked = ("stucat", "saub")
    wanted = [generate(loaded, ids, max_tokens=6, temperature=0.8, seed=seed).text for seed, ids in enumerate(asked)]
    assert [json.loads(line)["text"] for line in said.out.splitlines()] == wanted


def test_reset_forgets(talk: Talk, trained: Path) -> None:
    said = talk(trained, "cat", "/reset", "cat", flags=("--temperature", 0))
    first, second = said.out.splitlines()
    assert first == second
    again = talk(trained, "cat", "cat", flags=("--temperature", 0, "--max-tokens", 3)).out.splitlines()
    assert len(again) == 2


def test_the_history_is_kept_within_the_context_and_says_so(talk: Talk, trained: Path) -> None:
    context = load(trained).model.context  # type: ignore[union-attr]
    said = talk(trained, *["c" * (context // 4)] * 4)
    assert said.status == 0
    assert "forgotten" in said.err
    too_long = talk(trained, "c" * (context + 1), "a")
    assert too_long.status == 0
    assert f"{context + 1} tokens" in too_long.err
    assert len(too_long.out.splitlines()) == 1, "the turn that did not fit is as if it had not been said"


def test_settings_are_shown_and_changed_and_refused(talk: Talk, trained: Path) -> None:
    said = talk(trained, "/settings", "/settings temperature 0", "cat", "/settings top_p 7", "/settings nonsense 3",
                "/settings seed x", "/settings stop a", "/settings stop", "/settings overflow nowhere")  # fmt: skip
    assert said.status == 0
    greedy = generate(load(trained), "cat", max_tokens=6, temperature=0).text
    assert said.out == f"{greedy}\n"
    for named in ("temperature 0.8", "temperature 0.0", "top_p = 7.0", "no setting nonsense", "seed x", "overflow"):
        assert named in said.err
    assert said.err.count("clearhead:") == 4


@pytest.mark.parametrize(("typed", "named"), [("/nothing", "/reset"), ("/system be kind", "no chat template")])
def test_a_command_that_cannot_be_done(talk: Talk, trained: Path, typed: str, named: str) -> None:
    said = talk(trained, typed, "cat")
    assert named in said.err
    assert len(said.out.splitlines()) == 1, "the conversation goes on"


def test_a_line_may_begin_with_a_slash(talk: Talk, trained: Path) -> None:
    out = talk(trained, "//reset", flags=("--temperature", 0)).out
    assert out == generate(load(trained), "/reset", max_tokens=6, temperature=0).text + "\n"


def test_ctrl_c_stops_the_answer_and_not_the_session(
    talk: Talk, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = writing.pieces

    def interrupted(*arguments: object, **options: object) -> Iterator[tuple[int, Piece]]:
        for number, piece in enumerate(right(*arguments, **options)):  # type: ignore[arg-type]
            if number == 3:
                raise KeyboardInterrupt
            yield piece

    whole = talk(trained, "cat", flags=("--temperature", 0)).out
    monkeypatch.setattr(writing, "pieces", interrupted)
    said = talk(trained, "cat", "/reset", "cat", flags=("--temperature", 0))
    assert said.status == 0
    assert said.out == f"{whole[:3]}\n" * 2
    assert said.err.count("[stopped]") == 2
    answers = talk(trained, "cat", flags=("--json",)).out.splitlines()
    assert json.loads(answers[0])["finish_reason"] == "interrupted"


def test_ctrl_c_before_the_answer_or_after_it_does_not_end_the_session(
    talk: Talk, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    for place in ("clearhead.generation.chat.fitted", "clearhead.cli.chat.Tally.tell"):
        with monkeypatch.context() as once:
            once.setattr(place, interrupted)
            said = talk(trained, "cat", "/settings")
        assert said.status == 0
        assert said.err.count("[stopped]") == 1
        assert "temperature 0.8" in said.err


def test_settings_can_be_typed_as_they_are_shown(talk: Talk, trained: Path) -> None:
    shown = talk(trained, r"/settings stop \n\n").err.splitlines()[-11:]
    assert r"  stop \n\n" in shown
    again = talk(
        trained, "/settings top_k 3", "/settings overflow stop", *[f"/settings {line.strip()}" for line in shown]
    )
    assert "clearhead:" not in again.err
    assert again.err.splitlines()[-11:] == shown


def test_a_broken_template_is_one_line(talk: Talk, templated: Path) -> None:
    for broken, named in (
        ("{% for %}", "chat_template"),
        ("{{ raise_exception('only users') }}", "only users"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{% for i in range(10 ** 9) %}{% endfor %}", "Range too big"),
    ):
        (templated / "chat_template.jinja").write_text(broken, encoding="utf-8")
        said = talk(templated, "cat")
        assert said.status == 0
        assert named in said.err
        assert said.out == ""


def test_settings_out_of_range_are_refused_before_the_first_line(clearhead: Clearhead, trained: Path) -> None:
    for typed in ("--top-p 2", "--temperature -1", "--logprobs -1", "--lookup --draft x", "--overflow x", "--eos 9999"):
        assert clearhead("chat", trained, *typed.split()).mistake

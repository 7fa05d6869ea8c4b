"""Opening a prompt: what is kept is what a trace shows; no T×S matrix of all heads, no whole logits; empty and long prompts."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from clearhead.formats.load import Loaded
from clearhead.generation.generate import generate
from clearhead.models import choices as c
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.ops.recompute import scores_of, weights_of
from clearhead.ops.tap import Ran
from clearhead.text import ByteTokenizer
from clearhead.tracing.names import known_axes
from clearhead.tracing.record import Recorder
from clearhead.tracing.trace import summary
from clearhead.web import opening, shelf
from clearhead.web.keeper import Keeper
from clearhead.web.opening import again, opened, read_of, session_id
from clearhead.web.session import RefusedError, Session
from tests.equalities.variants import model_of
from tests.web.read_models import ALL, LETTERS, MARKED, TARGET, TEXT, decoder, encoder, loaded_of, pair, target_of


def traced(session: Session) -> dict[str, Tensor]:
    """Every tensor of the same forward, as a recorder keeps it."""
    recorder = Recorder()
    again(session, recorder)
    return recorder.tensors


def check_kept(session: Session) -> None:
    """Names, axes, shapes and numbers of every tensor, and the weights of every head."""
    wanted = traced(session)
    assert [stage.name for stage in session.stages] == list(wanted)
    for stage in session.stages:
        tensor, told = wanted[stage.name], summary(wanted[stage.name])
        assert (stage.shape, stage.axes) == (tuple(tensor.shape), known_axes(stage.name))
        assert stage.summary["bytes"] == told.pop("bytes")
        if not stage.name.endswith((".scores", ".weights")):
            assert {key: stage.summary[key] for key in told} == pytest.approx(told, rel=1e-6, abs=1e-6)
    assert session.ran
    assert {f"{name}.weights" for name in session.ran} == {name for name in wanted if name.endswith(".weights")}
    for name, ran in session.ran.items():
        heads = range(ran.q.shape[-3])
        scores = scores_of(ran, heads)
        torch.testing.assert_close(scores, wanted[f"{name}.scores"], rtol=0, atol=1e-6)
        torch.testing.assert_close(weights_of(ran, scores, heads), wanted[f"{name}.weights"], rtol=0, atol=1e-6)


@pytest.mark.parametrize(("kind", "variant"), ALL)
def test_what_is_kept_is_what_a_trace_shows(kind: str, variant: str) -> None:
    session = opened(loaded_of(kind, variant), TEXT, target_of(kind))
    assert len(session.ids) == {"decoder": len(TEXT), "encoder": len(TEXT) + 2, "pair": len(TARGET) + 1}[kind]
    assert (session.cut, session.text, bool(session.source)) == (0, TEXT, kind == "pair")
    check_kept(session)


class Forgets(Keeper):
    """The planted fault: something that the kernel was given is left out."""

    forgotten: dict[str, Any]

    def shown(self, name: str, ran: Ran) -> None:
        super().shown(name, ran._replace(**self.forgotten))


@pytest.mark.parametrize(
    ("variant", "forgotten"),
    [
        ("ALiBi, MQA", {"bias": None}),
        ("soft-cap", {"cap": None}),
        ("sinks", {"sinks": None}),
        ("learned", {"scale": 1.0}),
    ],
)
def test_what_a_kernel_was_given_may_not_be_forgotten(
    variant: str, forgotten: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Forgets, "forgotten", forgotten, raising=False)
    check_kept(opened(decoder(variant), TEXT))
    monkeypatch.setattr(opening, "Keeper", Forgets)
    with pytest.raises(AssertionError):
        check_kept(opened(decoder(variant), TEXT))


def test_logits_in_parts_are_those_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "LOGITS_AT_ONCE", 3 * 11)
    for loaded, target in ((decoder(), None), (pair(), "ab")):
        check_kept(opened(loaded, TEXT, target))


def test_opening_is_the_same_each_time_and_leaves_the_mode() -> None:
    model = model_of("learned", dropout=0.5).train()
    loaded = replace(decoder(), model=model)
    first, second = opened(loaded, TEXT), opened(loaded, TEXT)
    assert first.stages == second.stages == opened(decoder(), TEXT).stages
    assert (first.id, all(module.training for module in model.modules())) == (second.id, True)
    assert not any(ran.mixed.requires_grad for ran in first.ran.values())


def test_another_model_text_or_target_has_another_name() -> None:
    loaded = pair()
    other = copy.deepcopy(loaded)
    with torch.no_grad():
        other.model.encoder.blocks[0].feedforward.up.weight.mul_(1.5)
    names = [
        session_id(loaded, TEXT, "a"),
        session_id(loaded, TEXT, "b"),
        session_id(loaded, TEXT),
        session_id(loaded, TEXT[1:], "a"),
        session_id(other, TEXT, "a"),
        session_id(replace(loaded, opening=(8,)), TEXT, "a"),
    ]
    assert len({*names, session_id(loaded, TEXT, "a")}) == len(names)
    assert opened(loaded, TEXT, "a").id == names[0]


def test_an_empty_prompt_is_what_opens_a_text() -> None:
    marked = replace(decoder(), tokenizer=MARKED)
    assert opened(marked, "").ids == (MARKED.begin,)
    assert opened(encoder(), "").ids == (MARKED.begin, MARKED.end)
    written = opened(pair(), "", "")
    assert (written.source, written.ids, written.target) == ((MARKED.end,), (MARKED.begin,), "")
    with pytest.raises(RefusedError) as refused:
        opened(decoder(), "")
    assert refused.value.status == 422
    assert "empty" in str(refused.value)
    with pytest.raises(RefusedError, match="one text"):
        opened(decoder(), TEXT, "abc")


@pytest.mark.parametrize(("text", "variant"), [(TEXT, "original"), (TEXT, "T5"), ("", "original")])
def test_what_nobody_says_was_written_is_what_the_model_writes(text: str, variant: str) -> None:
    loaded = pair(variant)
    wanted = generate(loaded, text, max_tokens=loaded.config.context - 1, temperature=0).text if text else ""
    found = opened(loaded, text)
    assert found.target == wanted
    assert found.ids == opened(loaded, text, wanted).ids
    assert (found.ids == opened(loaded, text, "").ids) == (wanted == "")


def test_an_answer_needs_marks_that_begin_and_end_it() -> None:
    bare = replace(pair(), tokenizer=LETTERS)
    with pytest.raises(RefusedError, match="no marks") as refused:
        opened(bare, TEXT, TARGET)
    assert refused.value.status == 422


def test_a_long_prompt_is_cut_at_its_front() -> None:
    long = TEXT * 3
    session = opened(decoder(), long)
    assert (session.cut, len(session.ids)) == (len(long) - 16, 16)
    assert session.text == long[-16:]
    read = read_of(encoder(), long)
    assert (read.text, len(read.ids), read.cut) == (long[-17:], 19, len(long) - 17)
    assert (read.ids[0], read.ids[-1]) == (MARKED.begin, MARKED.end)
    both = read_of(pair(), long, long)
    assert (len(both.source), both.source[-1], len(both.ids), both.ids[0]) == (17, MARKED.end, 19, MARKED.begin)
    assert both.cut == 2 * len(long) - 16 - 18


def test_a_prompt_is_cut_at_a_whole_character() -> None:
    config = DecoderConfig(vocab=256, layers=1, heads=2, width=8, context=8)
    loaded = Loaded(build(config, seed=0).eval(), ByteTokenizer(), config, Path("x"))
    read = read_of(loaded, "ab\ud800小猫狗!")  # 2 + 3 + 9 + 1 bytes, for half a pair is a U+FFFD
    assert (read.text, len(read.ids), read.cut) == ("猫狗!", 7, 8)
    assert ByteTokenizer().decode(read.ids) == read.text


class Largest(TorchDispatchMode):
    """Remembers how many numbers the largest tensor has that any operation made."""

    numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        made = [x.untyped_storage().nbytes() // x.itemsize for x in tree_leaves(out) if isinstance(x, Tensor)]
        self.numbers = max([self.numbers, *made])
        return out


def largest(kernel: c.Kernel) -> int:
    """Of opening 200 bytes, with H·T·S = 160,000 and T·V = 51,200."""
    config = DecoderConfig(vocab=256, layers=2, heads=4, width=8, context=200, kernel=kernel)
    loaded = Loaded(build(config, seed=0).eval(), ByteTokenizer(), config, Path("x"))
    with Largest() as seen:
        opened(loaded, "abcdefghij" * 20)
    return seen.numbers


def test_neither_all_weights_nor_all_logits_are_ever_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "LOGITS_AT_ONCE", 256 * 20)
    # Room for what is kept is taken in large pieces, of which little is written on.
    monkeypatch.setattr(shelf, "PIECE", 0)
    # What is largest then: the feed-forward part's 200 × 32.
    assert largest(c.Fused()) == 6400
    assert largest(c.Visible()) == 160_000, "the kernel of the definition holds its weights"
    monkeypatch.setattr(opening, "LOGITS_AT_ONCE", 1 << 20)
    assert largest(c.Fused()) == 51_200, "the check does not see logits"

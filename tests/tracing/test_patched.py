"""What patching found can be read: a matrix with tokens on its axes, the best, a table; and what it measures is what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from clearhead.formats.load import Loaded
from clearhead.messages import UserError
from clearhead.text import CharacterTokenizer
from clearhead.tracing import activation_patching, attribution_patching, logit_difference
from tests.equalities.variants import VARIANTS, model_of
from tests.oracles.compare import assert_same
from tests.tracing.test_patching import METRIC

HEADED = ["*attention.weights", "*attention.mixed", "*attention.q"]


def loaded() -> Loaded:
    return Loaded(
        model_of("rotary, fused"), CharacterTokenizer("abcdef 小猫<"), VARIANTS["rotary, fused"], Path("here")
    )


def test_a_result_can_be_read() -> None:
    model = loaded()
    metric = logit_difference("a", "小", tokenizer=model.tokenizer)
    found = activation_patching(model, "小猫< abc", "小a< abc", metric, names=["blocks.0.middle", "blocks.1.middle"])
    assert found.shares.shape == (2, 7)
    assert found.labels == [["小", "猫→a", "<", " ", "a", "b", "c"]] * 2
    text = repr(found)
    lines = text.splitlines()
    assert f"{found.clean:.4g}" in lines[0]
    assert all(word in lines[2] for word in ("0 小", "1 猫→a", "3 ␣", "6 c"))
    assert lines[3].split()[:2] == ["blocks.0.middle", "0.00"]
    assert lines[4].split()[-1] == f"{found.share('blocks.1.middle', 6):.2f}"
    html = found._repr_html_()
    assert "<th>2 &lt;</th>" in html
    assert "<th>2 <</th>" not in html
    ranked = found.best(3)
    assert len(ranked) == 3
    assert [part.share for part in ranked] == sorted((part.share for part in found), reverse=True)[:3]
    assert (ranked[0].name, ranked[0].label) == (ranked[0].name, found.labels[0][ranked[0].index])
    heads = activation_patching(model, "小猫ab", "小aab", metric, by="head", names=HEADED)
    assert heads.labels == [["0", "1", "2", "3"]] * 6
    whole = attribution_patching(model, "小猫ab", "小aab", metric, by="name")
    assert {part.index for part in whole} == {None}
    assert "blocks.1.output" in repr(whole)


def test_a_long_text_stands_below_itself() -> None:
    ids = [1, 2, 3, 4, 5] * 3
    found = activation_patching(model_of("learned"), ids, [*ids[:-1], 6], METRIC, names="input")
    lines = repr(found).splitlines()
    assert [line.split()[0] for line in lines if line] == [lines[0].split()[0], "0", "input", "12", "input"]


def test_a_difference_of_logits() -> None:
    logits = torch.arange(24.0).reshape(2, 3, 4) ** 2
    assert float(logit_difference(3, 1)(logits)) == ((11**2 - 9**2) + (23**2 - 21**2)) / 2
    assert float(logit_difference(0, 2, 0)(logits[:1])) == -4
    tokenizer = CharacterTokenizer("小猫")
    ids = [tokenizer.encode(character)[0] for character in "猫小"]
    found = logit_difference("猫", "小", tokenizer=tokenizer)(logits)
    assert_same(found, logit_difference(*ids)(logits))
    with pytest.raises(UserError, match="tokenizer"):
        logit_difference("猫", "小")
    with pytest.raises(UserError, match="2 tokens"):
        logit_difference("小猫", "小", tokenizer=tokenizer)
    for outside in (4, -1):
        with pytest.raises(UserError, match="outside the vocabulary"):
            logit_difference(outside, 1)(logits)

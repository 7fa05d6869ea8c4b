"""Each variation is a change that leaves the weights usable, and changes something."""

from __future__ import annotations

import pytest
import torch

from clearhead.checking.diff.side import Given
from clearhead.checking.diff.variations import variations
from clearhead.messages.table import MESSAGES
from tests.checking.diff.ours_made import CONFIGS, T, V, side

RELATIVE = {"rotary.offset"}
"""Changes that are seen at queries and keys, and in no result: scores know distances alone."""


def given(count: int) -> Given:
    drawn = torch.Generator().manual_seed(7)
    return Given(tuple(torch.randint(0, V, (2, T - n), generator=drawn) for n in range(count)), "ids")


@pytest.mark.parametrize(
    "name", ["gpt", *(pytest.param(each, marks=pytest.mark.slow) for each in ("llama", "bert", "t5"))]
)
def test_each_changes_the_result_and_uses_the_same_weights(name: str) -> None:
    own = side(name)
    read = given(2 if name == "t5" else 1)
    before = {stage.name: stage.value for stage in own.run(read).stages}
    found = list(variations(own.config, T))
    assert len(found) > 40
    for each in found:
        changed = own.varied(each)
        after = changed.run(read).stages
        moved = {s.name for s in after if s.name not in before or not torch.equal(s.value, before[s.name])}
        assert moved, each.id
        assert (after[-1].name in moved) or each.id in RELATIVE, each.id
        assert all(p.data_ptr() in {t.data_ptr() for t in own.tensors.values()} for p in shared(changed)), each.id
        assert each.text_a != each.text_b, each.id


def shared(changed: object) -> list[torch.Tensor]:
    """The weights of a changed model that are matrices: none of them is a copy."""
    return [p for p in changed.model.parameters() if p.dim() > 1]  # type: ignore[attr-defined]


def test_all_ids_that_a_user_may_know_are_there() -> None:
    ids = {each.id for config in CONFIGS.values() for each in variations(config, T)}
    assert ids >= {
        "activation.variant",
        "activation.missing",
        "norm.eps-value",
        "norm.eps-placement",
        "norm.unbiased-variance",
        "norm.offset",
        "norm.kind",
        "norm.placement",
        "norm.final-missing",
        "rotary.pairing",
        "rotary.base",
        "rotary.partial",
        "rotary.scaling",
        "rotary.offset",
        "position.missing",
        "position.twice",
        "position.every-block",
        "position.offset",
        "embedding.scale",
        "scale.missing",
        "scale.model-width",
        "scale.inverted",
        "scale.twice",
        "window.off-by-one",
        "attention.window",
        "attention.softcap",
        "attention.sinks",
        "attention.qk-norm",
        "logits.softcap",
        "projection.bias",
        "head.tied",
        "heads.kv-tiled",
        "causal.future-leak",
    }


def test_a_configuration_comes_up_once_and_never_is_the_one_before() -> None:
    for config in CONFIGS.values():
        made = [each.config for each in variations(config, T) if each.change is None]
        assert config not in made
        assert len(set(made)) == len(made)


def test_every_message_of_a_variation_is_said_in_both_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    chinese = {each.text_b for each in variations(CONFIGS["llama"], T)}
    monkeypatch.setenv("CLEARHEAD_LANG", "en")
    english = {each.text_b for each in variations(CONFIGS["llama"], T)}
    assert len(english) == len(chinese)
    assert not english & chinese
    assert any(key.startswith("variations.") for key in MESSAGES)

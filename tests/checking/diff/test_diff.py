"""Two of anything: a MODEL, a MODEL, somebody's file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from clearhead.checking.diff.diff import diff
from clearhead.checking.diff.towards import differing, towards
from clearhead.formats.load import Loaded
from clearhead.messages import UserError
from clearhead.models import choices
from clearhead.models.config import DecoderConfig
from tests.checking.diff.ours_made import GPT, SOURCE, loaded

SMALL: DecoderConfig = replace(GPT, layers=1)


def changed(config: DecoderConfig, model: Loaded) -> Loaded:
    """The same weights in another configuration."""
    other = loaded(config)
    other.model.load_state_dict(model.model.state_dict())
    return other


def file_of(folder: Path, *edits: str) -> str:
    """The file with some of its text replaced, as the command line names it."""
    text = SOURCE
    for old, new in zip(edits[::2], edits[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    path = folder / f"gpt{abs(hash(edits)) % 10**6}.py"
    path.write_text(text, encoding="utf-8")
    return f"{path}:GPT"


def test_equal_models_are_equal_and_say_how_many_stages_were_compared() -> None:
    found = diff(loaded(SMALL), loaded(SMALL))
    assert found.ok
    assert not found.reasons
    assert {pair.held for pair in found.pairs} == {"equal"}
    assert len(found.pairs) > 15
    assert {row.state for row in found.tensors} == {"same"}


def test_the_field_in_which_two_configurations_differ_is_the_reason() -> None:
    one = loaded(SMALL)
    other = changed(replace(SMALL, norm=choices.LayerNorm(eps=3e-4), dropout=0.5, attention_scale=0.37), one)
    found = diff(one, other)
    assert not found.ok
    assert found.first is not None
    assert found.first.a == "blocks.0.attention_norm"
    assert [(each.id, each.certainty) for each in found.reasons] == [
        ("norm.eps-value", "reproduced"),
        ("scale.value", "reproduced"),
    ]
    assert "0.0003" in found.reasons[0].text
    assert any("dropout" in note for note in found.notes)


def test_weights_that_differ_are_the_reason() -> None:
    one, other = loaded(SMALL), loaded(SMALL)
    with torch.no_grad():
        other.model.get_parameter("blocks.0.feedforward.up.weight").mul_(2.0)
    found = diff(one, other)
    assert found.first is not None
    assert found.first.a == "blocks.0.feedforward.up"
    (reason,) = found.reasons
    assert (reason.id, reason.certainty, reason.place) == ("weights.scaled", "reproduced", "blocks.0.feedforward.up")
    assert "blocks.0.feedforward.up.weight" in reason.text
    assert [row.a for row in found.tensors if row.state != "same"] == ["blocks.0.feedforward.up.weight"]


def test_two_runs_are_told_apart_by_their_weights_and_nothing_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many tensors differ, which differ most, where the two part; a tensor that is A's rearranged is asked for its relation."""
    one, other, turned = loaded(SMALL), loaded(SMALL), loaded(SMALL)
    torch.manual_seed(5)
    with torch.no_grad():
        for name, size in (("attention.qkv", 0.01), ("feedforward.up", 0.5), ("feedforward.down", 0.1)):
            weight = other.model.get_parameter(f"blocks.0.{name}.weight")
            weight += size * weight.std() * torch.randn_like(weight)
        turned.model.get_parameter("blocks.0.attention.qkv.weight").neg_()
    assert [each.id for each in diff(one, turned).reasons] == ["weights.negated"]

    def searched(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr("clearhead.checking.diff.whys.why", searched)
    found = diff(one, other)
    (reason,) = found.reasons
    assert (reason.id, reason.certainty, reason.place) == ("weights.changed", "reproduced", "blocks.0.attention.q")
    number = len(found.tensors)
    assert f"3 of the {number} tensors" in reason.text
    assert f"{number - 3} are the same" in reason.text
    order = [
        reason.text.index(f"blocks.0.{name}.weight by")
        for name in ("feedforward.up", "feedforward.down", "attention.qkv")
    ]
    assert order == sorted(order)
    with pytest.raises(AssertionError):
        diff(one, turned)


def test_a_file_that_does_the_same_is_equal_with_the_weights_of_the_model(tmp_path: Path) -> None:
    found = diff(loaded(GPT), file_of(tmp_path))
    assert found.ok
    assert found.weights == "a"
    assert sum(pair.held == "equal" for pair in found.pairs) > 25
    assert diff(file_of(tmp_path), loaded(GPT)).ok


@pytest.mark.parametrize(
    ("id", "line", "edits"),
    [
        ("activation.variant", "F.gelu", ("F.gelu(self.c_fc(x))", 'F.gelu(self.c_fc(x), approximate="tanh")')),
        ("norm.final-missing", "lm_head", ("self.lm_head(self.ln_f(x))", "self.lm_head(x)")),
        ("scale.model-width", "softmax", ("math.sqrt(k.size(-1))", "math.sqrt(C)")),
    ],
)
def test_a_fault_of_a_file_is_named_at_its_line(tmp_path: Path, id: str, line: str, edits: tuple[str, ...]) -> None:
    target = file_of(tmp_path, *edits)
    found = diff(loaded(GPT), target)
    assert [(each.id, each.certainty) for each in found.reasons] == [(id, "reproduced")]
    assert found.first is not None
    number = int(found.first.where.rpartition(":")[2])
    assert line in Path(target.rpartition(":")[0]).read_text(encoding="utf-8").splitlines()[number - 1]


def test_b_is_varied_where_a_is_somebody_s_code(tmp_path: Path) -> None:
    found = diff(file_of(tmp_path, "nn.LayerNorm(48)", "nn.LayerNorm(48, eps=1e-12)"), loaded(GPT))
    (reason,) = found.reasons
    assert reason.id == "norm.eps-value"
    assert "in A norms add eps 1e-12; in B norms add eps 1e-05" in reason.text


def test_weights_that_fit_nowhere_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "odd.py"
    path.write_text(
        "import torch\nclass Odd(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.e = torch.nn.Embedding(23, 5)\n"
        "    def forward(self, ids):\n        return self.e(ids)\n",
        encoding="utf-8",
    )
    with pytest.raises(UserError, match="--weights own"):
        diff(loaded(SMALL), f"{path}:Odd", weights="a")


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        diff(str(tmp_path / "none"), loaded(SMALL))


def test_fields_in_which_configurations_differ() -> None:
    other = replace(GPT, norm=choices.LayerNorm(eps=1e-6), activation=choices.ReLU(), kernel=choices.Visible())
    assert {each.name for each in differing(GPT, other)} == {"norm.eps", "activation", "kernel"}
    assert {each.id for each in towards(GPT, other)} == {"norm.eps-value", "activation.variant"}
    assert not list(towards(GPT, GPT))

"""The mask of a layer is the one that it ran with; another is what its words say; conventions are those of the programs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from clearhead.messages import say
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.web import mask
from clearhead.web.answer import unpacked
from clearhead.web.mask_rule import Rule, parsed
from clearhead.web.place import parts_of
from clearhead.web.session import Session
from tests.web.heads_opened import name_of, refusal, session_of
from tests.web.masks_by_hand import FAULTS, NONE, RULES, Fault, by_hand

KINDS = [("decoder", each) for each in ("learned", "window", "cycle", "cycle of windows", "sinks", "ALiBi")] + [
    ("encoder", "relative"),
    ("pair", "T5"),
    ("pair", "learned"),
]


def asked(of: Session, part: str, layer: int, words: str = "") -> tuple[dict, dict]:  # type: ignore[type-arg]
    """The answer to a question."""
    return unpacked(mask.answer(of, {"part": part, "layer": str(layer), "mask": words}).body)


@pytest.mark.parametrize(("kind", "variant"), KINDS)
def test_a_layers_own_mask_is_what_it_ran_with_and_what_its_rule_says(kind: str, variant: str) -> None:
    of = session_of(kind, variant)
    for part, layers in parts_of(of).items():
        rules = mask.own_rules(of, part)
        assert len(rules) == len(layers)
        for layer, rule in enumerate(rules):
            header, arrays = asked(of, part, layer)
            queries, keys = header["queries"], header["keys"]
            ran = of.ran[name_of(part, layer)].visible.matrix().expand(1, 1, queries, keys)[0, 0]
            assert arrays["seen"].astype(bool).tolist() == ran.tolist() == by_hand(rule, queries, keys)
            assert parsed(header["own"]) == rule
            assert header["mask"] == header["own"]
            assert header["rule"] == rule.told()
            assert header["changed"] == {"opened": 0, "closed": 0}
            assert header["cells"] == {"seen": int(ran.sum()), "hidden": int((~ran).sum()), "padding": 0}
            assert header["everywhere"] == (len(set(rules)) == 1)
    if variant == "cycle of windows":
        assert [rule.words for rule in rules] == ["causal.window-2", "causal.window-5", "causal.window-2"]


def check_other(rule: Rule, fault: Fault = NONE) -> None:
    of = session_of("decoder", "window")
    header, arrays = asked(of, "attention", 1, rule.words)
    assert header["cut"] == (rule.within(13) != rule)
    rule = rule.within(13)
    seen = np.array(by_hand(rule, 13, 13, fault))
    assert header["blind"] == int((~seen.any(-1)).sum())
    padding = ~seen & (np.arange(13) < rule.padding)
    assert arrays["seen"].tolist() == np.where(seen, 1, np.where(padding, 2, 0)).tolist()
    own = np.array(by_hand(Rule(causal=True, window=3), 13, 13))
    assert header["changed"] == {"opened": int((seen & ~own).sum()), "closed": int((own & ~seen).sum())}
    assert sum(header["cells"].values()) == 169
    assert (header["own"], header["mask"], header["switched"]) == ("causal.window-3", rule.words, True)
    assert header["first"] == {"causal": True, "window": 4, "prefix": 3, "documents": [6], "padding": 2}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.words)
def test_another_mask_is_what_its_words_say(rule: Rule) -> None:
    check_other(rule)


def check_all(fault: Fault) -> None:
    for rule in RULES:
        check_other(rule, fault)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: Fault) -> None:
    with pytest.raises(AssertionError):
        check_all(fault)


def test_an_encoder_decoder_switches_what_its_decoder_sees_of_itself_alone() -> None:
    of = session_of("pair", "T5")
    assert isinstance(of.loaded.model, EncoderDecoder)
    for part, switched, shape in (
        ("encoder.attention", False, (7, 7)),
        ("decoder.cross_attention", False, (13, 7)),
        ("decoder.attention", True, (13, 13)),
    ):
        header, arrays = asked(of, part, 0, "causal.window-2")
        assert (header["switched"], arrays["seen"].shape) == (switched, shape)
        assert header["mask"] == ("causal.window-2" if switched else "full")
    assert asked(session_of("encoder", "relative"), "attention", 0, "causal")[0]["changed"] == {
        "opened": 0,
        "closed": 78,
    }


def test_a_large_mask_is_pooled_by_what_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mask, "SIDE", 5)
    header, arrays = asked(session_of("decoder", "learned"), "attention", 0, "causal.window-2.padding-3")
    assert header["pooled"] == [3, 3]
    assert arrays["seen"].tolist() == [
        [2, 0, 0, 0, 0],
        [2, 1, 0, 0, 0],
        [2, 1, 1, 0, 0],
        [2, 0, 1, 1, 0],
        [2, 0, 0, 1, 1],
    ]


def test_conventions_are_those_of_the_programs() -> None:
    """PyTorch's own functions, given what is written down, look where the mask says."""
    told = mask.conventions()
    values = {"True": True, "False": False, "0": 0.0, "−inf": -torch.inf}
    written = {
        name: torch.tensor([[values[each] for each in told["written"][name]]])
        for name in ("sdpa", "multihead", "additive")
    }
    v, q = torch.tensor([[[3.0], [5.0]]]), torch.zeros(1, 1, 1)
    k = torch.zeros(1, 2, 1)

    def fused(attn_mask: torch.Tensor) -> float:
        return float(
            F.scaled_dot_product_attention(
                q, k, v, attn_mask=attn_mask[None].float() if attn_mask.is_floating_point() else attn_mask[None]
            )
        )

    layer = nn.MultiheadAttention(1, 1, bias=False, batch_first=True)
    for weight in layer.parameters():
        nn.init.ones_(weight)

    def multihead(attn_mask: torch.Tensor) -> float:
        return float(layer(q, v, v, attn_mask=attn_mask)[0].detach())

    assert [fused(written["sdpa"]), fused(written["additive"]), multihead(written["multihead"])] == [3.0, 3.0, 3.0]
    # And one in the place of the other looks at the other key, or at both.
    assert [multihead(written["sdpa"]), fused(written["multihead"]), fused(written["additive"].bool())] == [5.0] * 3
    assert 3.0 < fused(written["sdpa"].float()) < 5.0
    taken = {name: told["taken"][name] for name in ("sdpa, multihead", "multihead, sdpa", "additive, sdpa")}
    assert list(taken.values()) == [[False, True]] * 3
    assert told["taken"]["sdpa, additive"] == [True, True]
    assert told["taken"]["additive, additive"] == [True, False]


def test_what_is_not_there_is_refused() -> None:
    of = session_of("decoder", "learned")
    good = {"part": "attention", "layer": "1", "mask": ""}
    for change, line in {
        ("part", "mlp"): say("heads.no_part", value="mlp", parts="attention"),
        ("layer", "2"): say("heads.outside", name="layer", value=2, last=1),
        ("mask", "x"): say("masks.not_understood", value="x"),
    }.items():
        assert refusal(mask.answer, of, {**good, change[0]: change[1]}) == (400, line)


def test_what_a_page_asks_next_stands_beside() -> None:
    of = session_of("pair", "learned")
    groups = [
        [query for unit in group for query in unit] for group in mask.beside(of, "decoder.cross_attention", 1, "full")
    ]
    assert groups[0] == [("mask", {"part": "decoder.cross_attention", "layer": "1", "mask": ""})]
    assert [query["mask"] for path, query in groups[1] if path == "masked"] == [
        "", "full", "causal.window-4", "causal.prefix-3", "causal.documents-6", "causal.padding-2",
    ]  # fmt: skip
    assert {(query["part"], query["layer"]) for path, query in groups[2] if path == "mask"} == {
        ("encoder.attention", "0"), ("decoder.attention", "0"), ("decoder.attention", "1"),
        ("decoder.cross_attention", "0"), ("decoder.cross_attention", "1"),
    }  # fmt: skip

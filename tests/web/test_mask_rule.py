"""Words of a mask and the mask that they stand for: pair by pair, in Python and on the page alike."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from clearhead.messages import say
from clearhead.web.mask_rule import Rule, first, neighbours, parsed, understood
from clearhead.web.session import RefusedError
from tests.web.masks_by_hand import FAULTS, NONE, RULES, Fault, by_hand
from tests.web.scripts import told

LENGTH = 13
WORDS = (
    "full", "causal", "window-3", "causal.window-3", "causal.window-1", "causal.prefix-4", "causal.window-5.prefix-3", "documents-2-7",
    "causal.documents-5", "padding-3", "causal.padding-2", "causal.window-6.prefix-4.documents-3-9.padding-1",
    "causal.window-400.prefix-300.documents-100", "causal.padding-500",
)  # fmt: skip
NONSENSE = {
    "masks.not_understood": ("causal.", ".causal", "causal.causal", "window-3.causal", "window-0", "window-", "full.causal", "padding--1",
                             "causal window-3", "Causal", "window-٣", "causal\n", "documents-0", "window-12345678", "prefix", " "),
    "masks.documents": ("documents-5-5", "causal.documents-7-2"),
    "masks.prefix_alone": ("prefix-3", "window-4.prefix-3"),
}  # fmt: skip


def test_words_are_rules_and_back() -> None:
    assert tuple(rule.words for rule in RULES) == WORDS
    assert tuple(map(parsed, WORDS)) == RULES
    assert parsed("") is None


def test_what_stands_for_no_mask_is_refused_in_one_line() -> None:
    for message, words in NONSENSE.items():
        for each in words:
            with pytest.raises(RefusedError) as caught:
                parsed(each)
            assert (caught.value.status, str(caught.value)) == (400, say(message, value=each))
            assert "\n" not in str(caught.value)
            assert understood(each) == ""
    assert understood("causal.window-3") == "causal.window-3"


def check_pairs(rule: Rule, fault: Fault = NONE) -> None:
    mask = rule.mask(LENGTH, torch.device("cpu")).matrix()
    whole = mask.expand(1, 1, LENGTH, LENGTH)[0, 0]
    assert whole.tolist() == by_hand(rule, LENGTH, LENGTH, fault)


@pytest.mark.parametrize("rule", RULES, ids=WORDS)
def test_a_mask_is_what_the_rule_says_pair_by_pair(rule: Rule) -> None:
    check_pairs(rule)


def check_all(fault: Fault) -> None:
    for rule in RULES:
        check_pairs(rule, fault)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: Fault) -> None:
    """A window that is off by one, padding the wrong way round, a prefix that opens nothing."""
    with pytest.raises(AssertionError):
        check_all(fault)


def test_what_a_switch_makes_of_a_rule() -> None:
    words = [each.words for each in neighbours(Rule(causal=True), 13)]
    assert words == ["full", "causal.window-4", "causal.prefix-3", "causal.documents-6", "causal.padding-2"]
    # A single token can be neither padding nor two documents.
    assert [each.words for each in neighbours(Rule(), 1)] == ["causal", "window-4", "causal.prefix-1"]
    assert [each.words for each in neighbours(Rule(), 2)][2:] == ["causal.prefix-2", "documents-1", "padding-1"]
    assert first(13).told() == {"causal": True, "window": 4, "prefix": 3, "documents": [6], "padding": 2}


def cut(length: int, changed: bool = False) -> list[str]:
    return [(rule if changed else rule.within(length)).words for rule in RULES]


def test_what_lies_beyond_a_text_is_cut_here_and_on_the_page() -> None:
    rules = json.dumps([rule.told() for rule in RULES])
    for length in (1, 3, 13):
        page = told("maskrule.js", f"{rules}.map((rule) => page.written(page.within(rule, {length})))")
        assert page == cut(length)
        assert page != cut(length, changed=True)
    assert cut(3)[-4:] == [
        "causal.padding-2", "causal.window-6.prefix-3.padding-1", "causal.window-400.prefix-3", "causal.padding-2",
    ]  # fmt: skip
    # What is left hides the same: only padding leaves a token that it would not have left.
    for rule in RULES[:-1]:
        assert by_hand(rule, 13, 13) == by_hand(rule.within(13), 13, 13)
    for rule in RULES:
        # Whoever sees nothing is padding.
        kept = rule.within(13)
        blind = [query for query, row in enumerate(by_hand(kept, 13, 13)) if not any(row)]
        assert blind == list(range(len(blind)))
        assert len(blind) <= kept.padding < 13


def on_the_page(change: tuple[str, str] = ("", "")) -> list[Any]:
    """Of each rule its words and cells, as the page has them."""
    rules = json.dumps([rule.told() for rule in RULES])
    asked = f"{rules}.map((rule) => [page.written(rule), [...page.cellsOf(rule, 9, 13)], page.countOf(rule, 6, 13), page.parsed(page.written(rule))])"
    found: list[Any] = told("maskrule.js", asked, change)
    return found


def wanted_on_the_page(fault: Fault = NONE) -> list[Any]:
    """The same, written out."""
    found = []
    for rule, words in zip(RULES, WORDS, strict=True):
        seen = by_hand(rule, 9, 13, fault)
        cells = [1 if may else 2 if key < rule.padding else 0 for row in seen for key, may in enumerate(row)]
        found.append([words, cells, sum(seen[6]), rule.told()])
    return found


def test_the_page_says_the_same() -> None:
    page = on_the_page()
    assert page == wanted_on_the_page()
    for fault in FAULTS:
        assert page != wanted_on_the_page(fault)
    assert on_the_page(("key > query - window;", "key >= query - window;")) != wanted_on_the_page()
    bad = [each for words in NONSENSE.values() for each in words]
    assert told("maskrule.js", f"{json.dumps([*bad, ''])}.map(page.parsed)") == [None] * (len(bad) + 1)


def test_the_page_names_the_rule_that_decides() -> None:
    rule = Rule(causal=True, window=2, prefix=3, documents=(4,), padding=1)
    asked = f"[[3, 1], [1, 2], [5, 4], [6, 0]].map(([query, key]) => page.reasons({json.dumps(rule.told())}, query, key).map(({{key, holds}}) => [key.slice(9), holds]))"
    assert told("maskrule.js", asked) == [
        [["causal", True], ["far", False], ["document", True], ["real", True]],
        [["prefix", True], ["window", True], ["document", True], ["real", True]],
        [["causal", True], ["window", True], ["document", True], ["real", True]],
        [["causal", True], ["far", False], ["documents", False], ["padding", False]],
    ]

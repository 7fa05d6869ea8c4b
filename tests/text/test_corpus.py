"""The built-in corpus: what is written is of the grammar, has one derivation, and has the entropy that is claimed."""

import hashlib
from dataclasses import replace
from functools import cache
from itertools import pairwise
from math import exp, log

import numpy as np
import pytest

from clearhead.text import corpus
from clearhead.text.corpus.chinese import CHINESE
from clearhead.text.corpus.english import ENGLISH
from clearhead.text.corpus.grammar import Automaton, Language, Word, expectations, sentence, table, words
from clearhead.text.corpus.scorer import Fork, Scorer
from tests.text.story_parser import is_sentence, sentences

MEGA = 1_000_000


@cache
def mega(language: str) -> str:
    return corpus.write(MEGA, seed=1, language=language)


@cache
def mean_surprisal(language: str) -> float:
    return float(corpus.surprisals(mega(language), language).mean())


def tiny(*, skip: int = 1) -> Language:
    """A grammar small enough to write out all its stories; weights uneven, names with a common beginning."""
    return Language(
        name="tiny",
        gap=" ",
        variables={"hero": "character", "friend": "character"},
        words={
            "character": table("text | they | weight\n Ann | she | 3\n Anna | she | 1\n Al | he | 2"),
            "place": words("hut, hutch, hill"),
        },
        steps=(
            sentence((3, "{new hero} met {new friend}."), (1, "In a {place} was {new hero}, and {new friend} too.")),
            sentence((2, "{hero.They} ran."), (1, "{friend} ran to the {place}."), skip=skip),
            sentence((1, "{hero} slept.")),
        ),
    )


def stories(automaton: Automaton) -> list[tuple[str, float]]:
    """Every derivation of one story, written out, with its probability."""
    found, waiting = [], [("", 1.0, automaton.start)]
    while waiting:
        text, probability, state = waiting.pop()
        for p, said, after in automaton.arcs(state):
            item = (text + said, probability * p, after)
            (found if after == automaton.start else waiting).append(item)
    return [(text, probability) for text, probability, _ in found]


# --- the text ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "sha"),
    [
        ("both", "72a5bf200be726263bc6d62911cb30ac417cdaa2367e0686de3e0d10cd51c9ec"),
        ("en", "dd30fb18264f6a86393bc608c6f7010ccbcd5af6807526d06e588662b1bf019e"),
        ("zh", "6b9e1538208e71a6ad862be0868e29672f271c1256f162c9955e4eb13267856a"),
    ],
)
def test_a_seed_gives_the_same_text_for_ever(language: str, sha: str) -> None:
    assert hashlib.sha256(corpus.write(5000, seed=7, language=language).encode()).hexdigest() == sha


def test_another_seed_gives_another_text() -> None:
    assert corpus.write(500, seed=1) != corpus.write(500, seed=2)


def test_a_longer_text_starts_with_the_shorter() -> None:
    long = corpus.write(3000, seed=3)
    for length in (0, 1, 2, 17, 500, 2999):
        assert corpus.write(length, seed=3) == long[:length]
        assert len(corpus.write(length, seed=3)) == length


@pytest.mark.parametrize("arguments", [(-1, 0, "en"), (5, -1, "en"), (5, 0, "fr")])
def test_what_cannot_be_written_is_refused(arguments: tuple[int, int, str]) -> None:
    with pytest.raises(ValueError, match=r"0 or more|one of both, en, zh"):
        corpus.write(*arguments)


def test_both_languages_come_about_equally_often() -> None:
    told = mega("both").split("\n\n")
    english = sum(story[:1].isascii() for story in told)
    assert abs(english / len(told) - 0.5) < 0.03


@pytest.mark.parametrize("language", ["both", "en", "zh"])
def test_the_alphabet_is_exactly_what_is_written(language: str) -> None:
    assert corpus.characters(language) == "".join(sorted(set(mega(language))))


@pytest.mark.parametrize(("language", "gap"), [("en", " "), ("zh", "")])
def test_every_story_has_four_to_seven_sentences_and_a_hero_who_comes_back(language: str, gap: str) -> None:
    tables = {"en": ENGLISH, "zh": CHINESE}[language]
    names = {word.forms["text"] for word in tables.words["character"]}
    for story in mega(language).split("\n\n")[:300]:
        said = sentences(story, starts_whole=True)
        assert 4 <= len(said) <= 7
        assert gap.join(said) == story
        assert any(story.count(name) >= 2 for name in names)


def test_every_word_and_pattern_of_the_tables_parses_back() -> None:
    for language in ("en", "zh"):
        said = sentences(mega(language)[:300_000], starts_whole=True)
        assert len(said) > 3000
        assert [piece for piece in said if not is_sentence(piece)] == []


# --- the entropy ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["both", "en", "zh"])
def test_the_ideal_scorer_confirms_the_entropy_on_a_megacharacter(language: str) -> None:
    entropy = corpus.entropy_per_character(language)
    assert abs(mean_surprisal(language) / entropy - 1) < 0.01
    assert abs(mean_surprisal(language) - entropy) < 0.01


def test_the_entropies_are_these() -> None:
    assert corpus.entropy_per_character("en") == pytest.approx(0.147928445253210, abs=1e-12)
    assert corpus.entropy_per_character("zh") == pytest.approx(0.318890351403601, abs=1e-12)
    assert corpus.entropy_per_character("both") == pytest.approx(0.194688047025509, abs=1e-12)


def test_one_language_is_known_at_the_cost_of_ln_2_a_story() -> None:
    story = corpus.write(2000, seed=5, language="zh").split("\n\n")[0]
    alone, among = corpus.surprisals(story, "zh"), corpus.surprisals(story)
    assert among[0] == pytest.approx(alone[0] + log(2), abs=1e-12)
    np.testing.assert_allclose(among[1:], alone[1:], atol=1e-12)


def test_a_tampered_probability_would_fail_the_entropy_test() -> None:
    """A list of eight words in which one is made forty times as likely, in one party's tables only."""
    first, *others = ENGLISH.words["manner"]
    other = replace(ENGLISH, words={**ENGLISH.words, "manner": (replace(first, weight=40), *others)})
    text = mega("en")[:300_000]
    claimed = corpus.entropy_per_character("en")
    nats, length = expectations(Automaton([(1, other)]))
    assert abs(corpus.surprisals(text, "en").mean() / claimed - 1) < 0.01
    assert abs(Scorer(Automaton([(1, other)])).surprisals(text).mean() / claimed - 1) > 0.01
    assert abs(nats / length / claimed - 1) > 0.01


def test_all_stories_of_a_tiny_grammar_written_out_have_the_entropy_of_the_recursion() -> None:
    automaton = Automaton([(1, tiny())])
    told = stories(automaton)
    nats, length = expectations(automaton)
    assert sum(p for _, p in told) == pytest.approx(1, abs=1e-12)
    assert nats == pytest.approx(-sum(p * log(p) for _, p in told), abs=1e-12)
    assert length == pytest.approx(sum(p * len(text) for text, p in told), abs=1e-12)
    # By hand: Ann (3 of 6), then Al (2 of the 3 that are left); the first pattern 3 of 4; `She ran.` 2 of 4.
    assert dict(told)["Ann met Al. She ran. Ann slept.\n\n"] == pytest.approx(3 / 6 * 2 / 3 * 3 / 4 * 2 / 4, abs=1e-15)


def test_the_scorer_is_the_sum_over_all_stories_that_begin_so() -> None:
    automaton = Automaton([(1, tiny())])
    told = stories(automaton)
    scorer = Scorer(automaton)

    def probability(beginning: str) -> float:
        return sum(p for text, p in told if text.startswith(beginning))

    for text, p in told[::7]:
        nats = scorer.surprisals(text)
        expected = [log(probability(text[:at]) / probability(text[: at + 1])) for at in range(len(text))]
        np.testing.assert_allclose(nats, expected, atol=1e-12)
        assert exp(-nats.sum()) == pytest.approx(p, rel=1e-12)


def test_a_pattern_that_mentions_a_hero_nobody_has_drawn_is_refused() -> None:
    faulty = replace(tiny(), steps=(sentence((1, "{hero} slept.")),))
    with pytest.raises(ValueError, match="that no sentence before has drawn"):
        expectations(Automaton([(1, faulty)]))


# --- one derivation ---------------------------------------------------------------------------------------------------


def all_forks(scorer: Scorer, automaton: Automaton) -> int:
    """Follows every text of the grammar from every state, so that any two derivations of one text must meet."""
    waiting, seen = [scorer.root(automaton.start)], set()
    while waiting:
        fork: Fork = waiting.pop()
        if id(fork) not in seen:
            seen.add(id(fork))
            for character in {text[0] for text, _ in fork.alive}:
                way = scorer.follow(fork, character)
                assert way is not None
                waiting.append(way[2])
    return len(seen)


def test_no_text_of_the_shipped_grammar_has_two_derivations() -> None:
    """Exhaustive: every fork of the whole automaton. Two derivations of one text would have to meet in a state."""
    automaton = Automaton([(1, ENGLISH), (1, CHINESE)])
    scorer = Scorer(automaton)
    assert all_forks(scorer, automaton) > 50_000
    assert scorer.meetings == []


def test_the_stories_of_a_tiny_grammar_are_all_different() -> None:
    told = stories(Automaton([(1, tiny())]))
    assert len({text for text, _ in told}) == len(told) > 100


@pytest.mark.parametrize(
    "fault",
    [
        sentence((1, "{new hero} met {new friend}."), (1, "{new hero} met {new friend}.")),  # a pattern twice
        sentence((1, "{new hero} met {new friend} at a {place}{tail}.")),  # hut + ch = hutch
        sentence((1, "{new hero.they} met {new friend}.")),  # Ann and Anna are both `she`, until the end
    ],
)
def test_a_second_derivation_is_found(fault: object) -> None:
    language = tiny()
    tables = {**language.words, "tail": (Word({"text": ""}), Word({"text": "ch"}))}
    faulty = replace(language, words=tables, steps=(fault, sentence((1, "{friend} ran."))))
    automaton = Automaton([(1, faulty)])
    scorer = Scorer(automaton)
    all_forks(scorer, automaton)
    told = stories(automaton)
    assert len({text for text, _ in told}) < len(told)
    assert scorer.meetings != []


# --- the scorer refuses what is not of the grammar ------------------------------------------------------------------


def test_a_text_may_be_cut_anywhere() -> None:
    text = corpus.write(1200, seed=9)
    whole = corpus.surprisals(text)
    assert whole.shape == (1200,)
    assert (whole >= 0).all()
    for length in range(0, 1200, 13):
        np.testing.assert_array_equal(corpus.surprisals(text[:length]), whole[:length])


@pytest.mark.parametrize(("language", "seed"), [("en", 4), ("zh", 4), ("both", 8)])
def test_a_wrong_character_is_named_with_its_place(language: str, seed: int) -> None:
    text = corpus.write(900, seed=seed, language=language)
    for at in range(0, 900, 37):
        wrong = text[:at] + "Z" + text[at + 1 :]
        with pytest.raises(ValueError, match=f"character {at}, 'Z', cannot follow"):
            corpus.surprisals(wrong, language)


def test_a_hero_who_changes_on_the_way_is_refused() -> None:
    text = "Once upon a time there was a kind cat named Mimi. "
    assert len(corpus.surprisals(text + "Every evening she ate")) == len(text) + 21
    with pytest.raises(ValueError, match=f"character {len(text) + 14}, 'h'"):
        corpus.surprisals(text + "Every evening he ate")


def test_an_unknown_language_is_refused() -> None:
    for call in (corpus.entropy_per_character, corpus.characters, lambda language: corpus.surprisals("", language)):
        with pytest.raises(ValueError, match="one of both, en, zh, not 'fr'"):
            call("fr")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_character_stands_twice_in_a_row(language: str) -> None:
    """How many have come is what a small model learns last (`treee`, 谢谢谢), so the tables keep away from it."""
    text = mega(language)
    assert {one for one, other in pairwise(text) if one == other} == {"\n"}

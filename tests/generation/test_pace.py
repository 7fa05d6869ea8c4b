"""How many tokens are proposed: as many as pay by the formula, none for a poor draft, and a new trial after a rest."""

from __future__ import annotations

import itertools
import random

import pytest

from clearhead.generation.pace import PLAIN_ROUNDS, REST, Pace, Round, Speculation
from clearhead.generation.rows import SPARE


def lengths(pace: Pace, acceptance: float, rounds: int, most: int = SPARE) -> list[int]:
    """The block of each round, if each token is accepted with this chance."""
    chances, found = random.Random(5), []
    for _ in range(rounds):
        found.append(k := pace.next(most))
        accepted = next((i for i in range(k) if chances.random() >= acceptance), k)
        pace.learn(Round(k, accepted, accepted + 1, 1.0))
    return found


def speed(acceptance: float, blocks: list[int], cost: float, once: float) -> float:
    """Tokens for the time of one forward, on average over rounds with these blocks."""
    written = sum(sum(acceptance**i for i in range(k + 1)) for k in blocks)
    return written / sum(1 + (once + cost * k if k else 0) for k in blocks)


def test_the_first_rounds_are_plain_so_that_there_is_something_to_compare_with() -> None:
    assert lengths(Pace(0.1), 1.0, 4)[: PLAIN_ROUNDS + 1] == [0] * PLAIN_ROUNDS + [lengths(Pace(0.1), 1.0, 3)[-1]]
    assert lengths(Pace(0.1), 1.0, 3)[-1] > 0


def test_high_acceptance_makes_long_blocks_and_there_is_a_longest() -> None:
    found = lengths(Pace(0.05, 0.4), 1.0, 40)[PLAIN_ROUNDS:]
    assert found == sorted(found)
    assert found[-1] == SPARE
    assert lengths(Pace(0.05, 0.4), 1.0, 40, most=3)[-1] == 3


def test_low_acceptance_switches_it_off_and_rests_double() -> None:
    found = lengths(Pace(0.05, 0.4), 0.0, 1000)
    trials = [i for i in range(1, len(found)) if found[i] and not found[i - 1]]
    rests = [found[a:b].count(0) for a, b in itertools.pairwise(trials)]
    assert rests == [REST * 2**i for i in range(len(rests))]
    assert len(rests) >= 4
    assert sum(map(bool, found)) < 25, "the price of a draft that is never right"


@pytest.mark.parametrize("cost", [0.03, 0.15, 0.5])
@pytest.mark.parametrize("once", [0.0, 0.4])
@pytest.mark.parametrize("acceptance", [0.5, 0.8, 0.95])
def test_it_is_nearly_as_fast_as_the_best_block(acceptance: float, cost: float, once: float) -> None:
    """Within 5 % of whoever knows the acceptance, by what is really tried; and as fast as plain decoding where none pays."""
    found = lengths(Pace(cost, once), acceptance, 600)[200:]
    best = max(speed(acceptance, [k], cost, once) for k in range(SPARE + 1))
    assert speed(acceptance, found, cost, once) > 0.95 * best


def test_always_as_many_as_there_is_room_for_would_be_seen() -> None:
    """The planted fault, by the same number."""
    best = max(speed(0.5, [k], 0.03, 0.4) for k in range(SPARE + 1))
    assert speed(0.5, [SPARE], 0.03, 0.4) < 0.95 * best


def test_a_new_trial_finds_a_draft_that_has_become_good() -> None:
    pace = Pace(0.05, 0.4)
    assert 0 in lengths(pace, 0.0, 20)[PLAIN_ROUNDS + 1 :]
    assert lengths(pace, 1.0, 200)[-1] == SPARE


@pytest.mark.parametrize("cost", [1.0, 1.05, 3.0])
def test_what_costs_as_much_as_the_model_is_never_tried(cost: float) -> None:
    assert lengths(Pace(cost), 1.0, 300) == [0] * 300


def test_what_it_tells_is_what_it_was_told() -> None:
    pace = Pace(0.1)
    assert pace.report() == Speculation(0, 0, None)
    for round_ in (Round(0, 0, 1, 2.0), Round(0, 0, 1, 4.0)):
        pace.learn(round_)
    assert pace.report() == Speculation(0, 0, None)
    pace.learn(Round(4, 2, 3, 3.0))
    # 3 seconds a token plainly; 5 tokens took 9 seconds.
    assert pace.report() == Speculation(4, 2, 5 * 3 / 9)
    # A text that ends within an accepted block: of four tokens one was wanted.
    pace.learn(Round(4, 1, 1, 1.0))
    assert pace.report() == Speculation(8, 3, 6 * 3 / 10)


def test_time_changes_nothing_but_what_is_told() -> None:
    def blocks(seconds: float) -> list[int]:
        pace, found = Pace(0.1), []
        for i in range(100):
            found.append(k := pace.next(SPARE))
            accepted = min(k, i % 4)
            pace.learn(Round(k, accepted, accepted + 1, seconds))
        return found

    assert blocks(1e-9) == blocks(0.0) == blocks(-3.0) == blocks(1e6)

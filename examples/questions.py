"""Write 200 questions with their answers, each a conversation of one line of JSON: something small to learn to answer.

python examples/questions.py > questions.jsonl
clearhead train questions.jsonl --out runs/questions
clearhead chat runs/questions
"""

from __future__ import annotations

import json
from collections.abc import Iterator

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
OPPOSITES = {
    "hot": "cold",
    "big": "small",
    "fast": "slow",
    "high": "low",
    "light": "dark",
    "old": "new",
    "wet": "dry",
    "full": "empty",
    "hard": "soft",
    "open": "shut",
    "early": "late",
    "near": "far",
}
COLOURS = {
    "snow": "white",
    "grass": "green",
    "blood": "red",
    "coal": "black",
    "a lemon": "yellow",
    "the sky": "blue",
    "a carrot": "orange",
    "milk": "white",
    "a frog": "green",
    "a raven": "black",
    "a strawberry": "red",
    "a violet": "violet",
}
YOUNG = {
    "cat": "kitten",
    "dog": "puppy",
    "cow": "calf",
    "sheep": "lamb",
    "horse": "foal",
    "hen": "chick",
    "duck": "duckling",
    "goat": "kid",
}


def questions() -> list[tuple[str, str]]:
    """Questions and their answers. Most things are asked in two ways or more, so what is left out can be known from the rest."""
    return [*_following("day", DAYS), *_following("month", MONTHS), *_opposites(), *_things(), *_sums()]


def _following(kind: str, names: list[str]) -> Iterator[tuple[str, str]]:
    for name, following in zip(names, names[1:] + names[:1], strict=True):
        yield f"What {kind} comes after {name}?", following
        yield f"Which {kind} follows {name}?", following
        yield f"What {kind} comes before {following}?", name
        yield f"Which {kind} is followed by {following}?", name


def _opposites() -> Iterator[tuple[str, str]]:
    for one, other in OPPOSITES.items():
        for this, that in ((one, other), (other, one)):
            yield f"What is the opposite of {this}?", that
            yield f"What is not {this}?", that


def _things() -> Iterator[tuple[str, str]]:
    for thing, colour in COLOURS.items():
        yield f"What colour is {thing}?", colour
        yield f"Name the colour of {thing}.", colour
    for animal, young in YOUNG.items():
        yield f"What is a young {animal} called?", f"a {young}"
        yield f"Name the young of a {animal}.", f"a {young}"


def _sums() -> Iterator[tuple[str, str]]:
    for first in range(1, 7):
        for second in range(1, 7):
            yield f"What is {first} plus {second}?", str(first + second)


if __name__ == "__main__":
    for question, answer in questions():
        said = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        print(json.dumps({"messages": said}))

"""What a path does not read it refuses: a field that is misspelt is not taken for one that was left out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from clearhead.web.answers import EVERYWHERE, FIELDS, PATHS, answer
from clearhead.web.opening import opened
from clearhead.web.session import RefusedError, Session
from tests.web.read_models import TARGET, TEXT, pair

CELL = {"part": "decoder.attention", "layer": "1", "head": "2", "query": "3", "key": "1"}
VALUES = {**CELL, "name": "decoder.embedding", "mask": "causal.window-2", "at": "4", "from": "0", "steps": "1"}
"""A value of each field."""


@pytest.fixture(scope="module")
def session() -> Session:
    return opened(pair(), TEXT, TARGET)


class Watched(dict[str, str]):
    """Fields of an address that remember which of them were asked for."""

    def __init__(self, fields: dict[str, str]) -> None:
        super().__init__(fields)
        self.read: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self.read.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, otherwise: str = "") -> str:  # type: ignore[override]
        self.read.add(name)
        return super().get(name, otherwise)

    def __iter__(self) -> Iterator[str]:
        return super().__iter__()


def test_each_path_names_the_fields_that_it_reads(session: Session) -> None:
    assert set(FIELDS) <= set(PATHS)
    for path in PATHS:
        fields = Watched({name: VALUES[name] for name in FIELDS.get(path, ())})
        PATHS[path](session, fields)
        assert fields.read == set(FIELDS.get(path, ())), path
        assert answer(session, path, dict(fields)).body


@pytest.mark.parametrize("path", PATHS)
def test_a_field_that_a_path_does_not_read_is_refused_in_one_line(session: Session, path: str) -> None:
    good = {name: VALUES[name] for name in FIELDS.get(path, ())}
    with pytest.raises(RefusedError) as refused:
        answer(session, path, {**good, "prefix": "-2"})
    line = str(refused.value)
    assert (refused.value.status, "\n" in line) == (400, False)
    assert "'prefix'" in line
    assert all(name in line for name in FIELDS.get(path, ()))
    assert answer(session, path, {**good, **dict.fromkeys(EVERYWHERE, "zh")}).kind

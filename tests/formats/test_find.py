"""The word MODEL: names that nothing can have."""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.formats.find import find_model, is_there, lasting_name
from clearhead.formats.load import load
from clearhead.messages import UserError

NOWHERE = ["x" * 5000, "", "a\0b", "\x1b[2J", "runs/not-there"]


@pytest.mark.parametrize("name", NOWHERE)
def test_what_is_no_name_is_no_model(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for ask in (find_model, load):
        with pytest.raises(UserError, match="there is no such model") as caught:
            ask(name)
        line = str(caught.value)
        assert line.isprintable()
        assert len(line) < 300
    assert not is_there(name) or not name
    assert lasting_name(name) == name or not name


def test_the_folder_where_one_stands_has_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="is neither a run directory"):
        find_model(".")

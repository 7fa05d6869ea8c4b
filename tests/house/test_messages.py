"""What users read: every message in two languages with the same fields, every message said, nothing said that is not there."""

from __future__ import annotations

import ast
import importlib
import re
import string
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from clearhead.messages.table import MESSAGES
from tests.house.source import PACKAGE, files, trees, write_tree

HAN = re.compile(r"[\u4e00-\u9fff]")


def fields(message: str) -> set[str]:
    """The names that a message wants filled in."""
    return {name for _, name, _, _ in string.Formatter().parse(message) if name is not None}


def table_faults(table: dict[str, tuple[str, str]]) -> list[str]:
    """What is wrong with the table alone."""
    found = []
    for key, (english, chinese) in table.items():
        if fields(english) != fields(chinese):
            found.append(f"{key}: fields {sorted(fields(english))} in English, {sorted(fields(chinese))} in Chinese")
        if not all(re.fullmatch(r"[a-z_]\w*", name) for name in fields(english) | fields(chinese)):
            found.append(f"{key}: a field without a plain name")
        if not english.strip() or HAN.search(english):
            found.append(f"{key}: the English is not English")
        if not HAN.search(chinese):
            found.append(f"{key}: the Chinese is not Chinese")
    return found


def keys_of(argument: ast.expr, table: dict[str, tuple[str, str]]) -> list[str] | None:
    """The keys that the first argument of `say` can be, or None unless they can be read off.

    `say(f"cli.{verb}.about")` can be every key of the table of that form, one word in each gap.
    """
    if isinstance(argument, ast.IfExp):
        either, other = keys_of(argument.body, table), keys_of(argument.orelse, table)
        return None if either is None or other is None else either + other
    if isinstance(argument, ast.JoinedStr):
        form = "".join(re.escape(part.value) if isinstance(part, ast.Constant) else r"\w+" for part in argument.values)
        return [key for key in table if re.fullmatch(form, key)] or [f"of the form {form}"]
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        return [argument.value]
    return None


def calls(package: Path) -> Iterator[tuple[str, ast.Call]]:
    """Every `say(...)` under a package, and where it stands."""
    for path, tree in trees(package):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "say":
                yield f"{path}:{node.lineno}", node


def use_faults(table: dict[str, tuple[str, str]], package: Path) -> list[str]:
    """What is wrong between the table and the source that says its messages."""
    found, said = [], set()
    for where, call in calls(package):
        keys = keys_of(call.args[0], table) if call.args else None
        if keys is None or len(call.args) != 1 or any(keyword.arg is None for keyword in call.keywords):
            found.append(f"{where}: say takes a key that is written out, and fields by name")
            continue
        said.update(keys)
        given = {keyword.arg for keyword in call.keywords}
        for key in keys:
            if key not in table:
                found.append(f"{where}: no message {key}")
            elif fields(table[key][0]) != given:
                found.append(
                    f"{where}: {key} wants {sorted(fields(table[key][0]))}, is given {sorted(map(str, given))}"
                )
    return found + [f"{key}: never said" for key in table if key not in said]


def test_both_languages_say_the_same() -> None:
    assert table_faults(MESSAGES) == []


def test_every_message_is_said_and_is_there() -> None:
    assert MESSAGES
    assert use_faults(MESSAGES, PACKAGE) == []


def test_no_key_is_in_two_rooms() -> None:
    """The table merges the rooms' parts: of two messages with one key the first would be lost."""
    rooms = [path.stem for path in files(PACKAGE / "messages", ".py") if path.stem not in {"__init__", "table"}]
    counted = Counter(key for room in rooms for key in importlib.import_module(f"clearhead.messages.{room}").MESSAGES)
    assert [key for key, times in counted.items() if times > 1] == []
    assert set(counted) == set(MESSAGES)


@pytest.mark.parametrize(
    ("english", "chinese", "fault"),
    [
        ("{path} is empty", "文件是空的", "fields ['path'] in English, [] in Chinese"),
        ("{path} is empty", "{file} 是空的", "in Chinese"),
        ("{} is empty", "{} 是空的", "without a plain name"),
        ("is empty", "is empty", "the Chinese is not Chinese"),
        ("是空的", "是空的", "the English is not English"),
        ("", "空", "the English is not English"),
    ],
)
def test_a_planted_fault_in_the_table_is_found(english: str, chinese: str, fault: str) -> None:
    assert table_faults({"sound": ("{n:,} steps", "{n:,} 步")}) == []
    found = table_faults({"bad": (english, chinese)})
    assert len(found) == 1
    assert fault in found[0]


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("say('other', n=1)\nsay('steps', n=1)", "no message other"),
        ("say('steps', count=1)", "steps wants ['n'], is given ['count']"),
        ("say('steps')", "steps wants ['n']"),
        ("key = 'steps'\nmessages.say(key, n=1)\nsay('steps', n=1)", "written out"),
        ("say('steps', n=1)\nsay('steps' if x else key, n=1)", "written out"),
        ("print('steps')", "steps: never said"),
        ("say('steps', n=1)\nsay(f'{room}.about', n=1)", "no message of the form"),
    ],
)
def test_a_planted_fault_in_the_source_is_found(tmp_path: Path, source: str, fault: str) -> None:
    table = {"steps": ("{n:,} steps", "{n:,} 步")}
    assert use_faults(table, write_tree(tmp_path / "sound", {"a.py": "say('steps', n=1)"})) == []
    assert use_faults(table, write_tree(tmp_path / "sound", {"a.py": "say(f'{what}s', n=1)"})) == []
    found = use_faults(table, write_tree(tmp_path / "bad", {"a.py": source}))
    assert len(found) == 1
    assert fault in found[0]

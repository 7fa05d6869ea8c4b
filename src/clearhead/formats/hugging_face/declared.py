"""What the files beside a tokenizer say of it: its marks, its chat template, what stands around a text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clearhead.formats.hugging_face.vocabularies import damaged, read_settings, read_text_file

__all__ = ["Declared", "read_declared"]

_ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_LISTS = ("additional_special_tokens", "extra_special_tokens")


@dataclass(frozen=True)
class Declared:
    """What is said of a tokenizer.

    Attributes:
        folder: where the files lie.
        fields: those of tokenizer_config.json, and what special_tokens_map.json adds to them.
        ids: the fields that may name ids: generation_config.json's, then config.json's.
    """

    folder: Path
    fields: Mapping[str, Any]
    ids: tuple[Mapping[str, Any], ...]

    def spelling(self, role: str) -> str | None:
        """How a special token is spelt, where it says so: a string, or an object that holds it.

        Raises:
            UserError: if it is something else.
        """
        return self._spelt(role, self.fields.get(role))

    def spellings(self) -> Iterable[str]:
        """All special tokens that are named.

        Raises:
            UserError: as `spelling`.
        """
        found = [self.spelling(role) for role in _ROLES]
        for name in _LISTS:
            listed = self.fields.get(name) or []
            if not isinstance(listed, list | dict):
                raise self._damaged(name, listed)
            found += [self._spelt(name, each) for each in (listed.values() if isinstance(listed, dict) else listed)]
        return [each for each in found if each is not None]

    def numbers(self, name: str) -> list[int]:
        """The ids that a field names: one, several, or none.

        Raises:
            UserError: if it names something else.
        """
        found: Any = next((fields[name] for fields in self.ids if fields.get(name) is not None), [])
        listed: list[int] = found if isinstance(found, list) else [found]
        if any(type(each) is not int for each in listed):
            raise damaged(self.folder / "config.json", f"{name}: {ascii(found)[:40]}")
        return listed

    def flag(self, name: str) -> bool:
        """A field that is true or false, false if it is missing.

        Raises:
            UserError: if it is something else.
        """
        found = self.fields.get(name)
        if found is not None and not isinstance(found, bool):
            raise self._damaged(name, found)
        return bool(found)

    def chat_template(self) -> str | None:
        """How conversations are written down: a file of its own, or a field, in which the one named "default" is meant.

        Raises:
            UserError: if it is no text.
        """
        alone, older = self.folder / "chat_template.jinja", self.folder / "chat_template.json"
        if alone.exists():
            return read_text_file(alone)
        found = self.fields.get("chat_template")
        if found is None and older.exists():
            found = read_settings(older).get("chat_template")
        if isinstance(found, list):
            named = (each for each in found if isinstance(each, dict) and each.get("name") == "default")
            found = next(named, {}).get("template")
        elif isinstance(found, dict):
            found = found.get("default")
        if found is not None and not isinstance(found, str):
            raise self._damaged("chat_template", found)
        return found

    def _spelt(self, name: str, found: object) -> str | None:
        content = found.get("content") if isinstance(found, dict) else found
        if content is not None and not isinstance(content, str):
            raise self._damaged(name, found)
        return content

    def _damaged(self, name: str, found: object) -> Exception:
        return damaged(self.folder / "tokenizer_config.json", f"{name}: {ascii(found)[:40]}")


def read_declared(folder: Path, fields: Mapping[str, object]) -> Declared:
    """What is said in a folder.

    Args:
        folder: the folder.
        fields: those of its config.json.

    Raises:
        UserError: if a file is damaged.
    """
    own, marks, generation = (
        read_settings(path) if path.exists() else {}
        for path in (
            folder / f"{name}.json" for name in ("tokenizer_config", "special_tokens_map", "generation_config")
        )
    )
    return Declared(folder, {**marks, **own}, (generation, fields))

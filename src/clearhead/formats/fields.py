"""Reading a foreign configuration: what is not understood is an error."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, overload

from clearhead.messages import UserError, say
from clearhead.text.lines import shown

Kind = TypeVar("Kind", int, float, bool, str)

MISSING: Any = object()


class Fields:
    """The fields of a foreign configuration, each to be taken, named as neutral, or refused by `done`.

    A field that is null is one that is not there, except where `neutral` names null's meaning otherwise.

    Args:
        data: the fields.
        source: where they come from, for messages.
        family: whose they are, for messages.
    """

    def __init__(self, data: Mapping[str, Any], source: Path, family: str) -> None:
        self.data, self.source, self.family = dict(data), source, family
        self._left = {name for name, value in data.items() if value is not None}

    def __contains__(self, name: str) -> bool:
        return self.data.get(name) is not None

    @overload
    def take(self, name: str, kind: type[Kind]) -> Kind: ...
    @overload
    def take(self, name: str, kind: type[Kind], default: None) -> Kind | None: ...
    @overload
    def take(self, name: str, kind: type[Kind], default: Kind) -> Kind: ...
    def take(self, name: str, kind: type[Any], default: Any = MISSING) -> Any:
        """The value of a field, understood from here on.

        Args:
            name: the field.
            kind: what it must be; a whole number may stand for a float.
            default: what the family's own code takes where it is missing.

        Raises:
            UserError: if it is missing and has no default, or of another kind.
        """
        value = self.raw(name, default)
        if value is default:
            return value
        if isinstance(value, bool) is not (kind is bool) or not isinstance(
            value, (int, float) if kind is float else kind
        ):
            raise UserError(
                say("exchange.field_kind", path=self.source, field=name, value=repr(value)[:60], wanted=kind.__name__)
            )
        return kind(value)

    def raw(self, name: str, default: Any = MISSING) -> Any:
        """The value of a field, whatever it is: a list, a mapping.

        Raises:
            UserError: if it is missing and has no default.
        """
        self._left.discard(name)
        if name in self:
            return self.data[name]
        if default is MISSING:
            raise UserError(say("exchange.field_missing", path=self.source, field=name, family=self.family))
        return default

    def choose(self, name: str, known: Mapping[str, Any], default: str) -> Any:
        """What `known` says of the word that a field holds.

        Raises:
            UserError: if it says nothing of it, naming the words that it knows.
        """
        word = self.take(name, str, default)
        if word not in known:
            raise UserError(
                say(
                    "exchange.field_word",
                    path=self.source,
                    field=name,
                    value=repr(word)[:60],
                    known=", ".join(sorted(known)),
                )
            )
        return known[word]

    def neutral(self, name: str, *values: object) -> None:
        """A field that changes nothing with one of these values, or if it is missing.

        Raises:
            UserError: if it has another.
        """
        self._left.discard(name)
        value = self.data.get(name)
        # 1 and True are equal in Python and not in a configuration.
        if value is not None and not any(
            value == each and isinstance(value, bool) is isinstance(each, bool) for each in values
        ):
            raise UserError(
                say(
                    "exchange.field_unsupported",
                    path=self.source,
                    field=name,
                    value=repr(value)[:60],
                    family=self.family,
                )
            )

    def ignore(self, *names: str) -> None:
        """Fields that change nothing whatever they hold: numbers of the training, ids that the tokenizer names, too."""
        self._left.difference_update(names)

    def done(self) -> None:
        """All that matters has been taken.

        Raises:
            UserError: if a field remains that nobody understood.
        """
        for name in sorted(self._left):
            raise UserError(
                say(
                    "exchange.field_unknown",
                    path=self.source,
                    field=shown(name),
                    value=repr(self.data[name])[:60],
                    family=self.family,
                )
            )

"""Configurations as plain data and back: the form that YAML, JSON and the command line share.

A choice is written `{"class_path": "LayerNorm", "init_args": {"eps": 1e-05, "bias": true}}`.
"""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar, get_args, get_type_hints

from clearhead.messages import UserError, say
from clearhead.models import choices, config, config_encoders
from clearhead.models.checked import holds, name_of

KINDS = {
    name: found
    for module in (choices, config, config_encoders)
    for name, found in vars(module).items()
    if is_dataclass(found) and name != "StackConfig"
}
"""Every class that a configuration may name."""

Kind = TypeVar("Kind")


def to_plain(value: object) -> Any:
    """A configuration as dictionaries, numbers and strings that JSON and YAML can hold."""
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    if not is_dataclass(value) or isinstance(value, type):
        return value
    arguments = {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    return {"class_path": type(value).__name__, "init_args": arguments}


def from_plain(data: object, kind: type[Kind]) -> Kind:
    """The configuration that `to_plain` wrote.

    Args:
        data: what `to_plain` gave, perhaps read from a file that somebody has edited.
        kind: the family that the choice must belong to, such as `ModelConfig`.

    Raises:
        UserError: on an unknown class or field, or a value of the wrong type.
    """
    known = {name: found for name, found in KINDS.items() if isinstance(found, type) and issubclass(found, kind)}
    name = data.get("class_path") if isinstance(data, dict) else None
    short = str(name).rpartition(".")[2]
    if not isinstance(data, dict) or short not in known:
        raise UserError(say("models.unknown_type", kind=kind.__name__, name=name, known=", ".join(sorted(known))))
    chosen = known[short]
    extra = sorted(data.keys() - {"class_path", "init_args"})
    if extra:
        raise UserError(say("models.unknown_field", name=short, field=extra[0], known="class_path, init_args"))
    hints = get_type_hints(chosen)
    written = data.get("init_args") or {}
    if not isinstance(written, dict):
        raise UserError(say("models.wrong_type", name=short, field="init_args", value=written, wanted="dict"))
    arguments = {field: _argument(short, field, value, hints) for field, value in written.items()}
    missing = [f.name for f in fields(chosen) if f.default is MISSING and f.name not in arguments]
    if missing:
        raise UserError(say("models.missing_field", name=short, field=missing[0]))
    return chosen(**arguments)


def _argument(name: str, field: str, value: object, hints: dict[str, Any]) -> object:
    """One field's value, checked against its type; nested choices are read in turn."""
    if field not in hints:
        raise UserError(say("models.unknown_field", name=name, field=field, known=", ".join(hints)))
    wanted = hints[field]
    if wanted == tuple[config.Sight, ...]:
        if not isinstance(value, list):
            raise UserError(say("models.wrong_type", name=name, field=field, value=value, wanted="list"))
        return tuple(from_plain(item, config.Sight) for item in value)
    family = next((kind for kind in (wanted, *get_args(wanted)) if _is_family(kind)), None)
    if family is not None and value is not None:
        return from_plain(value, family)
    if not holds(value, wanted):
        raise UserError(say("models.wrong_type", name=name, field=field, value=value, wanted=name_of(wanted)))
    return value


def _is_family(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, choices.Choice)

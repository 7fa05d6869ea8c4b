"""A configuration's fields hold what their types say. Imports without torch."""

from __future__ import annotations

from typing import Any, get_args, get_origin, get_type_hints

from clearhead.messages import UserError, say


class Choice:
    """Something that a model may have one way or another; the families of choices are its direct subclasses."""

    def __post_init__(self) -> None:
        check_types(self)


def check_types(value: object) -> None:
    """Raise a UserError unless every field of the dataclass `value` holds what its type says.

    A whole number may stand for a float; True and False stand for nothing but themselves; a choice is an instance of
    its family, not its class or its name.
    """
    for field, wanted in get_type_hints(type(value)).items():
        found = getattr(value, field)
        if not holds(found, wanted):
            raise UserError(
                say("models.wrong_type", name=type(value).__name__, field=field, value=found, wanted=name_of(wanted))
            )


def holds(found: object, wanted: Any) -> bool:
    """Whether `found` is of the type `wanted`, a class, a union of classes or a tuple of one class."""
    if get_origin(wanted) is tuple:
        return isinstance(found, tuple) and all(holds(item, get_args(wanted)[0]) for item in found)
    if get_args(wanted):
        return any(holds(found, one) for one in get_args(wanted))
    if isinstance(found, bool):
        return wanted is bool
    return isinstance(found, (int, float) if wanted is float else wanted)


def name_of(wanted: Any) -> str:
    """A type as a user may read it: `int`, `int | None`, `Rotary()`."""
    if get_origin(wanted) is None and isinstance(wanted, type):
        return wanted.__name__
    return str(wanted).replace("clearhead.models.choices.", "")


def in_order(smaller: str, smaller_value: float, larger: str, larger_value: float) -> None:
    """Raise a UserError unless the two stand in this order."""
    if not smaller_value < larger_value < float("inf"):
        raise UserError(
            say("models.out_of_range", field=larger, value=larger_value, wanted=f"> {smaller} ({smaller_value:g})")
        )


def positive(field: str, value: float) -> None:
    """Raise a UserError unless `value` is a finite number above 0."""
    if not 0 < value < float("inf"):
        raise UserError(say("models.out_of_range", field=field, value=value, wanted="> 0"))

"""What a published family of models is: its configuration and its tensors, in both directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from clearhead.formats.fields import Fields
from clearhead.formats.opened import Config
from clearhead.formats.rows import Row


class Family(NamedTuple):
    """A published family.

    A round trip holds: `read(Fields(write(config)))` is `config` again, in all that the family can say; export compares, and refuses
    what was lost.
    """

    name: str
    """`model_type` in config.json."""
    architectures: tuple[str, ...]
    """What config.json may call the class of the model, the one that export writes first."""
    read: Callable[[Fields], Config]
    """The configuration; takes every field that changes the computation and leaves the rest to `Fields.done`."""
    write: Callable[[Any], dict[str, Any]]
    """The fields of config.json, but for `architectures` and `model_type`; what the family cannot say is left out."""
    rows: Callable[[Any], list[Row]]
    """For each tensor of ours, those of theirs."""
    completed: Callable[[Any], Config]
    """The same model with the biases that the family always has, which are zeros where ours has none."""
    base: str = ""
    """The prefix of names that files of a bare base model leave out: "transformer."."""
    unused: tuple[str, ...] = ()
    """Patterns of tensors that compute nothing."""

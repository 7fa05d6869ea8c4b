"""What a pickle asks for, without doing any of it.

A pickle is a program. `look` runs it with things that do nothing in place of all that it names, which tells every name it wants, and how
many bytes it claims of each storage: PyTorch does not hold those against the file.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
import struct
import zipfile
from typing import IO, Any

DAMAGE = (
    pickle.UnpicklingError,
    zipfile.BadZipFile,
    struct.error,
    OSError,
    EOFError,
    RuntimeError,  # and RecursionError, NotImplementedError
    MemoryError,
    AssertionError,
    ArithmeticError,
    LookupError,
    TypeError,
    ValueError,  # and UnicodeDecodeError
    AttributeError,
)
"""What readers of pickles raise where a file is not what it says."""

MOST_BYTES, MOST_STEPS = 1 << 26, 1 << 23
"""More than the description of any model takes; its weights lie outside of it."""

_WEIGHTS = re.compile(
    r"collections\.OrderedDict|torch\.(\w+Storage|Size|Tensor|device|[a-z]+\d+\w*|bool)|torch\.storage\.\w+Storage"
    r"|torch\.nn\.parameter\.Parameter|torch\._utils\._rebuild_(tensor|tensor_v2|tensor_v3|parameter|parameter_with_state)"
    r"|torch\._tensor\._rebuild_from_type_v2|torch\.serialization\._get_layout|collections\.(Counter|defaultdict)|_codecs\.encode"
    r"|(builtins|__builtin__)\.(set|complex)"
)
"""The names that weights and plain values are made with; PyTorch's own list decides after this one."""

_SIZES = {"Double": 8, "Float": 4, "Half": 2, "BFloat16": 2, "Long": 8, "Int": 4, "Short": 2, "Char": 1, "Byte": 1}
_SIZES |= {"Bool": 1, "Untyped": 1, "ComplexFloat": 8, "ComplexDouble": 16, "QInt8": 1, "QUInt8": 1, "QInt32": 4}


class _Nothing:
    """Stands for whatever a pickle names: may be made, filled and called, and does nothing."""

    def __new__(cls, *_: object) -> _Nothing:
        return super().__new__(cls)

    def __call__(self, *_: object) -> _Nothing:
        return self

    def __setitem__(self, _: object, value: object) -> None:
        pass

    def __setstate__(self, _: object) -> None:
        pass

    def append(self, _: object) -> None:
        pass

    def extend(self, _: object) -> None:
        pass


class Looked(pickle.Unpickler):
    """What a pickle describes, with nothing in place of all that is not a plain value.

    Args:
        data: the pickle, of which the steps have been checked.
    """

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data), encoding="latin-1")
        self.names: list[str] = []
        self.storages: dict[str, int] = {}
        """How many bytes it claims of each storage, by its key."""
        self.value: object = None

    def find_class(self, module_name: str, global_name: str, /) -> type[_Nothing]:
        """Nothing, by that name, which is remembered."""
        self.names.append(f"{module_name}.{global_name}")
        return type(global_name, (_Nothing,), {})

    def persistent_load(self, pid: Any, /) -> _Nothing:
        """A storage, of which the size is remembered."""
        match pid:
            case ("storage", type(__name__=name), str(key), _, int(count), *_) if count >= 0:
                size = _SIZES.get(name.removesuffix("Storage"))
                if size is not None:
                    self.storages[key] = max(count * size, self.storages.get(key, 0))
                    return _Nothing()
        raise pickle.UnpicklingError("it names something that is no storage")

    @property
    def code(self) -> str | None:
        """The first name that weights are not made with."""
        return next((name for name in self.names if not _WEIGHTS.fullmatch(name)), None)


def check_steps(stream: IO[bytes]) -> None:
    """Look at the steps of the pickle that `stream` stands at; it stands behind it then.

    Raises:
        ValueError: if it is cut short, longer than any description, or would take more memory or time than its length allows.
    """
    memory = _Memory()
    for count, (step, argument, _) in enumerate(pickletools.genops(stream)):
        if count > MOST_STEPS:
            raise ValueError("its description is longer than that of any model")
        if step.name.startswith("EXT"):
            raise ValueError("it names things by number")
        memory.take(step.name, argument, count)


class _Memory:
    """What a pickle remembers, to use it again.

    Python makes room up to the number that a value is remembered by. And a tuple that holds twice the tuple before it, and so on, is
    looked up in 2^n steps; what is really saved uses hardly a tuple again.
    """

    MOST = 16

    def __init__(self) -> None:
        self.tuples: dict[int, bool] = {}
        self.again: set[int] = set()
        self.last = ""

    def take(self, step: str, argument: object, count: int) -> None:
        """The next step.

        Raises:
            ValueError: as `check_steps`.
        """
        if step in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
            place = argument if isinstance(argument, int) else len(self.tuples)
            if place > count:
                raise ValueError(f"it remembers {place} values in {count} steps")
            self.tuples[place] = self.last.startswith("TUPLE")
        elif step == "DUP":
            self.again.add(-count)
        elif isinstance(argument, int) and step.endswith("GET") and self.tuples.get(argument):
            self.again.add(argument)
        if len(self.again) > self.MOST:
            raise ValueError("it uses the same things too often")
        self.last = step


def look(data: bytes) -> Looked:
    """What a pickle describes.

    Raises:
        ValueError: as `check_steps`.
    """
    if len(data) > MOST_BYTES:
        raise ValueError("its description is longer than that of any model")
    check_steps(io.BytesIO(data))
    looked = Looked(data)
    try:
        looked.value = looked.load()
    except DAMAGE:
        # What wants code is told so, whatever becomes of it without.
        if looked.code is None:
            raise
    return looked

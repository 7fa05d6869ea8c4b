"""What the page is given: JSON, or numbers packed behind a JSON header. Imports without torch."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray

JSON = "application/json"
PACKED = "application/octet-stream"
KINDS: dict[str, np.dtype[Any]] = {"u8": np.dtype("uint8"), "f32": np.dtype("<f4")}
"""What an array may be, by the name that its header has."""


@dataclass(frozen=True)
class Answer:
    """One answer, whoever asked: a request over HTTP, or a page that is written to a file.

    Args:
        kind: its media type.
        body: its bytes.
    """

    kind: str
    body: bytes


def as_json(told: Mapping[str, Any]) -> Answer:
    """Plain data as an answer; what is no number (NaN, infinity) is refused, for a browser could not read it.

    Raises:
        ValueError: if a number is none.
    """
    return Answer(JSON, json.dumps(told, ensure_ascii=False, allow_nan=False).encode())


def finite(number: SupportsFloat | None) -> float | None:
    """The number, as JSON can say it: None if it is none, NaN or infinite.

    Args:
        number: a float, or a tensor with one number.
    """
    told = None if number is None else float(number)
    return told if told is not None and math.isfinite(told) else None


def packed(header: Mapping[str, Any], arrays: Sequence[tuple[str, NDArray[Any]]]) -> Answer:
    """A header and arrays behind it in one body.

    Four bytes say how long the header is (little-endian), then comes the header as JSON, filled up with spaces to a multiple of four so
    that float32 may be read in place, then the numbers of all arrays, each begun at a multiple of four.

    Args:
        header: plain data; `arrays: [{name, kind, shape}]` is put into it.
        arrays: names and arrays, of uint8 or float32.

    Raises:
        ValueError: if an array is of another type, or a number in the header is none.
    """
    described = [{"name": name, "kind": _kind(each), "shape": list(each.shape)} for name, each in arrays]
    text = json.dumps({**header, "arrays": described}, ensure_ascii=False, allow_nan=False).encode()
    parts = [_filled(text, b" "), *(_filled(np.ascontiguousarray(each).tobytes(), b"\0") for _, each in arrays)]
    return Answer(PACKED, struct.pack("<I", len(parts[0])) + b"".join(parts))


def unpacked(body: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What `packed` was given: the header, and the arrays by name.

    Args:
        body: of the answer.
    """
    (length,) = struct.unpack_from("<I", body)
    header, place = json.loads(body[4 : 4 + length]), 4 + length
    arrays: dict[str, NDArray[Any]] = {}
    for each in header["arrays"]:
        kind: np.dtype[Any] = KINDS[each["kind"]]
        count = int(np.prod(each["shape"], dtype=np.int64))
        arrays[each["name"]] = np.frombuffer(body, kind, count, place).reshape(each["shape"])
        place += -(-count * kind.itemsize // 4) * 4
    return header, arrays


def _kind(array: NDArray[Any]) -> str:
    found = next((name for name, kind in KINDS.items() if array.dtype == kind), None)
    if found is None:
        raise ValueError(f"an array of {array.dtype} cannot be packed")
    return found


def _filled(body: bytes, filler: bytes) -> bytes:
    return body + filler * (-len(body) % 4)

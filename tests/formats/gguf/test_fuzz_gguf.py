"""GGUF files changed at random: a model that runs, or one line; nothing else, whatever the file says, and no memory for it."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from clearhead.formats.gguf.header import GgufHeader, read_header
from clearhead.messages import UserError
from tests.formats.gguf.test_header import array, field
from tests.formats.gguf.written import L, V, model_in, raw, tensor, tiny, under, write_model

EDGES = [
    0,
    1,
    2,
    3,
    7,
    31,
    32,
    33,
    255,
    256,
    1 << 16,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 40,
    1 << 62,
    (1 << 63) - 1,
]
EDGES += [1 << 63, (1 << 64) - 1]
NUMBERS: list[Any] = [0, 1, 2, 3, 4, 6, 16, 32, 96, 160, 1000, (1 << 32) - 1, 1 << 50, -1, -(1 << 40)]
NUMBERS += [0.0, -0.0, 0.5, 1.0, 1e-30, 1e30, 1e300, -2.0, float("nan"), float("inf"), -float("inf"), True, False]
OTHERS: list[Any] = ["", "gpt2", "llama", "yarn", "linear", "none", "x" * 300, "小猫", "\n", "\0"]
OTHERS += [[], [4, 4], [4, 2], [0.5], ["a", "b"], [[4], [4]], [True], ["", ""]]
WORDS: dict[str, Any] = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": [chr(97 + index) for index in range(26)] + ["ab", "<end>", *map(str, range(V - 28))],
    "tokenizer.ggml.token_type": [1] * 27 + [3] + [1] * (V - 28),
    "tokenizer.ggml.merges": ["a b"],
    "tokenizer.ggml.eos_token_id": 27,
    "tokenizer.ggml.add_bos_token": False,
    "tokenizer.chat_template": "{{ messages[0].content }}",
}
KEYS = [
    *(
        f"attention.{key}"
        for key in ("sliding_window", "key_length", "value_length", "causal", "scale", "head_count_kv")
    ),
    *(f"rope.{key}" for key in ("dimension_count", "freq_base", "scale_linear")),
    *(
        f"rope.scaling.{key}"
        for key in ("type", "factor", "original_context_length", "yarn_beta_fast", "yarn_beta_slow")
    ),
    *("vocab_size", "expert_count", "logit_scale", "block_count"),
]


def encoded(value: Any) -> tuple[int, bytes]:
    """A value as it stands in a file: the number of its type and its bytes."""
    match value:
        case bool():
            return 7, struct.pack("<?", value)
        case int():
            return (10, struct.pack("<Q", value)) if value >= 0 else (11, struct.pack("<q", value))
        case float():
            return 12, struct.pack("<d", value)
        case str():
            return 8, struct.pack("<Q", len(value.encode())) + value.encode()
    kinds = [encoded(each) for each in value]
    return 9, array(kinds[0][0] if kinds else 4, len(kinds), b"".join(each for _, each in kinds))


def rewritten(draw: random.Random, whole: bytes, header: GgufHeader) -> bytes:
    """The file with some of its keys and tensors saying something else, everything else in order."""
    fields, architecture = dict(header.fields), header.fields["general.architecture"]
    for _ in range(draw.randint(0, 2)):
        known = draw.random() < 0.5
        key = draw.choice(list(fields)) if known else f"{architecture}.{draw.choice(KEYS)}"
        if draw.random() < 0.1:
            fields.pop(key, None)
        else:
            fields[key] = draw.choice(NUMBERS if draw.random() < 0.7 else OTHERS)
    described, data = [], b""
    changed = draw.randrange(len(header.tensors)) if draw.random() < 0.4 else -1
    for index, (name, info) in enumerate(header.tensors.items()):
        kind = {"F32": 0, "F16": 1, "Q4_0": 2, "Q8_0": 8}[info.kind.name]
        sizes, offset, called = list(info.shape[::-1]), len(data), name
        if index == changed:
            place = draw.randrange(5)
            sizes = [draw.choice(EDGES)] * draw.randint(0, 5) if place == 0 else sizes
            sizes = sizes[::-1] if place == 1 else sizes
            kind = draw.randrange(45) if place == 2 else kind
            offset = draw.choice(EDGES) if place == 3 else offset
            called = draw.choice([*header.tensors, "", "output.weight", "rope_freqs.weight"]) if place == 4 else name
        described.append(tensor(called, sizes, kind, offset))
        data += whole[info.begin : info.begin + info.size]
        data += bytes(-len(data) % 32)
    return raw([field(key, *encoded(value)) for key, value in fields.items()], described) + data


def bent(draw: random.Random, whole: bytes, header: GgufHeader) -> bytes:
    """The file with some of its bytes changed, doubled or missing, most of them in the header."""
    content = bytearray(whole)
    end = min(info.begin for info in header.tensors.values())
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(end if draw.random() < 0.9 else len(content))
        match draw.randrange(6):
            case 0:
                content[place : place + 1] = draw.randbytes(1)
            case 1:
                content[place : place + 8] = struct.pack("<Q", draw.choice(EDGES))
            case 2:
                content[place : place + 4] = struct.pack("<I", draw.choice(EDGES) % (1 << 32))
            case 3:
                del content[place : place + draw.choice([1, 4, 8, 32])]
            case 4:
                content[place:place] = content[place : place + draw.choice([1, 4, 8, 32])]
            case 5:
                del content[place if draw.random() < 0.2 else len(content) - draw.randint(1, 40) :]
    return bytes(content)


@pytest.fixture(scope="module")
def whole_files(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[bytes, GgufHeader]]:
    """A file with words, one with a number for each block, and one of another architecture."""
    path, found = tmp_path_factory.mktemp("whole") / "model.gguf", []
    per_block = under("qwen2", {"attention.head_count": [6] * L, "feed_forward_length": [160] * L})
    for architecture, kind, more in (("llama", "Q4_0", WORDS), ("qwen2", "F32", per_block), ("gpt2", "F16", {})):
        write_model(path, architecture, tiny(architecture), kind, more=more)
        model_in(path)
        found.append((path.read_bytes(), read_header(path)))
    return found


Changing = Callable[[random.Random, bytes, GgufHeader], bytes]


@torch.no_grad()
def outcome(path: Path, content: bytes) -> bool:
    """Whether a file is a model that runs; otherwise one line says why not."""
    path.write_bytes(content)
    begun = time.process_time()
    try:
        model = model_in(path)
        assert model(torch.tensor([[0, 0, 0]])[:, : model.context]).shape[-1] == model.embedding.weight.shape[0]
        line = None
    except UserError as error:
        line = str(error)
    assert time.process_time() - begun < 5
    # What the file says may hold anything, line breaks too.
    assert line is None or (line.isprintable() and 0 < len(line) < 1000)
    return line is None


def survive(path: Path, files: list[tuple[bytes, GgufHeader]], changing: Changing, seeds: range, seconds: float) -> int:
    """Open files changed with these seeds until the time is up; how many were models all the same."""
    models, begun = 0, time.monotonic()
    for seed in seeds:
        draw = random.Random(seed)
        content = changing(draw, *draw.choice(files))
        try:
            models += outcome(path, content)
        except BaseException:
            print(f"{changing.__name__}, seed {seed}")  # noqa: T201
            raise
        if time.monotonic() - begun > seconds:
            break
    return models


@pytest.mark.parametrize("changing", [rewritten, bent])
def test_a_few(tmp_path: Path, whole_files: list[tuple[bytes, GgufHeader]], changing: Changing) -> None:
    models = survive(tmp_path / "model.gguf", whole_files, changing, range(120), 20)
    # Were there none, nothing would have been tried but the first check.
    assert 0 < models < 120


@pytest.mark.slow
@pytest.mark.parametrize("changing", [rewritten, bent])
def test_many(tmp_path: Path, whole_files: list[tuple[bytes, GgufHeader]], changing: Changing) -> None:
    assert survive(tmp_path / "model.gguf", whole_files, changing, range(1000, 1_000_000), 50) > 0


def test_a_crash_would_be_noticed(tmp_path: Path, whole_files: list[tuple[bytes, GgufHeader]]) -> None:
    """A fault: a reader that falls over something it did not expect."""

    def falls(draw: random.Random, whole: bytes, header: GgufHeader) -> bytes:
        raise KeyError("a tensor")

    with pytest.raises(KeyError):
        survive(tmp_path / "model.gguf", whole_files, falls, range(1), 1)

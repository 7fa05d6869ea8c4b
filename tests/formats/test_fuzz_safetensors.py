"""Folders damaged at random: a model or one line, never another error, and memory that does not grow with what a file claims."""

from __future__ import annotations

import itertools
import json
import resource
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from clearhead.formats.assemble import assemble
from clearhead.formats.hugging_face.folder import open_folder
from clearhead.formats.safetensors_files import INDEX
from clearhead.messages import UserError
from tests.formats.safetensors_made import shard_of, write_shards

pytestmark = pytest.mark.slow

SECONDS = 10
"""For each of the tests."""
MOST_MEMORY = 400 << 20
"""What they may take beyond what was there: a header of the greatest length that is read, parsed."""

FUZZ = settings(
    max_examples=100,
    database=None,
    derandomize=False,
    suppress_health_check=list(HealthCheck),
    report_multiple_bugs=False,
)
WEIGHTS = "model.safetensors"

SIZES: dict[str, Any] = {"vocab_size": 23, "num_attention_heads": 3, "num_hidden_layers": 2, "intermediate_size": 17}
MODELS: dict[str, Callable[[], Any]] = {
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(vocab_size=23, n_embd=12, n_head=3, n_layer=2, n_positions=10)),
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SIZES, hidden_size=12)),
    "bert": lambda: BertForMaskedLM(BertConfig(**SIZES, hidden_size=12)),
    "t5": lambda: T5ForConditionalGeneration(
        T5Config(vocab_size=23, d_model=12, d_kv=4, num_heads=3, d_ff=17, num_layers=2)
    ),
}
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 40), st.sampled_from([0, -1, 2**31 - 1, 2**31, 2**60, 2**64, 10**30]),
    st.floats(), st.sampled_from(["", "x", "silu", "gelu", "float32", "../x", "\x1b[2J", "n" * 2000]),
    st.lists(st.integers(-2, 9), max_size=3), st.dictionaries(st.sampled_from(["rope_type", "factor", "0"]), st.integers(0, 9)),
)  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders that load, one of several files."""
    folder = tmp_path_factory.mktemp("whole")
    for name, make in MODELS.items():
        make().save_pretrained(folder / name)
        read(folder / name)
    sharded = folder / "sharded"
    shutil.copytree(folder / "gpt2", sharded)
    (sharded / "model.safetensors").unlink()
    write_shards(sharded, MODELS["gpt2"]().transformer.state_dict())
    read(sharded)
    return folder


def read(folder: Path) -> str:
    """The line with which a folder is refused; nothing if it is a model."""
    try:
        assemble(open_folder(folder), torch.float32, "cpu")
    except UserError as error:
        return str(error)
    return ""


def memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def damaged(raw: bytes, data: st.DataObject, most: int) -> bytes:
    """Cut anywhere, or changed among the first `most` bytes, where a header is."""
    most = min(len(raw), most)
    kind = data.draw(st.sampled_from(["cut", "change", "change", "insert", "drop", "number"]))
    place = data.draw(st.integers(0, most - 1))
    if kind == "cut":
        return raw[: data.draw(st.integers(0, len(raw)))]
    if kind == "insert":
        return raw[:place] + data.draw(st.binary(max_size=9)) + raw[place:]
    if kind == "drop":
        return raw[:place] + raw[place + data.draw(st.integers(1, 20)) :]
    if kind == "number":
        place = data.draw(st.sampled_from([index for index in range(most) if raw[index : index + 1].isdigit()]))
        return raw[:place] + str(data.draw(st.sampled_from([0, 1, 9, 2**31, 2**60, 2**64]))).encode() + raw[place + 1 :]
    changed = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, most - 1))] = data.draw(st.integers(0, 255))
    return bytes(changed)


def header_of(raw: bytes) -> dict[str, Any]:
    return dict(json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")]))


def entry_of(header: dict[str, Any], name: str) -> dict[str, Any]:
    """What a header says of a tensor; nothing if it has been made nonsense of."""
    return dict(found) if isinstance(found := header.get(name), dict) else {}


def with_header(raw: bytes, header: dict[str, Any]) -> bytes:
    """A file with another header and the same numbers."""
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + raw[8 + int.from_bytes(raw[:8], "little") :]


def another_header(raw: bytes, data: st.DataObject) -> bytes:
    """Still JSON: names, types, shapes and places exchanged among the tensors, or made up."""
    header = header_of(raw)
    names = sorted(header.keys() - {"__metadata__"})
    for _ in range(data.draw(st.integers(1, 3))):
        name, other = data.draw(st.sampled_from(names)), data.draw(st.sampled_from(names))
        field = data.draw(st.sampled_from(["dtype", "shape", "data_offsets", "all", "name"]))
        entry = entry_of(header, name)
        if field == "name":
            header[data.draw(st.sampled_from([other, "module." + name, "x" * 600, "\n"]))] = header.pop(name, None)
        elif field == "all":
            header[name] = data.draw(st.one_of(VALUES, st.just(header.get(other))))
        else:
            types = st.sampled_from(["F16", "BF16", "F64", "I32", "F8_E4M3", "Q9"])
            entry[field] = data.draw(st.one_of(VALUES, types, st.just(entry_of(header, other).get(field))))
            header[name] = entry
    return with_header(raw, header)


def other_fields(raw: bytes, data: st.DataObject) -> bytes:
    """A configuration in which some fields are others, gone, or new."""
    fields = json.loads(raw)
    names = st.sampled_from([*fields, "rope_scaling", "rope_theta", "head_dim", "pruned_heads", "auto_map"])
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(names)
        kind = data.draw(st.sampled_from(["value", "value", "gone", "inside"]))
        if kind == "gone":
            fields.pop(name, None)
        elif kind == "inside" and isinstance(fields.get(name), dict) and fields[name]:
            fields[name] = fields[name] | {data.draw(st.sampled_from(sorted(fields[name]))): data.draw(VALUES)}
        else:
            fields[name] = data.draw(VALUES)
    return json.dumps(fields).encode()


def fuzz(folder: Path, name: str, change: Callable[[bytes, st.DataObject], bytes]) -> None:
    """Change one file of a folder again and again, as long as there is time."""
    path, end, before = folder / name, time.monotonic() + SECONDS, memory()
    raw, lines = path.read_bytes(), set()

    def attempt(data: st.DataObject) -> None:
        path.write_bytes(change(raw, data))
        line = read(folder)
        assert line.isprintable()
        assert len(line) < 2000
        lines.add(line[-60:])
        assert memory() < before + MOST_MEMORY

    for number in itertools.count():
        if time.monotonic() > end:
            break
        seed(number)(FUZZ(given(st.data())(attempt)))()
    assert len(lines) > 1


@pytest.mark.parametrize("model", ["gpt2", "sharded"])
def test_bytes_of_a_header(whole: Path, model: str) -> None:
    fuzz(whole / model, shard_of(2) if model == "sharded" else WEIGHTS, lambda raw, data: damaged(raw, data, 3000))


@pytest.mark.parametrize("model", ["llama", "sharded"])
def test_a_header_that_says_something_else(whole: Path, model: str) -> None:
    fuzz(whole / model, shard_of(1) if model == "sharded" else WEIGHTS, another_header)


def test_bytes_of_an_index(whole: Path) -> None:
    fuzz(whole / "sharded", INDEX, lambda raw, data: damaged(raw, data, len(raw)))


@pytest.mark.parametrize("model", MODELS)
def test_a_configuration_that_says_something_else(whole: Path, model: str) -> None:
    fuzz(whole / model, "config.json", other_fields)


def test_bytes_of_a_configuration(whole: Path) -> None:
    fuzz(whole / "llama", "config.json", lambda raw, data: damaged(raw, data, len(raw)))

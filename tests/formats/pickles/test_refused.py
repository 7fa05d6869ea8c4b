"""What is no checkpoint, is damaged, or wants code: one line, nothing run, nothing built that the file merely claims."""

from __future__ import annotations

import io
import os
import pickle
import random
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.formats.assemble import assemble
from clearhead.formats.pickles.checkpoint import open_pickle
from clearhead.messages import UserError
from tests.formats.pickles.peers import NANO, Course, Nano

Weights = dict[str, Any]
FIRST = "token_embedding_table.weight"


def saved(folder: Path, content: object, *, legacy: bool = False, protocol: int = 2) -> Path:
    path = folder / "model.pt"
    torch.save(content, path, pickle_protocol=protocol, _use_new_zipfile_serialization=not legacy)
    return path


def refusal(path: Path) -> str:
    """The one line, whenever it comes: at opening or at reading."""
    with pytest.raises(UserError) as caught:
        assemble(open_pickle(path), torch.float32, "cpu")
    line = str(caught.value)
    assert path.name in line
    assert "\n" not in line
    return line


class Code:
    """Runs a command when it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return os.system, (self.command,)


@pytest.mark.parametrize(("legacy", "protocol"), [(False, 2), (False, 4), (True, 2), (True, 4)])
def test_code_is_refused_by_name_and_not_run(tmp_path: Path, legacy: bool, protocol: int) -> None:
    command = f"echo run > {tmp_path / 'ran'}"
    path = saved(tmp_path, Course().state_dict() | {"more": Code(command)}, legacy=legacy, protocol=protocol)
    assert f"{os.system.__module__}.system to be run" in refusal(path)
    assert not (tmp_path / "ran").exists()
    # The same file does run it where it is trusted.
    torch.load(path, weights_only=False)
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("legacy", [False, True])
def test_a_whole_module_is_named(tmp_path: Path, legacy: bool) -> None:
    assert "tests.formats.pickles.peers.Course to be run" in refusal(saved(tmp_path, Course(), legacy=legacy))


def test_a_plain_pickle(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(pickle.dumps({"a": Code("true")}))
    assert "system to be run" in refusal(path)
    path.write_bytes(pickle.dumps({"a": 1}))
    assert "not written by torch.save" in refusal(path)


def test_memory_asked_for_by_a_call(tmp_path: Path) -> None:
    """PyTorch's own list allows it: one line of pickle fills the memory."""

    class Much:
        def __reduce__(self) -> tuple[Callable[..., Any], tuple[int]]:
            return bytearray, (1 << 24,)

    path = saved(tmp_path, Course().state_dict() | {"more": Much()})
    assert len(torch.load(path, weights_only=True)["more"]) == 1 << 24
    tracemalloc.start()
    assert "bytearray to be run" in refusal(path)
    assert tracemalloc.get_traced_memory()[1] < 1 << 23
    tracemalloc.stop()


def test_torchscript(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    rezip(saved(tmp_path, Course().state_dict()), path, {"model/constants.pkl": b""})
    assert "TorchScript" in refusal(path)


def rezip(source: Path, target: Path, changed: dict[str, bytes], *, packed: bool = False) -> None:
    """A copy, some of its records others."""
    with zipfile.ZipFile(source) as archive:
        records = {each.filename: archive.read(each) for each in archive.infolist()} | changed
    how = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(target, "w", how) as archive:
        for name, content in records.items():
            archive.writestr(name, content)


def test_a_record_that_is_shorter_than_the_description_says(tmp_path: Path) -> None:
    """PyTorch reads on into what follows."""
    path = saved(tmp_path, Course().state_dict())
    rezip(path, path, {})
    assemble(open_pickle(path), torch.float32, "cpu")
    rezip(path, path, {"model/data/0": b"\0" * 80})
    assert torch.load(path, weights_only=True, mmap=True)[FIRST].shape == (11, 12)
    assert "data/0 has 80 bytes and should have 1,056" in refusal(path)


def test_packed_records(tmp_path: Path) -> None:
    path = saved(tmp_path, Course().state_dict())
    rezip(path, path, {}, packed=True)
    assert "is packed" in refusal(path)
    # A bomb: a megabyte that is a gigabyte.
    rezip(path, path, {"model/data.pkl": b"\0" * (1 << 26)}, packed=True)
    assert "is packed" in refusal(path)


def test_a_record_that_is_there_twice(tmp_path: Path) -> None:
    path = saved(tmp_path, Course().state_dict())
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("model/data.pkl", b"")
    assert "not where it should be" in refusal(path)


@pytest.mark.parametrize("legacy", [False, True])
def test_cut_short(tmp_path: Path, legacy: bool) -> None:
    path = saved(tmp_path, Course().state_dict(), legacy=legacy)
    whole = path.read_bytes()
    for kept in [0, 1, 3, 4, 5, 10, 100, *range(700, len(whole), len(whole) // 40), len(whole) - 1]:
        path.write_bytes(whole[:kept])
        assert "cannot be read" in refusal(path), kept


@pytest.mark.parametrize("legacy", [False, True])
def test_damaged_anywhere(tmp_path: Path, legacy: bool) -> None:
    """A changed byte gives one line, or a model: a number is as good as another."""
    path = saved(tmp_path, Course().state_dict(), legacy=legacy)
    whole, drawn = path.read_bytes(), random.Random(7)
    refused = sound = 0
    for _ in range(30):
        bad = bytearray(whole)
        bad[drawn.randrange(len(bad))] = drawn.randrange(256)
        path.write_bytes(bad)
        try:
            assemble(open_pickle(path), torch.float32, "cpu")
        except UserError as error:
            refused += "\n" not in str(error)
        else:
            sound += 1
    assert refused + sound == 30
    assert min(refused, sound) > 2


def test_numbers_that_the_keys_of_an_old_file_leave_out(tmp_path: Path) -> None:
    """PyTorch leaves them as the memory happened to be."""
    path = saved(tmp_path, {"a": torch.ones(3)}, legacy=True)
    parts = io.BytesIO(path.read_bytes())
    heads = [pickle.load(parts) for _ in range(3)]
    start = parts.tell()
    rest = path.read_bytes()[start:]
    described = rest[: rest.index(b"\x80\x02]")]
    path.write_bytes(b"".join(pickle.dumps(each, 2) for each in heads) + described + pickle.dumps([], 2))
    assert torch.load(path, weights_only=True)["a"].shape == (3,)
    assert "numbers are missing" in refusal(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda w: w | {FIRST: w[FIRST][:1].expand(1 << 40, 12)}, "too few"),
        (lambda w: w | {FIRST: torch.as_strided(w[FIRST], (11, 12, 9), (1, 1, 1))}, "too few"),
        (lambda w: w | {"ln_f.weight": 3}, "ln_f.weight is int"),
        (lambda w: w | {"ln_f.weight": [1.0] * 12}, "ln_f.weight is list"),
        (lambda w: w | {"ln_f.weight": None}, "ln_f.weight is NoneType"),
        (lambda w: w | {"ln_f.weight": torch.ones(12, dtype=torch.int64)}, "ln_f.weight is int64 (12,)"),
        (lambda w: w | {"ln_f.weight": torch.ones(12, dtype=torch.complex64)}, "complex64"),
        (lambda w: w | {"ln_f.weight": torch.ones(12).to_sparse()}, "_rebuild_sparse_tensor"),
        (lambda w: w | {"ln_f.weight": torch.ones(12, device="meta")}, "_rebuild_meta_tensor"),
        (lambda w: w | {"ln_f.weight": torch.tensor(1.0)}, "float32 ()"),
        (lambda w: w | {"ln_f.weight": torch.ones(13)}, "(13,)"),
        (lambda w: w | {"ln_f.weight": w["ln_f.weight"] * float("nan")}, "not finite"),
        (lambda w: w | {FIRST: w[FIRST].flatten()}, "(132,)"),
        (lambda w: w | {FIRST: w[FIRST][:0]}, "float32 (0, 12)"),
        (lambda w: w | {"blocks.0.sa.heads.1.key.weight": torch.ones(5, 12)}, "(5, 12)"),
        (lambda w: w | {"blocks.0.sa.heads.1.key.weight": torch.ones(12, 4)}, "(12, 4)"),
        (lambda w: w | {"blocks.7.ln1.weight": torch.ones(12)}, "blocks.2"),
        (lambda w: w | {"blocks.0.sa.heads.7.key.weight": torch.ones(4, 12)}, "heads.3"),
        (lambda w: w | {"more": torch.ones(2)}, "no place for, more first"),
        (lambda w: w | {f"module.{FIRST}": torch.ones(2)}, "twice"),
        (lambda w: _without(w, "ln_f.weight"), "ln_f.weight"),
        (lambda w: _without(w, "lm_head.weight"), "lm_head.weight"),
        (lambda w: _without(w, "blocks."), "blocks.0"),
        (lambda w: _without(w, "blocks.1.ffwd.net.2.bias"), "blocks.1.ffwd.net.2.bias"),
        (lambda w: _without(w, "blocks.0.ffwd.net.0.bias"), "blocks.0.ffwd.net.0.bias"),
        (lambda w: _without(w, "blocks.0.sa.proj.bias"), "no place for, blocks.0.ffwd.net.0.bias first"),
        (lambda w: _without(w, FIRST), "belong to no model"),
        (lambda w: {"a": torch.ones(2)}, "belong to no model"),
        (lambda w: {}, "no dictionary of tensors"),
        (lambda w: {"state_dict": {}}, "no dictionary of tensors"),
        (lambda w: {"state_dict": {"model": {"state_dict": 1}}}, "no dictionary of tensors"),
        (lambda w: [*w.values()], "no dictionary of tensors"),
        (lambda w: torch.ones(3), "no dictionary of tensors"),
        (lambda w: 7, "no dictionary of tensors"),
    ],
)
def test_tensors_that_are_not_the_models(tmp_path: Path, change: Callable[[Weights], object], said: str) -> None:
    weights = {name: tensor.float() for name, tensor in Course().state_dict().items()}
    path = saved(tmp_path, weights)
    assemble(open_pickle(path), torch.float32, "cpu")
    changed = change(weights)
    assert said in refusal(saved(tmp_path, changed))


def _without(weights: Weights, name: str) -> dict[str, Tensor]:
    return {each: tensor for each, tensor in weights.items() if not each.startswith(name)}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"n_layer": 10**9}, "n_layer is 1000000000, its tensors say 2"),
        ({"block_size": 10**12}, "block_size is 1000000000000, its tensors say 7"),
        ({"vocab_size": 50_304}, "vocab_size is 50304, its tensors say 11"),
        ({"n_embd": 24}, "n_embd is 24, its tensors say 12"),
        ({"bias": False}, "bias is False, its tensors say True"),
        ({"n_head": 5}, "n_embd = 12 is not divisible by n_head = 5;"),
        ({"n_head": 0}, "n_head = 0 must be at least 1"),
        ({"n_head": 10**12}, "n_head = 1000000000000;"),
        ({"n_head": "3"}, "n_head is '3'"),
        ({"n_head": None}, "how many heads"),
        ({"dropout": 2.0}, "dropout"),
        ({"dropout": float("nan")}, "dropout"),
        ({"rotary": True}, "rotary"),
        ({7: 8}, "7"),
    ],
)
def test_arguments_that_do_not_fit_the_tensors(tmp_path: Path, arguments: dict[Any, Any], said: str) -> None:
    path = tmp_path / "model.pt"
    torch.save({"model": Nano().state_dict(), "model_args": NANO | arguments}, path)
    with pytest.raises(UserError) as caught:
        open_pickle(path)
    assert said in str(caught.value)


def test_no_file(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "model.pt")
    (tmp_path / "model.pt").mkdir()
    with pytest.raises(UserError, match=r"ckpt\.pt"):
        open_pickle(tmp_path / "model.pt")


def test_a_file_that_changes_between_opening_and_reading(tmp_path: Path) -> None:
    path = saved(tmp_path, Course().state_dict())
    found = open_pickle(path)
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(UserError, match="cannot be read"):
        assemble(found, torch.float32, "cpu")
    saved(tmp_path, {"a": torch.ones(2)})
    with pytest.raises(UserError, match="cannot be read"):
        assemble(found, torch.float32, "cpu")

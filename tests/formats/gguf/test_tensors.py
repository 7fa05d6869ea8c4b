"""Tensors read in pieces are those that the package dequantises whole, whatever the format, and leave nothing behind."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

from clearhead.formats.gguf import package, tensors
from clearhead.formats.gguf.header import read_header
from clearhead.formats.gguf.tensors import GgufTensors
from clearhead.messages import UserError
from tests.formats.gguf.written import SMOLLM2, model_in, number, raw, smollm2, tensor, tiny, write_model

ASKED = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"]
MORE = ["IQ4_NL", "IQ4_XS", "IQ3_S", "IQ2_XXS", "IQ1_S", "TQ1_0", "TQ2_0", "MXFP4"]
ROWS, WIDTH = 7, 768
RANGES = [(0, 7), (0, 1), (6, 7), (2, 5), (3, 3), (0, None), (4, None)]


def blocks(kind: str, numbers: int, seed: int = 0) -> np.ndarray:
    """Random blocks of a format: any bytes are valid, but for halves and floats that are not finite."""
    block, size = GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
    generator = np.random.default_rng(seed)
    found = generator.integers(0, 256, numbers // block * size, np.uint8)
    if kind in ("F32", "F16", "BF16"):
        return np.ascontiguousarray(
            gguf.quantize(generator.normal(size=numbers).astype(np.float32), GGMLQuantizationType[kind])
        ).view(np.uint8)
    # With the top bit of the exponent away, no half is infinite or NaN, wherever halves lie in the block.
    return found & 0xBF


def written(path: Path, kind: str, shape: tuple[int, ...], alignment: int = 32) -> tuple[GgufTensors, torch.Tensor]:
    """A file with another tensor before the one asked for, and what the package makes of that one."""
    data = blocks(kind, math.prod(shape))
    fields, place = [number("general.alignment", alignment)], -(-100 // alignment) * alignment
    described = [tensor("other", (25,)), tensor("asked", shape[::-1], GGMLQuantizationType[kind], place)]
    content = raw(fields, described)
    content += bytes(-len(content) % alignment) + bytes(place)
    path.write_bytes(content + data.tobytes())
    whole = gguf.dequantize(data.reshape(1, -1), GGMLQuantizationType[kind])
    return GgufTensors(read_header(path)), torch.from_numpy(whole).reshape(shape)


def check(found: GgufTensors, whole: torch.Tensor) -> None:
    assert found.shape("asked") == tuple(whole.shape)
    for first, last in RANGES:
        piece = found.read("asked", first, last)
        assert piece.dtype == torch.float32
        assert torch.equal(piece, whole[first:last])


@pytest.mark.parametrize("kind", ASKED + MORE)
@pytest.mark.parametrize("step", [1 << 18, 2 * WIDTH, 100])
def test_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, step: int) -> None:
    monkeypatch.setattr(tensors, "STEP", step)
    found, whole = written(tmp_path / "model.gguf", kind, (ROWS, WIDTH))
    assert whole.isfinite().all()
    assert len(whole.unique()) > 2
    check(found, whole)


def test_a_piece_from_elsewhere_is_noticed(tmp_path: Path) -> None:
    """A fault: rows that begin one block late."""
    found, whole = written(tmp_path / "model.gguf", "Q4_K", (ROWS, WIDTH))
    info = found.header.tensors["asked"]
    late = {"asked": info._replace(begin=info.begin + info.kind.size)}
    with pytest.raises((AssertionError, UserError)):
        check(GgufTensors(type(found.header)(found.source, {}, late)), whole)


@pytest.mark.parametrize("kind", ["F32", "F16", "Q8_0"])
def test_one_axis_and_three(tmp_path: Path, kind: str) -> None:
    for shape in ((96,), (5, 3, 64), (5, 3, 2, 32)):
        for alignment in (32, 64):
            check(*written(tmp_path / "model.gguf", kind, shape, alignment))


def test_the_names_and_the_source(tmp_path: Path) -> None:
    found, _ = written(tmp_path / "model.gguf", "F32", (3, 2))
    assert set(found.names) == {"other", "asked"}
    assert found.source == tmp_path / "model.gguf"
    assert torch.equal(found.read("other"), torch.zeros(25))


def test_a_number_that_is_not_finite_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    for kind, broken in (
        ("F16", b"\x00\x7c"),
        ("F32", b"\x01\x00\x80\x7f"),
        ("Q8_0", b"\xff\x7f"),
        ("BF16", b"\x80\xff"),
    ):
        write_model(path, "gpt2", tiny("gpt2"), kind)
        model_in(path)
        begin = read_header(path).tensors["blk.1.ffn_up.weight"].begin
        content = bytearray(path.read_bytes())
        content[begin : begin + len(broken)] = broken
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"blk\.1\.ffn_up\.weight holds a number that is not finite"):
            model_in(path)


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.gguf"
    write_model(path, "gpt2", tiny("gpt2"))
    package._formats.cache_clear()
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(UserError, match=r'pip install "clearhead\[gguf\]"') as error:
        model_in(path)
    assert "\n" not in str(error.value)
    monkeypatch.undo()
    model_in(path)


MEASURED = """
import re, sys
from pathlib import Path
import torch
from clearhead.formats.assemble import assemble
from clearhead.formats.gguf.file import open_gguf
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
import gguf

def kilobytes(name):
    return int(re.search(rf"{name}:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

build(DecoderConfig(), device="meta")
opened, dtype = open_gguf(Path(sys.argv[1])), getattr(torch, sys.argv[2])
# The peak begins anew: that of the process that started this one would count as its own.
Path("/proc/self/clear_refs").write_text("5")
before = kilobytes("VmRSS")
model, report = assemble(opened, dtype, "cpu")
print((kilobytes("VmHWM") - before) * 1024 / sum(each.numel() * each.element_size() for each in model.parameters()))
"""


@pytest.mark.slow
@SMOLLM2
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_memory(dtype: str) -> None:
    """Putting SmolLM2 together takes at most 1.2 times the weights."""
    answer = subprocess.run(
        [sys.executable, "-c", MEASURED, smollm2(), dtype], capture_output=True, text=True, encoding="utf-8", check=True
    )
    # Less than the weights would be a measurement of something else.
    assert 0.9 <= float(answer.stdout) <= 1.2, answer.stdout

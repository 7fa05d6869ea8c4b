"""What loading takes: the weights in their new type and a piece of the file, whatever type and however many files they come from."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from clearhead.formats.weights import own_tensors
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from tests.formats.safetensors_made import write_shards

MOST = 1.2
"""Times the weights in the type that they are loaded in."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")

# The embedding and the head of a small model are most of it, and the head is read when all else is there.
QUICK = DecoderConfig(vocab=12_007, layers=4, heads=8, width=512, context=16, tied=False)
FULL = DecoderConfig(vocab=32_003, layers=6, heads=8, width=512, context=16, tied=False)

# Each case in a process of its own, which begins with all that has been imported and nothing else.
MEASURE = """
import json, os, sys
from pathlib import Path
import torch
from safetensors.torch import load_file
from clearhead.formats.assemble import assemble
from clearhead.formats.opened import Opened
from clearhead.formats.rows import row, stacked
from clearhead.formats.safetensors_files import open_safetensors
from clearhead.formats.tensors import HeldTensors
from clearhead.formats.weights import own_tensors
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.text import ByteTokenizer

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])

def measured(config, folder, dtype, fault):
    # A new process has not yet touched the code that it will run; PyTorch imports much when first a tensor has no memory.
    small = own_tensors(build(DecoderConfig(layers=1, heads=1, width=2), seed=0))
    held = HeldTensors(Path(), {name: tensor.bfloat16() for name, tensor in small.items()})
    rows = tuple(row(name, name) for name in small)
    assemble(Opened(DecoderConfig(layers=1, heads=1, width=2), ByteTokenizer(), held, rows, Path(), ""), torch.float16, "cpu")
    before, path = peak(), Path(folder)
    tensors = HeldTensors(path, load_file(path / "model.safetensors")) if fault else open_safetensors(path)
    rows = [
        stacked(name, {f"{name}.{part}": len(own) // 3 for part in "qkv"}) if "qkv.weight" in name else row(name, name)
        for name, own in own_tensors(build(config, device="meta")).items()
    ]
    opened = Opened(config, ByteTokenizer(), tensors, tuple(rows), path, "small")
    model, _ = assemble(opened, getattr(torch, dtype), "cpu")
    size = sum(own.numel() * own.element_size() for own in own_tensors(model).values())
    return (peak() - before) / size

fields, cases = json.loads(sys.argv[1]), json.loads(sys.argv[2])
build(DecoderConfig(), device="meta")
for case in cases:
    child = os.fork()
    if not child:
        print(measured(DecoderConfig(**fields), *case), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""

Case = tuple[str, str, bool]


def ratios(config: DecoderConfig, cases: list[Case]) -> list[float]:
    """Peak memory beyond what was imported, over the weights as they are held, of each case."""
    fields = {name: getattr(config, name) for name in ("vocab", "layers", "heads", "width", "context", "tied")}
    made = subprocess.run(
        [sys.executable, "-c", MEASURE, json.dumps(fields), json.dumps(cases)],
        check=True,
        capture_output=True,
        text=True,
    )
    return [float(line) for line in made.stdout.split()]


def written(folder: Path, config: DecoderConfig, dtype: torch.dtype, *, sharded: bool) -> str:
    """A folder of the model's weights, the projections to q, k and v each for itself."""
    tensors: dict[str, Tensor] = {}
    for name, own in own_tensors(build(config, seed=3)).items():
        parts = zip("qkv", own.chunk(3), strict=True) if "qkv.weight" in name else ()
        tensors |= {f"{name}.{part}": tensor.to(dtype).clone() for part, tensor in parts} or {name: own.to(dtype)}
    folder.mkdir()
    if sharded:
        write_shards(folder, tensors)
    else:
        save_file(tensors, folder / "model.safetensors")
    return str(folder)


def test_peak_memory(tmp_path: Path) -> None:
    """100 MB of float32; and a reader that maps the file is caught."""
    single = written(tmp_path / "half", QUICK, torch.bfloat16, sharded=False)
    sharded = written(tmp_path / "float", QUICK, torch.float32, sharded=True)
    cases = [(sharded, "float32", False), (single, "float32", False), (sharded, "bfloat16", False)]
    *found, faulty = ratios(QUICK, [*cases, (single, "bfloat16", True)])
    assert len(found) == len(cases)
    assert max(found) <= MOST, found
    assert faulty > 1.5


@pytest.mark.slow
@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_peak_memory_of_a_larger_model(tmp_path: Path, dtype: torch.dtype, sharded: bool) -> None:
    """200 MB of float32."""
    folder = written(tmp_path / "model", FULL, dtype, sharded=sharded)
    found = ratios(FULL, [(folder, to, False) for to in ("float32", "bfloat16")])
    assert max(found) <= MOST, found

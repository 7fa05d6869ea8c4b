"""torch.compile sees one graph, and gives the same logits; state dicts do not change by what is done with a model."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch._dynamo import reset
from torch._dynamo.exc import TorchDynamoException
from torch._dynamo.testing import CompileCounter

from clearhead.generation.stores import FixedStore
from clearhead.models import choices as c
from clearhead.tracing import Recorder
from tests.equalities import faults_use as h
from tests.equalities.registry import claim, close
from tests.equalities.variants import VARIANTS, T, ids_of, model_of
from tests.equalities.variants_encoders import pair_of, sides, source_of, target_of

PREFILL = 5
# Each kind of position with each kernel; the rest differ in parts that do not know of stores.
DECODED = [
    "learned",
    "learned, fused, MQA",
    "no positions",
    "sinusoidal, post-norm",
    "rotary, fused",
    "rotary, MHA",
    "ALiBi",
    "window",
    "soft-cap",
    "sinks",
]


@contextmanager
def one_graph() -> Iterator[None]:
    """What keeps a forward from being one graph is a claim that failed."""
    reset()
    try:
        yield
    except TorchDynamoException as reason:
        raise AssertionError(str(reason).splitlines()[0]) from reason
    finally:
        reset()


@claim(
    "torch.compile takes a forward as one graph (fullgraph), also with a tap recording: the same logits, all tensors seen",
    "torch.compile 把前向编译成一张完整的图（fullgraph），记录张量时也一样：logits 相同，张量齐全",
    over=VARIANTS,
    faults={h.graph_break: "learned"},
)
@torch.no_grad()
def test_compiled_with_a_tap(variant: str) -> None:
    model, ids = model_of(variant), ids_of()
    plain, seen = Recorder(), Recorder()
    expected = model(ids, tap=plain)
    with one_graph():
        close(torch.compile(model, fullgraph=True, backend="eager")(ids, tap=seen), expected)
    assert seen.tensors.keys() == plain.tensors.keys()
    for name, tensor in plain.tensors.items():
        close(seen.tensors[name], tensor)


@claim(
    "Decoding compiled with a fixed store: compiled for the first step and, as the length varies, once more; then never again",
    "配合定长缓存的编译解码：第一步编译一次，长度变化时再编译一次，此后不再编译；logits 与一次前向相同",
    over=DECODED,
    faults={h.step_in_a_string: "rotary, fused", h.shared_cache: "learned"},
)
@torch.no_grad()
def test_compiled_decoding(variant: str) -> None:
    model, ids = model_of(variant), ids_of()
    whole, counter, compiled = model(ids), CompileCounter(), []
    with one_graph():
        step = torch.compile(model, fullgraph=True, backend=counter)
        store = FixedStore(model)
        model(ids[:, :PREFILL], store=store)
        for t in range(PREFILL, T):
            close(step(ids[:, t : t + 1], store=store), whole[:, t : t + 1])
            compiled.append(counter.frame_count)
    assert compiled == [1] + [2] * (T - PREFILL - 1)


@claim(
    "The same for a decoder that asks a memory, with the memory beside its cache",
    "查询记忆的解码器（记忆与缓存并列）亦然",
    over=["learned", "original", "T5", "rotary, fused", "ALiBi"],
    faults={h.graph_break: "learned"},
)
@torch.no_grad()
def test_compiled_decoding_beside_a_memory(variant: str) -> None:
    model, source, target = pair_of(variant), source_of(variant), target_of()
    real, _ = next(sides(source.shape[1]))
    whole, memory = model(source, target, source_real=real), model.remember(source, real=real)
    with one_graph():
        counter = CompileCounter()
        compiled = torch.compile(model.decoder, fullgraph=True, backend=counter)
        store = memory.beside(FixedStore(model.decoder))
        model.decoder(target[:, :PREFILL], store=store)
        for t in range(PREFILL, T):
            close(compiled(target[:, t : t + 1], store=store), whole[:, t : t + 1])
        assert counter.frame_count <= 2


@pytest.mark.slow
@pytest.mark.skipif(not any(map(shutil.which, ("c++", "g++", "clang++", "cl"))), reason="inductor needs a C++ compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inductor's own, of parts of PyTorch
@pytest.mark.parametrize("variant", ["learned, fused, MHA", "rotary, fused"])
@torch.no_grad()
def test_inductor(variant: str) -> None:
    """The same with the compiler that makes kernels: a forward, then steps of decoding."""
    model, ids = model_of(variant), ids_of()
    whole = model(ids)
    with one_graph():
        compiled = torch.compile(model, fullgraph=True)
        close(compiled(ids), whole)
        store = FixedStore(model)
        model(ids[:, :PREFILL], store=store)
        for t in range(PREFILL, T):
            close(compiled(ids[:, t : t + 1], store=store), whole[:, t : t + 1])


@claim(
    "The state dict is the same whichever kernel is used, whether tapped, cached or compiled",
    "无论用哪个内核、是否记录、缓存或编译，state dict 都不变",
    over=["learned", "rotary, fused", "around, QK-norm", "parallel, biases", "cycle"],
    faults={h.kernel_with_weights: "learned", h.table_kept: "rotary, fused"},
)
@torch.no_grad()
def test_state_dicts(variant: str) -> None:
    models = [model_of(variant, kernel=kernel) for kernel in (c.Visible(), c.Fused())]
    before = [{name: value.clone() for name, value in model.state_dict().items()} for model in models]
    assert before[0].keys() == before[1].keys()
    for model in models:
        with one_graph():
            model(ids_of(), tap=Recorder(), store=FixedStore(model))
            model.compile(fullgraph=True, backend="eager")
            model(ids_of())
        after = model.state_dict()
        assert after.keys() == before[0].keys()
        for name, value in before[0].items():
            close(after[name], value, 0.0)

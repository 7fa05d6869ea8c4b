"""Compiled updates are the eager ones, and resume bit for bit."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo import graph_break, reset
from torch._dynamo.exc import Unsupported
from torch._inductor import cpp_builder, exc

from clearhead.messages import UserError
from clearhead.training.compiling import compiled
from clearhead.training.fit import Loss, Update, evaluate, fit
from clearhead.training.precision import PRECISIONS, stepper_of
from clearhead.training.recompute import recompute
from tests.training.toy import CPU
from tests.training.toy_updates import KINDS, Kind, equal, weights_of

COMPILER = any(map(shutil.which, ("c++", "g++", "clang++", "cl")))
NEEDS_COMPILER = pytest.mark.skipif(not COMPILER, reason="inductor needs a C++ compiler")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Nothing compiled before counts here, nor what is compiled here elsewhere."""
    reset()
    yield
    reset()


def one_graph(kind: Kind, loss: Loss[Any]) -> None:
    """Value and gradients of what is traced as one graph, beside the eager ones."""
    model, batch = kind.model(), kind.batches(0)
    expected = torch.autograd.grad(kind.loss(model, batch)[0], list(model.parameters()))
    total, _ = torch.compile(loss, fullgraph=True, backend="eager")(model, batch)
    found = torch.autograd.grad(total, list(model.parameters()))
    assert all(torch.allclose(a, b, rtol=0, atol=1e-12) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("kind", ["next token", "packed"])
def test_an_update_of_a_decoder_is_one_graph(kind: str) -> None:
    one_graph(KINDS[kind], KINDS[kind].loss)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["masked", "pairs", "conversations"])
def test_an_update_of_any_kind_is_one_graph(kind: str) -> None:
    one_graph(KINDS[kind], KINDS[kind].loss)


def test_a_graph_break_is_found() -> None:
    def broken(model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        graph_break()
        return KINDS["next token"].loss(model, batch)

    with pytest.raises(Unsupported):
        one_graph(KINDS["next token"], broken)


def test_without_a_compiler_it_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise exc.InvalidCxxCompiler

    monkeypatch.setattr(cpp_builder, "get_cpp_compiler", none)
    with pytest.raises(UserError, match=r"^compile needs a C\+\+ compiler and found none; install g\+\+.*$"):
        compiled(KINDS["packed"].loss, CPU, sizes_vary=False)


def test_a_python_that_cannot_compile_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch._dynamo.eval_frame.is_dynamo_supported", lambda: False)
    with pytest.raises(UserError, match=r"^this Python and PyTorch cannot compile; leave compile out$"):
        compiled(KINDS["packed"].loss, CPU, sizes_vary=False)


def test_a_gpu_without_triton_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpp_builder, "get_cpp_compiler", lambda: "c++")
    monkeypatch.setattr("torch.utils._triton.has_triton", lambda: False)
    with pytest.raises(UserError, match=r"^compile needs Triton"):
        compiled(KINDS["packed"].loss, torch.device("cuda"), sizes_vary=False)


def updates_of(
    kind: Kind,
    model: nn.Module,
    optimizer: Any,
    *,
    loss: Loss[Any],
    first: int = 0,
    steps: int = 4,
    **more: Any,
) -> list[Update]:
    """Updates with an evaluation between them, of other rows, as a training has them."""
    updates = []
    for update in fit(
        model, kind.batches, loss, optimizer=optimizer, schedule=lambda _: 0.01, steps=steps, first=first, **more
    ):
        evaluate(model, [type(kind.batches(0))(*(each[:5] for each in kind.batches(9)))], kind.loss)
        updates.append(update)
    return updates


def small(name: str) -> Kind:
    """Of one block: a kernel takes a second to compile."""
    return KINDS[name]._replace(config=replace(KINDS[name].config, layers=1))


def begun(kind: Kind, *, dropout: float) -> tuple[nn.Module, torch.optim.Optimizer]:
    model = kind.model(dropout=dropout, dtype=torch.float32)
    torch.manual_seed(4)
    return model, torch.optim.AdamW(model.parameters(), lr=1.0)


@pytest.mark.slow
@NEEDS_COMPILER
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inductor's own, of parts of PyTorch
@pytest.mark.filterwarnings("ignore:.*Online softmax:UserWarning")  # inductor tells how it computes
@pytest.mark.parametrize("kind", ["packed", "pairs"])
def test_a_compiled_training_is_the_eager_one_and_resumes_bit_for_bit(kind: str) -> None:
    chosen, rows = small(kind), 4 if kind == "pairs" else None
    made = partial(compiled, chosen.loss, CPU, sizes_vary=kind == "pairs")
    eager, optimizer = begun(chosen, dropout=0.0)
    expected = updates_of(chosen, eager, optimizer, loss=chosen.loss)
    model, optimizer = begun(chosen, dropout=0.0)
    found = updates_of(chosen, model, optimizer, loss=made())
    assert [update.loss for update in found] == pytest.approx([update.loss for update in expected], rel=1e-5)
    assert not equal(weights_of(model), weights_of(eager))

    # A process trains at one rate of dropout: behind another rate the compiler makes it an input, and rounds otherwise.
    reset()
    whole, optimizer = begun(chosen, dropout=0.2)
    updates_of(chosen, whole, optimizer, loss=made(), micro_batch=rows)
    model, optimizer = begun(chosen, dropout=0.2)
    updates_of(chosen, model, optimizer, loss=made(), steps=2, micro_batch=rows)
    kept = model.state_dict(), optimizer.state_dict(), torch.get_rng_state()
    # As a new process would: nothing compiled is known.
    reset()
    other, optimizer = begun(chosen, dropout=0.2)
    other.load_state_dict(kept[0])
    optimizer.load_state_dict(kept[1])
    torch.set_rng_state(kept[2])
    updates_of(chosen, other, optimizer, loss=made(), first=2, micro_batch=rows)
    assert equal(weights_of(other), weights_of(whole))


@pytest.mark.slow
@NEEDS_COMPILER
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inductor's own, of parts of PyTorch
@pytest.mark.filterwarnings("ignore:.*Online softmax:UserWarning")  # inductor tells how it computes
@pytest.mark.parametrize("precision", ["bfloat16", "bfloat16-weights"])
def test_it_compiles_recomputed_blocks_and_16_bits(precision: str) -> None:
    kind, chosen = small("next token"), PRECISIONS[precision]
    model = kind.model(dtype=torch.float32)
    recompute(model)
    stepper = stepper_of(model, chosen, lambda named: [torch.optim.AdamW(named.values(), lr=1.0)])
    loss = compiled(kind.loss, CPU, sizes_vary=False)
    updates = updates_of(kind, model, stepper, loss=loss, steps=6, autocast=chosen.autocast)
    assert updates[-1].loss < updates[0].loss

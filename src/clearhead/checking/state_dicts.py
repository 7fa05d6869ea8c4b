"""Does what was saved come back? A tiny model is saved and loaded into another one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.report import Check, Fault, Report
from clearhead.checking.strangers import Attempt, Seeded
from clearhead.messages import UserError, say

PARTIAL, PREFIX, TRANSPOSED, TYING = "load.partial", "load.prefix", "load.transposed", "tying.lost"


class Small(nn.Module):
    """Every kind of tensor that a state has: a tied embedding, square and other matrices, a norm, a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.query = nn.Linear(6, 6)
        self.hidden = nn.Linear(6, 10)
        self.back = nn.Linear(10, 6)
        self.norm = nn.LayerNorm(6)
        self.head = nn.Linear(6, 11, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("steps", torch.randn(3))

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (B,T,V)."""
        x = self.norm(self.query(self.embedding(ids)))
        logits: Tensor = self.head(x + self.back(self.hidden(x).relu()))
        return logits


class _Compiled(nn.Module):
    """A model under the name that `torch.compile` gives it."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self._orig_mod = inner


class _Parallel(nn.Module):
    """A model under the name that `DistributedDataParallel` gives it."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.module = inner


Save = Callable[[nn.Module, Path], object]
"""Writes the state of a model to a path."""
Load = Callable[[nn.Module, Path], object]
"""Reads it into a model, in place or as what is returned."""


def check_state_dict(save: Save, load: Load, *, make: Callable[[], nn.Module] = Small) -> Report:
    """Whether every tensor of a model comes back, into a model that has other values.

    Args:
        save: `save(model, path)` writes the model's state.
        load: `load(model, path)` reads it into another model of the same class, in place, or returns a model or its state.
        make: a small model, with random values at each call.

    Returns:
        A report of the kind "state_dict": `load.partial`, `load.transposed`, `tying.lost`, and `load.prefix` for a model that was compiled or
        wrapped when it was saved. A clear error in place of a wrong model is no fault.

    Raises:
        UserError: if saving or loading a plain model raises.
    """
    name = f"{getattr(save, '__name__', 'save')}, {getattr(load, '__name__', 'load')}"
    saved = _made(make, 0)
    with tempfile.TemporaryDirectory(prefix="clearhead-state-") as folder:
        with Attempt() as attempt:
            loaded = _through(save, load, (saved, _made(make, 1)), Path(folder, "plain.pt"))
        if attempt.error is not None:
            raise UserError(say("functions.raises", name=name, reason=attempt.reason)) from attempt.error
        checks, faults = _compared(saved, loaded)
        plain = loaded
        for wrapper, prefix in ((_Compiled, "_orig_mod."), (_Parallel, "module.")):
            wrapped = wrapper(_made(make, 0))
            with Attempt() as attempt:
                loaded = _through(save, load, (wrapped, _made(make, 1)), Path(folder, f"{prefix}pt"))
                found = _prefixed(plain, loaded, prefix)
                checks, faults = [*checks, found[0]], [*faults, *found[1]]
            if attempt.error is not None:
                checks.append(
                    Check(PREFIX, "skipped", say("functions.prefix_refused", prefix=prefix, reason=attempt.reason))
                )
    return Report(
        name, "state_dict", False, tuple(checks), tuple({fault.id: fault for fault in reversed(faults)}.values())[::-1]
    )


def _made(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    """A model in which every value is random, biases and norms too, and none is that of another seed."""
    with Seeded(seed), torch.no_grad():
        model = make()
        for tensor in {id(each): each for each in (*model.parameters(), *model.buffers())}.values():
            if tensor.is_floating_point():
                tensor.copy_(torch.randn(tensor.shape))
    return model


def _through(save: Save, load: Load, models: tuple[nn.Module, nn.Module], path: Path) -> Mapping[str, Any]:
    """The tensors of the second model, by name, after the first was saved and loaded into it."""
    first, second = models
    save(first, path)
    result = load(second, path)
    if isinstance(result, Mapping) and result and all(isinstance(each, Tensor) for each in result.values()):
        return result
    found = result if isinstance(result, nn.Module) else second
    return _tensors(found)


def _tensors(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name, a tied one under each of its names."""
    return {
        **dict(model.named_parameters(remove_duplicate=False)),
        **dict(model.named_buffers(remove_duplicate=False)),
    }


def _compared(saved: nn.Module, loaded: Mapping[str, Any]) -> tuple[list[Check], list[Fault]]:
    """What became of a plain model's tensors."""
    wanted = {name: each for name, each in _tensors(saved).items() if name in saved.state_dict()}
    turned = [
        name
        for name, each in wanted.items()
        if _is(loaded.get(name), each.mT if each.dim() == 2 else each) and not _is(loaded.get(name), each)
    ]
    lost = [name for name, each in wanted.items() if not _is(loaded.get(name), each) and name not in turned]
    apart = [pair for pair in _ties(wanted) if not _one_storage(loaded, pair)]
    number, every = len(wanted), say("functions.returned", number=len(wanted))
    untied = [" = ".join(pair) for pair in apart]
    found = [
        (TRANSPOSED, turned, say("functions.turned", number=len(turned), all=number, names=", ".join(turned[:4]))),
        (PARTIAL, lost, say("functions.lost", number=len(lost), all=number, names=", ".join(lost[:4]))),
        (TYING, untied, say("functions.untied", number=len(untied), all=number, names=", ".join(untied[:4]))),
    ]
    fixes = {
        TRANSPOSED: say("functions.fix_turned"),
        PARTIAL: say("functions.fix_lost"),
        TYING: say("functions.fix_untied"),
    }
    checks, faults = [], []
    for id, names, evidence in found:
        checks.append(Check(id, "fail" if names else "pass", evidence if names else every, len(names) / number))
        faults += [Fault(id, "reproduced", evidence, "", fixes[id], len(names) / number)] if names else []
    return checks, faults


def _prefixed(plain: Mapping[str, Any], loaded: Mapping[str, Any], prefix: str) -> tuple[Check, list[Fault]]:
    """What became of the tensors of a wrapped model, beside those of the plain one."""
    wanted = {name: each for name, each in plain.items() if isinstance(each, Tensor)}
    lost = [name for name, each in wanted.items() if not _is(loaded.get(name), each)]
    if not lost:
        return Check(PREFIX, "pass", say("functions.prefix_known", prefix=prefix, number=len(wanted))), []
    evidence = say("functions.prefix_lost", prefix=prefix, number=len(lost), all=len(wanted))
    fault = Fault(
        PREFIX, "reproduced", evidence, "", say("functions.fix_prefix", prefix=prefix), len(lost) / len(wanted)
    )
    return Check(PREFIX, "fail", evidence, len(lost) / len(wanted)), [fault]


def _is(found: Any, wanted: Tensor) -> bool:
    """Whether these are the values that were saved; a smaller type may have rounded them."""
    return (
        isinstance(found, Tensor)
        and found.shape == wanted.shape
        and bool(torch.allclose(found.to(wanted.dtype), wanted, atol=2e-2))
    )


def _ties(tensors: Mapping[str, Tensor]) -> list[tuple[str, str]]:
    """Pairs of names of one tensor."""
    names = list(tensors)
    return [
        (one, other)
        for place, one in enumerate(names)
        for other in names[place + 1 :]
        if tensors[one] is tensors[other]
    ]


def _one_storage(loaded: Mapping[str, Any], pair: tuple[str, str]) -> bool:
    one, other = (loaded.get(name) for name in pair)
    if not isinstance(one, nn.Parameter) or not isinstance(other, nn.Parameter):
        # A state's tensors are copies; whether they are tied is the model's matter.
        return True
    return one.data_ptr() == other.data_ptr()

"""One forward of their module, and what is seen in it: outputs and inputs of its parts, and what its attention works on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from clearhead.checking.families.known import place
from clearhead.checking.families.parts import Part, attentions, component, is_outer, parts

PRODUCTS = ("matmul", "__matmul__", "bmm")


@dataclass
class Seen:
    """What was seen.

    Args:
        tensors: by our names, as they were, in the order in which they came up.
        paths: the path of the module that each was seen at.
        within: those that are what a module takes: what makes them stands in the module around it.
        narrow: those in whose making a type narrower than float64 was seen: a tensor of such a type, or a buffer that was of one.
        since: whether one was seen after the last tensor that a component handed on.
        anywhere: whether one was seen at all.
        visible: which key each query may see, (..., T, S) booleans, by the beginning of our names: "blocks.3.attention".
        result: what the module gave.
    """

    tensors: dict[str, Tensor] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    within: set[str] = field(default_factory=set)
    narrow: set[str] = field(default_factory=set)
    since: bool = False
    anywhere: bool = False
    visible: dict[str, Tensor] = field(default_factory=dict)
    result: Any = None

    def keep(self, stage: str, value: Tensor, path: str) -> None:
        """A tensor by our name; whether it was made in a narrower type is what ran since the last part handed its own on."""
        self.tensors[stage], self.paths[stage] = value.detach().clone(), path
        if self.since or value.dtype != torch.float64:
            self.narrow.add(stage)
        if is_outer(stage):
            self.since = False


def seen_in(
    module: nn.Module,
    family: str,
    base: str,
    config: Any,
    call: Callable[[], Any],
    *,
    rounded: Collection[Tensor] = (),
) -> Seen:
    """Run, and see.

    Args:
        module: theirs.
        family: its `model_type`.
        base: what a bare model leaves out of names.
        config: ours.
        call: runs it.
        rounded: buffers that were of a narrower type.
    """
    seen, running = Seen(), list[str]()
    there = [name for name, _ in module.named_modules(remove_duplicate=False) if name]
    found = {prefix: place(path, base, there) for path, prefix in attentions(family, config).items()}
    cores = {prefix: path for prefix, path in found.items() if path}
    table = _found(parts(family, config), base, there)
    with _hooked(module, table, cores, seen, running), torch.no_grad(), _Attending(seen, running, cores, rounded):
        seen.result = call()
    if seen.anywhere and any(isinstance(getattr(each, "inv_freq", None), Tensor) for each in module.modules()):
        # Angles are made once, outside of all blocks, and are as wide as any tensor where they are used.
        seen.narrow |= {stage for stage in seen.tensors if component(stage) == "attention"}
    return seen


def _found(table: list[Part], base: str, there: list[str]) -> list[Part]:
    found = [(part, place(part.path, base, there)) for part in table]
    return [part._replace(path=path) for part, path in found if path]


@contextmanager
def _hooked(
    module: nn.Module, table: list[Part], cores: Mapping[str, str], seen: Seen, running: list[str]
) -> Iterator[None]:
    """Hooks in place while it runs; they are gone afterwards."""
    modules = dict(module.named_modules(remove_duplicate=False))
    handles = []
    for prefix, path in cores.items():
        handles.append(modules[path].register_forward_pre_hook(_entering(running, prefix)))
        handles.append(modules[path].register_forward_hook(_leaving(running), always_call=True))
    for part in table:
        # Behind hooks of the user's own: what those change is what goes on.
        if part.end == "in":
            handles.append(modules[part.path].register_forward_pre_hook(_taking(seen, part), with_kwargs=True))
        else:
            handles.append(modules[part.path].register_forward_hook(_giving(seen, part)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _entering(running: list[str], prefix: str) -> Callable[..., None]:
    return lambda _module, _args: running.append(prefix)


def _leaving(running: list[str]) -> Callable[..., None]:
    def leave(_module: nn.Module, _args: Any, _output: Any) -> None:
        running.pop()

    return leave


def _taking(seen: Seen, part: Part) -> Callable[..., None]:
    return lambda _module, args, keywords: _keep(seen, part, first_tensor((args, keywords)))


def _giving(seen: Seen, part: Part) -> Callable[..., None]:
    return lambda _module, _args, output: _keep(seen, part, first_tensor(output))


def _keep(seen: Seen, part: Part, value: Tensor | None) -> None:
    """The first that comes up: a part that is called twice is not what the family does, and shows in what follows."""
    if value is not None and part.stage not in seen.tensors:
        seen.keep(part.stage, value, part.path)
        if part.end == "in":
            seen.within.add(part.stage)


class _Attending(TorchFunctionMode):
    """Queries, keys, values and masks of each attention, whether one kernel does it all or a product, a softmax and a product."""

    def __init__(self, seen: Seen, running: list[str], cores: Mapping[str, str], rounded: Collection[Tensor]) -> None:
        super().__init__()
        self.rounded = {id(each) for each in rounded}
        self.seen, self.running, self.cores = seen, running, cores

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = str(getattr(func, "__name__", ""))
        if _floats(result) and (
            any(each.dtype != torch.float64 or id(each) in self.rounded for each in _floats((args, kwargs)))
            or any(each.dtype != torch.float64 for each in _floats(result))
        ):
            self.seen.since = self.seen.anywhere = True
        if self.running:
            with torch._C.DisableTorchFunction():
                self._look(self.running[-1], name, args, kwargs or {}, result)
        return result

    def _look(self, prefix: str, name: str, args: tuple[Any, ...], keywords: Mapping[str, Any], result: Any) -> None:
        if name == "scaled_dot_product_attention" and len(args) >= 3:
            for word, value in zip("qkv", args, strict=False):
                self._keep(f"{prefix}.{word}", value)
            mask = args[3] if len(args) > 3 else keywords.get("attn_mask")
            self._see(prefix, _of_kernel(args[0], args[1], mask, bool(keywords.get("is_causal", False))))
        elif name == "softmax" and isinstance(result, Tensor) and result.dim() == 4:
            self._see(prefix, result > 0)
        elif name in PRODUCTS and len(args) == 2 and all(isinstance(each, Tensor) and each.dim() == 4 for each in args):
            if f"{prefix}.q" not in self.seen.tensors:
                self._keep(f"{prefix}.q", args[0])
                self._keep(f"{prefix}.k", args[1].transpose(-2, -1))
            elif prefix in self.seen.visible and args[0].shape == self.seen.visible[prefix].shape:
                self._keep(f"{prefix}.v", args[1])

    def _keep(self, stage: str, value: Any) -> None:
        if isinstance(value, Tensor):
            _keep(self.seen, Part(stage, self.cores[self.running[-1]]), value)

    def _see(self, prefix: str, visible: Tensor) -> None:
        self.seen.visible.setdefault(prefix, visible.detach().clone())


def _of_kernel(q: Tensor, k: Tensor, mask: Any, causal: bool) -> Tensor:
    """What the arguments of the one kernel allow, (B or 1, H or 1, T, S)."""
    queries, keys = q.shape[-2], k.shape[-2]
    allowed = torch.ones(queries, keys, dtype=torch.bool)
    if causal:
        allowed = allowed.tril()
    if isinstance(mask, Tensor):
        limit = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
        allowed = allowed & limit
    return allowed.reshape(*[1] * (4 - allowed.dim()), *allowed.shape)


def _floats(value: Any) -> list[Tensor]:
    """Tensors that are not of whole numbers, in nested tuples, lists and mappings."""
    if isinstance(value, Tensor):
        return [value] if value.is_floating_point() or value.is_complex() else []
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return [found for each in inner for found in _floats(each)]


def first_tensor(value: Any) -> Tensor | None:
    """The first tensor of floats in nested tuples, lists and mappings; None if there is none."""
    if isinstance(value, Tensor):
        return value if value.is_floating_point() else None
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return next((found for each in inner if (found := first_tensor(each)) is not None), None)

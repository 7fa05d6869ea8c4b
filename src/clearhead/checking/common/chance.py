"""Which random numbers somebody's code draws while it runs, and what it does with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

from clearhead.checking.watch import _line

DROPPING = (
    "dropout",
    "dropout_",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "alpha_dropout",
    "feature_dropout",
    "feature_alpha_dropout",
    "native_dropout",
)
UNIFORM = ("rand", "rand_like", "uniform_", "random_")
OTHERS = ("randn", "randn_like", "normal", "normal_", "multinomial", "randint", "randperm", "exponential_", "poisson")
KEPT = ("float", "double", "half", "bfloat16", "to", "type", "type_as", "bool", "int", "long", "expand", "expand_as")
SHAPED = ("unsqueeze", "view", "reshape", "squeeze", "contiguous", "clone", "detach", "transpose", "permute")
ABOUT = frozenset((
    "__hash__", "__len__", "__repr__", "data_ptr", "dim", "element_size", "empty_like", "full_like", "get_device", "is_complex",
    "is_contiguous", "is_floating_point", "ndimension", "nelement", "new_empty", "new_full", "new_ones", "new_tensor", "new_zeros", "numel",
    "ones_like", "rand_like", "randint_like", "randn_like", "size", "stride", "zeros_like",
))  # fmt: skip
"""What reads the shape, the type or the place of a tensor, and none of its numbers."""
PRODUCTS = ("mul", "mul_", "__mul__", "__rmul__", "multiply", "div", "div_", "true_divide", "__truediv__")


@dataclass
class Chances:
    """What was seen of chance in one run.

    Args:
        dropped: lines of dropout functions that were at work.
        drawn: lines where other random numbers were drawn.
        masks: (line, share that is kept) where a random mask of ones and zeros took values away.
        scales: all numbers by which tensors were multiplied or divided.
        made: lines where layers with parameters were made.
        leaves: tensors that would be trained and were used, with the line, by identity.
    """

    dropped: list[str] = field(default_factory=list)
    drawn: list[str] = field(default_factory=list)
    masks: list[tuple[str, float]] = field(default_factory=list)
    scales: list[float] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    leaves: dict[int, tuple[Tensor, str]] = field(default_factory=dict)
    result: Any = None


def chances(call: Callable[[], Any]) -> Chances:
    """Run `call` and say what it drew."""
    seen = Chances()
    with _makings(seen), _Chance(seen):
        seen.result = call()
    return seen


@contextmanager
def _makings(seen: Chances) -> Iterator[None]:
    """Notes each parameter that is given to a module meanwhile."""

    def noted(module: nn.Module, _: str, parameter: Any) -> None:
        if parameter is not None:
            line = _line()
            seen.made.append(f"{type(module).__name__} {line}".strip())

    handle = register_module_parameter_registration_hook(noted)
    try:
        yield
    finally:
        handle.remove()


class _Chance(TorchFunctionMode):
    """Follows random tensors until they take values away from others."""

    def __init__(self, seen: Chances) -> None:
        super().__init__()
        self.seen = seen
        self.uniform: dict[int, Tensor] = {}
        self.masks: dict[int, tuple[Tensor, float]] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        keywords = kwargs or {}
        name = str(getattr(func, "__name__", func))
        result = func(*args, **keywords)
        for each in _read(name, args, keywords, result):
            if isinstance(each, Tensor) and id(each) not in self.seen.leaves and _trains(each):
                self.seen.leaves[id(each)] = (each, _line())
        if name not in ("__get__", "__set__"):
            # A mask's masks are looked at after the fact: nothing here changes a tensor.
            with torch._C.DisableTorchFunction():
                self._note(name, args, keywords, result)
        return result

    def _note(self, name: str, args: tuple[Any, ...], keywords: Mapping[str, Any], result: Any) -> None:
        if _drops(name, args, keywords):
            self.seen.dropped.append(_line())
        elif name in UNIFORM and isinstance(result, Tensor):
            self.seen.drawn.append(_line())
            self.uniform[id(result)] = result
        elif name in ("bernoulli", "bernoulli_") and isinstance(result, Tensor):
            self.seen.drawn.append(_line())
            self.masks[id(result)] = (result, _probability(args, keywords, result))
        elif name in OTHERS:
            self.seen.drawn.append(_line())
        elif isinstance(result, Tensor):
            self._follow(name, args, result)

    def _follow(self, name: str, args: tuple[Any, ...], result: Tensor) -> None:
        first, second = (*args, None, None)[:2]
        if name in ("gt", "ge", "lt", "le", "__gt__", "__ge__", "__lt__", "__le__") and id(first) in self.uniform:
            if isinstance(second, int | float):
                above = name.strip("_") in ("gt", "ge")
                self.masks[id(result)] = (result, 1 - float(second) if above else float(second))
            return
        if name in ("logical_not", "__invert__", "bitwise_not") and id(first) in self.masks:
            self.masks[id(result)] = (result, 1 - self.masks[id(first)][1])
        elif name in KEPT + SHAPED and id(first) in self.masks:
            self.masks[id(result)] = (result, self.masks[id(first)][1])
        elif name in KEPT + SHAPED and id(first) in self.uniform:
            self.uniform[id(result)] = result
        else:
            self._taken(name, args, result)

    def _taken(self, name: str, args: tuple[Any, ...], result: Tensor) -> None:
        """Notes a number that scales, or a random mask that takes away."""
        first, second, third = (*args, None, None, None)[:3]
        if name in PRODUCTS:
            self.seen.scales += [number for each in (first, second) if (number := _number(each)) is not None]
            masks = [each for each in (first, second) if id(each) in self.masks]
            alone = _number(first) is not None or _number(second) is not None
            if len(masks) == 1 and not alone and "div" not in name and masks[0].shape == result.shape:
                self._mask(masks[0], keeps=True)
        elif name in ("masked_fill", "masked_fill_") and id(second) in self.masks and _number(third) == 0:
            self._mask(second, keeps=False)
        elif name == "where" and id(first) in self.masks and (_is_zero(third) or _is_zero(second)):
            self._mask(first, keeps=_is_zero(third))

    def _mask(self, mask: Tensor, *, keeps: bool) -> None:
        share = self.masks[id(mask)][1]
        self.seen.masks.append((_line(), share if keeps else 1 - share))


def _read(name: str, args: tuple[Any, ...], keywords: Mapping[str, Any], result: Any) -> tuple[Any, ...]:
    """The arguments whose numbers an operation reads: `next(self.parameters()).device` uses no parameter."""
    if name in ABOUT or (name == "__get__" and not isinstance(result, Tensor)):
        return ()
    return args[:1] if name in ("to", "type_as", "expand_as", "view_as", "reshape_as") else (*args, *keywords.values())


def _trains(value: Tensor) -> bool:
    """Whether a tensor is one that an optimiser would move; a slice of a parameter is none."""
    with torch._C.DisableTorchFunction():
        return value.requires_grad and value.is_leaf and not value._is_view()


def _drops(name: str, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> bool:
    """Whether a dropout function is at work: its share is above 0 and it is told to train."""
    if name in DROPPING:
        share = args[1] if len(args) > 1 else keywords.get("p", keywords.get("train", 0.5))
        training = args[2] if len(args) > 2 else keywords.get("training", keywords.get("train", name != "dropout"))
        training = keywords.get("training", training if "train" in keywords or len(args) > 2 else True)
        return bool(training) and float(share) > 0
    if name == "scaled_dot_product_attention":
        return float(args[4] if len(args) > 4 else keywords.get("dropout_p", 0.0)) > 0
    if name == "multi_head_attention_forward":
        share = args[10] if len(args) > 10 else keywords.get("dropout_p", 0.0)
        return bool(keywords.get("training", True)) and float(share) > 0
    return False


def _probability(args: tuple[Any, ...], keywords: Mapping[str, Any], result: Tensor) -> float:
    """The chance of a one in a Bernoulli mask."""
    found = keywords.get("p", args[1] if len(args) > 1 else args[0] if args else None)
    if isinstance(found, Tensor) and found is not result and found.numel():
        return float(found.double().mean())
    return float(found) if isinstance(found, int | float) else 0.5


def _number(value: Any) -> float | None:
    """A number that scales a whole tensor; None if it is none."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, Tensor) and value.numel() == 1 and value.is_floating_point() and value.dim() == 0:
        return float(value)
    return None


def _is_zero(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.numel() > 0 and not value.is_complex() and not bool(value.any())
    return isinstance(value, int | float) and value == 0

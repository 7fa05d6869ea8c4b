"""How a norm is called: which axis has the features, and what else it is given."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.case import Case, Inputs
from clearhead.checking.claims import size
from clearhead.checking.constructing import USUAL
from clearhead.checking.kinds.kind import NoInterfaceError
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.checking.target import Target

WEIGHT = r"w|weights?|gamma|g|scale|alpha|gain|a|a_2|\u03b3|ln_w|norm_weight|scale_param"
BIAS = r"b|bias|beta|shift|offset|b_2|\u03b2|ln_b|norm_bias"
EPS = r"eps|epsilon|e|variance_epsilon|norm_eps"
SHAPE, AXIS = r"normalized_shape|shape|norm_shape", r"dim|axis|axes|dims"
WIDTH = r"d|D|hidden_size|d_model|n_features|features|width|size|n"
GIVEN_EPS = 1e-5
LAYOUTS = ("rows", "flat", "channels", "image")
"""(B,T,D), (B·T,D), (B,D,T), (B,D,2,T/2)."""


@dataclass(frozen=True)
class NormCase:
    """A norm and how it is called.

    Args:
        case: the target; its inputs are (B,T,D), its output too, whatever layout the code wants.
        width: D.
        layout: of `LAYOUTS`.
        given: further arguments of a function, by name.
        length: the one T that it takes, None if any.
    """

    case: Case
    width: int
    layout: str
    given: Mapping[str, Any]
    length: int | None = None
    call: Any = None

    def __call__(self, module: Any, x: Tensor, given: Mapping[str, Any] | None = None) -> Tensor:
        """(B,T,D) -> (B,T,D)."""
        arguments = {name: _like(value, x) for name, value in (self.given if given is None else given).items()}
        seen = outside(x, self.layout)
        result = self.call(module, seen) if self.call is not None else module(seen, **arguments)
        return inside(first_tensor(result), x.shape, self.layout)

    def tensors(self, module: Any) -> dict[str, Tensor]:
        """The weights of the module, or those that the function is given."""
        if isinstance(module, nn.Module):
            return dict(module.named_parameters())
        return {name: value for name, value in self.given.items() if isinstance(value, Tensor)}

    def drawn(self, training: bool = False) -> Any:
        """A copy whose weights are all different and none is small."""
        module = self.case.ready()
        if isinstance(module, nn.Module):
            drawn = torch.Generator().manual_seed(11)
            with torch.no_grad():
                for parameter in module.parameters():
                    noise = torch.rand(parameter.shape, generator=drawn, dtype=torch.float64) + 0.5
                    parameter.copy_(noise.to(parameter.dtype))
            module.train(training)
        return module


def _like(value: Any, x: Tensor) -> Any:
    return value.to(x.dtype) if isinstance(value, Tensor) else value


def outside(x: Tensor, layout: str) -> Tensor:
    """(B,T,D) as the code wants it."""
    B, T, D = x.shape
    if layout == "flat":
        return x.reshape(B * T, D)
    if layout == "channels":
        return x.transpose(1, 2).contiguous()
    if layout == "image":
        return x.transpose(1, 2).reshape(B, D, 2, T // 2)
    return x


def inside(y: Tensor, shape: torch.Size, layout: str) -> Tensor:
    """What the code gave as (B,T,D)."""
    B, T, D = shape
    if layout in ("channels", "image"):
        return y.reshape(B, D, T).transpose(1, 2)
    return y.reshape(B, T, D)


def first_tensor(result: Any) -> Tensor:
    """The output among what was returned."""
    if isinstance(result, tuple | list):
        return next(item for item in result if isinstance(item, Tensor))
    assert isinstance(result, Tensor)
    return result


def open_norm(target: Target, settings: Settings) -> NormCase:
    """How the target is called, found by trial.

    Raises:
        NoInterfaceError: if no known way fits.
    """
    tried = []
    for dtype in (torch.float64, torch.float32):
        for width in _widths(target, settings):
            for layout in LAYOUTS:
                for given in _given(target, width):
                    for length in (None, *_lengths(target, settings, width)):
                        case = _case(target, settings, width, layout=layout, given=given, length=length, dtype=dtype)
                        reason = _refusal(case)
                        if not reason:
                            return case
                        tried.append(f"{layout} D={width} {dtype}: {reason}")
    raise NoInterfaceError(list(dict.fromkeys(tried))[:6])


def _case(
    target: Target,
    settings: Settings,
    width: int,
    *,
    layout: str,
    given: Mapping[str, Any],
    length: int | None,
    dtype: torch.dtype,
) -> NormCase:
    def inputs(rows: int, wanted: int, seed: int, kind: torch.dtype) -> Inputs:
        drawn = torch.Generator().manual_seed(settings.seed * 1000 + seed)
        return (torch.randn(rows, length or wanted, width, generator=drawn, dtype=torch.float64).to(kind) + 0.5,)

    def run(module: Any, given_inputs: Inputs) -> Tensor:
        return opened(module, given_inputs[0])

    opened = NormCase(Case(target, inputs, run, dtype), width, layout, given, length, settings.call)
    return opened


def _refusal(case: NormCase) -> str:
    """Why a call gives no (B,T,D), "" if it does."""
    with Attempt() as attempt, torch.no_grad():
        module = case.case.ready()
        x = case.case.inputs(3, 6, 0, case.case.dtype)[0]
        arguments = {name: _like(value, x) for name, value in case.given.items()}
        seen = outside(x, case.layout)
        result = case.call(module, seen) if case.call is not None else module(seen, **arguments)
        result = first_tensor(result)
        return "" if result.shape == seen.shape else f"gives {tuple(result.shape)}"
    return attempt.reason or "gives no tensor"


def _given(target: Target, width: int) -> Iterator[dict[str, Any]]:
    """Arguments beside x: all that can be filled, then the required ones alone."""
    parameters = [p for p in target.signature.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    others = parameters[1:]
    if target.is_module:
        yield {p.name: None for p in others if p.default is inspect.Parameter.empty}
        return
    full = {p.name: _argument(p, width) for p in others}
    yield {name: value for name, value in full.items() if value is not None}
    yield {p.name: full[p.name] for p in others if p.default is inspect.Parameter.empty}


def _argument(parameter: inspect.Parameter, width: int) -> Any:
    """What a function's parameter gets; None if it keeps its default or its meaning is not known."""
    name, required = parameter.name, parameter.default is inspect.Parameter.empty
    low = name.lower()
    drawn = torch.Generator().manual_seed(len(name) * 7 + ord(name[0]))
    vector = torch.rand(width, generator=drawn, dtype=torch.float64) + 0.5
    if re.fullmatch(WEIGHT, low) or re.fullmatch(BIAS, low):
        return vector if required or parameter.default is None else None
    if not required:
        return None
    known = ((EPS, GIVEN_EPS), (SHAPE, (width,)), (AXIS, -1), (WIDTH, width))
    return next((value for pattern, value in known if re.fullmatch(pattern, low)), None)


def _widths(target: Target, settings: Settings) -> list[int]:
    """Candidates for D, the likeliest first."""
    if settings.width:
        return [settings.width]
    made = target.make()
    named = size(target, settings, "width")
    seen = [named] if named is not None and named > 1 else []
    if isinstance(made, nn.Module):
        seen += [p.shape[-1] for p in made.parameters() if p.dim() and p.shape[-1] > 1]
        seen += [p.numel() for p in made.parameters() if p.numel() > 1]
        seen += [b.shape[-1] for b in made.buffers() if b.dim() and b.shape[-1] > 1]
    return list(dict.fromkeys([*seen, USUAL["head_width"] * 4]))


def _lengths(target: Target, settings: Settings, width: int) -> list[int]:
    """Lengths that the shape of a weight, or a stated one, may want."""
    made = target.make()
    if not isinstance(made, nn.Module):
        return []
    shapes = [n for p in made.parameters() if p.dim() >= 2 for n in p.shape if n not in (1, width)]
    context = size(target, settings, "context")
    return list(dict.fromkeys([*shapes, *([context] if context else [])]))

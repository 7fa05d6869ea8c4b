"""A function or module of q, k and v: how it is called."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.case import Case
from clearhead.checking.kinds.kind import NoInterfaceError
from clearhead.checking.kinds.projections import role
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.checking.target import Target

MASKS = r".*mask.*|valid|keep|visible|allowed|.*padding.*"
CAUSAL = r"is_causal|causal|use_causal(_mask)?|autoregressive"
WINDOW = r"window|window_size|sliding_window|local_window|W"
GROUPED = r"enable_gqa|gqa"
TRAINING = r"training|train|is_training"
DROPOUT = r"dropout(_p|_rate)?|p_drop(out)?|attn_dropout|drop|p"
SHAPES = ("B1TS", "TS", "BTS", "BHTS", "BS", "B11S")


@dataclass(frozen=True)
class SdpaCase:
    """How attention of given q, k and v is called.

    Args:
        case: the target; its inputs are q, k and v.
        names: of the parameters for q, k and v.
        by_name: whether they must be given by name.
        fill: what other required parameters get.
        mask: the parameter of a mask; "" if there is none.
        causal: the parameter that says whether later keys are hidden; "" if there is none.
        window: the parameter that says how many keys are seen; "" if there is none.
        grouped: the parameter that asks for shared keys; "" if there is none.
        shape: of a mask: which of SHAPES; "" if none is taken.
        dims: 4 for (B,H,T,d), 3 for (B,T,d).
        call: the user's own way to call it.
    """

    case: Case
    names: tuple[str, ...] = ()
    by_name: bool = False
    fill: Mapping[str, Any] | None = None
    mask: str = ""
    causal: str = ""
    window: str = ""
    grouped: str = ""
    shape: str = ""
    dims: int = 4
    call: Any = None

    def ready(self) -> Any:
        """A fresh copy, in evaluation mode."""
        return self.case.ready()


def run(
    case: SdpaCase,
    qkv: tuple[Tensor, Tensor, Tensor],
    keep: Tensor | None = None,
    *,
    causal: bool | None = None,
    extra: Mapping[str, Any] | None = None,
    made: Any = None,
) -> Tensor:
    """The output (B,H,T,dv).

    Args:
        case: how it is called.
        qkv: q (B,H,T,d), k and v (B,K,S,d).
        keep: (B,1,T,S), True where a key is kept.
        causal: what the flag gets, its default if None.
        extra: further arguments by name.
        made: a copy of the target, a fresh one if None.
    """
    given = qkv if case.dims == 4 else tuple(t.flatten(0, 1) for t in qkv)
    named = dict(case.fill or {}) | dict(extra or {})
    if keep is not None:
        named[case.mask] = shaped(case.shape, keep, qkv[0].shape[1])
    if causal is not None and case.causal:
        named[case.causal] = causal
    if case.grouped and qkv[1].shape[1] != qkv[0].shape[1]:
        named[case.grouped] = True
    module = case.ready() if made is None else made
    if case.call is not None:
        result = case.call(module, *given)
    elif case.by_name:
        result = module(**dict(zip(case.names, given, strict=True)), **named)
    else:
        result = module(*given, **named)
    if isinstance(result, Mapping):
        result = list(result.values())
    out = result[0] if isinstance(result, tuple | list) else result
    assert isinstance(out, Tensor)
    return out if case.dims == 4 else out.reshape(*qkv[0].shape[:2], *out.shape[1:])


def shaped(shape: str, keep: Tensor, heads: int) -> Tensor:
    """A mask (B,1,T,S) as the code wants it."""
    table = {
        "B1TS": lambda: keep,
        "TS": lambda: keep[0, 0],
        "BTS": lambda: keep[:, 0],
        "BHTS": lambda: keep.expand(-1, heads, -1, -1),
        "BS": lambda: keep[:, 0, 0],
        "B11S": lambda: keep[:, :, :1],
        "NTS": lambda: keep.expand(-1, heads, -1, -1).flatten(0, 1),
    }
    return table[shape]()


def drawn(
    rows: int,
    heads: int,
    T: int,
    S: int,
    *,
    kv_heads: int | None = None,
    d: int = 8,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
) -> tuple[Tensor, Tensor, Tensor]:
    """Random q (B,H,T,d), k and v (B,K,S,d)."""
    source = torch.Generator().manual_seed(seed)
    sizes = ((heads, T), (kv_heads or heads, S), (kv_heads or heads, S))
    q, k, v = (torch.randn(rows, h, n, d, generator=source, dtype=torch.float64).to(dtype) for h, n in sizes)
    return q, k, v


def open_sdpa(target: Target, settings: Settings) -> SdpaCase:
    """How the target is called, found by trial.

    Raises:
        NoInterfaceError: if it gives no output for q, k and v.
    """
    parameters = [p for p in target.signature.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    names = tuple(p.name for p in parameters[:3])
    by_name = any(p.kind is p.KEYWORD_ONLY for p in parameters[:3])
    roles = [role(name) for name in names]
    if sorted(map(str, roles)) == ["k", "q", "v"] and roles != ["q", "k", "v"]:
        names, by_name = tuple(names[roles.index(letter)] for letter in "qkv"), True
    rest = parameters[3:]
    fill = {p.name: value for p in rest if p.default is inspect.Parameter.empty for value in [_filled(p.name)]}
    found = {
        what: next((p.name for p in rest if re.fullmatch(pattern, p.name, re.IGNORECASE)), "")
        for what, pattern in (("mask", MASKS), ("causal", CAUSAL), ("window", WINDOW), ("grouped", GROUPED))
    }
    tried = []
    for dtype in (torch.float64, torch.float32):
        for dims in (4, 3):
            case = Case(target, lambda *_: (), lambda module, given: module(*given), dtype, 2)
            opened = SdpaCase(case, names, by_name, fill, dims=dims, call=settings.call, **found)
            qkv = drawn(2, 3, 5, 5, dtype=dtype)
            with Attempt() as attempt, torch.no_grad():
                out = run(opened, qkv)
                if tuple(out.shape) == tuple(qkv[0].shape):
                    return replace(opened, shape=_mask_shape(opened, dtype))
                tried.append(f"{names} {dtype}: gives {tuple(out.shape)}")
            if attempt.error is not None:
                tried.append(f"{names} {dtype}: {attempt.reason}")
    raise NoInterfaceError(tried[:4])


def _filled(name: str) -> Any:
    """What a required parameter gets."""
    for pattern, value in ((CAUSAL, False), (TRAINING, False), (DROPOUT, 0.0)):
        if re.fullmatch(pattern, name, re.IGNORECASE):
            return value
    return None


def _mask_shape(case: SdpaCase, dtype: torch.dtype) -> str:
    """The shape of mask that is taken: the first that does not raise; "" if none."""
    if not case.mask or case.call is not None:
        return ""
    padding = re.search("pad|valid", case.mask, re.IGNORECASE)
    shapes: tuple[str, ...] = ("BS", "B11S", *SHAPES) if padding else SHAPES
    for shape in (*shapes, "NTS") if case.dims == 4 else ("NTS", "TS"):
        with Attempt(), torch.no_grad():
            keep = torch.ones(2, 1, 5, 7, dtype=torch.bool)
            out = run(replace(case, shape=shape), drawn(2, 3, 5, 7, dtype=dtype), keep)
            if tuple(out.shape[:3]) == (2, 3, 5):
                return shape
        with Attempt(), torch.no_grad():
            out = run(replace(case, shape=shape), drawn(2, 3, 5, 5, dtype=dtype), keep[..., :5])
            if tuple(out.shape[:3]) == (2, 3, 5):
                return shape
    return ""


def is_module(case: SdpaCase) -> bool:
    """Whether the target has modes."""
    return isinstance(case.case.target.make(), nn.Module)

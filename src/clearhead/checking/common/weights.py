"""Weights as found: what cannot do anything, does the same twice, is no number, or never trains."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from clearhead.checking.claims import says, stated
from clearhead.checking.common.heads_tied import heads_tied
from clearhead.checking.common.registered import registered
from clearhead.checking.common.shared import shared, tying
from clearhead.checking.kinds.kind import Found
from clearhead.checking.report import Check, Fault
from clearhead.checking.target import Target
from clearhead.messages import say

__all__ = ["weights"]

LAST = (
    r"(^|\.|_)(o|wo|w_o|o_proj|out|out_proj|output|to_out|c_proj|proj|proj_out|projection|fc2|w2|down|down_proj|lin2|linear2|"
    r"dense_4h_to_h|dense|resid\w*|head|lm_head|classifier|unembed\w*|fc_out|w_out|wout|ff_out|c_fc2|attn_out|final\w*)(\.\d+)?$"
)
ADAPTERS = r"lora|adapter|_b$|\.b$|ada_?ln|modulation|zero|gate|gamma|alpha|scale|residual|branch"
FIRST = r"(^|\.|_)(q|k|v|wq|wk|wv|w_q|w_k|w_v|query|key|value|qkv|c_attn|in_proj|to_q|to_k|to_v|to_kv|to_qkv|kv)(_?(proj|proj_weight|linear|lin|weight))?$"
PLACES = r"\bw?pe\b|pos|cls|token_type|prefix|prompt|bias|rel|alibi|mask|sink|state|memory|mem|cache|pe$|register|null|temperature|stream"
PADS = ("padding_idx", "pad_id", "pad_token_id", "pad_idx", "pad", "pad_index", "pad_token")
FROZEN = r"freez|frozen|pretrain|fixed|lora|adapter|peft|teacher|ema\b|not[ _]train|untrain|non[-_ ]?train|buffer|random[ _]feature"
TABLES = r"(^|\.|_)(pos\w*|pe|sin\w*|cos\w*|\w*freq\w*|rope|rotary\w*|mask\w*|tril|causal\w*|alibi\w*|slopes|bucket\w*|tau|temperature|eps|scale)(\.weight)?$"
HELD = ("weights.non-finite", "weights.zero", "weights.dead-units", "weights.rows-zero", "weights.frozen")


class Matrix(NamedTuple):
    """A parameter of at least two axes that are longer than one.

    Args:
        name: of the parameter.
        value: itself.
        owner: the module that has it.
        trains: whether it requires a gradient.
    """

    name: str
    value: Tensor
    owner: nn.Module
    trains: bool = True

    @property
    def module(self) -> str:
        """The name without "weight"."""
        return re.sub(r"\.weight$", "", self.name)

    @property
    def is_table(self) -> bool:
        """Whether rows are looked up by ids."""
        return (
            isinstance(self.owner, nn.Embedding)
            or re.search(r"(^|[._])(wte|tok\w*|emb\w*|vocab\w*)$", self.module.lower()) is not None
        )


def weights(target: Target) -> Found:
    """What can be said of a module before it runs: its weights as they are found.

    Args:
        target: the code under check; a function has no weights, and nothing is asked of it.
    """
    made = target.make()
    if not isinstance(made, nn.Module):
        return Found()
    matrices = list(_matrices(made))
    found = Found()
    if any(True for _ in made.parameters()):
        faults, notes = _held(target, made, matrices)
        found = _asked(HELD, faults, say("common.weights_seen", count=len(list(made.parameters()))), notes)
        found += heads_tied(target, made)
    return found + registered(target, made) + shared(target, made) + tying(target, made)


def _asked(names: tuple[str, ...], faults: list[Fault], evidence: str, notes: tuple[str, ...]) -> Found:
    """A check for each name, failed where there is a fault of that name."""
    wrong = {fault.id: fault for fault in reversed(faults)}
    checks = tuple(
        Check(name, "fail", wrong[name].evidence, 1.0) if name in wrong else Check(name, "pass", evidence)
        for name in names
    )
    return Found(checks, tuple(faults), notes)


def _held(target: Target, made: nn.Module, matrices: list[Matrix]) -> tuple[list[Fault], tuple[str, ...]]:
    faults, notes = [*_non_finite(made), *_frozen(target, made)], []
    for matrix in matrices:
        if not bool(matrix.value.any()):
            if re.search(PLACES, matrix.name.lower()):
                continue
            if _is_last(matrix, matrices):
                notes.append(say("common.zero_last", name=matrix.name))
                continue
            faults.append(
                _fault(
                    "weights.zero",
                    say("common.zero", name=matrix.name, shape=tuple(matrix.value.shape)),
                    matrix.module,
                    say("common.fix_zero"),
                )
            )
        elif matrix.is_table:
            if not matrix.trains or re.search(PLACES, matrix.name.lower()):
                continue
            faults += _rows_zero(target, made, matrix)
        elif _projects(matrix):
            faults += _dead(made, matrix)
    return faults, tuple(notes)


def _matrices(made: nn.Module) -> Iterator[Matrix]:
    for path, module in made.named_modules():
        for name, value in module.named_parameters(prefix=path, recurse=False):
            if isinstance(value, nn.parameter.UninitializedParameter):
                continue
            if sum(length > 1 for length in value.shape) >= 2:
                yield Matrix(name, value.detach(), module, value.requires_grad)


def _projects(matrix: Matrix) -> bool:
    """Whether a bare parameter, or the weight of somebody's own linear layer, is a matrix between features."""
    return matrix.value.dim() == 2 and min(matrix.value.shape) > 1 and not re.search(PLACES, matrix.name.lower())


def _is_last(matrix: Matrix, matrices: list[Matrix]) -> bool:
    """Whether a projection ends a branch: zero at the start, the branch adds nothing, and still trains."""
    name = matrix.module.lower()
    if re.search(FIRST, name):
        return False
    if re.search(LAST, name) or re.search(ADAPTERS, name):
        return True
    parent = name.rpartition(".")[0]
    beside = [each.module.lower() for each in matrices if each.module.lower().rpartition(".")[0] == parent]
    return len(beside) > 1 and beside[-1] == name


def _non_finite(made: nn.Module) -> Iterator[Fault]:
    """Parameters that hold NaN or an infinity, and buffers that hold NaN: an infinity in a mask is a mask."""
    for name, value in made.named_parameters():
        if value.is_floating_point() and not bool(value.detach().isfinite().all()):
            count = int((~value.detach().isfinite()).sum())
            yield _fault(
                "weights.non-finite",
                say("common.non_finite", name=name, count=count, total=value.numel()),
                name,
                say("common.fix_non_finite"),
            )
    for name, held in made.named_buffers():
        if held.is_floating_point() and bool(held.isnan().any()):
            yield _fault(
                "weights.non-finite",
                say("common.non_finite", name=name, count=int(held.isnan().sum()), total=held.numel()),
                name,
                say("common.fix_non_finite"),
            )


def _frozen(target: Target, made: nn.Module) -> Iterator[Fault]:
    """Parameters that do not train though others do and nothing says that they should not."""
    parameters = list(made.named_parameters())
    if not any(value.requires_grad for _, value in parameters):
        return
    claimed = re.search(FROZEN, _words(target), re.IGNORECASE) is not None
    for name, value in parameters:
        if value.requires_grad or claimed or not value.is_floating_point():
            continue
        if re.search(TABLES, name.lower()) or re.search(FROZEN, name, re.IGNORECASE):
            continue
        yield _fault("weights.frozen", say("common.frozen", name=name), name, say("common.fix_frozen"))


def _words(target: Target) -> str:
    """The source without what freezes: the assignment itself is no reason."""
    names = " ".join(dir(target.kind_of)) + " ".join(target.values)
    return f"{target.source} {getattr(target.kind_of, '__name__', '')} {names if not target.source else ''}"


def _rows_zero(target: Target, made: nn.Module, matrix: Matrix) -> Iterator[Fault]:
    empty = (~matrix.value.bool().flatten(1).any(1)).nonzero().flatten().tolist()
    pads = {
        value
        for value in (getattr(matrix.owner, "padding_idx", None), *(_pad(target, name) for name in PADS))
        if value is not None
    }
    rows = [row for row in empty if row not in pads]
    if not rows or (len(rows) == 1 and rows[0] in (0, len(matrix.value) - 1) and says(target, "pad")):
        return
    shown = ", ".join(map(str, rows[:6]))
    yield _fault(
        "weights.rows-zero",
        say("common.rows_zero", name=matrix.name, rows=shown, count=len(rows), total=len(matrix.value)),
        matrix.module,
        say("common.fix_rows_zero"),
    )


def _pad(target: Target, name: str) -> int | None:
    value = stated(target, name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _dead(made: nn.Module, matrix: Matrix) -> Iterator[Fault]:
    """Rows or columns that are zero from end to end: no random start gives one."""
    table = any(
        isinstance(part, nn.Embedding) and part.weight.data_ptr() == matrix.value.data_ptr() for part in made.modules()
    )
    if table or matrix.value.dim() != 2 or min(matrix.value.shape) < 2 or _is_pattern(matrix.value):
        return
    for axis, kind in ((1, "rows"), (0, "columns")):
        empty = (~matrix.value.bool().any(axis)).nonzero().flatten().tolist()
        if empty:
            shown = (
                f"{empty[0]}..{empty[-1]}"
                if empty == list(range(empty[0], empty[-1] + 1))
                else ", ".join(map(str, empty[:6]))
            )
            whole = axis == 1 and len(empty) * 3 >= len(matrix.value) and re.search(FIRST, matrix.module.lower())
            name = "weights.zero" if whole else "weights.dead-units"
            yield _fault(
                name,
                say("common.dead", name=matrix.name, axis=kind, which=shown, count=len(empty)),
                matrix.module,
                say("common.fix_dead"),
            )
            return


def _is_pattern(value: Tensor) -> bool:
    """Whether a matrix holds a written pattern (an identity, a triangle), not a random start."""
    return len(torch.unique(value)) <= 3


def _fault(name: str, evidence: str, where: str, fix: str) -> Fault:
    return Fault(name, "reproduced", evidence, where, fix)

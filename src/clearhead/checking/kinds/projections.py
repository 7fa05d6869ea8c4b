"""The projections of a watched attention: which of them plays which part, what their names say, and what happens to them on the way."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from clearhead.checking.kinds.formula_graph import Graph, linked_to, slope
from clearhead.checking.kinds.heads_found import Heads
from clearhead.checking.kinds.scores import Core
from clearhead.checking.watch import Op

ACTIVATIONS = frozenset(
    {"relu", "relu_", "gelu", "silu", "silu_", "elu", "elu_", "selu", "celu", "leaky_relu", "leaky_relu_", "tanh", "tanh_", "sigmoid", "sigmoid_", "softplus", "mish", "hardswish", "relu6", "softsign", "prelu", "logsigmoid", "hardtanh", "clamp_min"}
)  # fmt: skip
ROLE = re.compile(
    r"(?:w|to|fc|lin|linear|proj|dense|in|weights?|attn|attention|self|head)?_?(q|query|queries|k|key|keys|v|val|value|values)_?"
    r"(?:s|w|h|proj|projection|linear|lin|layer|fc|net|weights?|heads?|map|transform|dense|matrix|kernel|mat|in|\d+|_)*"
)
GPT = re.compile(r"c_attn|in_proj|query_key_value")


def role(name: str) -> str | None:
    """The part that a name claims, "q", "k" or "v"; None if it claims none."""
    for part in reversed(name.lower().split(".")[-3:]):
        found = ROLE.fullmatch(part)
        if found is not None:
            return found[1][0]
    return None


def order(name: str) -> str | None:
    """The order of parts that the name of a fused projection claims: "qkv", "kv", ...; None if it claims none."""
    for part in reversed(name.lower().split(".")[-3:]):
        if GPT.search(part):
            return "qkv"
        for found in re.finditer(r"[qkv]+", part):
            letters = found[0]
            if len(letters) in (2, 3) and len(set(letters)) == len(letters) and letters != "qk":
                return letters
    return None


def named(module: nn.Module | None, graph: Graph, index: int) -> str:
    """What the projection of an operation is called: its module, or its parameter."""
    op = graph.record.ops[index]
    known = {} if module is None else {id(p): name for name, p in (*module.named_parameters(), *module.named_buffers())}
    for given in graph.arguments(op):
        for tensor in (given, given._base):
            if tensor is not None and id(tensor) in known and tensor.dim() >= 2:
                return known[id(tensor)]
    if not known:
        return op.module
    fixed = [t for t in graph.arguments(op) if not graph.depends(t) and t.dim() >= 2 and t.requires_grad]
    weights = [p for p in known_parameters(module) if p.requires_grad]
    hits = [p for t in fixed[:1] for p, hit in zip(weights, linked_to(t, weights), strict=True) if hit]
    return known[id(hits[0])] if len(hits) == 1 else op.module


def known_parameters(module: nn.Module | None) -> list[nn.Parameter]:
    """The parameters of a module."""
    return [] if module is None else list(module.parameters())


def misread(module: nn.Module | None, operands: Mapping[str, Tensor], prefix: str) -> tuple[str, str] | None:
    """A part that reads the weights that are named after another, while its own exist: ("q", "attention.k_proj.weight").

    Args:
        module: with the names.
        operands: by part, alive.
        prefix: of the module in which the attention is.
    """
    if module is None:
        return None
    named_weights = [
        (name, p)
        for name, p in module.named_parameters()
        if p.dim() >= 2 and p.requires_grad and name.startswith(prefix) and role(name) is not None
    ]
    for part, operand in operands.items():
        weights = [p for _, p in named_weights]
        if not weights or not operand.requires_grad:
            continue
        found = torch.autograd.grad(operand.square().sum(), weights, retain_graph=True, allow_unused=True)
        read = [
            name for (name, _), g in zip(named_weights, found, strict=True) if g is not None and bool(g.abs().sum() > 0)
        ]
        own = [name for name in read if role(name) == part]
        others = [name for name in read if role(name) != part]
        if others and any(role(name) == part for name, _ in named_weights) and (not own or len(others) >= 1):
            return part, others[0]
    return None


def disordered(parts: Mapping[str, Heads], claimed: str) -> tuple[str, int] | None:
    """A head whose parts lie in another order in a fused projection than its name says, and that order; None if none does."""
    wanted = [letter for letter in claimed if letter in parts]
    if len(wanted) < 2 or len({len(parts[letter].rows) for letter in wanted}) != 1:
        return None
    for number in range(len(parts[wanted[0]].rows)):
        first = {letter: min(parts[letter].first[number].features) for letter in wanted}
        found = sorted(wanted, key=lambda letter: first[letter])
        if found != wanted and len(set(first.values())) == len(wanted):
            return "".join(found), number
    return None


def refilled(module: nn.Module | None, weight: Tensor | None, parts: Mapping[str, Heads]) -> tuple[str, str] | None:
    """A part of a fused projection whose rows equal a separate weight that is named after another: ("q", "k_proj.weight")."""
    if module is None or weight is None or weight.dim() != 2:
        return None
    labels = _labels(module, weight)
    for part, heads in parts.items():
        for _, feature in (at for head in heads.rows for at in head[0].features):
            found = labels.get(feature)
            if found is not None and role(found) != part:
                return part, found
    return None


def _labels(module: nn.Module, weight: Tensor) -> dict[int, str]:
    """The names of the separate weights whose rows a fused one has, by its rows."""
    labels: dict[int, str] = {}
    for name, value in _held(module):
        if role(name) is None or value is weight or value.dim() != 2 or not value.shape[0]:
            continue
        for turned in (weight.detach(), weight.detach().t()):
            if turned.shape[1] == value.shape[1]:
                same = (turned[:, None] == value.detach()[None]).all(-1).any(1)
                labels |= {int(row): name for row in same.nonzero()[:, 0]}
    return labels


def _held(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from module.named_parameters()
    yield from module.named_buffers()
    for name, value in vars(module).items():
        if isinstance(value, Tensor):
            yield name, value


def activated(graph: Graph, core: Core, operand: Tensor, heads: Heads) -> int | None:
    """The operation that bends a projection on its way to the core; None if none does. A gate, multiplied by another, is none."""
    if len(heads.sources) != 1:
        return None
    source = graph.projected(heads.sources[0])
    for index in range(heads.sources[0] + 1, core.end):
        op, made = graph.record.ops[index], graph.result(index)
        bends = op.name in ACTIVATIONS or (op.name in ("clamp", "clip") and op.argument(2, "max") is None)
        if not bends or made is None or not any(linked_to(made, [source])) or not any(linked_to(operand, [made])):
            continue
        gates = any(
            later.name in ("mul", "mul_", "__mul__")
            and any(t is made for t in graph.arguments(later))
            and (_both(graph, later) or _clamped(graph, index, later))
            for later in graph.record.ops[index + 1 : core.end]
        )
        if not gates and not _in_scores(core, made) and not _turned(graph, made):
            return index
    return None


def _clamped(graph: Graph, index: int, later: Op) -> bool:
    """Whether a tangent is that of a soft clamp, c · tanh(x / c), which is meant to leave usual numbers alone."""
    op = graph.record.ops[index]
    given = graph.arguments(op)
    before = next((o for o in reversed(graph.record.ops[:index]) if any(t is graph.live(o)[2] for t in given)), None)
    shrunk = before.argument(1, "other") if before is not None and before.name in ("div", "__truediv__") else None
    return op.name == "tanh" and isinstance(shrunk, int | float) and shrunk > 1 and later.argument(1, "other") == shrunk


def _both(graph: Graph, op: Op) -> bool:
    given = graph.arguments(op)
    return len(given) == 2 and all(graph.depends(t) for t in given)


def _turned(graph: Graph, made: Tensor) -> bool:
    """Whether a size, never below zero, is put at an angle: multiplied by the cosine and, as it is, by the sine."""
    with_made = [
        op for op in graph.record.ops if op.name in ("mul", "__mul__") and any(t is made for t in graph.arguments(op))
    ]
    found = {id(t) for op in with_made for t in graph.arguments(op)}
    return all(any(id(graph.live(op)[2]) in found for op in graph.record.named(name)) for name in ("cos", "sin"))


def _in_scores(core: Core, made: Tensor) -> bool:
    """Whether what an operation gave comes after the product of the scores, as a soft-cap does."""
    return core.pairs is not None and any(linked_to(made, [core.pairs.out]))


def sliced(operand: Tensor, x: Tensor) -> int | None:
    """How many features of the input a row of an operand reads, if that is at most half; None if it reads all, or none."""
    if not x.is_floating_point() or not x.requires_grad or not operand.requires_grad:
        return None
    flat = operand.reshape(-1, *operand.shape[-2:])
    found = slope(flat[0, 0] * torch.linspace(1, 2, flat.shape[-1], dtype=flat.dtype), x)
    features = (found != 0).reshape(-1, x.shape[-1]).any(0)
    read = int(features.sum())
    if operand.dim() >= 4 and operand.shape[-3] > 1:
        # Where the next head reads the same, it is a part of the stream that all heads read whole.
        beside = operand.reshape(-1, *operand.shape[-3:])[0, 1, 0]
        other = slope(beside * torch.linspace(1, 2, len(beside), dtype=beside.dtype), x)
        if torch.equal(features, (other != 0).reshape(-1, x.shape[-1]).any(0)):
            return None
    return read if 0 < read <= x.shape[-1] // 2 else None


def wrapped(module: nn.Module | None) -> bool:
    """Whether another attention of the same file is built around this class, so that the projection may be its business."""
    kind = type(module)
    file = sys.modules.get(kind.__module__)
    if module is None or file is None or kind.__module__.split(".")[0] == "torch":
        return False
    others = [
        other
        for other in vars(file).values()
        if isinstance(other, type)
        and issubclass(other, nn.Module)
        and not issubclass(other, kind)
        and other.__module__ == kind.__module__
        and re.search(r"att|mha", other.__name__, re.IGNORECASE)
    ]
    for other in others:
        try:
            text = inspect.getsource(other)
        except (OSError, TypeError):
            continue
        if re.search(rf"\b({kind.__name__}|[A-Z_]+_CLASSES)\b", text):
            return True
    return False

"""The stages of one watched attention, each held against what it should be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from clearhead.checking.kinds.formula_graph import Graph, linked_to
from clearhead.checking.kinds.heads_found import Heads, crossed, heads_of, merged, mixed, several, sharing
from clearhead.checking.kinds.projections import activated, disordered, misread, order, refilled, sliced, wrapped
from clearhead.checking.kinds.projections import named as name_of
from clearhead.checking.kinds.scores import Core, rows_sum_to_one
from clearhead.checking.report import Certainty, Fault
from clearhead.messages import say

ACTIVATED = r"activation\w*[^\n]{0,40}\b(after|to|on|of) (each|every|all|the)\b[^\n]{0,24}(linear|projection|transformation|quer)|laplacian_?attn|gated[ _]attention[ _]unit"
"""Words for a function of queries, keys and values that is meant."""
NARROW = (torch.float16, torch.bfloat16)
AS_TRAINED = r"#[^\n]*\b(shards?|layout|order|interleaved?)\b[^\n]*\b(trained|checkpoints?|original|released)\b"
"""A comment that says that the parts of a fused projection lie as in weights that exist: then its name is no claim."""


@dataclass(frozen=True)
class Scene:
    """What the stages of one core are judged by.

    Args:
        graph: of the forward.
        core: the attention.
        module: whose names are known; None for a function.
        width: D.
        x: what the code was fed with, alive.
        whole: whether the output of the forward is that of the attention alone.
        source: the text of the code.
        heads: how many cores run side by side.
        others: the contexts of all cores.
    """

    graph: Graph
    core: Core
    module: nn.Module | None
    width: int
    x: Tensor
    whole: bool
    source: str
    heads: int
    others: tuple[Tensor, ...] = ()


def fault(
    name: str, evidence: str, where: str, certainty: Certainty = "reproduced", effect: float | None = None
) -> Fault:
    """A fault with the way to mend it that its name has."""
    word = re.sub(r"\W", "_", name)
    return Fault(name, certainty, evidence, where, say(f"formula.fix.{word}"), effect)


def stages(scene: Scene) -> tuple[list[Fault], list[str]]:
    """The faults of one core, and the questions that could not be answered."""
    graph, core = scene.graph, scene.core
    lead = tuple(np.broadcast_shapes(tuple(core.q.shape[:-2]), tuple(core.k.shape[:-2])))
    parts = {
        "q": heads_of(graph, core.q, lead, core.start),
        "k": heads_of(graph, core.k, lead, core.start),
        "v": heads_of(graph, core.v, tuple(core.v.shape[:-2]), core.end),
    }
    if all(crossed(heads) for heads in parts.values()):
        # Cross-covariance attention: another formula, in which features attend to features.
        return [], ["heads", "qkv.layout", "scale"]
    faults = [*_splits(scene, parts), *_softmax(scene)]
    if not faults:
        # Who is q and who is k, and which head is whose, can be told only where these are right.
        faults += [*_sharing(scene, parts), *_names(scene, parts)]
    faults += [*_bent(scene, parts), *_merge(scene, parts), *_narrow(scene)]
    unseen = [] if all(heads.known for heads in parts.values()) else ["heads", "qkv.layout"]
    return faults, unseen


def _line(scene: Scene, index: int) -> str:
    return scene.graph.record.ops[index].where


def _shaping(scene: Scene, operand: Tensor, heads: Heads, before: int) -> str:
    """The line that gave an operand its shape last."""
    first = max(heads.sources, default=-1)
    found = ""
    for index in range(first + 1, before):
        op, made = scene.graph.record.ops[index], scene.graph.result(index)
        shapes = op.name in ("view", "reshape", "unflatten", "contiguous", "chunk", "split", "view_as")
        if shapes and made is not None and made.requires_grad and any(linked_to(operand, [made])):
            found = op.where
    return found or _line(scene, before)


def _splits(scene: Scene, parts: dict[str, Heads]) -> Iterator[Fault]:
    core = scene.core
    bad = {}
    for letter, operand, before in (("q", core.q, core.start), ("k", core.k, core.start), ("v", core.v, core.end)):
        at = mixed(parts[letter]) if parts[letter].known else None
        if at is not None:
            bad[letter] = (at, several(parts[letter], at), _shaping(scene, operand, parts[letter], before))
    if set(bad) == {"k"} and bad["k"][1] > 1:
        (head, row), count, where = bad["k"]
        text = say("formula.key_reshaped", row=row, head=head, count=count)
        yield fault("scores.key-reshaped", text, where)
    elif bad:
        letter, ((head, row), _, where) = next(iter(bad.items()))
        text = say("formula.split", parts=", ".join(bad), letter=letter, head=head, row=row)
        yield fault("heads.split-without-transpose", text, where)


def _softmax(scene: Scene) -> Iterator[Fault]:
    core = scene.core
    if core.weights is None:
        return
    if core.axes is not None and core.axes[0] != core.axes[1]:
        yield fault(
            "softmax.axis", say("formula.axis", taken=core.axes[0], summed=core.axes[1]), _line(scene, core.middle)
        )
        return
    weights = core.weights
    if core.axes is None and not rows_sum_to_one(weights, -1):
        wrong = next((axis for axis in range(-2, -weights.dim() - 1, -1) if rows_sum_to_one(weights, axis)), None)
        if wrong is not None and weights.shape[wrong] > 1:
            yield fault("softmax.axis", say("formula.axis", taken=wrong, summed=-1), _line(scene, core.middle))


def _sharing(scene: Scene, parts: dict[str, Heads]) -> Iterator[Fault]:
    core = scene.core
    lost = core.pairs is not None and core.pairs.lost
    if core.pairs is not None and core.scores is not None and core.pairs.out.numel() > core.scores.numel():
        lost = True
    queries = parts["q"]
    if queries.known and not lost:
        used = len({feature for head in queries.rows for feature in head[0].features})
        # A norm over the whole width lets each head read all features; heads that are summed are fewer than their features.
        own = sum(row.places == queries.first[0].places for row in queries.first)
        lost = used >= 2 * own * queries.width
    if lost:
        yield fault("heads.grouped-summed", say("formula.grouped"), _line(scene, core.start))
        return
    for letter in ("k", "v"):
        found = sharing(queries, parts[letter]) if queries.known else None
        if found is not None and 1 < found.kv_heads < found.heads and found.tiled:
            text = say(
                "formula.tiled",
                letter=letter,
                used=", ".join(map(str, found.used)),
                heads=found.heads,
                kv_heads=found.kv_heads,
            )
            yield fault("heads.kv-tiled", text, _line(scene, core.start))
            return


def _names(scene: Scene, parts: dict[str, Heads]) -> Iterator[Fault]:
    graph, core = scene.graph, scene.core
    if not all(heads.sources for heads in parts.values()):
        return
    names = {letter: name_of(scene.module, graph, heads.sources[0]) for letter, heads in parts.items()}
    where = _line(scene, parts["q"].sources[0])
    fused = [letter for letter in parts if parts[letter].sources == parts["k"].sources]
    claimed = order(names["k"]) if len(fused) > 1 and not re.search(AS_TRAINED, scene.source, re.IGNORECASE) else None
    if claimed is not None and parts["k"].known:
        found = disordered({letter: parts[letter] for letter in fused}, claimed)
        if found is not None:
            text = say("formula.disordered", name=names["k"], found=found[0], head=found[1])
            yield fault("qkv.layout", text, where)
            return
    operands = {"q": core.q, "k": core.k, "v": core.v}
    wrong = misread(scene.module, operands, _prefix(scene, parts["q"].sources[0])) if not _later(scene) else None
    if wrong is None and len(fused) > 1 and parts["k"].known:
        weight = next(
            (t for t in graph.arguments(graph.record.ops[parts["k"].sources[0]]) if not graph.depends(t)), None
        )
        wrong = refilled(scene.module, weight, {letter: parts[letter] for letter in fused})
    if wrong is not None:
        yield fault("qkv.layout", say("formula.misread", part=wrong[0], name=wrong[1]), where)


def _later(scene: Scene) -> bool:
    """Whether the queries come from another attention already, so that they depend on all of its weights."""
    return any(linked_to(scene.core.q, [t for t in scene.others if t is not scene.core.context and t.requires_grad]))


def _prefix(scene: Scene, index: int) -> str:
    """The module in which the projections are, with a dot."""
    name = scene.graph.record.ops[index].module
    made = dict(scene.module.named_modules()).get(name) if scene.module is not None else None
    if (
        made is not None
        and not any(True for _ in made.children())
        and name
        and len(list(made.parameters(recurse=False))) <= 2
    ):
        name = name.rpartition(".")[0]
    return f"{name}." if name else ""


def _bent(scene: Scene, parts: dict[str, Heads]) -> Iterator[Fault]:
    core = scene.core
    for letter, operand in (("q", core.q), ("k", core.k), ("v", core.v)):
        index = activated(scene.graph, core, operand, parts[letter])
        if index is not None and not re.search(ACTIVATED, scene.source, re.IGNORECASE):
            name = scene.graph.record.ops[index].name
            yield fault("projection.activation", say("formula.bent", letter=letter, name=name), _line(scene, index))
            break
    for letter, operand in (("q", core.q), ("k", core.k), ("v", core.v)):
        read = sliced(operand, scene.x) or _based(scene, parts[letter])
        heads = parts[letter].number * scene.heads
        if read is not None and heads > 1 and parts[letter].sources:
            text = say("formula.sliced", letter=letter, read=read, width=scene.width)
            yield fault("heads.input-sliced", text, _line(scene, parts[letter].sources[0]))
            break


def _based(scene: Scene, heads: Heads) -> int | None:
    """The width of what a projection is given, where that is a slice of something of the whole width."""
    for index in heads.sources[:1]:
        given = scene.graph.fed_by(index)
        base = given._base
        size = given.shape[-1]
        if base is not None and base.shape[-1] == scene.width > size and scene.width % size == 0:
            return size
    return None


def _merge(scene: Scene, parts: dict[str, Heads]) -> Iterator[Fault]:
    graph, core = scene.graph, scene.core
    outputs = [t for t in (graph.record.result,) if isinstance(t, Tensor)] if scene.whole else []
    result = outputs[0] if outputs else None
    outward, row, count = merged(graph, core, result)
    heads = max(parts["q"].number, scene.heads)
    if row is not None and heads > 1:
        where = _line(scene, outward) if outward >= 0 else _line(scene, core.end)
        yield fault("heads.merge-without-transpose", say("formula.merge", row=row), where)
    del count
    alone = outward < 0 and scene.whole and not wrapped(scene.module)
    if (alone or _added_first(scene, outward, parts["q"])) and heads > 1 and parts["v"].sources:
        yield fault("projection.output-missing", say("formula.unmixed", heads=heads), _line(scene, core.end))


def _added_first(scene: Scene, outward: int, queries: Heads) -> bool:
    """Whether the heads are added to the stream from which their queries come before any projection."""
    graph, core = scene.graph, scene.core
    # Queries that are added to what they found are no stream.
    made = [graph.projected(index) for index in queries.sources]
    end = outward if outward >= 0 else len(graph.record.ops)
    for op in graph.record.ops[core.end + 1 : end]:
        given = [t for t in graph.arguments(op) if t.is_floating_point() and t.dim() >= 2]
        if (
            op.name not in ("add", "add_", "__add__", "__radd__", "__iadd__")
            or len(given) != 2
            or given[0].shape != given[1].shape
        ):
            continue
        links = [any(linked_to(t, list(scene.others))) for t in given]
        if links.count(True) == 1:
            stream = given[links.index(False)]
            if (
                stream.requires_grad
                and not any(linked_to(stream, made))
                and any(linked_to(core.q, [stream]))
                and any(linked_to(given[links.index(True)], [core.context]))
            ):
                return True
    return False


def _narrow(scene: Scene) -> Iterator[Fault]:
    """Scores or weights in 16 bits inside a run that is wider."""
    core = scene.core
    wide = (
        scene.x.dtype
        if scene.x.is_floating_point()
        else next((t.dtype for t in scene.others if t.dtype not in NARROW), None)
    )
    made = scene.graph.result(core.middle)
    kinds = [core.q.dtype, core.k.dtype, *(t.dtype for t in (core.scores, made) if t is not None)]
    small = [kind for kind in kinds if kind in NARROW]
    if small and wide not in (None, *NARROW):
        text = say("formula.narrow", kind=str(small[0]).removeprefix("torch."))
        yield fault("score.precision", text, _line(scene, core.middle))

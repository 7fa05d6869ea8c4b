"""The first of a series of parts that grow: a choice among what came before is no choice where one thing came before."""

from __future__ import annotations

from collections.abc import Collection

from torch import nn


def first_of_growing(module: nn.Module, name: str, reached: Collection[str]) -> bool:
    """Whether a parameter belongs to a part that has one thing to choose from, while its sisters choose among more and are trained.

    A softmax over one number is 1 whatever the weights are. So the whole part gets no gradient where a model mixes the states of all layers before,
    of which the first has one. A softmax over one number that is a mistake shows in all parts of that class.

    Args:
        module: the code.
        name: of the parameter without gradient.
        reached: the names of those with one.
    """
    steps = name.split(".")
    parts = dict(module.named_modules())
    for count in range(len(steps) - 1, 0, -1):
        path = ".".join(steps[:count])
        part = parts.get(path)
        if part is None or type(part).__module__.startswith("torch."):
            continue
        own = dict(part.named_parameters())
        if any(f"{path}.{inner}" in reached for inner in own):
            return False
        for other, sister in parts.items():
            if (
                type(sister) is type(part)
                and other != path
                and _grown(own, other, dict(sister.named_parameters()), reached)
            ):
                return True
    return False


def _grown(own: dict[str, nn.Parameter], path: str, theirs: dict[str, nn.Parameter], reached: Collection[str]) -> bool:
    """Whether a sister has the same parameters, longer along the axis of what it chooses from, and all are trained."""
    if own.keys() != theirs.keys() or any(f"{path}.{inner}" not in reached for inner in theirs):
        return False
    pairs = [(own[inner].shape, theirs[inner].shape) for inner in own]
    return any(a != b for a, b in pairs) and all(
        len(a) == len(b) and all(x <= y for x, y in zip(a, b, strict=True)) for a, b in pairs
    )

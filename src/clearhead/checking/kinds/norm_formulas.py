"""What a norm may compute, and what people write in its place: formulas on (B,T,D), before weights.

Weights and biases need not be known: for each formula n the best y_j = γ_j n_j + β_j of every feature j is found over many
rows, and what is left tells whether the formula is the one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor


class Fit(NamedTuple):
    """A formula held against the output.

    Args:
        name: of the formula, as it is written.
        gamma: (D).
        beta: (D).
        left: the largest difference that is left, beside the size of the output.
    """

    name: str
    gamma: Tensor
    beta: Tensor
    left: float


LAYER, RMS = "(x - mean) / sqrt(var)", "x / sqrt(mean(x²))"


def legal(x: Tensor) -> dict[str, Tensor]:
    """The norms over the features."""
    centred = x - x.mean(-1, keepdim=True)
    return {LAYER: centred / _std(x, -1), RMS: x / _root(x, -1)}


def others(x: Tensor) -> dict[str, Tensor]:
    """Norms that are legal under their own name."""
    absolute = x.abs().mean(-1, keepdim=True)
    found = {"x / mean(|x|)": x / absolute, "x / max(|x|)": x / x.abs().amax(-1, keepdim=True), "tanh(x)": x.tanh()}
    width = x.shape[-1]
    for groups in (2, 4, 8, 16):
        if width % groups == 0 and width > groups:
            parts = x.reshape(*x.shape[:-1], groups, width // groups)
            centred = parts - parts.mean(-1, keepdim=True)
            found[f"{groups} groups of (x - mean) / sqrt(var)"] = (centred / _std(parts, -1)).flatten(-2)
            found[f"{groups} groups of x / sqrt(mean(x²))"] = (parts / _root(parts, -1)).flatten(-2)
    return found


def faulty(x: Tensor) -> dict[str, Tensor]:
    """Formulas that are wrong whatever the norm is called."""
    mean = x.mean(-1, keepdim=True)
    centred, std, root = x - mean, _std(x, -1), _root(x, -1)
    deviation = centred.abs().mean(-1, keepdim=True)
    found = {
        "(x - mean) / var": centred / std**2,
        "x / mean(x²)": x / root**2,
        "(x - mean) * sqrt(var)": centred * std,
        "(x - mean) * var": centred * std**2,
        "x * sqrt(mean(x²))": x * root,
        "x * mean(x²)": x * root**2,
        "x / sqrt(var)": x / std,
        "x / var": x / std**2,
        "(x - mean) / sqrt(mean(x²))": centred / root,
        "(x - mean) / mean(x²)": centred / root**2,
        "(x + mean) / sqrt(var)": (x + mean) / std,
        "x / sqrt(var) - mean": x / std - mean,
        "(x - mean) / sqrt(sqrt(var))": centred / std.sqrt(),
        "x / sqrt(sqrt(mean(x²)))": x / root.sqrt(),
        "(x - mean) / var^1.5": centred / std**3,
        "(x - mean) / var²": centred / std**4,
        "x / mean(x²)^1.5": x / root**3,
        "x / mean(x²)²": x / root**4,
        "x / var^1.5": x / std**3,
        "x / var²": x / std**4,
        "x - mean": centred,
        "(x - mean) / mean(|x - mean|)": centred / deviation,
        "(x - mean) / (max - min)": centred / (x.amax(-1, keepdim=True) - x.amin(-1, keepdim=True)),
        "x / mean(x)": x / mean,
        "x / sqrt(|mean(x)|)": x / mean.abs().sqrt(),
        "x / sqrt(mean(|x|))": x / x.abs().mean(-1, keepdim=True).sqrt(),
        "x / mean(x)²": x / mean**2,
        "x": x,
    }  # fmt: skip
    for eps in (1e-5, 1e-6, 1e-8, 1e-3):
        found[f"(x - mean) * (1 / sqrt(var) + {eps:g})"] = centred * (1 / std + eps)
        found[f"x * (1 / sqrt(mean(x²)) + {eps:g})"] = x * (1 / root + eps)
    return found


AXES = {"tokens": (1,), "batch": (0,), "batch and tokens": (0, 1), "tokens and features": (1, 2), "all": (0, 1, 2)}


def other_axes(x: Tensor) -> dict[str, Tensor]:
    """The two norms with statistics over other axes, by the axes' names."""
    found = {}
    for name, axes in AXES.items():
        centred = x - x.mean(axes, keepdim=True)
        spread = centred.square().mean(axes, keepdim=True).sqrt()
        found[name] = centred / spread
        found[f"{name} "] = x / x.square().mean(axes, keepdim=True).sqrt()
        if axes != (2,):
            # Half right: one statistic over the features, the other not.
            found[f"{name}  "] = (x - x.mean(-1, keepdim=True)) / spread
            found[f"{name}   "] = centred / _std(x, -1)
    return found


def best(formulas: Mapping[str, Tensor], y: Tensor) -> Fit:
    """The formula that leaves least."""
    fits = [fitted(name, n, y) for name, n in formulas.items()]
    return min(fits, key=lambda fit: fit.left)


def fitted(name: str, n: Tensor, y: Tensor) -> Fit:
    """The best γ and β of a formula, feature by feature."""
    rows, wanted = n.flatten(0, -2).double(), y.flatten(0, -2).double()
    # Rows of every size count alike, also where a formula grows with its input.
    size = torch.maximum(wanted.abs().amax(-1, keepdim=True), torch.tensor(1e-100, dtype=torch.float64))
    weight = 1 / size
    share = weight**2 / (weight**2).sum()
    middle, target = (rows * share).sum(0), (wanted * share).sum(0)
    apart = rows - middle
    gamma = (apart * (wanted - target) * share).sum(0) / (apart**2 * share).sum(0)
    beta = target - gamma * middle
    left = ((rows * gamma + beta - wanted) * weight).abs().max()
    return Fit(name, gamma, beta, float(left) if bool(left.isfinite()) else float("inf"))


class Affine(NamedTuple):
    """How the weights enter: γ = constant · form(weight)."""

    form: str
    weight: str
    constant: float


FORMS = ("w", "1 + w", "2 + w", "(1 + w)²", "w²", "1 / w", "exp(w)", "softplus(w)", "sigmoid(w)")


def affine(gamma: Tensor, tensors: Mapping[str, Tensor], near: float = 1e-6) -> Affine | None:
    """The form of a weight that γ is, up to a constant; None if there is none. Constants that mean something come first.

    Any form of a single number is γ up to a constant, so there the constant must mean something.
    """
    width, found = gamma.numel(), []
    known = [1.0, *constants(width).values()]
    for name, tensor in tensors.items():
        if tensor.numel() not in (1, width):
            continue
        w = tensor.detach().double().flatten()
        values = (w, 1 + w, 2 + w, (1 + w) ** 2, w**2, 1 / w, w.exp(), torch.nn.functional.softplus(w), w.sigmoid())
        for form, value in zip(FORMS, values, strict=True):
            ratio = gamma / value
            if bool(ratio.isfinite().all()) and float(ratio.max() - ratio.min()) <= near * float(ratio.abs().max()):
                constant = float(ratio.mean())
                if w.numel() == width or any(abs(constant / each - 1) <= near for each in known):
                    found.append(Affine(form, name, constant))
    if float(gamma.max() - gamma.min()) <= near * float(gamma.abs().max()):
        found.append(Affine("", "", float(gamma.mean())))
    found.sort(key=lambda each: min(abs(each.constant / value - 1) for value in known) > near)
    return found[0] if found else None


def constants(width: int) -> dict[str, float]:
    """Constants by what brings them about."""
    return {"unbiased": ((width - 1) / width) ** 0.5, "sum": width**-0.5, "mean of the root": width**0.5}


def _std(x: Tensor, axis: int) -> Tensor:
    return (x - x.mean(axis, keepdim=True)).square().mean(axis, keepdim=True).sqrt()


def _root(x: Tensor, axis: int) -> Tensor:
    return x.square().mean(axis, keepdim=True).sqrt()

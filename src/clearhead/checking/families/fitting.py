"""Numbers that were changed, found from what they did: the eps of a norm, the angles of rotary positions."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.checking.common.trial import apart
from clearhead.models.choices import LayerNorm, Norm, Rotary, Unscaled

SPREAD = 0.02
"""How far apart the values of one eps may be that single positions give."""


def other_eps(norm: Norm, taken: Tensor, ours: Tensor, theirs: Tensor) -> float | None:
    """The ε with which a norm of these features gives theirs, to three digits; None if no ε does.

    Ours is y = γ x / √(v + ε) at each position, v the variance (or mean square) of x. If theirs is r · y there, its ε is
    (v + ε) / r² - v, and that is one number wherever it is taken from.

    Args:
        norm: ours.
        taken: what the norm takes, (B,T,D).
        ours: what ours gives, without what is added behind.
        theirs: what theirs gives, the same way.
    """
    squares = taken.var(dim=-1, correction=0) if isinstance(norm, LayerNorm) else taken.square().mean(dim=-1)
    ratio = (ours * theirs).sum(dim=-1) / ours.square().sum(dim=-1)
    found = ((squares + norm.eps) / ratio.square() - squares).flatten()
    usual = float(found.median())
    if not usual > 0 or float((found - usual).abs().median()) > SPREAD * usual:
        return None
    return float(f"{usual:.3g}")


def other_scale(products: Tensor, rest: Tensor, v: Tensor, theirs: Tensor, before: float) -> tuple[float, float] | None:
    """(s, what remains) with softmax(s · products + rest) v nearest to theirs; None if the nearest is at the end of what is tried.

    Args:
        products: q kᵀ, (B,H,T,S).
        rest: what is added to the scaled products: a bias, and -infinity for what is hidden.
        v: (B,H,S,d).
        theirs: (B,H,T,d).
        before: the scale of ours.
    """

    def gap(scale: float) -> float:
        return float(((scale * products + rest).softmax(dim=-1) @ v - theirs).square().sum())

    tried = [0.0, *(before * 2.0 ** (step / 4) for step in range(-40, 41))]
    best = min(range(len(tried)), key=lambda index: gap(tried[index]))
    if best == len(tried) - 1:
        return None
    low, high = tried[max(best - 1, 0)], tried[best + 1]
    for _ in range(90):
        third = (high - low) * 0.381966
        low, high = (low, high - third) if gap(low + third) < gap(high - third) else (low + third, high)
    scale = float(f"{(low + high) / 2:.6g}")
    scale = scale if gap(scale) <= 4 * gap((low + high) / 2) else (low + high) / 2
    return scale, apart((scale * products + rest).softmax(dim=-1) @ v, theirs)


def other_angles(rotary: Rotary, ours: Tensor, theirs: Tensor, allowed: float) -> tuple[str, float, Tensor] | None:
    """By which base, or by how many positions, theirs was turned otherwise; and ours turned so.

    A pair of features is one complex number; theirs is ours times e^{i·angle}, and the angle at position p is p·(f' - f) with another
    frequency f', or shift·f with other positions.

    Args:
        rotary: ours.
        ours: queries or keys, turned, (B,H,T,d).
        theirs: the same of theirs.
        allowed: what rounding explains.

    Returns:
        "base" or "offset", its value, and ours turned so; None if neither explains it.
    """
    turned = rotary.turned(ours.shape[-1])
    if not isinstance(rotary.scaling, Unscaled) or turned < 4:
        return None
    one, other = (_complex(each[..., :turned], interleaved=rotary.interleaved) for each in (ours, theirs))
    exponents = torch.arange(0, turned, 2, dtype=torch.float64) / turned
    frequencies = rotary.theta**-exponents
    positions = torch.arange(ours.shape[-2], dtype=torch.float64)
    angles = (other * one.conj()).flatten(0, 1).sum(dim=0).angle()
    wanted: list[tuple[str, float, Tensor]] = []
    # The second pair turns slowly enough for its angle at the first position to be the whole angle.
    second = float(frequencies[1] + angles[1, 1])
    base = second ** (-1 / float(exponents[1])) if second > 0 else 0.0
    for value in (float(f"{base:.4g}"), base) if base > 1 else ():
        wanted.append(("base", value, positions[:, None] * (value**-exponents - frequencies)))
    shift = round(float(angles[:, 0].median()))
    wanted.append(("offset", float(shift), shift * frequencies.expand(len(positions), -1)))
    for kind, value, turn in wanted:
        back = ours.clone()
        back[..., :turned] = _real(one * torch.polar(torch.ones_like(turn), turn), interleaved=rotary.interleaved)
        if apart(back, theirs) <= allowed:
            return kind, value, back
    return None


def _complex(x: Tensor, *, interleaved: bool) -> Tensor:
    first, second = (x[..., 0::2], x[..., 1::2]) if interleaved else x.chunk(2, dim=-1)
    return torch.complex(first.contiguous(), second.contiguous())


def _real(z: Tensor, *, interleaved: bool) -> Tensor:
    if interleaved:
        return torch.stack([z.real, z.imag], dim=-1).flatten(-2)
    return torch.cat([z.real, z.imag], dim=-1)

"""The optimisers, and which parameter goes to which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

import torch
from torch import Tensor, nn

from clearhead.layers.lora import LowRankLinear
from clearhead.messages import UserError, say
from clearhead.training.settings import OPTIMIZERS

__all__ = ["MOMENTUM", "OPTIMIZERS", "Role", "adamw", "optimizers", "roles"]

MOMENTUM = 0.95
"""Muon's decay of the running mean of gradients, its authors' own."""


class Role(Enum):
    """What a parameter is to an optimiser."""

    MATRIX = "matrix"
    """A linear layer's weight inside the blocks, or the two matrices of its change of low rank: from features to features."""
    TABLE = "table"
    """Anything else with two axes or more: rows that are looked up or compared one by one. Embeddings, heads, trained positions,
    segments, relative biases, and linear layers outside the blocks."""
    VECTOR = "vector"
    """One axis or none: weights and biases of norms, biases of layers, sinks. They do not decay."""


def roles(model: nn.Module) -> dict[str, Role]:
    """The role of each trained parameter, by its name in `model.named_parameters()`: tied ones once, frozen ones not at all.

    A weight that is used inside and outside the blocks is a table, as a head tied to the embedding is. A name is inside when one
    of its parts is `blocks`.
    """
    inside = {id(matrix) for name, module in model.named_modules() if _in_blocks(name) for matrix in _matrices(module)}
    every = model.named_parameters(remove_duplicate=False)
    hidden = inside - {id(parameter) for name, parameter in every if not _in_blocks(name)}
    return {
        name: Role.VECTOR if parameter.dim() < 2 else Role.MATRIX if id(parameter) in hidden else Role.TABLE
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }


def optimizers(
    named: Iterable[tuple[str, Tensor]],
    role_of: Mapping[str, Role],
    *,
    kind: str,
    lr: float,
    weight_decay: float = 0.1,
    betas: tuple[float, float] = (0.9, 0.99),
) -> list[torch.optim.Optimizer]:
    """What moves the parameters: each in exactly one group of one optimiser; one learning rate serves all.

    | kind    | matrices              | tables                | vectors         |
    |---------|-----------------------|-----------------------|-----------------|
    | `adamw` | AdamW, decay          | AdamW, decay          | AdamW, no decay |
    | `muon`  | Muon, decay           | AdamW, decay          | AdamW, no decay |

    Muon moves a matrix by an (almost) orthogonal one: the running mean of its gradients with all singular values near 1,
    times 0.2 √(the longer side), so that its entries move about as far as AdamW's would. It works on whole matrices, and
    the projection to q, k and v is one. Its steps are made in bfloat16; its momentum has the parameters' type.

    Args:
        named: the parameters, or copies of them under the same names (in float32, where the model has 16 bits).
        role_of: what `roles` says of these names.
        kind: `adamw` or `muon`.
        lr: the learning rate until a schedule sets another.
        weight_decay: λ; what decays shrinks by the factor 1 - lr·λ in each update.
        betas: of AdamW, the decay of the running mean of gradients and of their squares. Muon's momentum is 0.95.

    Raises:
        UserError: if there is no such kind, or nothing for Muon to move.
        ValueError: if `named` and `role_of` do not have the same names, each once.

    Source: Jordan 2024 (kellerjordan.github.io/posts/muon); Liu et al. 2025 §2.2 (arXiv:2502.16982) for the factor.
    """
    if kind not in OPTIMIZERS:
        raise UserError(say("training.setting", name="optimizer", value=kind, wanted=" | ".join(OPTIMIZERS)))
    named = list(named)
    _must_be_those(Counter(name for name, _ in named), role_of)
    of = {wanted: [parameter for name, parameter in named if role_of[name] is wanted] for wanted in Role}
    if kind == "adamw":
        decayed = [parameter for name, parameter in named if role_of[name] is not Role.VECTOR]
        return [_adamw(decayed, of[Role.VECTOR], lr, weight_decay, betas)]
    if not of[Role.MATRIX]:
        raise UserError(say("optimising.no_matrices"))
    # The factor is the one that lets Muon have AdamW's learning rate and decay.
    muon = torch.optim.Muon(
        of[Role.MATRIX], lr=lr, weight_decay=weight_decay, momentum=MOMENTUM, adjust_lr_fn="match_rms_adamw"
    )
    if not of[Role.TABLE] + of[Role.VECTOR]:
        return [muon]
    return [muon, _adamw(of[Role.TABLE], of[Role.VECTOR], lr, weight_decay, betas)]


def adamw(
    model: nn.Module, *, lr: float, weight_decay: float = 0.1, betas: tuple[float, float] = (0.9, 0.99)
) -> torch.optim.AdamW:
    """AdamW that decays matrices only: biases and norms, which have one axis, keep their values.

    Args:
        model: every trainable parameter goes into exactly one of the two groups.
        lr: the learning rate until a schedule sets another.
        weight_decay: λ; a matrix shrinks by the factor 1 - lr·λ in each update.
        betas: decay of the running mean of gradients and of their squares.

    Source: Loshchilov and Hutter 2019 (arXiv:1711.05101).
    """
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    vectors = [parameter for parameter in trained if parameter.dim() < 2]
    return _adamw([parameter for parameter in trained if parameter.dim() >= 2], vectors, lr, weight_decay, betas)


def _adamw(
    decayed: Sequence[Tensor], kept: Sequence[Tensor], lr: float, weight_decay: float, betas: tuple[float, float]
) -> torch.optim.AdamW:
    fused = all(parameter.device.type in ("cpu", "cuda", "mps") for parameter in (*decayed, *kept))
    groups = [{"params": list(decayed), "weight_decay": weight_decay}, {"params": list(kept), "weight_decay": 0.0}]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=lr, betas=betas, fused=fused)


def _must_be_those(found: Counter[str], wanted: Mapping[str, Role]) -> None:
    wrong = sorted({name for name, times in found.items() if times > 1} | (found.keys() ^ wanted.keys()))
    if wrong:
        raise ValueError(f"each parameter belongs to one group: {', '.join(wrong)} given twice, or on one side alone")


def _in_blocks(name: str) -> bool:
    return "blocks" in name.split(".")


def _matrices(module: nn.Module) -> list[Tensor]:
    """What of this part, not of the parts in it, takes features to features."""
    match module:
        case LowRankLinear():
            return [module.lora_a, module.lora_b]
        case nn.Linear():
            return [module.weight]
    return []

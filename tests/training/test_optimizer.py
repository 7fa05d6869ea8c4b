"""Which parameter goes to which optimiser, in every kind of model; what the optimisers then do."""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from clearhead.messages import UserError
from clearhead.models.adapt import adapt
from clearhead.models.build import build
from clearhead.models.choices import Parallel, Relative, RMSNorm, SwiGLU
from clearhead.models.config import DecoderConfig, ModelConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.models.low_rank import LowRank
from clearhead.models.presets import PRESETS
from clearhead.training.batches import Batch
from clearhead.training.losses import next_token
from clearhead.training.optimizer import OPTIMIZERS, Role, adamw, optimizers, roles
from tests.oracles.compare import assert_finite, assert_same, assert_within

Optimizers = list[torch.optim.Optimizer]
SIZES = {"layers": 2, "heads": 2, "width": 12, "context": 9}
SMALL = {"vocab": 13, "layers": 2, "heads": 8, "width": 32, "feedforward_width": 20, "context": 9}
BIASED = DecoderConfig(vocab=11, **SIZES, bias=True, qkv_bias=True, head_bias=True, sinks=True, qk_norm=True)
CONFIGS: dict[str, ModelConfig] = {
    **{name: replace(config, **SMALL) for name, config in PRESETS.items()},
    "untied": DecoderConfig(vocab=11, **SIZES, tied=False),
    "tied, biased": BIASED,
    "parallel": DecoderConfig(
        vocab=11, **SIZES, block=Parallel(shared=True), norm=RMSNorm(), activation=SwiGLU(), positions=Relative()
    ),
    "encoder": EncoderConfig(vocab=11, **SIZES, tied=False, segments=3),
    "two vocabularies": EncoderDecoderConfig(vocab=11, source_vocab=7, **SIZES),
}
# Written down once more, from the names: what takes features to features, and what is a table of rows.
MATRICES = r"((en|de)coder\.)?blocks\.\d+\.((cross_)?attention\.(qkv|output)|feedforward\.(gate|up|down))"
CHANGES = rf"{MATRICES}\.(weight|lora_[ab])"
TABLES = (
    r"((en|de)coder\.)?(embedding\.weight|head\.((transform|output)\.)?weight|(positions|segments|biases\.\d)\.table)"
)


def made(name: str, rank: int | None = None) -> nn.Module:
    model = build(CONFIGS[name], seed=0)
    if rank is not None:
        adapt(model, LowRank(rank))
    return model


def trained(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def check(model: nn.Module, kind: str, found: Optimizers) -> None:
    """Every trained parameter in one group of one optimiser; Muon has the matrices; all but vectors decay."""
    named = {id(parameter): name for name, parameter in trained(model).items()}
    places = Counter(id(p) for each in found for group in each.param_groups for p in group["params"])
    assert set(places) == set(named), "a parameter is missing, or is not trained"
    assert set(places.values()) == {1}, "a parameter is moved twice"
    for optimizer in found:
        for group in optimizer.param_groups:
            assert group["weight_decay"] in (0.3, 0.0)
            for parameter in group["params"]:
                name = named[id(parameter)]
                hidden = re.fullmatch(CHANGES, name) is not None
                assert (group["weight_decay"] == 0.3) == (hidden or re.fullmatch(TABLES, name) is not None), name
                assert isinstance(optimizer, torch.optim.Muon) == (kind == "muon" and hidden), name


def both(model: nn.Module, kind: str, role_of: dict[str, Role] | None = None) -> Optimizers:
    return optimizers(trained(model).items(), role_of or roles(model), kind=kind, lr=0.1, weight_decay=0.3)


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("name", CONFIGS)
def test_every_parameter_is_moved_once_in_the_right_way(name: str, kind: str) -> None:
    model = made(name)
    check(model, kind, both(model, kind))


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("name", ["untied", "tied, biased", "encoder", "two vocabularies"])
def test_of_a_change_of_low_rank_both_matrices_are_moved_and_nothing_else(name: str, kind: str) -> None:
    model = made(name, rank=3)
    found = roles(model)
    assert {each.rpartition(".")[2] for each in found} == {"lora_a", "lora_b"}
    assert set(found.values()) == {Role.MATRIX}
    check(model, kind, both(model, kind))


def test_roles_by_hand() -> None:
    found = roles(build(DecoderConfig(vocab=11, layers=1, heads=2, width=12, context=9, sinks=True, head_bias=True)))
    assert {name: role.value for name, role in found.items()} == {
        "embedding.weight": "table",
        "blocks.0.attention.qkv.weight": "matrix",
        "blocks.0.attention.output.weight": "matrix",
        "blocks.0.attention.attend.sinks": "vector",
        "blocks.0.feedforward.up.weight": "matrix",
        "blocks.0.feedforward.down.weight": "matrix",
        **{f"{name}.{part}": "vector" for name in NORMS for part in ("weight", "bias")},
        "head.bias": "vector",
        **({"positions.table": "table"} if "positions.table" in found else {}),
    }


NORMS = ("blocks.0.attention_norm", "blocks.0.feedforward_norm", "norm")

FAULTS: dict[str, tuple[str, Callable[[str, Role], Role]]] = {
    "a norm decays": ("adamw", lambda name, role: Role.TABLE if "norm" in name else role),
    "a bias decays": ("adamw", lambda name, role: Role.TABLE if name.endswith("bias") else role),
    "a matrix does not decay": ("adamw", lambda name, role: Role.VECTOR if "up" in name else role),
    "the embedding goes to Muon": ("muon", lambda name, role: Role.MATRIX if "embedding" in name else role),
    "the feed-forward does not": ("muon", lambda name, role: Role.TABLE if "feedforward" in name else role),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_parameter_with_a_wrong_role_is_caught(fault: str) -> None:
    kind, other = FAULTS[fault]
    model = build(BIASED, seed=0)
    wrong = {name: other(name, role) for name, role in roles(model).items()}
    found = optimizers(
        [(n, p) for n, p in trained(model).items() if wrong[n] is not Role.MATRIX or p.dim() == 2],
        {n: r for n, r in wrong.items() if r is not Role.MATRIX or model.get_parameter(n).dim() == 2},
        kind=kind,
        lr=0.1,
        weight_decay=0.3,
    )
    with pytest.raises(AssertionError):
        check(model, kind, found)


def test_a_parameter_twice_and_a_missing_one_are_caught() -> None:
    model = build(BIASED, seed=0)
    found = both(model, "muon")
    check(model, "muon", found)
    with pytest.raises(AssertionError, match="twice"):
        check(model, "muon", [*found, torch.optim.AdamW([model.norm.weight], weight_decay=0.0)])
    found[1].param_groups[0]["params"].pop()
    with pytest.raises(AssertionError, match="missing"):
        check(model, "muon", found)


@pytest.mark.parametrize("change", ["one missing", "one twice", "one more"])
def test_names_that_are_not_those_of_the_roles_are_an_error(change: str) -> None:
    model = build(BIASED, seed=0)
    named = list(trained(model).items())
    given = {"one missing": named[:-1], "one twice": [*named, named[2]], "one more": [*named, ("mine", named[0][1])]}
    with pytest.raises(ValueError, match="belongs to one group"):
        optimizers(given[change], roles(model), kind="adamw", lr=0.1)


def test_what_cannot_be_had_is_said_in_one_line() -> None:
    with pytest.raises(UserError, match=r"adamw \| muon"):
        both(build(BIASED, seed=0), "sgd")
    with pytest.raises(UserError, match="blocks"):
        both(nn.Linear(3, 2), "muon")


# What they do


def old(model: nn.Module, lr: float, weight_decay: float) -> torch.optim.AdamW:
    """The groups that runs had before there were roles."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.99), fused=True)


def updated(model: nn.Module, found: Optimizers, updates: int, *, lr: float | None = None) -> list[float]:
    """The losses of a few updates on one batch."""
    ids = torch.randint(11, (3, 8), generator=torch.Generator().manual_seed(1))
    losses = []
    for _ in range(updates):
        total, count = next_token(model, Batch(ids[:, :-1], ids[:, 1:]))
        model.zero_grad()
        (total / count).backward()
        for optimizer in found:
            for group in optimizer.param_groups:
                group["lr"] = lr or group["lr"]
            optimizer.step()
        losses.append((total / count).item())
    return losses


def test_adamw_moves_every_number_as_it_did_for_older_runs() -> None:
    models = [build(BIASED, seed=0) for _ in range(3)]
    found = [old(models[0], 0.01, 0.3), adamw(models[1], lr=0.01, weight_decay=0.3)]
    found += optimizers(models[2].named_parameters(), roles(models[2]), kind="adamw", lr=0.01, weight_decay=0.3)
    for model, optimizer in zip(models, found, strict=True):
        updated(model, [optimizer], 4)
    for state in (each.state_dict() for each in found[1:]):
        assert state["param_groups"] == found[0].state_dict()["param_groups"]
        for index, means in found[0].state_dict()["state"].items():
            assert all(torch.equal(means[key], state["state"][index][key]) for key in means)
    for first, *others in zip(*(model.parameters() for model in models), strict=True):
        assert all(torch.equal(first, other) for other in others)


def moved(shape: tuple[int, int], gradient: Tensor, *, decay: float = 0.0) -> tuple[Tensor, Tensor]:
    """A matrix of a block before and after Muon's first update with lr 0.5."""
    model = nn.ModuleDict({"blocks": nn.Linear(shape[1], shape[0], bias=False)})
    parameter = model["blocks"].weight
    before = parameter.detach().clone()
    parameter.grad = gradient
    optimizers(model.named_parameters(), roles(model), kind="muon", lr=0.5, weight_decay=decay)[0].step()
    return before, parameter.detach()


@pytest.mark.parametrize("shape", [(24, 10), (10, 24)], ids=str)
def test_muon_moves_a_matrix_by_one_that_is_almost_orthogonal(shape: tuple[int, int]) -> None:
    """The update is lr · 0.2 √24 · U S Vᵀ with S near 1, whatever the singular values of the gradient are."""
    gradient = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    before, after = moved(shape, gradient.clone())
    update = (before - after) / (0.5 * 0.2 * 24**0.5)
    singular = torch.linalg.svdvals(update)
    assert 0.6 < singular.min() <= singular.max() < 1.3
    assert torch.linalg.svdvals(gradient).max() > 4
    u, _, v = torch.linalg.svd(gradient, full_matrices=False)
    assert nn.functional.cosine_similarity(update.flatten(), (u @ v).flatten(), dim=0) > 0.97


def test_muon_decays_by_the_learning_rate_alone() -> None:
    before, after = moved((6, 4), torch.zeros(6, 4), decay=0.2)
    assert_within(after, before * 0.9, 1e-6)


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_it_learns_and_its_state_goes_on_where_it_was(kind: str) -> None:
    model = build(BIASED, seed=0)
    found = both(model, kind)
    losses = updated(model, found, 40, lr=0.01)
    assert losses[-1] < 0.5 * losses[0]
    twin = copy.deepcopy(model)
    again = both(twin, kind)
    for each, other in zip(found, again, strict=True):
        other.load_state_dict(copy.deepcopy(each.state_dict()))
    assert updated(model, found, 3) == updated(twin, again, 3)
    fresh = copy.deepcopy(model)
    assert updated(fresh, both(fresh, kind), 3, lr=0.01) != updated(model, found, 3)


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_copies_under_the_same_names_are_moved_in_place_of_the_parameters(kind: str) -> None:
    model = build(BIASED, seed=0).bfloat16()
    masters = {name: parameter.detach().float().requires_grad_() for name, parameter in trained(model).items()}
    before = copy.deepcopy(masters)
    for master in masters.values():
        master.grad = torch.randn_like(master)
    for optimizer in optimizers(masters.items(), roles(model), kind=kind, lr=0.01):
        optimizer.step()
    for name, master in masters.items():
        assert_finite(master)
        assert not torch.equal(master, before[name]), name
        assert_same(model.get_parameter(name).detach().float(), before[name].detach())

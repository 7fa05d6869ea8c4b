"""Modules of the first set, opened without a kind, and what of them is asked."""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import Tensor

from bench.checking.case import Case as Planted
from clearhead.checking.case import Case, Inputs
from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.sequence import open_sequence
from clearhead.checking.settings import Settings
from clearhead.checking.target import Target, target_of

VOCAB = 61


def planted(file: str) -> list[Planted]:
    """The cases of one file of the first set."""
    found: list[Planted] = importlib.import_module(f"bench.checking.first.{file}").CASES
    return found


def target(file: str, name: str) -> Target:
    """One module of the first set."""
    return target_of(getattr(importlib.import_module(f"bench.checking.first.{file}"), name), name, Settings())


def opened(file: str, planted_case: Planted) -> Case:
    """The module with a way to run it."""
    made = target(file, planted_case.name)
    return of_ids(made) if planted_case.kind == "lm" else open_sequence(made, Settings()).case


def of_ids(made: Target) -> Case:
    """A language model with a way to run it."""

    def inputs(rows: int, length: int, seed: int, _: torch.dtype) -> Inputs:
        return (torch.randint(0, VOCAB, (rows, length), generator=torch.Generator().manual_seed(seed)),)

    def run(module: Any, given: Inputs) -> Tensor:
        found: Tensor = module(*given)
        return found

    return Case(made, inputs, run)


def case_of(found: Any, *, width: int = 16) -> Case:
    """Somebody's module or function of (B,T,D) with a way to run it."""

    def inputs(rows: int, length: int, seed: int, kind: torch.dtype) -> Inputs:
        drawn = torch.Generator().manual_seed(seed)
        return (torch.randn(rows, length, width, generator=drawn, dtype=torch.float64).to(kind),)

    def run(module: Any, given: Inputs) -> Tensor:
        result: Tensor = module(*given)
        return result

    return Case(target_of(found, "code", Settings()), inputs, run)


def names(found: Found) -> list[str]:
    """The faults, by name."""
    return [fault.id for fault in found.faults]


def verdict(found: Found, name: str) -> str:
    """What came out of one question."""
    return next(check.verdict for check in found.checks if check.id == name)


def once_each(file: str) -> list[Planted]:
    """The first module for each fault, and the first right one."""
    kept: dict[str | None, Planted] = {}
    for case in planted(file):
        kept.setdefault(case.fault, case)
    return list(kept.values())


def others(file: str) -> list[Planted]:
    """All the rest."""
    return [case for case in planted(file) if case not in once_each(file)]

"""Somebody's code as one of two that are compared: opened as `check` opens it, watched as it runs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from clearhead.checking.case import Case
from clearhead.checking.diff.forcing import Put, Putting
from clearhead.checking.diff.outputs import NoTensorError, beside, first_tensor
from clearhead.checking.diff.side import Given, Output, Walk
from clearhead.checking.diff.stages import CodeStage, Reader
from clearhead.checking.guess import guessed
from clearhead.checking.importing import raised_at
from clearhead.checking.kinds.kind import NoInterfaceError
from clearhead.checking.kinds.lm_calling import Given as Beside
from clearhead.checking.kinds.lm_calling import Output as Logits
from clearhead.checking.kinds.lm_case import LmCase, logits_of, raw
from clearhead.checking.kinds.table import KINDS
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt, Seeded
from clearhead.checking.target import Target
from clearhead.checking.watch import watched
from clearhead.messages import UserError, say

COMPARED = tuple(name for name in KINDS if name not in ("loss", "sampler"))
"""Kinds whose result is a tensor of positions."""


PAIR, DECODED = 2, "decoder_input_ids"
"""Of two inputs, the second goes by this name where there is a parameter of that name."""

LONG = 200
"""As much is told of what was tried."""


class Opened(NamedTuple):
    """A target with one way to call it.

    Args:
        kind: as what it was opened; "" if no kind fits.
        found: what the kind knows of it.
        case: one way to run it.
        tried: why no kind fits, as the first that was tried says it.
    """

    kind: str
    found: Any
    case: Case
    tried: str = ""


@dataclass(frozen=True)
class CodeSide:
    """A target as a side.

    Args:
        target: the code.
        opened: how it is called.
        given: weights in place of its own, by its own names; those that are not named stay.
        puts: tensors in place of what some of its operations give.
        seed: of what it draws in a forward.
    """

    target: Target
    opened: Opened
    given: Mapping[str, Tensor] | None = None
    puts: tuple[Put, ...] = ()
    seed: int = 0

    @property
    def name(self) -> str:
        """As the user called it."""
        return self.target.name

    @property
    def kind(self) -> str:
        """As what it was opened; "" if no kind fits."""
        return self.opened.kind

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """Its parameters and the buffers of its state dict by its own names, tied ones once."""
        made = self.module(None)
        if not isinstance(made, nn.Module):
            return {}
        own = dict(made.named_parameters())
        stored = made.state_dict()
        # The same storage in a state dict is the same tensor under a second name.
        seen = {each.data_ptr() for each in own.values()}
        return {name: each.detach() for name, each in own.items()} | {
            name: each for name, each in stored.items() if name not in own and each.data_ptr() not in seen
        }

    @property
    def vocab(self) -> int | None:
        """V; None where it takes no ids."""
        takes_ids = any(not each.is_floating_point() for each in self.drawn(1, 1 if self.limit is None else self.limit))
        return int(getattr(self.opened.found, "vocab", 0)) or None if takes_ids else None

    @property
    def limit(self) -> int | None:
        """The longest input, None if there is no limit below 64 or none is known."""
        found = self.opened.found
        limit = getattr(found, "fixed", None) or getattr(found, "limit", None)
        return int(limit) if limit else None

    def drawn(self, rows: int, length: int, seed: int = 0) -> tuple[Tensor, ...]:
        """Random inputs of that size; none where nothing is known of them."""
        return self.opened.case.inputs(rows, length, seed, torch.float64) if self.kind else ()

    def with_weights(self, tensors: Mapping[str, Tensor]) -> CodeSide:
        """The same code with these weights in place of its own, by its own names."""
        return replace(self, given={**(self.given or {}), **tensors})

    def module(self, dtype: torch.dtype | None) -> Any:
        """A fresh copy in evaluation mode; in its own type if None."""
        made = self.target.make()
        if not isinstance(made, nn.Module):
            return made
        own = {**dict(made.named_buffers()), **dict(made.named_parameters())}
        with torch.no_grad():
            for name, tensor in (self.given or {}).items():
                # In the type of what is given, so that float64 weights of the other side stay as they are.
                own[name].data = tensor.detach().clone()
        return made.to(dtype).eval() if dtype is not None else made.eval()

    def takes(self, given: Given) -> str:
        """Why it does not take these inputs, "" if it does.

        Raises:
            NoTensorError: if it does, and gives no tensor.
        """
        with Attempt() as attempt, torch.no_grad():
            self._result(self.module(self.opened.case.dtype), self._typed(given))
        if isinstance(attempt.error, NoTensorError):
            raise attempt.error
        return raised(attempt)

    def run(self, given: Given) -> Walk:
        """A forward, in evaluation mode and float64 (float32 where the code refuses that), watched.

        Raises:
            UserError: if it does not take the inputs.
        """
        fed, module = self._typed(given), self.module(self.opened.case.dtype)
        given_back: list[Any] = []
        if isinstance(module, nn.Module):
            module.register_forward_hook(lambda _module, _inputs, output: given_back.append(output))
        with Attempt() as attempt, torch.no_grad(), Seeded(self.seed):
            with Putting(self.puts) if self.puts else nullcontext():
                record = watched(
                    module if isinstance(module, nn.Module) else None, lambda: self._result(module, fed), live=True
                )
            whole = self._whole(fed)
            beside_it = beside(given_back[-1], record.result) if given_back else {}
        if attempt.error is None:
            reader = Reader(record, module if isinstance(module, nn.Module) else None, fed)
            with torch.no_grad():
                stages = reader.read()
            further = {name: Output(each, _ended(stages, each)) for name, each in beside_it.items()}
            ended = _ended(stages, record.result if whole is None else whole)
            return Walk(ended, reader.narrowest, further, last_only=whole is not None)
        if isinstance(attempt.error, NoTensorError):
            raise attempt.error
        raise UserError(say("diff.code_raises", name=self.name, reason=raised(attempt))) from attempt.error

    def _typed(self, given: Given) -> tuple[Tensor, ...]:
        kind = self.opened.case.dtype
        return tuple(
            each.to(kind, copy=True) if each.is_floating_point() else each.clone().contiguous() for each in given.inputs
        )

    def _result(self, module: Any, fed: tuple[Tensor, ...]) -> Tensor:
        """The result of one call; what a model gives of the last position alone is asked for once here."""
        case = self.opened.found
        if isinstance(case, LmCase) and case.last_only:
            found: Logits = raw(case, module, fed[0], Beside())
            return found.logits
        return self.opened.case.run(module, fed)

    def _whole(self, fed: tuple[Tensor, ...]) -> Tensor | None:
        """Logits of all positions of a model that gives those of the last alone; None for others."""
        case = self.opened.found
        if isinstance(case, LmCase) and case.last_only:
            return logits_of(case, self.module(case.case.dtype), fed[0])
        return None


def open_code(target: Target, settings: Settings) -> CodeSide:
    """A target as a side, called as the kind that fits it, else with the inputs as they are, by position.

    Args:
        target: the code.
        settings: what the user says of it: kind, sizes, `call`.

    Raises:
        UserError: if there is no such kind.
    """
    if settings.kind is not None and settings.kind not in COMPARED:
        raise UserError(say("check.no_kind", kind=settings.kind, known=", ".join(COMPARED)))
    tried = ""
    for name in [settings.kind] if settings.kind else guessed(target):
        if name not in COMPARED:
            continue
        with Attempt() as attempt:
            found = KINDS[name].open(target, settings)
            return CodeSide(target, Opened(name, found, found.case))
        known = isinstance(attempt.error, NoInterfaceError | UserError)
        tried = tried or (str(attempt.error)[:LONG] if known else raised(attempt))
    return CodeSide(target, Opened("", None, _plain(target, settings), tried))


def _plain(target: Target, settings: Settings) -> Case:
    """A case that gives the inputs by position and takes the first tensor of what comes back."""

    def run(module: Any, given: tuple[Tensor, ...]) -> Tensor:
        if settings.call is not None:
            result = settings.call(module, *given)
        elif len(given) == PAIR and DECODED in target.signature.parameters:
            # What stands second there is a mask.
            result = module(given[0], **{DECODED: given[1]})
        else:
            result = module(*given)
        return first_tensor(result, target.name)

    return Case(target, lambda *_: (), run)


def _ended(stages: tuple[CodeStage, ...], result: Tensor) -> tuple[CodeStage, ...]:
    """The stages up to that which is the result; the result itself at the end if it is only a view of one, or of several."""
    flat = result.flatten()
    for place in range(len(stages) - 1, -1, -1):
        value = stages[place].value
        if value.numel() == result.numel() and torch.equal(value.flatten(), flat):
            kept = stages[: place + 1]
            if value.shape == result.shape:
                return kept
            return (*kept, CodeStage("output", result.detach().clone(), stages[place].where, (), "output", (place,)))
    last = (len(stages) - 1,) if stages else ()
    where = stages[-1].where if stages else ""
    return (*stages, CodeStage("output", result.detach().clone(), where, (), "output", last))


def raised(attempt: Attempt) -> str:
    """What was raised, and the line of the author's code that did: "ValueError: no such head (att.py:8)"; "" if nothing was."""
    if attempt.error is None:
        return ""
    where = raised_at(attempt.error)
    return f"{attempt.reason} ({where})" if where else attempt.reason

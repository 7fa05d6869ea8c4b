"""How somebody's loss is called: which parameter is what, and which shapes it takes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from clearhead.checking.claims import size
from clearhead.checking.kinds.kind import NoInterfaceError
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt, Seeded
from clearhead.checking.target import Target

ROWS, LENGTH, VOCAB = 3, 8, 11
INSIDE = ("labels", "label", "input_ids", "ids", "tokens", "token_ids", "idx", "inputs", "text", "sequence", "seq")
OUTSIDE = (
    "targets", "target", "tgt", "y", "trg", "y_true", "truth", "gold", "shifted_labels", "shift_labels", "next_tokens", "next_ids",
    "target_ids", "next_token_ids", "ys", "true_ids",
)  # fmt: skip
LOGITS = ("logits", "lm_logits", "scores", "pred", "preds", "predictions", "outputs", "output", "y_pred", "y_hat", "x")
ROLES: dict[str, tuple[str, ...]] = {
    "mask": (
        "attention_mask", "mask", "loss_mask", "padding_mask", "pad_mask", "key_padding_mask", "weights", "loss_weights", "token_mask",
        "label_mask", "valid", "valid_mask", "target_mask", "attn_mask", "is_pad", "keep", "real",
    ),
    "pad": (
        "pad_id", "pad_token_id", "pad_idx", "padding_idx", "pad", "pad_token", "ignore_index", "ignore_id", "ignored", "ignore",
        "pad_index", "padding_id",
    ),
    "eos": ("eos_id", "eos_token_id", "eos", "eos_idx", "eos_token", "end_id", "eot_id", "eot"),
    "vocab": ("vocab_size", "vocab", "n_vocab", "num_classes", "V", "num_tokens", "n_classes", "C"),
    "smoothing": ("label_smoothing", "smoothing", "epsilon", "eps", "ls"),
    "lengths": ("lengths", "length", "seq_lens", "seq_lengths", "lens"),
}  # fmt: skip
"""What else a loss is told, and how people call it."""
AHEAD = (
    r"already (been )?shifted|shifted by the caller|by the caller|pre-?shifted|does not shift|not shifted (here|inside)"
)
UNCLEAR = r"mlm|masked[ _]l(anguage|m\b)|denois|classif|seq2seq|encoder.?decoder"
"""Losses whose labels are not those of the next token."""
HERE = r"shift(s|ed|ing)? (is done )?(inside|internally)|unshifted"

Loss = Callable[[Tensor, Tensor, Mapping[str, Any]], Tensor]


@dataclass(frozen=True)
class LossCase:
    """A loss with one way to call it.

    Args:
        target: the code under check.
        run: (logits (B,T,V), ids (B,T), options by role) -> the loss, a scalar.
        roles: what it can be told -> the name of the parameter.
        shift: how far the target of a position is ahead, by the names and words of the code; None if it does not say.
        named: the name of the parameter of the ids.
        flat: whether it takes logits (N,V) and ids (N) alone.
        vocab: V.
        dtype: the type of the logits.
    """

    target: Target
    run: Loss
    roles: Mapping[str, str]
    shift: int | None
    named: str
    flat: bool
    vocab: int
    dtype: torch.dtype


class Output(dict[str, Tensor]):
    """What a model gives, for a loss that takes that."""

    @property
    def logits(self) -> Tensor:
        """(B,T,V)."""
        return self["logits"]


def opened(target: Target, settings: Settings) -> LossCase:
    """The loss as it is called.

    Raises:
        NoInterfaceError: with what was tried.
    """
    called, signature = callable_of(target, settings)
    parameters = [p for p in signature.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if len(parameters) < 2:
        raise NoInterfaceError([f"{target.name}{signature}"])
    logits, ids = _first_two(parameters)
    vocab = size(target, settings, "vocab") or max(
        [VOCAB, *(each + 3 for each in constants(target).values() if each < 200_000)]
    )
    roles = {
        role: p.name
        for p in parameters
        for role, names in ROLES.items()
        if p.name in names and p.name not in (logits, ids)
    }
    empty = inspect.Parameter.empty
    needed = frozenset(role for role, name in roles.items() if signature.parameters[name].default is empty)
    tried = []
    for dtype in (torch.float64, torch.float32):
        for form in FORMS:
            run = partial(_run, called, form, _Names(logits, ids, roles, needed))
            drawn = torch.Generator().manual_seed(settings.seed)
            z = torch.randn(ROWS, LENGTH, vocab, generator=drawn, dtype=torch.float64).to(dtype)
            y = torch.randint(1, vocab, (ROWS, LENGTH), generator=drawn)
            with Attempt() as attempt:
                found = run(z, y, {})
                if bool(found.isfinite()):
                    flat = form == "flat"
                    return LossCase(target, run, roles, 0 if flat else claimed(target, ids), ids, flat, vocab, dtype)
            tried.append(f"{form}: {attempt.reason or 'not finite'}")
    raise NoInterfaceError(tried)


Called = Callable[[Mapping[str, Any]], Any]


def callable_of(target: Target, settings: Settings) -> tuple[Called, inspect.Signature]:
    """What is called with arguments by name, fresh each time, and its parameters: the code itself, or the user's way to call it."""

    def fresh() -> Any:
        made = target.make()
        if isinstance(made, nn.Module):
            made.eval()
        return made

    own = settings.call
    if own is None:
        return lambda given: fresh()(**given), target.signature
    signature = inspect.signature(own)
    parameters = list(signature.parameters.values())
    # The first is the code; the others are called as the user calls them.
    return lambda given: own(fresh(), **given), signature.replace(parameters=parameters[1:])


def constants(target: Target, *, everywhere: bool = False) -> dict[str, int]:
    """Whole numbers that the code knows by a name with "pad" or "eos" in it: attributes, defaults, and names that it uses.

    Args:
        target: the code under check.
        everywhere: whether those of its file count that it does not use.
    """
    made, kind = target.make(), target.kind_of
    function = kind
    if isinstance(kind, type):
        function = vars(kind).get("forward", vars(kind).get("__call__"))
    code = getattr(function, "__code__", None)
    known: dict[str, Any] = {name: p.default for name, p in target.signature.parameters.items()}
    if code is not None:
        words = set(re.findall(r"\w+", target.source)) | set(code.co_names)
        known |= {name: value for name, value in function.__globals__.items() if everywhere or name in words}
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        known |= {name: cell.cell_contents for name, cell in cells}
    known |= getattr(made, "__dict__", {}) if not inspect.isfunction(made) else {}
    return {
        name: value
        for name, value in known.items()
        if isinstance(value, int)
        and not isinstance(value, bool)
        and value >= 0
        and re.search(r"pad|eos|eot|end_?(id|token|of)|^end$|ignore", name, re.I)
    }


def claimed(target: Target, name: str) -> int | None:
    """How far ahead a target is by the words of the code, and otherwise by the name of the parameter."""
    words = target.source
    if re.search(AHEAD, words, re.IGNORECASE):
        return 0
    if re.search(HERE, words, re.IGNORECASE):
        return 1
    if re.search(UNCLEAR, words, re.IGNORECASE):
        return None
    return 1 if name in INSIDE else 0 if name in OUTSIDE else None


def _first_two(parameters: list[inspect.Parameter]) -> tuple[str, str]:
    """The names of the logits and of the ids; either may come first."""
    names = [p.name for p in parameters]
    ids = next((name for name in names[:3] if name in INSIDE + OUTSIDE and name not in LOGITS), None)
    logits = next((name for name in names[:3] if name in LOGITS and name != ids), None)
    rest = [name for name in names if name not in (ids, logits)]
    if logits is None:
        logits = rest.pop(0)
    return logits, ids or rest[0]


FORMS = ("rows", "flat", "channels", "object")


class _Names(NamedTuple):
    """What the parameters are called."""

    logits: str
    ids: str
    roles: Mapping[str, str]
    needed: frozenset[str]
    """Roles that have no default."""


def _run(called: Called, form: str, names: _Names, logits: Tensor, ids: Tensor, options: Mapping[str, Any]) -> Tensor:  # noqa: PLR0917 - three are bound before
    """The loss of logits (B,T,V) and ids (B,T)."""
    given: dict[str, Any] = {names.roles[role]: value for role, value in options.items() if role in names.roles}
    rows, length, vocab = logits.shape
    usual = {
        "mask": torch.zeros_like(ids) if re.search("pad", names.roles.get("mask", "")) else torch.ones_like(ids),
        "pad": -100,
        "eos": vocab + 7,
        "vocab": vocab,
        "smoothing": 0.0,
        "lengths": torch.full((rows,), length),
    }
    given = {names.roles[role]: usual[role] for role in names.needed} | given
    z: Any = logits.clone()
    y = ids.clone()
    if form == "flat":
        z, y = logits.reshape(-1, vocab).clone(), ids.reshape(-1).clone()
        given = {name: _flat(value) for name, value in given.items()}
    elif form == "channels":
        z = logits.transpose(1, 2).clone()
    elif form == "object":
        z = Output(logits=z)
    with Seeded():
        return scalar(called({names.logits: z, names.ids: y} | given))


def _flat(value: Any) -> Any:
    return value.reshape(-1) if isinstance(value, Tensor) and value.dim() == 2 else value


def scalar(result: Any) -> Tensor:
    """The loss in what was returned: a scalar, the first of a tuple, `.loss`, or the sum of losses that come one by one.

    Raises:
        TypeError: if there is none.
    """
    if isinstance(result, float):
        return torch.tensor(result, dtype=torch.float64)
    if isinstance(result, Mapping):
        result = result["loss"] if "loss" in result else tuple(result.values())
    if isinstance(result, tuple | list):
        result = next((each for each in result if isinstance(each, float | Tensor)), None)
        return scalar(result)
    result = getattr(result, "loss", result)
    if not isinstance(result, Tensor) or not result.is_floating_point():
        raise TypeError(f"{type(result).__name__} is no loss")
    return result if result.dim() == 0 else result.sum()

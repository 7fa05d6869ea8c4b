"""How somebody's sampler is called: where its settings are, which shapes it takes, and what it gives."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from clearhead.checking.claims import stated
from clearhead.checking.constructing import CONFIGS
from clearhead.checking.kinds.kind import NoInterfaceError
from clearhead.checking.kinds.sampler_result import Result, read
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.checking.target import Target

CHANCES = (0.11, 0.34, 0.05, 0.24, 0.03, 0.16, 0.07)
"""P (V): no two alike, not in order, the sums of the best far from every p that is asked."""
SHIFT = 2.3
"""Added to ln P, so that some logits are above 0 and some below."""
LOGITS = (
    "logits", "scores", "next_token_logits", "next_logits", "logit", "lm_logits", "z", "log_probs", "logprobs", "last_logits", "x",
)  # fmt: skip
PROBABILITIES = ("probs", "probabilities", "prob", "dist", "distribution", "chances", "p_dist", "token_probs")
ROLES: dict[str, tuple[str, ...]] = {
    "temperature": ("temperature", "temp", "tau", "t", "T"),
    "top_k": ("top_k", "k", "topk", "top_n", "n_best", "K"),
    "top_p": ("top_p", "p", "topp", "nucleus", "nucleus_p", "top_p_threshold", "threshold", "cutoff", "mass", "cum_p"),
    "min_p": ("min_p", "minp", "p_min", "min_prob", "p_base"),
    "penalty": ("repetition_penalty", "penalty", "rep_penalty", "rp", "alpha", "theta", "repeat_penalty", "rep_pen"),
    "generated": (
        "generated", "generated_ids", "generated_tokens", "prev_tokens", "previous", "previous_tokens", "previous_ids", "prev_ids", "seen",
        "seen_tokens", "seen_ids", "history", "past", "past_tokens", "context", "input_ids", "tokens", "ids", "prev", "token_ids",
        "output_ids", "sequence", "sequences", "so_far", "prev_output_tokens", "idx",
    ),
    "seed": ("seed",),
    "number": ("num_samples", "n_samples", "num_draws"),
    "sample": ("do_sample", "sample", "sampling", "stochastic"),
    "greedy": ("greedy", "deterministic", "argmax"),
    "filler": ("filter_value", "fill_value", "fill"),
    "keep": ("min_tokens_to_keep", "min_keep", "min_tokens"),
}  # fmt: skip
FEATURES = ("temperature", "top_k", "top_p", "min_p", "penalty")
WORDS = {
    "temperature": r"temperature|temper", "top_k": r"top_?k", "top_p": r"top_?p|nucleus", "min_p": r"min_?p", "penalty": r"penalt|repeti",
}  # fmt: skip
FILLING = (
    r"sampl(er|ing|ed|es|e)|filter(ed|ing)?|warp(er)?|draw(n|ing)?|decod(er|ing|ed|e)|process(or)?|logits?|search|choose|pick|select(ed)?|truncat(e|ed|ion)|"
    r"generat(e|ion)|next|tokens?|apply|with|from|the|by|only|only_best|simple|my|fn|func(tion)?|step|strategy|probs?|mask|scaled?|scaling|"
    r"transform|keep|layer|module|batch(ed)?|torch|lm|for|and|of|get|do|run|make|_"
)
"""What stands beside a feature in the name of a function that is for it."""
HISTORY = (4, 0, 4)
"""What has been generated, where it does not matter."""


class Place(NamedTuple):
    """Where a setting is: a parameter of the call, or an attribute; and what it is if nobody says anything."""

    name: str
    attribute: bool
    value: Any


@dataclass(frozen=True)
class SamplerCase:
    """A sampler with one way to call it.

    Args:
        target: the code under check.
        places: role -> where that setting is.
        logits: the name of the parameter of the logits.
        chances: whether it takes probabilities in place of logits.
        form: "rows" (B,V), "steps" (B,1,V), "one" (1,V) or "vector" (V).
        call: the user's own way to run it.
        dtype: the type of the logits.
        gives: "ids", "logits" or "chances".
        slow: whether it takes its time for a row.
        twice: whether it takes a softmax of probabilities though nothing was asked of it.
    """

    target: Target
    places: Mapping[str, Place]
    logits: str
    chances: bool
    form: str
    call: Callable[..., Any] | None
    dtype: torch.dtype = torch.float64
    gives: str = "ids"
    slow: bool = False
    twice: bool = False

    @property
    def feature(self) -> str | None:
        """The one feature that it is for, by its name or because it has no other."""
        name = re.sub(r"[^a-z_]", "", str(getattr(self.target.kind_of, "__name__", "")).lower())
        named = [feature for feature, words in WORDS.items() if re.search(words, name)]
        has = [feature for feature in FEATURES if feature in self.places]
        return named[0] if len(named) == 1 else has[0] if len(has) == 1 and not named else None

    @property
    def named_for(self) -> frozenset[str]:
        """The features that its name is of, if it is of nothing else: "top_k_sample", "TopKWarper"; not "sample", nor "careful_top_k"."""
        rest = re.sub(r"[^a-z_]", "", str(getattr(self.target.kind_of, "__name__", "")).lower())
        named = frozenset(feature for feature, words in WORDS.items() if re.search(words, rest))
        for words in (*WORDS.values(), FILLING):
            rest = re.sub(words, "_", rest)
        return named if not rest.strip("_") else frozenset()

    def run(self, logits: Tensor, options: Mapping[str, Any] | None = None, *, defaults: bool = False) -> Result:
        """What it gives for logits (N,V).

        Args:
            logits: ln P, or anything; where it takes probabilities their softmax is given.
            options: settings by role.
            defaults: whether settings that are not given stay as their author left them; otherwise they do nothing.
        """
        given, made = self._settings(logits, options or {}, defaults=defaults)
        first = logits.softmax(-1) if self.chances else logits
        shaped = {"rows": first, "one": first, "steps": first.unsqueeze(1), "vector": first[0]}[self.form]
        given[self.logits] = shaped.to(self.dtype).clone()
        result = self.call(made, **given) if self.call is not None else callable_of(made)(**given)
        return read(result, *logits.shape)

    def _settings(self, logits: Tensor, options: Mapping[str, Any], *, defaults: bool) -> tuple[dict[str, Any], Any]:
        made, given = self.target.make(), {}
        if isinstance(made, nn.Module):
            made.eval()
        for role, place in self.places.items():
            wanted = place.value is inspect.Parameter.empty or (not defaults and not neutral(role, place.value))
            if role not in options and not wanted:
                continue
            value = options.get(role, _usual(role, len(logits), logits.shape[1], self.form))
            if place.attribute:
                _set(made, place.name, value)
            else:
                given[place.name] = value
        return given, made


def callable_of(made: Any) -> Callable[..., Any]:
    """What is called: the object itself, or the method that samples."""
    if callable(made):
        return made  # type: ignore[no-any-return]
    found = next(
        (getattr(made, name) for name in ("sample", "filter", "process", "step", "apply") if hasattr(made, name)), None
    )
    if found is None:
        raise NoInterfaceError([f"{type(made).__name__}: no __call__, no sample"])
    return found  # type: ignore[no-any-return]


def neutral(role: str, value: Any) -> bool:
    """Whether a setting does nothing."""
    if role in ("temperature", "penalty"):
        return value is None or value == 1
    if role == "top_k":
        return value is None or value <= 0
    if role == "top_p":
        return value is None or value >= 1 or value == 0
    if role == "min_p":
        return value is None or value == 0
    return not ((role == "sample" and value is False) or (role == "greedy" and value is True))


def _usual(role: str, rows: int, vocab: int, form: str) -> Any:
    """A value that does nothing."""
    history = torch.tensor(HISTORY)
    return {
        "temperature": 1.0, "top_k": vocab, "top_p": 1.0, "min_p": 0.0, "penalty": 1.0, "seed": 0, "number": 1, "sample": True,
        "greedy": False, "filler": -torch.inf, "keep": 1, "generated": history if form == "vector" else history.expand(rows, -1).clone(),
    }[role]  # fmt: skip


def _set(made: Any, name: str, value: Any) -> None:
    places = [made, *(getattr(made, each, None) for each in CONFIGS)]
    for place in places:
        if place is not None and hasattr(place, name):
            with Attempt():
                setattr(place, name, value)
            return


def opened(target: Target, settings: Settings) -> SamplerCase:
    """The sampler as it is called.

    Raises:
        NoInterfaceError: with what was tried.
    """
    parameters = _parameters(target, settings)
    if not parameters:
        raise NoInterfaceError([f"{target.name}()"])
    places, logits = _places(target, parameters)
    words = str(getattr(target.kind_of, "__name__", ""))
    named = logits in PROBABILITIES
    z = log_chances().unsqueeze(0)
    tried = []
    for dtype in (torch.float64, torch.float32):
        for chances in (named, not named):
            several: list[SamplerCase] = []
            for form, rows in (("rows", 3), ("steps", 3), ("vector", 1), ("one", 1)):
                case = SamplerCase(target, places, logits, chances, form, settings.call, dtype)
                with Attempt() as attempt:
                    found = case.run(z.expand(rows, -1))
                    gives = "ids" if found.ids is not None else "chances" if found.sums_to_one else "logits"
                    several.append(replace(case, gives=gives))
                if attempt.error is not None:
                    tried.append(f"{words} {form}: {attempt.reason}")
                elif rows > 1:
                    return several[0]
            if several:
                # One text may be a vector or a batch of one: what every setting can be asked in.
                return max(several, key=_askable)
    raise NoInterfaceError(tried[:4])


def _askable(case: SamplerCase) -> int:
    """How many of the settings can be given without an error."""
    number = 0
    for role, value in (("temperature", 0.7), ("top_k", 3), ("top_p", 0.8), ("min_p", 0.1), ("penalty", 1.3)):
        with Attempt():
            case.run(log_chances().unsqueeze(0), {role: value} if role in case.places else {})
            number += 1
    return number


def log_chances() -> Tensor:
    """Logits (V) of `CHANCES`."""
    return torch.tensor(CHANCES, dtype=torch.float64).log() + SHIFT


def _parameters(target: Target, settings: Settings) -> list[inspect.Parameter]:
    if settings.call is not None:
        found = list(inspect.signature(settings.call).parameters.values())[1:]
    elif isinstance(target.kind_of, type) and not callable(made := target.make()):
        found = list(inspect.signature(callable_of(made)).parameters.values())
    else:
        found = list(target.signature.parameters.values())
    return [p for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _places(target: Target, parameters: list[inspect.Parameter]) -> tuple[dict[str, Place], str]:
    """Where the settings are, and the name of the logits."""
    names = [p.name for p in parameters]
    logits = next((name for name in names if name in LOGITS + PROBABILITIES), None)
    roles = {name: role for role, every in ROLES.items() for name in every}
    logits = logits or next((name for name in names if name not in roles), names[0])
    words = str(getattr(target.kind_of, "__name__", "")).lower()
    places: dict[str, Place] = {}
    for parameter in (p for p in parameters if p.name != logits):
        role = _role(parameter.name, roles, words)
        if role is not None:
            places.setdefault(role, Place(parameter.name, False, parameter.default))
    for role in FEATURES if isinstance(target.kind_of, type) else ():
        # A parameter decides where there is one; "p" is that of the class's own name.
        for name in () if role in places else (*ROLES[role], "p", "threshold", "alpha"):
            value = stated(target, name)
            if isinstance(value, int | float) and not isinstance(value, bool) and _role(name, roles, words) == role:
                places[role] = Place(name, True, value)
                break
    return places, logits


def _role(name: str, roles: Mapping[str, str], words: str) -> str | None:
    """What a parameter is; "p" and "threshold" are those of the function's own name."""
    if name in ("p", "threshold", "cutoff", "alpha") and re.search(WORDS["min_p"], words):
        return "min_p"
    return roles.get(name)

"""What choices of a configuration are called in a sentence."""

from __future__ import annotations

from collections.abc import Callable

from clearhead.messages import say
from clearhead.models import choices

PLAIN: dict[type, str] = {
    choices.GELU: "GELU (erf)",
    choices.GELUTanh: "GELU (tanh)",
    choices.GEGLU: "GEGLU (erf)",
    choices.GEGLUTanh: "GEGLU (tanh)",
    choices.ReLUSquared: "ReLU²",
}
"""Names that are the same in every language."""

TOLD: dict[type, Callable[[], str]] = {
    choices.NoPositions: lambda: say("variations.word.identity"),
    choices.Learned: lambda: say("choices.learned"),
    choices.Sinusoidal: lambda: say("choices.sinusoidal"),
    choices.Rotary: lambda: say("choices.rotary"),
    choices.PreNorm: lambda: say("choices.pre_norm"),
    choices.PostNorm: lambda: say("choices.post_norm"),
    choices.AroundNorm: lambda: say("choices.around_norm"),
}


def called(choice: object) -> str:
    """A choice in words: "GELU (tanh)", "post-norm", "learned"; its own name where that is a word of the field."""
    if isinstance(choice, choices.Parallel):
        return say("choices.parallel_shared") if choice.shared else say("choices.parallel")
    if type(choice) in PLAIN:
        return PLAIN[type(choice)]
    told = TOLD.get(type(choice))
    return type(choice).__name__ if told is None else told()

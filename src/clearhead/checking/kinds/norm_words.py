"""What code says of itself in words: docstrings and comments, without its statements."""

from __future__ import annotations

import inspect
import re

from clearhead.checking.strangers import Attempt
from clearhead.checking.target import Target

NOT_PER_ROW = (
    r"batch|instance|group|sync|spatial|\bbn\b|global.?response|\bGRN\b|channel.?norm|RevIN|weight.?norm|spectral"
)
MEANT_ZERO = r"zero.?init|init\w* (at|to|with|as) (zero|0)|zero.?(gamma|scale)|starts? (at|as|from) (zero|0)"


def class_name(target: Target) -> str:
    """The name of the class or function."""
    return str(getattr(target.kind_of, "__name__", ""))


def words(target: Target) -> str:
    """The name, the docstrings and the comments of the code: what it says, not what it does."""
    source = target.source
    texts = re.findall(r'"""(.*?)"""', source, re.DOTALL) + re.findall(r"'''(.*?)'''", source, re.DOTALL)
    comments = re.findall(r"#([^\n]*)", source)
    own = inspect.getdoc(target.kind_of) or "" if not texts else ""
    return "\n".join([class_name(target), *texts, *comments, own])


def with_helpers(target: Target) -> str:
    """The source of the code and of what it calls in its own file, two calls deep."""
    text, home = target.source, inspect.getmodule(target.kind_of)
    for _ in range(2):
        called = [
            value
            for name, value in vars(home).items()
            if (inspect.isfunction(value) or isinstance(value, type))
            and value.__module__ == getattr(home, "__name__", "")
            and re.search(rf"\b{name}\(", text)
        ] if home is not None else []  # fmt: skip
        for each in called:
            with Attempt():
                source = inspect.getsource(each)
                text += "" if source in text else f"\n{source}"
    return text


def claims_layer(target: Target) -> bool:
    """Whether it calls itself layer normalisation, mean taken off; T5's "layer norm" without a mean is none."""
    name = class_name(target)
    if re.search(r"rms|scale_?norm|l2|t5", name, re.IGNORECASE):
        return False
    if re.search(
        r"rms|root.?mean.?square|t5|no (subtraction|mean)|without (the )?(mean|cent)|un.?cent|mean.?free",
        words(target),
        re.IGNORECASE,
    ):
        return False
    return re.search(r"layer.?norm|^LN|LN$", name, re.IGNORECASE) is not None or (
        re.search(r"layer.?norm", words(target), re.IGNORECASE) is not None
    )


def claims_rms(target: Target) -> bool:
    """Whether it calls itself RMS normalisation, no mean taken off."""
    return re.search(r"rms|root.?mean.?square", class_name(target), re.IGNORECASE) is not None


def claims_other_axis(target: Target) -> bool:
    """Whether statistics over more than the features of one position are what it says it takes."""
    if re.search(r"layer.?norm|rms|^LN", class_name(target), re.IGNORECASE):
        return re.search(r"group", class_name(target), re.IGNORECASE) is not None
    return re.search(NOT_PER_ROW, words(target), re.IGNORECASE) is not None


def plain_name(target: Target) -> bool:
    """Whether it calls itself a layer or RMS norm and nothing more, so that no formula but theirs can be meant."""
    name = class_name(target)
    special = r"partial|adapt|ada|gated?|dynamic|power|condition|cond|film|group|deep|poly|fused|residual|add|p_?rms|seq|temporal"
    exact = re.search(r"layer.?norm|rms.?norm|^LN|LN$", name, re.IGNORECASE)
    return exact is not None and re.search(special, name, re.IGNORECASE) is None

"""What a block says about itself and its parts, in names, options and words."""

from __future__ import annotations

import inspect
import re
from typing import Any

from torch import nn

from clearhead.checking.claims import stated
from clearhead.checking.constructing import CONFIGS
from clearhead.checking.target import Target

NORM_FIRST = (
    "norm_first",
    "pre_norm",
    "prenorm",
    "normalize_before",
    "pre_ln",
    "preln",
    "use_pre_norm",
    "is_pre_norm",
    "pre_layer_norm",
    "pre_layernorm",
)
NORM_LAST = ("post_norm", "postnorm", "post_ln", "norm_last", "normalize_after", "use_post_norm")
STYLES = (
    "norm_position",
    "norm_style",
    "norm_type",
    "norm_placement",
    "norm_order",
    "ln_position",
    "residual_type",
    "norm_mode",
    "layer_norm_position",
)
ACTS = (
    "activation",
    "act",
    "hidden_act",
    "activation_function",
    "act_fn",
    "activation_fn",
    "hidden_activation",
    "nonlinearity",
    "act_layer",
    "act_type",
    "ffn_activation",
    "mlp_activation",
    "act_name",
    "activation_type",
    "afn",
)


def texts_of(target: Target) -> str:
    """The source of the target and of all its parts that are nobody's but the user's."""
    made = target.make()
    kinds = {type(m) for m in made.modules()} if isinstance(made, nn.Module) else set()
    texts = [target.source]
    for kind in sorted(kinds - {target.kind_of}, key=lambda k: k.__qualname__):
        if kind.__module__.split(".")[0] == "torch":
            continue
        try:
            texts.append(inspect.getsource(kind))
        except (OSError, TypeError):
            continue
    return "\n".join(texts)


def documents(target: Target) -> str:
    """The docstrings of the target's class, of its forward and constructor; "" if there are none of its own."""
    kind = target.kind_of
    own = [kind] if getattr(kind, "__module__", "").split(".")[0] != "torch" else []
    own += [vars(kind)[name] for name in ("forward", "__init__") if own and name in vars(kind)]
    return "\n".join(str(each.__doc__ or "") for each in own)


def norm_first(target: Target) -> bool | None:
    """Whether the code claims to be pre-norm (True) or post-norm (False); None if it says nothing, or both."""
    for name in (*NORM_FIRST, *NORM_LAST):
        said = stated(target, name)
        if isinstance(said, bool):
            return said == (name in NORM_FIRST)
    for name in STYLES:
        said = stated(target, name)
        if isinstance(said, str) and said.lower() in (
            "pre",
            "post",
            "prenorm",
            "postnorm",
            "pre_norm",
            "post_norm",
            "pre-norm",
            "post-norm",
            "pre_ln",
            "post_ln",
        ):
            return said.lower().startswith("pre")
    text = " ".join([getattr(target.kind_of, "__name__", ""), documents(target)])
    pre = re.search(r"pre[-_ ]?(layer)?[-_ ]?(norm|ln\b)", text, re.IGNORECASE)
    post = re.search(r"post[-_ ]?(layer)?[-_ ]?(norm|ln\b)", text, re.IGNORECASE)
    denied = re.search(
        r"(not|no|unlike|instead of|rather than|than|vs\.?|never|versus|compared (to|with)) (a |the )?(pre|post)[-_ ]?",
        text,
        re.IGNORECASE,
    )
    if denied or (pre is None) == (post is None):
        return None
    return pre is not None


def activation_claim(target: Target, module: str = "") -> tuple[str, str] | None:
    """(what is claimed, where): a name of `ACTIVATIONS` or "gelu" for either; None if nothing is.

    Args:
        target: the code.
        module: the name of the part that is asked about, whose class may be called after its function, as SwiGLU is.
    """
    named = _named_activation(target)
    if named is not None:
        return named
    # What an option would bring is not what is there.
    text = re.sub(r"\b\w+(?: ?\([^)]*\))? ?: *(?:whether|if)\b[^\n]*", " ", documents(target), flags=re.IGNORECASE)
    found = {
        _family(word)
        for word in re.findall(
            r"quick[-_ ]?gelu|swiglu|geglu|reglu|gelu|relu ?(?:²|\^2|squared)|squared relu|relu2|relu|silu|swish",
            text,
            re.IGNORECASE,
        )
    }
    denied = re.search(
        r"(not|no|instead of|rather than|unlike|than|vs\.?|or|replac\w+|and) (a |the )?(gelu|relu|silu|swish|swiglu)",
        text,
        re.IGNORECASE,
    )
    if len(found) != 1 or denied:
        return _gate(target, module) if not found else None
    family = found.pop()
    if family == "gelu":
        exact = re.search(r"\berf\b|exact", text, re.IGNORECASE)
        tanh = re.search(r"tanh|approx", text, re.IGNORECASE)
        family = "gelu-erf" if exact and not tanh else "gelu-tanh" if tanh and not exact else "gelu"
    return family, say_place(target)


def _gate(target: Target, module: str) -> tuple[str, str] | None:
    """What the class of a part, or of one around it, says of its gate by being called SwiGLU or the like; None if none is."""
    made = target.make()
    steps = module.split(".")
    around = {"", *(".".join(steps[:count]) for count in range(1, len(steps) + 1))}
    parts = made.named_modules() if isinstance(made, nn.Module) else ()
    names = [type(part).__name__ for path, part in parts if path in around]
    found = [
        (_family(kind[0]), name) for name in names if (kind := re.findall(r"swi_?glu|ge_?glu|re_?glu", name.lower()))
    ]
    return found[-1] if len({family for family, _ in found}) == 1 else None


def say_place(target: Target) -> str:
    """The name of the class."""
    return str(getattr(target.kind_of, "__name__", target.name))


def _named_activation(target: Target) -> tuple[str, str] | None:
    made = target.make()
    if not isinstance(made, nn.Module):
        return None
    for module in made.modules():
        for place in (module, *(getattr(module, name, None) for name in CONFIGS)):
            for name in ACTS:
                value: Any = getattr(place, name, None)
                if isinstance(value, str):
                    return (_string(value), f'{name}="{value}"') if _string(value) else None
    for name in ACTS:
        value = target.values.get(name)
        if isinstance(value, str) and _string(value):
            return _string(value), f'{name}="{value}"'
    return None


def _string(value: str) -> str:
    """The function that an option's value names; "" if it is not known."""
    low = value.lower().replace("-", "_")
    exact = {
        "gelu": "gelu-erf", "gelu_new": "gelu-tanh", "gelu_tanh": "gelu-tanh", "gelu_pytorch_tanh": "gelu-tanh", "gelu_fast": "gelu-tanh",
        "gelu_erf": "gelu-erf", "gelu_exact": "gelu-erf", "gelu_python": "gelu-erf", "gelu_approx": "gelu-tanh", "quick_gelu": "gelu-quick", "relu": "relu",
        "silu": "silu", "swish": "silu", "swiglu": "silu", "geglu": "gelu", "reglu": "relu", "relu2": "relu-squared", "relu_squared": "relu-squared",
        "squared_relu": "relu-squared", "tanh": "tanh", "gegelu": "gelu",
    }  # fmt: skip
    return exact.get(low, "")


def _family(word: str) -> str:
    low = word.lower().replace(" ", "").replace("_", "").replace("-", "")
    if low == "quickgelu":
        return "gelu-quick"
    if low in ("swiglu", "silu", "swish"):
        return "silu"
    if low in ("geglu", "gelu"):
        return "gelu"
    return "relu-squared" if low not in ("relu", "reglu") else "relu"

"""What a module of sequences claims about who sees whom."""

from __future__ import annotations

import inspect
import re

import torch
from torch import nn

from clearhead.checking.claims import stated
from clearhead.checking.constructing import NAMES
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.checking.target import Target, without_methods

DENIED = r"(is_)?causal\s*[:=]\s*(bool\s*=\s*)?False|(non|not|no|without|un)[- _]?(a )?causal|bidirectional|acausal"
CAUSAL_WORDS = r"causal|autoregressive|auto-regressive|look.?ahead|subsequent|future"
CAUSAL_CODE = (
    r"\btril\b|\btriu\b|tril_|triu_|(causal|future|subsequent|look_?ahead)\w*\(|\*\s*(self\.)?causal\w*|"
    r"(causal|future|subsequent|look_?ahead)\w*\s*=(?![=\s]*\(?(not\b|getattr|(self|config|cfg|args)\.|\w*causal|\w*mask\b|False|None|True|is_))"
)
"""What code does that hides the future. A flag that is handed on says nothing."""
CAUSAL_FLAG = r"causal\w*\s*=\s*(True\b|\w*mask is None)"
NO_CLAIM = (
    r"\bcache|generation|\bif\b.{0,30}(causal|autoreg|future)|(causal|autoreg)[\w-]*( \w+){0,2} (if|when|or|unless)\b|"
    r"^\W*\w*mask\w*\W{0,3}(\(|:)|subsequent (call|step|use|run|pass|forward|iteration)"
)
"""Sentences about what a caller may do: with a flag, with a mask of his own, with a cache, in later calls."""
CAUSAL_NAMES = r"causal|masked(multi|self|att|head)|autoregressive|gpt"


def causal(target: Target, settings: Settings) -> bool | None:
    """Whether the code claims that a position sees no later one; None if it says nothing of it."""
    if settings.causal is not None:
        return settings.causal
    switch = _switch(target)
    if switch is not None:
        return switch
    if _named(target) or triangles(target):
        return True
    # A triangle in a pattern of its own is a part of it, not a claim about all.
    return True if not patterned(target) and not _switched_off(target) and _written(target) else None


def _switched_off(target: Target) -> bool:
    """Whether the parts inside have switches for it, and all of them are off: what is called Causal… is then told not to be."""
    made = target.make()
    parts = made.modules() if isinstance(made, nn.Module) else ()
    flags = [getattr(part, name, None) for part in parts for name in ("causal", "is_causal", "use_causal_mask")]
    said = [flag for flag in flags if isinstance(flag, bool)]
    return (bool(said) and not any(said)) or (not said and not target.values and _optional(target))


def _optional(target: Target) -> bool:
    """Whether it is a choice of the constructor's that nothing keeps, and that defaults to no: what was chosen is not known."""
    with Attempt():
        parameters = inspect.signature(target.kind_of.__init__).parameters
        return any(parameters[name].default is False for name in ("causal", "is_causal") if name in parameters)
    return False


def _switch(target: Target) -> bool | None:
    """What an attribute, or the default of a parameter of forward, says."""
    said = stated(
        target, "causal", "is_causal", "use_causal_mask", "causal_mask", "masked", "autoregressive", "is_decoder"
    )
    if isinstance(said, bool):
        return said
    defaults = {name: parameter.default for name, parameter in target.signature.parameters.items()}
    given = [defaults[name] for name in ("is_causal", "causal", "use_causal_mask") if name in defaults]
    return next((value for value in given if isinstance(value, bool)), None)


def _written(target: Target) -> bool:
    """Whether the code hides the future, or its words say that it does."""
    code = re.sub(DOCUMENTS, " ", target.source, flags=re.DOTALL)
    if _hides(target) or re.search(CAUSAL_FLAG, re.sub(DENIED, " ", code, flags=re.IGNORECASE), re.IGNORECASE):
        return True
    pieces = [piece for found in re.findall(DOCUMENTS, _run(target), re.DOTALL) for piece in found]
    sentences = [each for piece in pieces for each in re.split(r"\n|;|\.\s", piece)]
    said = (re.sub(DENIED, " ", each, flags=re.IGNORECASE) for each in sentences)
    return any(
        re.search(CAUSAL_WORDS, each, re.IGNORECASE) and not re.search(NO_CLAIM, each, re.IGNORECASE) for each in said
    )


def _run(target: Target) -> str:
    """The source without static methods that it never calls: tools for whoever makes a mask."""
    held = vars(target.kind_of).items() if isinstance(target.kind_of, type) else ()
    tools = {name for name, value in held if isinstance(value, staticmethod)}
    unused = {name for name in tools if len(re.findall(rf"\b{name}\b", target.source)) == 1}
    return without_methods(target.source, unused) if unused else target.source


def _hides(target: Target) -> bool:
    """Whether the code itself makes what hides the future."""
    code = re.sub(DOCUMENTS, " ", _run(target), flags=re.DOTALL)
    return re.search(CAUSAL_CODE, re.sub(DENIED, " ", code, flags=re.IGNORECASE), re.IGNORECASE) is not None


def by_itself(target: Target, settings: Settings) -> bool:
    """Whether causality is the code's own business, whatever mask it is given: by the user's word, its name, a triangle, or what it does."""
    name = getattr(target.kind_of, "__name__", "")
    named = _named(target) and re.search(CAUSAL_NAMES.removesuffix("|gpt"), name, re.IGNORECASE) is not None
    return settings.causal is not None or named or bool(triangles(target)) or _hides(target)


def _named(target: Target) -> bool:
    """Whether the class is called after it. "Masked" says nothing of one that takes a mask."""
    name = getattr(target.kind_of, "__name__", "")
    takes = any("mask" in parameter for parameter in target.signature.parameters)
    words = "causal|gpt" if takes else CAUSAL_NAMES
    return re.search(words, name, re.IGNORECASE) is not None and not re.search(DENIED, name, re.IGNORECASE)


def triangles(target: Target) -> list[str]:
    """The buffers and tensors that are triangular and square: masks of causality, whatever they are called."""
    made = target.make()
    if not isinstance(made, nn.Module):
        return []
    plain = {name: value for name, value in vars(made).items() if isinstance(value, torch.Tensor)}
    held = dict(made.named_buffers()) | plain
    return [name for name, value in held.items() if _triangular(value)]


def _triangular(value: torch.Tensor) -> bool:
    while value.dim() > 2 and value.shape[0] == 1:
        value = value[0]
    if value.dim() != 2 or value.shape[0] != value.shape[1] or value.shape[0] < 3:
        return False
    upper = value.triu(1)[torch.ones_like(value, dtype=torch.bool).triu(1)]
    lower = value[torch.ones_like(value, dtype=torch.bool).tril(-1)]
    return bool((upper == upper[0]).all() and (lower == lower[0]).all() and upper[0] != lower[0])


WINDOWS = (*NAMES["window"], "window_len", "attention_window", "local_window_size", "attn_window", "win")


def window(target: Target, settings: Settings) -> int | None:
    """How many keys a query is claimed to see, itself included; None if nothing is claimed or all are seen."""
    said = settings.window
    if said is None:
        # A configuration may state what this code never reads.
        text = target.source
        read = [name for name in WINDOWS if re.search(rf"\b{name}\b", text)]
        found = stated(target, *read) if read else None
        said = found if isinstance(found, int) and not isinstance(found, bool) else None
    return said if said is not None and said > 0 else None


def shuns_itself(target: Target) -> bool:
    """Whether the code says that a position is not to attend to itself, as where queries and keys are one."""
    words = r"(not|never|n't|without|no|mask(s|ed|ing)? out|exclud\w+|except) (attend\w*|attention|look\w*)( (to|at))? (itself|themselves|self|oneself)\b"
    return re.search(words, target.texts, re.IGNORECASE) is not None


def fades(target: Target) -> bool:
    """Whether what a position holds weighs on all that comes after it by other ways than its key: gates that forget, tokens that hide others."""
    words = r"forget\w*[-_ ]?gate|data[-_ ]?dependent[-_ ]?alibi|decay|selective[-_ ]?att"
    made = target.sample
    parts = list(made.named_modules()) if isinstance(made, nn.Module) else []
    on = {
        name
        for path, part in parts
        for name, value in [(path, True), *vars(part).items()]
        if value is True or isinstance(value, nn.Module)
    }
    return re.search(words, target.source, re.IGNORECASE) is not None and any(
        re.search("forget|decay|alibi|selective", n) for n in on
    )


def beside_itself(target: Target) -> bool:
    """Whether the code says that its window does not count the position itself."""
    words = r"(besides|plus|and|excluding|beyond|before) (it|the )?(self|query|current)|previous (W|window)|left context|W previous|look.?back"
    return re.search(words, target.source, re.IGNORECASE) is not None


PATTERNED = (
    r"strided|\bstride\b(?!\()|dilat|sparse|chunk(ed|wise|_size|_len)|block_?(wise|local|sparse|diag)|axial|prefix|"
    r"global_?(att|tok)|local_?(att|mask)|segment_?(id|mask)|document"
)


def patterned(target: Target) -> bool:
    """Whether the code speaks of a pattern of its own, so that what is hidden may be meant."""
    return re.search(PATTERNED, target.source, re.IGNORECASE) is not None


def backwards(target: Target) -> bool:
    """Whether the code says that it reads from the end."""
    return (
        re.search(r"revers|backward|anti.?causal|right.to.left|\br2l\b|flip", target.source, re.IGNORECASE) is not None
    )


KEEPS = r"keep|kept|real|valid|attend|visible|allow|participate|unmasked|look|see|present|use|actual|non-?pad"
DROPS = r"drop|pad|ignor|mask|hid|block|exclu|invisible|disallow|remov|forbid|illegal"
DOCUMENTS = r'"""(.*?)"""|#([^\n]*)'
HOLDS = r"\b(?P<value>true|ones?|1s?|false|zeros?|0s?)\b"
SENTENCES = r"\n\s*\n|;|(?<!\bi\.e)(?<!\be\.g)\.\s"
OFTEN = r"[\s`*\'\"]*(=+>?|:|->|→|for|where|means?|marks?|is|are|at|if|on|indicates?|when|to|the\b)*"


def words_of_mask(target: Target, name: str) -> bool | None:
    """Whether True or 1 is said to keep a position, by a docstring or a comment; None if nothing is said."""
    for pieces in re.findall(DOCUMENTS, target.source, re.DOTALL):
        for piece in re.split(SENTENCES, _without_others(target, name, " ".join(pieces))):
            if not re.search(rf"{re.escape(name)}|mask|pad", piece, re.IGNORECASE) or re.search(
                r"tril|causal|future|\blabels?\b|\bloss(es)?\b|(negative|inverse|opposite|contrary) (of|to)\b", piece
            ):
                continue
            meaning = _meaning(piece)
            if meaning is not None:
                return meaning
    return None


def _without_others(target: Target, name: str, words: str) -> str:
    """A docstring without what it says of other masks: of those that are given beside this one, and of one that is made here."""
    makes = re.match(
        r"\s*(creat|mak|build|generat|return|comput)\w*\b[^\n]*\b(causal|future)\b[^\n]*mask", words, re.IGNORECASE
    )
    if makes and name not in words:
        return ""
    given = [each for each in target.signature.parameters if each != name]
    entry = rf"^[ \t]*`?({'|'.join(map(re.escape, [name, *given]))})`?[ \t]*(?:\(|:)"
    begins = [*re.finditer(entry, words, re.MULTILINE)]
    if not begins:
        return words
    ends = [*(found.start() for found in begins[1:]), len(words)]
    kept = words[: begins[0].start()]
    for found, end in zip(begins, ends, strict=True):
        if found[1] == name or not re.search("mask|pad", found[1], re.IGNORECASE):
            kept += words[found.start() : end]
    return kept


def mask_says(target: Target, name: str) -> bool | None:
    """Whether True or 1 is said to keep a position, by the words about a mask or by its name; None if nothing is said."""
    words = words_of_mask(target, name)
    if words is not None:
        return words
    low = name.lower()
    if re.fullmatch(r"(.*_)?key_padding_mask|is_pad(ding)?|pads?|drop_mask|ignore_mask", low):
        return False
    if re.fullmatch(r"attention_mask|valid(_mask|_keys)?|keep(_mask)?|key_valid|visible|allowed", low):
        return True
    return None


def adds(target: Target) -> bool:
    """Whether the code says that its mask is added to the scores: 0 and minus infinity."""
    return (
        re.search(r"additive|-inf\b|minus infinity|float(ing)? mask|lowest number", _prose(target), re.IGNORECASE)
        is not None
    )


def _prose(target: Target) -> str:
    """All docstrings and comments."""
    return " ".join(" ".join(pieces) for pieces in re.findall(DOCUMENTS, target.source, re.DOTALL))


def _meaning(piece: str) -> bool | None:
    """What a sentence says that True or 1 means."""
    words = piece.lower()
    for found in re.finditer(HOLDS, words):
        true = found["value"][0] in "to1"
        true = found["value"].startswith(("t", "one", "1"))
        after = re.match(rf"{OFTEN}(?P<what>[^,()\n]{{0,40}})", words[found.end() :])
        what = after["what"] if after else words[max(0, found.start() - 32) : found.start()]
        kept = _kept(what)
        if kept is not None:
            return kept == true
    return None


def _kept(what: str) -> bool | None:
    """Whether words speak of what is kept (True) or dropped (False): the first such word, with what denies it before it."""
    found = re.search(rf"\b(?P<keep>{KEEPS})|\b(?P<drop>{DROPS})", what)
    if found is None:
        return None
    denied = (
        re.search(r"(\b(not|non|never|cannot|nothing|no|none)|n.t)[- ]+(\w+ ){0,2}$", what[: found.start()]) is not None
    )
    return (found["keep"] is not None) != denied

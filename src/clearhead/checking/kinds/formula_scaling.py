"""Whether the scale of one watched attention is right, and if not, which mistake it is."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterator

from clearhead.checking.kinds.formula_scale import Scale, named, scale_of, softened
from clearhead.checking.kinds.formula_stages import Scene, fault
from clearhead.checking.report import Fault
from clearhead.messages import say

CONFIGURED = r"\b(scal\w*)\s*=\s*(?:self\.)?(?:config|cfg|args)\.\w*(?:scal|multiplier)\w*"
UNSCALED = (
    r"class\s+\w*t5|\bt5\b.{0,80}(scal|bias)|(scal|bias).{0,80}\bt5\b|\brel(ative)?[_ -]?(pos|bias|att)|cosine|qk_?norm|"
    # Luong's scores have none.
    r"\bluong|bilinear|\bscore\s*\(\w+,\s*\w+\)\s*="
)
"""Words for scores without a scale. That T5 is mentioned says nothing of the scale."""
OWN_UNSCALED = r"temperature|\btau\b"
"""Words that mean that only where the scores are made: a model that samples has a temperature, too."""


class Nothing:
    """In place of a module where there is none."""


def scaled(scene: Scene, other: bool) -> tuple[list[Fault], bool]:
    """The fault of the scale, and whether the scale could be seen.

    Args:
        scene: the attention.
        other: whether something else is wrong with it already, which may have brought the number about.
    """
    scale = scale_of(scene.graph, scene.core)
    return list(_scale(scene, scale, other)), scale.total is not None


def _scale(scene: Scene, scale: Scale, other: bool) -> Iterator[Fault]:
    core = scene.core
    if scale.total is None:
        return
    d, heads = core.q.shape[-1], max(core.q.shape[-3] if core.q.dim() > 3 else 1, scene.heads)
    sizes = {"d": d, "D": scene.width, "T": core.q.shape[-2], "S": core.k.shape[-2], "HD": heads * d, "H": heads}
    found = named(scale.total, sizes)
    if found is None or _stated(scene, scale.total, found[0], scale):
        return
    name, formula = found
    parts = [n for n in (scale.scores, scale.queries, scale.keys) if n is not None and abs(n - 1) > 1e-4]
    if (
        {name, formula} == {"scale.model-width", "1/√D"}
        and abs(scene.width - d * d) < 1
        and (len(parts) > 1 or not _rooted(scene))
    ):
        name, formula = "scale.twice", "1/d"
    right = softened(core, 1 / math.sqrt(d) / ((scale.queries or 1) * (scale.keys or 1)))
    wrong = softened(core, scale.scores or 1.0)
    effect = float((wrong - right).norm() / right.norm().clamp_min(1e-12))
    text = say("formula.scale", found=f"{scale.total:.4g}", formula=formula, right=f"{1 / math.sqrt(d):.4g}", d=d)
    yield fault(name, text, scene.graph.record.ops[core.start].where, "consistent" if other else "reproduced", effect)


def _rooted(scene: Scene) -> bool:
    return re.search(r"sqrt|\*\*\s*-?\s*\(?0?\.5|\*\*\s*-?\s*\(?1\s*/\s*2", scene.source) is not None


def _stated(scene: Scene, found: float, name: str, scale: Scale) -> bool:
    """Whether a scale that is none of the usual is meant: no scale beside a learnt bias, as in T5, or 1/d by muP."""
    if _configured(scene, found):
        return True
    if name == "scale.twice":
        return re.search(r"\bmu-?p\b|µp|μp|mup_|use_mup", scene.source, re.IGNORECASE) is not None
    if name != "scale.missing" or _kept(scene):
        return False
    if scale.bias and re.search("bias", scene.source, re.IGNORECASE):
        return True
    if re.search(r"temperature\s*=\s*[^,\n]*(sqrt|\*\*\s*0?\.5)", scene.source):
        # A temperature that is the root of a width is the usual scale by another name.
        return False
    words = re.search(UNSCALED, scene.source, re.IGNORECASE) or re.search(OWN_UNSCALED, _own_text(scene), re.IGNORECASE)
    return words is not None


def _configured(scene: Scene, found: float) -> bool:
    """Whether the scale is a number of the configuration, whatever it is; a switch of that name is one only where it is off."""
    for match in re.finditer(CONFIGURED, scene.source):
        value = getattr(_own(scene), match.group(1), None)
        if value is None or not isinstance(value, (bool, int, float)):
            return True
        if isinstance(value, bool):
            if not value:
                return True
            continue
        usual = 1 / math.sqrt(scene.core.q.shape[-1])
        powers = [abs(value) ** power for power in (1, -1, 0.5, -0.5, 2, -2)] if value else []
        if any(math.isclose(found, factor * power, rel_tol=1e-5) for factor in (1, usual) for power in powers):
            return True
    return False


def _kept(scene: Scene) -> bool:
    """Whether the part that makes the scores keeps the usual scale as a number under its name: words about others do not excuse then that it is not used.

    One that undoes the scale of the fused kernel has it for that; one that is used only if a switch says so is no promise.
    """
    if scene.core.pairs is None or re.search(r"\bif\b[^\n:(]*\bself\.\w*scal", _own_text(scene)):
        return False
    root = math.sqrt(scene.core.q.shape[-1])
    kept = [value for name, value in vars(_own(scene)).items() if re.search(r"scal|temperature|sqrt|norm_factor", name)]
    numbers = [float(value) for value in kept if isinstance(value, (int, float)) and not isinstance(value, bool)]
    return any(math.isclose(number, usual, rel_tol=1e-5) for number in numbers for usual in (root, 1 / root))


def _own(scene: Scene) -> object:
    """The part in which the scores are made; for a function something without attributes."""
    parts = dict(scene.module.named_modules()) if scene.module is not None else {}
    return parts.get(scene.graph.record.ops[scene.core.start].module, Nothing())


def _own_text(scene: Scene) -> str:
    """The text of the class in which the scores are made; all of it where that cannot be read."""
    try:
        return inspect.getsource(type(_own(scene))) if not isinstance(_own(scene), Nothing) else scene.source
    except (OSError, TypeError):
        return scene.source

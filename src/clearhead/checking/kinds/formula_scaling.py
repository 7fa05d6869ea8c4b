"""Whether the scale of one watched attention is right, and if not, which mistake it is."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from clearhead.checking.kinds.formula_scale import Scale, named, scale_of, softened
from clearhead.checking.kinds.formula_stages import Scene, fault
from clearhead.checking.report import Fault
from clearhead.messages import say


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
    words = {
        "scale.missing": r"\bt5\b|\brel(ative)?[_ -]?(pos|bias|att)|cosine|temperature|\btau\b|qk_?norm|"
        # Luong's scores have none.
        r"\bluong|bilinear|\bscore\s*\(\w+,\s*\w+\)\s*=",
        "scale.twice": r"\bmu-?p\b|µp|μp|mup_|use_mup",
    }
    if name == "scale.missing" and scale.bias and re.search("bias", scene.source, re.IGNORECASE):
        return True
    del found
    if re.search(r"\bscal\w*\s*=\s*(self\.)?(config|cfg|args)\.\w*(scal|multiplier)\w*", scene.source) is not None:
        # A number of the configuration, whatever it is.
        return True
    if name == "scale.missing" and re.search(r"temperature\s*=\s*[^,\n]*(sqrt|\*\*\s*0?\.5)", scene.source):
        # A temperature that is the root of a width is the usual scale by another name.
        return False
    return name in words and re.search(words[name], scene.source, re.IGNORECASE) is not None

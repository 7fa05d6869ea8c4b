"""A language model as it is made: tied weights and their first size."""

from __future__ import annotations

import math
import re

import torch
from torch import nn

from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.lm_case import LmCase, logits_of
from clearhead.checking.kinds.lm_finding import failed, passed
from clearhead.messages import say

TIES = r"tie_?(word_)?(embeddings|weights)?\b|tied|tying|weight.?sharing|share.{0,12}(weight|embedding)"
INITIALISES = (
    r"_?init_?(_weights|_params)?\(|reset_parameters|initializer_range|normal_\(|trunc_normal_|xavier|init_std"
)


def tied(case: LmCase) -> Found:
    """Where head and embedding are one, the first loss is near ln V."""
    made = case.case.target.make()
    if not isinstance(made, nn.Module):
        return Found()
    table = next(
        (m.weight for m in made.modules() if isinstance(m, nn.Embedding) and m.num_embeddings == case.vocab), None
    )
    text = case.case.target.source
    if table is None or re.search(TIES, text, re.IGNORECASE) is None or not re.search(INITIALISES, text):
        return Found()
    shared = any(m.weight is table for m in made.modules() if isinstance(m, nn.Linear)) or _used_twice(text)
    if not shared:
        return Found()
    ids = case.ids(3, case.length(8), 6)
    with torch.no_grad():
        logits = logits_of(case, case.case.ready(), ids)
    goals = case.ids(3, ids.shape[1], 9)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), goals.flatten()).item()
    right, spread = math.log(logits.shape[-1]), table.std().item()
    if loss > 1.5 * right + 1 and spread > 0.5:
        evidence = say("lm.first_loss", loss=f"{loss:.3g}", right=f"{right:.3g}", spread=f"{spread:.2g}")
        return failed("init.after-tying", evidence, effect=loss / right)
    return passed("init.after-tying", say("lm.first_loss_right", loss=f"{loss:.3g}", right=f"{right:.3g}"))


def _used_twice(text: str) -> bool:
    """Whether the source multiplies with the embedding's own weights."""
    return re.search(r"\.weight\.(t\(\)|T\b|transpose)|linear\([^)]*\.weight\)", text) is not None

"""The walk of a forward: every tensor with its axes and sizes, what it costs, how it is computed, and where."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from clearhead.models.config import StackConfig
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.ops.recompute import scores_of, weights_of
from clearhead.ops.tap import Ran
from clearhead.web.answer import Answer, as_json
from clearhead.web.costs import Made, flops_of, made_of
from clearhead.web.formulas import formula
from clearhead.web.session import Session, Stage
from clearhead.web.sources import source_of
from clearhead.web.summing import Numbers, summed_parts

FEW = 1 << 21
"""Up to how many scores, of all heads together, are summed up with the flow; beyond, when somebody opens one."""


def answer(session: Session, query: Mapping[str, str]) -> Answer:
    """Every tensor of the forward, in its order.

    Args:
        session: the forward.
        query: not read.

    Returns:
        JSON: `{stages: [...]}`, each as `Teller.told` describes it. Mean, std, least and most of scores and weights are null where those
        are many, and of logits where the prompt was opened without them; `stage` gives them then.
    """
    teller = Teller(session)
    scores = sum(math.prod(stage.shape) for stage in session.stages if stage.name.endswith(".scores"))
    again = {stage.name: numbers_again(session, stage.name) for stage in session.stages} if scores <= FEW else {}
    return as_json({"stages": [teller.told(stage, again.get(stage.name)) for stage in session.stages]})


class Teller:
    """Says what is known of the tensors of a session.

    Args:
        session: the forward.
    """

    def __init__(self, session: Session) -> None:
        self.session, self.config = session, session.loaded.config
        self._made = made_of(session.loaded.model)
        self._flops = flops_of(self.config, len(session.ids), len(session.source))

    def told(self, stage: Stage, numbers: Numbers | None = None) -> dict[str, Any]:
        """A tensor as plain data.

        Args:
            stage: one of the session's.
            numbers: of a tensor whose own were not taken.

        Returns:
            `name`; `part`, which of the model it is in without the number of the block ("attention", "encoder.feedforward", "" for the
            stream); `block` (null outside the blocks); `axes`, `shape`; `parameters`, the trained numbers that make it, and `shared`, the
            further ones that are counted where they were used first; `flops`; `bytes`; `formula`; `source` (`{file, line, text}` or null);
            `summary` (`{mean, std, least, most}`, null where no number is finite).
        """
        name, made = stage.name, self._made.get(stage.name, Made(0, 0))
        found = source_of(self.session.loaded.model, name)
        summary = stage.summary if numbers is None else numbers
        return {
            "name": name,
            "part": part_of(name),
            "block": block_of(name),
            "axes": list(stage.axes),
            "shape": list(stage.shape),
            "parameters": made.parameters,
            "shared": made.shared,
            "flops": self._flops.get(name, 0),
            "bytes": stage.summary["bytes"],
            "formula": formula(name, self._config_of(name)),
            "source": None if found is None else found._asdict(),
            "summary": {key: summary[key] for key in ("mean", "std", "least", "most")},
        }

    def _config_of(self, name: str) -> StackConfig:
        if not isinstance(self.config, EncoderDecoderConfig):
            return self.config
        return self.config.encoder if name.startswith("encoder.") else self.config.decoder


def part_of(name: str) -> str:
    """Which part of the model a tensor is in: "decoder.blocks.1.cross_attention.q" -> "decoder.cross_attention"."""
    words = name.split(".")[:-1]
    if "blocks" in words:
        place = words.index("blocks")
        del words[place : place + 2]
    return ".".join(words)


def block_of(name: str) -> int | None:
    """The number of a tensor's block; None outside the blocks."""
    words = name.split(".")
    return int(words[words.index("blocks") + 1]) if "blocks" in words else None


def squares(session: Session, name: str) -> Iterator[Tensor] | None:
    """Scores or weights once more, a head after another, each (1,T,S); None if the name is that of another tensor.

    Args:
        session: the forward.
        name: of the tensor.
    """
    of, _, kind = name.rpartition(".")
    if kind not in ("scores", "weights") or of not in session.ran:
        return None
    return _again(session.ran[of], weights=kind == "weights")


@torch.no_grad()
def numbers_again(session: Session, name: str) -> Numbers | None:
    """Mean, std, least and most of scores or weights, computed once more; None for another tensor."""
    parts = squares(session, name)
    return None if parts is None else summed_parts(parts)


def _again(ran: Ran, *, weights: bool) -> Iterator[Tensor]:
    for head in range(ran.q.shape[-3]):
        scores = scores_of(ran, [head])
        yield (weights_of(ran, scores, [head]) if weights else scores)[0]

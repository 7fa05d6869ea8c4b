"""What of a model is trained where its weights stay as they are. Imports without torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from clearhead.messages import UserError, say
from clearhead.models.checked import check_types, positive

TARGETS = ("*attention.*", "*feedforward.*")
"""The names of all linear layers inside the blocks; cross-attention's are among them."""


@dataclass(frozen=True)
class LowRank:
    """LoRA: the linear layers that get a trained change of low rank, while everything else is frozen.

    Args:
        rank: r, the most that a change can have.
        alpha: α; a change is scaled by α/r. As large as the rank, which scales by 1, if not given.
        targets: patterns of the names of linear layers, `*` standing for anything, dots included, as a tuple or with commas
            between them; all those of attention and feed-forward if not given.
        dropout: probability, in training, of dropping a feature on its way into a change.

    Raises:
        UserError: on a value of the wrong type or out of range.
    """

    rank: int
    alpha: float | None = None
    targets: tuple[str, ...] | str = TARGETS
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_types(self)
        if self.rank < 1:
            raise UserError(say("models.too_small", field="lora.rank", value=self.rank, least=1))
        if self.alpha is not None:
            positive("lora.alpha", self.alpha)
        if not 0 <= self.dropout < 1:
            raise UserError(say("models.not_probability", field="lora.dropout", value=self.dropout))
        if not self.patterns or "" in self.patterns:
            raise UserError(say("adapting.no_targets", usual=" ".join(TARGETS)))

    @property
    def patterns(self) -> tuple[str, ...]:
        """The targets one by one."""
        if isinstance(self.targets, str):
            return tuple(part.strip() for part in self.targets.strip("[]").split(","))
        return self.targets

    @property
    def scaled_by(self) -> float:
        """α."""
        return float(self.rank) if self.alpha is None else self.alpha

    def to_plain(self) -> dict[str, Any]:
        """What a run's description holds of it: numbers and strings, and α as a number."""
        return asdict(self) | {"alpha": self.scaled_by, "targets": list(self.patterns)}


def low_rank_of(plain: object) -> LowRank:
    """What `LowRank.to_plain` wrote, perhaps edited since.

    Raises:
        UserError: if it is something else.
    """
    known = {field.name for field in fields(LowRank)}
    if (
        not isinstance(plain, dict)
        or not isinstance(plain.get("targets"), list)
        or not {"rank"} <= plain.keys() <= known
    ):
        raise UserError(say("adapting.not_low_rank", found=plain))
    return LowRank(**plain | {"targets": tuple(plain["targets"])})

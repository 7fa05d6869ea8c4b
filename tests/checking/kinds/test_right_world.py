"""Right code as published packages write it is silent, and mistakes among it, or planted into it, are named."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case
from bench.checking.first import right_world, right_world_fourth, right_world_more, right_world_third
from clearhead.checking.check import check
from tests.checking.kinds.sets import report

MODULES = (right_world, right_world_more, right_world_third, right_world_fourth)
CASES = [(module, case) for module in MODULES for case in module.CASES]


@pytest.mark.parametrize(("module", "case"), CASES, ids=[case.name for _, case in CASES])
def test_it_is_told_right_from_wrong(module: Any, case: Case) -> None:
    found = report(module, case)
    assert [fault.id for fault in found.faults] == ([case.fault] if case.fault else [])


class KeysTwice(right_world_more.WholeText):
    """What is kept grows with each step."""

    def forward(self, ids: Tensor, cache: Any = None) -> Any:
        logits, (k, v) = super().forward(ids, cache)
        return logits, (k if cache is None else k * 1.5, v)


class Unhidden(right_world_more.CallersTriangle):
    """The mask of the target is taken and forgotten."""

    def forward(self, src: Tensor, tgt: Tensor, tgt_mask: Any = None) -> Tensor:
        return super().forward(src, tgt)


class HalfSkip(right_world_more.InParts):
    """One half has no skip."""

    def forward(self, x: Tensor) -> Tensor:
        _, other = x.chunk(2, -1)
        n = self.norm(other)
        one = self.attention(n, n, n)
        return torch.cat([one, other + self.feed(one)], -1)


class SaidForBoth(nn.Module):
    """A language model around the given layers; around others it would be bidirectional."""

    def __init__(self, vocab: int = 61, dim: int = 32) -> None:
        super().__init__()
        self.embedding, self.position = nn.Embedding(vocab, dim), nn.Embedding(64, dim)
        self.layers, self.head = Layers(dim), nn.Linear(dim, vocab)

    def forward(self, ids: Tensor) -> Tensor:
        y = self.layers(self.embedding(ids) + self.position.weight[: ids.shape[1]])
        return self.head(y + 0.1 * y.roll(-1, 1))


class TinyGPT(SaidForBoth):
    """A model like BERT, but for its direction."""

    def __init__(self, vocab: int = 61, dim: int = 32) -> None:
        super().__init__(vocab, dim)
        self.layers.causal = None  # type: ignore[assignment]


class Layers(right_world_more.Plain):
    """Attention that is told whether it hides the future."""

    causal = True

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.split(self.to_q(x), self.to_k(x), self.to_v(x))
        return x + self.merge(F.scaled_dot_product_attention(q, k, v, is_causal=self.causal is not False))


class Bent(right_world_more.Clamped):
    """Values go through a tangent that bends them."""

    def forward(self, x: Tensor, bound: float = 1.0) -> Tensor:
        q, k, v = self.split(self.to_q(x), self.to_k(x), self.to_v(x))
        return self.merge((q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v.tanh())


class OtherWay(right_world_fourth.Plain):
    """Two masks, and the one is read as the other."""

    def forward(self, x: Tensor, attention_mask: Any = None, input_mask: Any = None) -> Tensor:
        """Masked attention.

        attention_mask (Tensor):
            1 for tokens that are **masked**, i.e. padding.

        input_mask (Tensor):
            1 for tokens that are kept.
        """
        q, k, v = self.split(self.to_q(x), self.to_k(x), self.to_v(x))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if attention_mask is not None:
            scores = scores - 1e30 * (1.0 - attention_mask[:, None, None].to(x.dtype))
        return self.merge(scores.softmax(-1) @ v)


class OptionLost(right_world_fourth.OptionFirst):
    """The weights whose type is asked for are used, and what they give goes nowhere."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + 0 * self.shorten(x)


class OneShare(right_world_fourth.Mixer):
    """The softmax runs over an axis of one number."""

    def forward(self, x: Tensor, states: Any) -> Tensor:
        shares = self.to_shares(self.norm(x)).unsqueeze(-1).softmax(-1).squeeze(-1)
        return torch.einsum("lbnd,bnl->bnd", torch.stack(states), shares)


class MixedOnes(right_world_fourth.Mixed):
    """No mixer chooses anything."""

    def __init__(self, dim: int = 32, depth: int = 3) -> None:
        super().__init__(dim, depth)
        self.mixers = nn.ModuleList([OneShare(dim, layer + 1) for layer in range(depth)])


class PiecesBare(right_world_fourth.Pieces):
    """Piece by piece, and without the skip around attention."""

    def skipped(self, x: Tensor, seen: Tensor) -> Tensor:
        return seen


class PiecesFew(right_world_fourth.Pieces):
    """Few ids are drawn from, and the signature behind the wrapper says nothing of it."""

    @right_world_fourth.in_eval
    def generate(self, prompt: Tensor, length: int, temperature: float = 1.0) -> Tensor:
        while prompt.shape[1] < length:
            best = self(prompt)[:, -1].topk(7)
            chosen = torch.multinomial((best.values / temperature).softmax(-1), 1)
            prompt = torch.cat([prompt, best.indices.gather(1, chosen)], 1)
        return prompt


@pytest.mark.parametrize(
    ("kind_of", "kind", "name"),
    [
        (KeysTwice, "lm", "cache.mismatch"),
        (Unhidden, "seq2seq", "causal.future-leak"),
        (SaidForBoth, "lm", "causal.future-leak"),
        (TinyGPT, "lm", "causal.future-leak"),
        (HalfSkip, "block", "residual.missing"),
        (Bent, "attention", "projection.activation"),
        (OtherWay, "attention", "mask.polarity"),
        (OptionLost, "attention", "parameter.unused"),
        (MixedOnes, "encoder", "parameter.unused"),
        (PiecesBare, "lm", "residual.missing"),
        (PiecesFew, "lm", "sampling.hidden-default"),
    ],
)
def test_what_was_mended_for_them_still_sees_the_mistake(kind_of: type, kind: str, name: str) -> None:
    assert name in [fault.id for fault in check(kind_of, kind=kind).faults]

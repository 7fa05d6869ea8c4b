"""What excuses scores without a scale: that none is meant, not that a word is found; planted and right twins."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.checking.kinds.formula import formula
from clearhead.checking.kinds.sequence import open_sequence
from clearhead.checking.settings import Settings
from clearhead.checking.target import target_of


class Heads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.where = nn.Parameter(torch.randn(4, 31))

    def parts(self, x: Tensor) -> list[Tensor]:
        return [t.unflatten(-1, (4, 8)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1)]

    def table(self, x: Tensor) -> Tensor:
        far = torch.arange(x.shape[1])
        found: Tensor = self.where[:, (far[:, None] - far + 15).clamp(0, 30)]
        return found

    def joined(self, weights: Tensor, v: Tensor) -> Tensor:
        y: Tensor = self.out((weights @ v).transpose(1, 2).flatten(2))
        return y


class Window(Heads):
    """Attention with a relative position bias."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = 8**-0.5

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.parts(x)
        return self.joined((q @ k.mT * self.scale + self.table(x)).softmax(-1), v)


class WindowForgotten(Window):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.parts(x)
        return self.joined((q @ k.mT + self.table(x)).softmax(-1), v)


class WindowSwitched(Window):
    def __init__(self) -> None:
        super().__init__()
        self.scaled = False

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.parts(x)
        if self.scaled:
            q = q * self.scale
        return self.joined((q @ k.mT + self.table(x)).softmax(-1), v)


class Unscaled(Heads):
    """T5's: no scale, a learnt relative position bias."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.parts(x)
        return self.joined((q @ k.mT + self.table(x)).softmax(-1), v)


class Undone(Heads):
    """T5's: the kernel's scale is undone beside a relative position bias."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = math.sqrt(8)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.parts(x)
        y = F.scaled_dot_product_attention(q * self.scale, k, v, attn_mask=self.table(x)[None])
        mixed: Tensor = self.out(y.transpose(1, 2).flatten(2))
        return mixed


class Mentions(Heads):
    """Heads as they were made for T5 (XL) models."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.parts(x)
        return self.joined((q @ k.mT / math.sqrt(8)).softmax(-1), v)


class MentionsForgotten(Mentions):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.parts(x)
        return self.joined((q @ k.mT).softmax(-1), v)


class Switched(Heads):
    def __init__(self, on: bool = True) -> None:
        super().__init__()
        config = SimpleNamespace(scale_attn_weights=on)
        self.scale_attn_weights = config.scale_attn_weights

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.parts(x)
        return self.joined((q @ k.mT).softmax(-1), v)


class SwitchedOff(Switched):
    def __init__(self) -> None:
        super().__init__(False)


class Number(Heads):
    def __init__(self) -> None:
        super().__init__()
        config = SimpleNamespace(attention_multiplier=1.0)
        self.scaling = config.attention_multiplier

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.parts(x)
        return self.joined((q @ k.mT * self.scaling).softmax(-1), v)


class NumberTimesRoot(Number):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.parts(x)
        return self.joined((q @ k.mT * self.scaling * math.sqrt(8)).softmax(-1), v)


class Cosine(Heads):
    """Lengths of one, and a temperature that is learnt."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.temperature = 8**-0.5, nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.parts(x)
        return self.joined((F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT * self.temperature).softmax(-1), v)


class Learnt(Heads):
    def __init__(self) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.parts(x)
        return self.joined((q @ k.mT * self.temperature).softmax(-1), v)


class InPlace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(32, 32) for _ in range(4))
        self.scaling = 8**-0.5

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.q(x), self.k(x), self.v(x)
        q *= self.scaling
        q, k, v = (t.unflatten(-1, (4, 8)).transpose(1, 2) for t in (q, k, v))
        y: Tensor = self.out(((q @ k.mT).softmax(-1) @ v).transpose(1, 2).flatten(2))
        return y


class InPlaceTwice(InPlace):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.q(x), self.k(x), self.v(x)
        q *= self.scaling
        q, k, v = (t.unflatten(-1, (4, 8)).transpose(1, 2) for t in (q, k, v))
        y: Tensor = self.out(((q @ k.mT * self.scaling).softmax(-1) @ v).transpose(1, 2).flatten(2))
        return y


class Sampling(nn.Module):
    """Around attention that has no scale; only what samples has a temperature."""

    def __init__(self, inner: type[nn.Module] = MentionsForgotten) -> None:
        super().__init__()
        self.inner = inner()

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.inner(x)
        return y

    def sample(self, x: Tensor, temperature: float = 1.0) -> Tensor:
        drawn: Tensor = (self(x) / temperature).softmax(-1)
        return drawn


class SamplingScaled(Sampling):
    def __init__(self) -> None:
        super().__init__(Mentions)


WRONG = {
    WindowForgotten: "scale.missing",
    MentionsForgotten: "scale.missing",
    Switched: "scale.missing",
    NumberTimesRoot: "scale.inverted",
    Sampling: "scale.missing",
    InPlaceTwice: "scale.twice",
}
RIGHT = (
    Window,
    InPlace,
    WindowSwitched,
    Unscaled,
    Undone,
    Mentions,
    SwitchedOff,
    Number,
    Cosine,
    Learnt,
    SamplingScaled,
)


def named(kind: type[nn.Module]) -> list[str]:
    opened = open_sequence(target_of(kind, kind.__name__, Settings()), Settings())
    return [fault.id for fault in formula(opened, Settings()).faults if fault.id.startswith("scale.")]


@pytest.mark.parametrize(("kind", "fault"), WRONG.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_a_word_alone_excuses_nothing(kind: type[nn.Module], fault: str) -> None:
    assert named(kind) == [fault]


@pytest.mark.parametrize("kind", RIGHT)
def test_a_scale_that_is_meant_is_left_alone(kind: type[nn.Module]) -> None:
    assert named(kind) == []

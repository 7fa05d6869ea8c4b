"""The third trial, the newcomer's: pairs that somebody wrote who knew only the pages, here those that ask how weights are given and paired.

Blind, before anything was mended: 25 planted: 17 named, 2 under another id, 1 located, 2 not named and located wrongly, 3 false; 6 equal: 3 right.
What these ask for was mended on these very pairs, so that what is counted now is no blind count.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bench.diff.after_hands import Gpt
from bench.diff.cases import PLAIN, ROPE, Trial, bare, moved, ours
from bench.diff.hands import One, Two
from clearhead.formats.load import Loaded
from clearhead.models import choices
from clearhead.models.build import build
from clearhead.models.config_encoders import EncoderConfig
from clearhead.text.numbers import NumberTokenizer

V, D, H, HIDDEN, LONGEST, LAYERS = 37, 32, 4, 84, 48, 2
BERT = EncoderConfig(
    vocab=V,
    layers=LAYERS,
    heads=H,
    width=D,
    feedforward_width=HIDDEN,
    context=LONGEST,
    block=choices.PostNorm(),
    qkv_bias=True,
    bias=True,
)


class Library(nn.Module):
    """PyTorch's own attention."""

    def __init__(self) -> None:
        super().__init__()
        self.mha = nn.MultiheadAttention(24, 3, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], dtype=x.dtype)
        return self.mha(x, x, x, attn_mask=mask, need_weights=False)[0]


class ByHand(nn.Module):
    """The same, fused, with einsum."""

    def __init__(self) -> None:
        super().__init__()
        self.in_proj, self.out_proj = nn.Linear(24, 3 * 24), nn.Linear(24, 24)

    def forward(self, x: Tensor) -> Tensor:
        rows, length, width = x.shape
        q, k, v = (y.view(rows, length, 3, width // 3) for y in self.in_proj(x).chunk(3, -1))
        scores = torch.einsum("bihd,bjhd->bhij", q, k) / (width // 3) ** 0.5
        scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), float("-inf"))
        return self.out_proj(torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), v).reshape(rows, length, width))


class Listed(nn.Module):
    """A feed-forward whose names are numbers."""

    def __init__(self, last: bool = True) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(20, 52), nn.GELU(), nn.Linear(52, 20, bias=last))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


class Unlast(Listed):
    """Without its last bias."""

    def __init__(self) -> None:
        super().__init__(last=False)


class Conv1D(nn.Module):
    """A product whose matrix lies (in, out)."""

    def __init__(self, out: int, width: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(0.2 * torch.randn(width, out)), nn.Parameter(torch.zeros(out))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight + self.bias


class Turned(nn.Module):
    """The feed-forward with such matrices."""

    def __init__(self) -> None:
        super().__init__()
        self.c_fc, self.c_proj = Conv1D(52, 20), Conv1D(20, 52)

    def forward(self, x: Tensor) -> Tensor:
        h = self.c_fc(x)
        return self.c_proj(0.5 * h * (1 + torch.erf(h / 2**0.5)))


class Gain(nn.Module):
    """RMSNorm with a gain of w."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(16))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


class OnePlus(nn.Module):
    """With a gain of 1 + w."""

    def __init__(self) -> None:
        super().__init__()
        self.g = nn.Parameter(torch.zeros(16))

    def forward(self, x: Tensor) -> Tensor:
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6) * (1 + self.g)


class Norm(nn.Module):
    """PyTorch's norm."""

    def __init__(self) -> None:
        super().__init__()
        self.ln = nn.LayerNorm(16)

    def forward(self, x: Tensor) -> Tensor:
        return self.ln(x)


class Spelled(nn.Module):
    """The same by hand, under an old tutorial's names."""

    def __init__(self) -> None:
        super().__init__()
        self.a_2, self.b_2 = nn.Parameter(torch.ones(16)), nn.Parameter(torch.zeros(16))

    def forward(self, x: Tensor) -> Tensor:
        spread = x.var(-1, keepdim=True, unbiased=False)
        return self.a_2 * (x - x.mean(-1, keepdim=True)) / torch.sqrt(spread + 1e-5) + self.b_2


class Layer(nn.Module):
    """A block of an encoder that norms each sum; none of its names says feed-forward."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.dense = (nn.Linear(D, D) for _ in range(4))
        self.attention_layernorm, self.output_layernorm = nn.LayerNorm(D), nn.LayerNorm(D)
        self.intermediate, self.output = nn.Linear(D, HIDDEN), nn.Linear(HIDDEN, D)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part(x).unflatten(-1, (H, -1)) for part in (self.query, self.key, self.value))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / (D // H) ** 0.5
        x = self.attention_layernorm(x + self.merged(torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v).flatten(2)))
        return self.output_layernorm(x + self.output(F.gelu(self.intermediate(x))))

    def merged(self, x: Tensor) -> Tensor:
        """The heads through the last projection."""
        return self.dense(x)


class Slipped(Layer):
    """With its square matrix the wrong way round."""

    def merged(self, x: Tensor) -> Tensor:
        return x @ self.dense.weight + self.dense.bias


class Encoder(nn.Module):
    """An encoder with the head of a masked language model, tied."""

    block: type[Layer] = Layer

    def __init__(self) -> None:
        super().__init__()
        self.word_embeddings, self.position_embeddings = nn.Embedding(V, D), nn.Embedding(LONGEST, D)
        self.layer = nn.ModuleList(self.block() for _ in range(LAYERS))
        self.transform, self.transform_norm = nn.Linear(D, D), nn.LayerNorm(D)
        self.decoder = nn.Linear(D, V, bias=False)
        self.decoder.weight = self.word_embeddings.weight

    def forward(self, ids: Tensor) -> Tensor:
        x = self.word_embeddings(ids) + self.position_embeddings.weight[: ids.shape[1]]
        for block in self.layer:
            x = block(x)
        return self.decoder(self.transform_norm(F.gelu(self.transform(x))))


class SlippedEncoder(Encoder):
    block = Slipped


def encoder() -> Loaded:
    """A MODEL that is an encoder."""
    return Loaded(moved(build(BERT, seed=2)), NumberTokenizer(V), BERT, Path("run"))


def right() -> nn.Module:
    """A small GPT with weights of its own."""
    torch.manual_seed(11)
    return moved(Gpt())


def loading(turned: bool, lost: bool = False) -> Callable[[], Any]:
    """A factory that loads all of them, a matrix transposed or lost if that is wanted, and adds a head that nothing uses yet."""

    def factory() -> nn.Module:
        made, state = Gpt(), right().state_dict()
        name = next(each for each in state if each.endswith("attention.out.weight"))
        state[name] = state[name].t() if turned else state[name]
        state[name] = state[name] * float("nan") if lost else state[name]
        made.load_state_dict(state)
        made.value_head = nn.Linear(24, 1)
        return made

    return lambda: factory


TRIALS = [
    Trial(
        "a factory loads one matrix transposed and draws a head that is not used",
        right,
        loading(turned=True),
        frozenset(["weights.transposed", "load.transposed"]),
        ("out",),
    ),
    Trial("a factory loads NaN", right, loading(turned=False, lost=True), frozenset(["numbers.nan"]), ("out",)),
    Trial("a norm as classes: 1 + w", lambda: Gain, lambda: OnePlus, frozenset(["norm.offset"]), ("mul",)),
    Trial(
        "feed-forwards as classes, (in, out): a bias less",
        lambda: Turned,
        lambda: Unlast,
        frozenset(["projection.bias"]),
        ("net.2",),
    ),
    Trial("MODEL, code: tied", ours(ROPE), bare(Two, True, tied=True), frozenset(["head.tied"]), ("logits",)),
    Trial(
        "encoders as classes: a square matrix transposed",
        lambda: Encoder,
        lambda: SlippedEncoder,
        frozenset(["load.transposed"]),
        ("dense",),
    ),
    Trial("equal: a factory loads all and draws a head that is not used", right, loading(turned=False)),
    Trial("equal: MODEL, learned", ours(PLAIN), bare(One, False)),
    Trial("equal: MultiheadAttention and a fused one, as classes", lambda: Library, lambda: ByHand),
    Trial("equal: norms as classes", lambda: Norm, lambda: Spelled),
    Trial("equal: feed-forwards as classes, one (in, out)", lambda: Listed, lambda: Turned),
    Trial("equal: MODEL that is an encoder, code", encoder, lambda: Encoder),
]
"""Pairs as in the first trial."""

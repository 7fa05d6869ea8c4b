"""Positions: relative where they should be, of full precision always."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.layers.norm import LayerNorm, RMSNorm
from clearhead.layers.store import NO_STORE
from clearhead.models import choices as c
from clearhead.models.config import DecoderConfig
from clearhead.ops import positions as formulas
from clearhead.ops.masks import EVERYTHING
from clearhead.ops.rotary import Rotation, rotary_frequencies
from clearhead.ops.softmax import softmax
from clearhead.tracing import Recorder
from tests.equalities import faults as f
from tests.equalities import faults_parts as g
from tests.equalities.registry import claim, close, differ
from tests.equalities.variants import CONTEXT, VARIANTS, B, T, ids_of, model_of

ROTARY = [
    name
    for name, config in VARIANTS.items()
    if isinstance(config.positions_of(config.sights[0]), c.Rotary) and config.softcap is None
]
RELATIVE = [
    name for name, config in VARIANTS.items() if isinstance(config.positions, c.Rotary | c.ALiBi | c.NoPositions)
]


def scores_of_a_constant(config: DecoderConfig) -> Tensor:
    """Scores (B,H,T,S) of the first block where all tokens are alike, so that only positions make a difference."""
    model, recorder = model_of(config, kernel=c.Visible(), cycle=config.cycle), Recorder("*.scores")
    x = torch.randn(1, 1, config.width, dtype=torch.float64).expand(1, T, -1)
    seen = model.looks[0](NO_STORE.places(T, None, x.device), EVERYTHING, x)
    model.blocks[0].attention(x, seen.visible, rotate=seen.rotate, bias=seen.bias, tap=recorder.within("attention"))
    return recorder.tensors["attention.scores"]


@claim(
    "Rotary scores depend on m - n only, and do depend on it",
    "旋转位置的得分只取决于 m - n，而且确实取决于它",
    over=[name for name in ROTARY if not VARIANTS[name].sinks],
    faults={
        g.angle_not_linear: "rotary, MHA", g.rotated_along_heads: "rotary, MHA", f.one_side: "YaRN",
        f.never_turned: "rotary, fused",
    },
)  # fmt: skip
@torch.no_grad()
def test_rotary_scores_are_relative(variant: str) -> None:
    scores = scores_of_a_constant(VARIANTS[variant])
    close(scores[..., 1:, 1:], scores[..., :-1, :-1])
    first = scores[..., 0, :]
    differ(first[..., 1:], first[..., :-1])


@claim(
    "Rotating keeps the length of every vector, times YaRN's factor",
    "旋转不改变向量长度（YaRN 再乘其系数）",
    over=ROTARY,
    faults={g.unequal_turn: "rotary interleaved"},
)
@torch.no_grad()
def test_rotation_keeps_lengths(variant: str) -> None:
    turn = model_of(variant).looks[0].turn
    x = torch.randn(B, 4, T, VARIANTS[variant].width_of_head, dtype=torch.float64)
    for places in (range(2, 2 + T), torch.arange(B * T).reshape(B, T)):
        rotated = turn(places, x.dtype, x.device)
        close(rotated(x).square().sum(-1), (x * turn.attention_factor).square().sum(-1))


@claim(
    "With relative positions, moving all positions by the same number changes no logit",
    "相对位置编码下，所有位置平移同一个数，logits 不变",
    over=RELATIVE,
    faults={
        f.one_side: "rotary, fused",
        f.values_turned: "rotary interleaved",
        g.angle_not_linear: "llama3",
        g.bias_of_keys: "ALiBi",
    },
)
@torch.no_grad()
def test_moved_positions(variant: str) -> None:
    model, ids = model_of(variant), ids_of()
    for shift in (1, 5, 100):
        close(model(ids, positions=(torch.arange(T) + shift).expand(B, T)), model(ids), 1e-11)


@claim(
    "Order matters: with positions, exchanging two earlier tokens changes the last logits",
    "顺序有意义：有位置时，交换前面两个词元会改变最后的 logits",
    over=[name for name, config in VARIANTS.items() if not isinstance(config.positions, c.NoPositions)],
    faults={g.positions_lost: "learned"},
)
@torch.no_grad()
def test_order_matters(variant: str) -> None:
    model = model_of(variant, layers=1, cycle=VARIANTS[variant].cycle[:1])
    ids = torch.tensor([[3, 8, 1, 5, 2, 7]])
    differ(model(ids[:, [0, 1, 2, 4, 3, 5]])[:, -1], model(ids)[:, -1])


@claim(
    "Sinusoids: sin² + cos² = 1, and moving on is a fixed rotation of each pair, in both layouts",
    "正弦位置：sin² + cos² = 1，向前移动是每一对的固定旋转，两种排列都如此",
    over=["interleaved", "halves"],
    faults={g.unequal_frequencies: "halves"},
)
def test_sinusoids(layout: str) -> None:
    formula = formulas.sinusoids if layout == "interleaved" else formulas.sinusoids_in_halves
    table = formula(range(40), 24)
    sin, cos = (table[:, 0::2], table[:, 1::2]) if layout == "interleaved" else table.chunk(2, dim=-1)
    close(sin.square() + cos.square(), torch.ones_like(sin))
    angle = 7 * rotary_frequencies(24)
    close(sin[:-7] * angle.cos() + cos[:-7] * angle.sin(), sin[7:])
    close(cos[:-7] * angle.cos() - sin[:-7] * angle.sin(), cos[7:])


def turns(variant: str, dtype: torch.dtype, places: range) -> Rotation:
    """The rotation that the first block of a model of this type applies."""
    model = model_of(variant).to(dtype)
    recorder = Recorder("input")
    model(ids_of(), tap=recorder)
    turn = model.looks[0].turn(places, recorder.tensors["input"].dtype, torch.device("cpu"))
    assert isinstance(turn, Rotation)
    return turn


@claim(
    "Rotary angles are float32 or wider in a bfloat16 or float16 model, and under autocast",
    "bfloat16、float16 模型与 autocast 之下，旋转角度至少用 float32 计算",
    over=ROTARY,
    faults={g.angles_in_16_bits: "rotary, fused", g.angles_by_product: "rotary, MHA"},
)
@torch.no_grad()
def test_angles_keep_their_precision(variant: str) -> None:
    places = range(4000, 4000 + CONTEXT)
    exact = turns(variant, torch.float64, places)
    found = [turns(variant, dtype, places) for dtype in (torch.bfloat16, torch.float16, torch.float32)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found.append(turns(variant, torch.float32, places))
    for turn in found:
        for one, other in ((turn.cos, exact.cos), (turn.sin, exact.sin)):
            assert one.dtype == torch.float32
            # An angle of 4000 has 2^-13 between neighbours in float32, and 16 in bfloat16.
            assert (one - other).abs().max() <= 2**-11
    assert exact.cos.dtype == torch.float64


@claim(
    "Norm statistics, softmax and rotation of a bfloat16 model are those of float32, rounded at the end",
    "bfloat16 模型的归一化统计量、softmax 与旋转按 float32 计算，最后才舍入",
    over=["LayerNorm", "RMSNorm", "softmax", "rotation"],
    faults={g.statistics_in_16_bits: "RMSNorm"},
)
@torch.no_grad()
def test_sensitive_sums_are_wide(part: str) -> None:
    turn = turns("rotary, fused", torch.float32, range(T))
    x = torch.randn(2, 4, T, 6).bfloat16()
    formula = {"LayerNorm": LayerNorm(6), "RMSNorm": RMSNorm(6), "softmax": softmax, "rotation": turn}[part]
    wide, narrow = formula(x.float()), formula(x)
    assert narrow.to(torch.bfloat16).equal(wide.to(torch.bfloat16))

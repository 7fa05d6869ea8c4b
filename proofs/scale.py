"""Without 1/√d the softmax saturates, and gradients shrink.

Nothing is trained here. Queries and keys have independent features of variance 1, as a fresh layer behind a norm gives them, so a
score is a sum of d products and has variance d. Divided by √d it has variance 1 whatever d is. Without that the softmax of a wide head
puts nearly all weight on one key; the entropy of the weights says so (1 = all keys alike, 0 = one key). Its derivative,
diag(p) - p pᵀ, then is nearly zero, so that little of the gradient reaches the scores. The gradient of q is that of the scores times k:
nothing comes to the queries whose weight lies on one key, while a few that hesitate between two keys get a large one. So
the mean over queries does not shrink; the median does.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from clearhead.ops.attention import attend_visible
from clearhead.ops.masks import EVERYTHING
from clearhead.tracing.record import Recorder
from proofs.claims import Picture, Report, Table, Words, at_least, at_most
from proofs.pictures import curves

WIDTHS, KEYS, ROWS = (4, 16, 64, 256, 1024), 64, 32
TITLE = Words("Why scores are divided by √d", "为什么得分要除以 √d")
ABOUT = Words(
    "Queries and keys have independent features of variance 1, so a score has variance d. Divided by √d it has variance 1 whatever d is. "
    "Entropy: of the weights, as a share of ln S (1 = all keys alike, 0 = one key). Gradients: norm for each query, of a random "
    "direction of the output. The mean gradient of q does not shrink, because the few queries that hesitate between two keys get a large one; "
    "the median query gets next to nothing.",
    "q 和 k 的各特征独立、方差为 1，于是一个得分的方差为 d。除以 √d 后，无论 d 多大，方差都是 1。熵：权重的熵占 ln S 的比例（1 = 所有键一样，0 = 只看一个键）。"
    "梯度：对每个查询取范数，输出的方向是随机的。q 的平均梯度并不变小，因为少数在两个键之间摇摆的查询得到很大的梯度；中位数的查询几乎得不到梯度。",
)


def measured(width: int, scale: float | None, seed: int) -> dict[str, float]:
    """Entropy of the weights, and the norms of the gradients of scores, q and k; `scale` None is 1/√d."""
    random = torch.Generator().manual_seed(seed)

    def normal(features: int) -> Tensor:
        return torch.randn(ROWS, 1, KEYS, features, generator=random, dtype=torch.float64, requires_grad=True)

    q, k, v = normal(width), normal(width), normal(64)
    direction = normal(64).detach()
    recorder = Recorder(["scores", "weights"], detach=False)
    mixed = attend_visible(q, k, v, EVERYTHING, scale=scale, tap=recorder)
    scores, weights = recorder.tensors["scores"], recorder.tensors["weights"]
    gradients = torch.autograd.grad((mixed * direction).sum(), [scores, q, k])
    of_scores, of_q, of_k = (gradient.norm(dim=-1) for gradient in gradients)
    entropy = -torch.special.xlogy(weights, weights).sum(-1) / math.log(KEYS)
    return {
        "entropy": entropy.mean().item(),
        "scores": of_scores.mean().item(),
        "q": of_q.median().item(),
        "mean q": of_q.mean().item(),
        "k": of_k.median().item(),
    }


def prove(*, seed: int = 0) -> Report:
    """Measure both for every width."""
    with_it = {width: measured(width, None, seed) for width in WIDTHS}
    without = {width: measured(width, 1.0, seed) for width in WIDTHS}
    narrow, wide = WIDTHS[0], WIDTHS[-1]

    def change(found: dict[int, dict[str, float]], what: str) -> float:
        return found[wide][what] / found[narrow][what]

    span = f"d {narrow} → {wide}"
    drift = max(abs(change(with_it, what) - 1) for what in with_it[wide])
    claims = [
        at_least(
            f"with 1/√d: entropy, d = {wide}", f"有 1/√d：d = {wide} 时的熵", with_it[wide]["entropy"], 0.8, ".3g"
        ),
        at_most(f"without: entropy, d = {wide}", f"没有：d = {wide} 时的熵", without[wide]["entropy"], 0.05, ".3g"),
        at_most(
            f"with 1/√d: largest change of any number, {span}", f"有 1/√d：各数的最大变化，{span}", drift, 0.5, ".3g"
        ),
        at_most(
            f"without: gradient of the scores, {span}, times",
            f"没有：得分的梯度，{span}，倍数",
            change(without, "scores"),
            0.35,
            ".3g",
        ),
        at_most(
            f"without: gradient of the median q, {span}, times",
            f"没有：q 的梯度（中位数），{span}，倍数",
            change(without, "q"),
            0.05,
            ".3g",
        ),
    ]
    heads = [
        ("d", "d"),
        ("1/√d", "1/√d"),
        ("entropy", "熵"),
        ("gradient of scores", "得分的梯度"),
        ("of q, median", "q，中位数"),
        ("of q, mean", "q，平均"),
        ("of k, median", "k，中位数"),
    ]
    rows = [
        [str(width), mark, *(f"{value:.3g}" for value in found[width].values())]
        for width in WIDTHS
        for mark, found in (("✓", with_it), ("✗", without))
    ]
    table = Table(Words("At initialisation, 64 keys, float64", "初始化时，64 个键，float64"), heads, rows)
    drawn = {
        f"{what}, {title}": [(math.log2(width), found[width][key]) for width in WIDTHS]
        for what, key in (("entropy", "entropy"), ("median gradient of q", "q"))
        for title, found in (("with 1/√d", with_it), ("without", without))
    }
    caption = Words("Entropy of the weights and gradient of the median query", "权重的熵与中位数查询的梯度")
    return Report(claims, [table], [Picture("scale", caption, curves(drawn, x="log₂ d", y="", log=True, marks=True))])

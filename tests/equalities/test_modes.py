"""Evaluation and training, dropout, sampling: what is random, and what is not."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from clearhead.generation import sampling
from clearhead.generation.stores import GrowingStore
from clearhead.models.decoder import Decoder
from clearhead.ops.masks import causal
from tests.equalities import faults as f
from tests.equalities import faults_parts as g
from tests.equalities import faults_use as h
from tests.equalities.registry import claim, close
from tests.equalities.variants import VARIANTS, T, ids_of, input_of, model_of
from tests.oracles.compare import assert_same

P, DRAWS = 0.3, 4000


@claim(
    "Evaluation twice is equal to the bit; training twice differs; evaluation = training at dropout 0 = no_grad",
    "评估两次逐位相等；训练两次不同；评估 = 丢弃率为 0 的训练 = no_grad",
    over=VARIANTS,
    faults={
        h.active_in_eval: "learned", f.weights_dropped_in_eval: "rotary, fused", h.never_drops: "learned",
    },
)  # fmt: skip
def test_modes(variant: str) -> None:
    dropping, ids = model_of(variant, dropout=P), ids_of()
    evaluated = dropping(ids)
    assert_same(dropping(ids), evaluated)
    with torch.no_grad():
        assert_same(dropping(ids), evaluated.detach())
    assert_same(model_of(variant).train()(ids), evaluated)
    assert not dropping.train()(ids).equal(dropping(ids))
    assert_same(dropping.eval()(ids), evaluated)


@claim(
    "no_grad leaves dropout on, in attention weights, in branches and in the embedding",
    "no_grad 不会关闭 dropout：注意力权重、各分支与嵌入都一样",
    over=["learned", "rotary, fused", "soft-cap", "sinks", "parallel, biases", "sinusoidal, post-norm"],
    faults={h.off_without_gradient: "learned", h.never_drops: "soft-cap"},
)
@torch.no_grad()
def test_no_grad_leaves_dropout_on(variant: str) -> None:
    model = model_of(variant, dropout=P).train()
    x = input_of(model)
    block = model.blocks[0]
    for part in (lambda: model.dropout(x), lambda: block.feedforward(x), lambda: block.attention(x, causal(T))):
        assert not part().equal(part())
    block.attention.output_dropout.p = 0.0
    assert not block.attention(x, causal(T)).equal(block.attention(x, causal(T)))


def mean_of_draws(model: Decoder, part: str, x: Tensor) -> tuple[Tensor, Tensor]:
    """The mean over many draws in training, and its standard error."""
    many = x.expand(DRAWS, -1, -1)
    attention, feedforward = model.blocks[0].attention, model.blocks[0].feedforward
    if part == "attention":
        out = attention(many, causal(x.shape[1]))
    elif part == "feed-forward":
        out = feedforward(many)
    else:
        out = model.dropout(many)
    return out.mean(0, keepdim=True), out.std(0, keepdim=True) / DRAWS**0.5


@claim(
    "Dropout keeps the expectation: the mean of many draws is the value without dropout",
    "dropout 保持期望：多次抽取的平均等于不丢弃时的值",
    over=[
        f"{part}, {variant}"
        for part in ("attention", "feed-forward", "embedding")
        for variant in ("learned", "rotary, fused", "soft-cap", "sinks")
    ],
    faults={h.not_rescaled: "feed-forward, learned", f.weights_not_rescaled: "attention, rotary, fused"},
)
@torch.no_grad()
def test_dropout_keeps_the_expectation(case: str) -> None:
    part, _, variant = case.partition(", ")
    model = model_of(variant, dropout=P)
    x = input_of(model, 1, 5)
    expected = {
        "attention": lambda: model.blocks[0].attention(x, causal(5)),
        "feed-forward": lambda: model.blocks[0].feedforward(x),
        "embedding": lambda: x,
    }[part]()
    mean, error = mean_of_draws(model.train(), part, x)
    assert bool(((mean - expected).abs() <= 5 * error + 1e-12).all())


@claim(
    "The probabilities of all V^n continuations sum to 1 (V = 3, n = 4), read at once or token by token",
    "全部 V^n 种续写的概率之和为 1（V = 3，n = 4），一次读完或逐词元读都一样",
    over=VARIANTS,
    faults={
        f.no_mask: "learned", f.after_softmax: "rotary, fused", h.temperature_after: "learned", g.norm_over_positions: "learned",
    },
)  # fmt: skip
@torch.no_grad()
def test_probabilities_of_all_continuations_sum_to_one(variant: str) -> None:
    V, n = 3, 4
    model, prompt = model_of(variant, vocab=V), torch.tensor([[2, 0, 1]])
    settings = sampling.SamplingSettings(temperature=0.7)
    rest = torch.tensor(list(itertools.product(range(V), repeat=n)))
    texts = torch.cat([prompt.expand(V**n, -1), rest], dim=1)
    store = GrowingStore(model)
    stepwise = torch.cat([model(part, store=store) for part in (texts[:, :3], *texts[:, 3:].split(1, dim=1))], dim=1)
    for logits in (model(texts), stepwise):
        chances = sampling.probabilities(logits[:, 2:-1], settings).gather(-1, rest[..., None])[..., 0].prod(-1)
        assert bool((chances > 0).all())
        close(chances.sum(), torch.ones((), dtype=torch.float64))

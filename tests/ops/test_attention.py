"""The definition of attention against numbers by hand, a loop in numpy, PyTorch's own kernel and planted faults."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from clearhead.ops import EVERYTHING, Allowed, Mask, attend_fused, attend_visible, causal
from clearhead.ops.tap import Tap
from clearhead.tracing import Recorder
from tests.oracles import faulty_attention as faulty
from tests.oracles.compare import assert_within
from tests.oracles.faulty_attention import Sound, name_of
from tests.oracles.numpy_attention import attention as numpy_attention

Kernel = Callable[..., Tensor]
B, T, S, H, K, d, d_v = 2, 3, 5, 4, 2, 6, 7
KERNELS = [attend_visible, attend_fused, Sound()]
KERNELS_IDS = {"argvalues": KERNELS, "ids": name_of}


def random(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


def qkv(heads: int = K) -> tuple[Tensor, Tensor, Tensor]:
    return random(B, H, T, d), random(B, heads, S, d), random(B, heads, S, d_v)


def an_empty_row() -> Mask:
    """Any pattern, in which query 1 of the first row, head 2 may look at nothing."""
    allowed = torch.rand(B, H, T, S) < 0.5
    allowed[..., 0] = True
    allowed[0, 2, 1] = False
    return Allowed(allowed)


def check_numpy(attend: Kernel) -> None:
    """A kernel equals the loop over single numbers, for several masks, grouped heads, and a bias."""
    for heads in (H, K, 1):
        for visible in (EVERYTHING, causal(T, S), an_empty_row()):
            for bias in (None, random(H, T, S)):
                for scale in (None, 0.3):
                    q, k, v = qkv(heads)
                    allowed = visible.matrix().expand(B, H, T, S).numpy()
                    full = None if bias is None else bias.expand(B, H, T, S).numpy()
                    expected = numpy_attention(q.numpy(), k.numpy(), v.numpy(), allowed, bias=full, scale=scale)
                    mixed = attend(q, k, v, visible, bias=bias, scale=scale)
                    assert_within(mixed, torch.from_numpy(expected), 1e-12)


@pytest.mark.parametrize("attend", **KERNELS_IDS)
def test_attention_equals_a_loop_over_single_numbers(attend: Kernel) -> None:
    check_numpy(attend)


@pytest.mark.parametrize(
    "attend",
    faulty.faults(
        faulty.NoScale,
        faulty.ScaledByLength,
        faulty.MaskAfterSoftmax,
        faulty.NoMask,
        faulty.MaskReversed,
        faulty.FiniteMask,
        faulty.EmptyRowIsNaN,
        faulty.TopLeft,
        faulty.StrictTriangle,
        faulty.SelfOnly,
        faulty.SoftmaxOverQueries,
        faulty.HeadsTiled,
    ),
    ids=name_of,
)
def test_the_loop_catches(attend: Kernel) -> None:
    with pytest.raises(AssertionError):
        check_numpy(attend)


@pytest.mark.parametrize("attend", **KERNELS_IDS)
@pytest.mark.parametrize("visible", [EVERYTHING, causal(T, S), causal(S)], ids=["everything", "last", "triangle"])
def test_attention_equals_pytorch_called_by_hand(attend: Kernel, visible: Mask) -> None:
    """As its manual says: without a mask, with a bool matrix, with `is_causal`."""
    q, k, v = qkv(H)
    if visible == causal(S):
        q = random(B, H, S, d)
        official = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    else:
        matrix = visible.matrix() if visible != EVERYTHING else None
        official = F.scaled_dot_product_attention(q, k, v, attn_mask=matrix)
    assert_within(attend(q, k, v, visible), official, 1e-12)


def check_hand_weights(attend: Kernel) -> None:
    """Weights 0.1, 0.7, 0.2 over the values (1,0), (0,2), (3,1): 0.1·1 + 0.2·3 = 0.7 and 0.7·2 + 0.2·1 = 1.6."""
    scores = torch.tensor([0.1, 0.7, 0.2], dtype=torch.float64).log()
    q, k = torch.ones(1, 1, 1, 1, dtype=torch.float64), scores.view(1, 1, 3, 1)
    v = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]], dtype=torch.float64).view(1, 1, 3, 2)
    expected = torch.tensor([0.7, 1.6], dtype=torch.float64).view(1, 1, 1, 2)
    assert_within(attend(q, k, v, EVERYTHING), expected, 1e-15)
    nothing = torch.zeros_like(k)
    assert_within(attend(q, nothing, v, EVERYTHING, bias=scores), expected, 1e-15)


@pytest.mark.parametrize("attend", **KERNELS_IDS)
def test_weights_by_hand(attend: Kernel) -> None:
    check_hand_weights(attend)


def test_weights_by_hand_catch_a_softmax_over_queries() -> None:
    with pytest.raises(AssertionError):
        check_hand_weights(faulty.SoftmaxOverQueries())


def check_scale(attend: Kernel) -> None:
    """q = (2,0,0,0), k = (ln 3, ...) and 0: the score is 2 ln 3 / √4 = ln 3, the weights are 3/4 and 1/4."""
    q = torch.tensor([2.0, 0, 0, 0], dtype=torch.float64).view(1, 1, 1, 4)
    k = torch.tensor([[math.log(3), 9, 9, 9], [0, 9, 9, 9]], dtype=torch.float64).view(1, 1, 2, 4)
    v = torch.tensor([4.0, 0.0], dtype=torch.float64).view(1, 1, 2, 1)
    assert_within(attend(q, k, v, EVERYTHING), torch.full((1, 1, 1, 1), 3.0, dtype=torch.float64), 1e-15)


@pytest.mark.parametrize("attend", **KERNELS_IDS)
def test_scores_are_divided_by_the_root_of_the_head_width(attend: Kernel) -> None:
    check_scale(attend)


@pytest.mark.parametrize("attend", faulty.faults(faulty.NoScale, faulty.ScaledByLength), ids=name_of)
def test_a_wrong_scale_is_caught(attend: Kernel) -> None:
    with pytest.raises(AssertionError):
        check_scale(attend)


@pytest.mark.parametrize("attend", **KERNELS_IDS)
def test_equal_values_come_out_as_they_went_in(attend: Kernel) -> None:
    """The weights of a query sum to 1: if every value is c, so is the mixture."""
    q, k, v = qkv()
    assert_within(attend(q, k, torch.full_like(v, 3.0), causal(T, S)), torch.full((B, H, T, d_v), 3.0).double(), 1e-14)


@pytest.mark.parametrize("attend", **KERNELS_IDS)
def test_scores_too_large_for_exp_do_no_harm(attend: Kernel) -> None:
    """With scores near 1e5 the best key wins alone, and a hidden key with a better score stays hidden."""
    q = torch.full((1, 1, 2, 1), 1e5, dtype=torch.float64)
    k = torch.tensor([1.0, 2.0], dtype=torch.float64).view(1, 1, 2, 1)
    v = torch.tensor([10.0, 20.0], dtype=torch.float64).view(1, 1, 2, 1)
    assert attend(q, k, v, causal(2)).flatten().tolist() == [10.0, 20.0]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_softmax_of_a_16_bit_input_runs_in_float32(dtype: torch.dtype) -> None:
    recorder = Recorder()
    q, k, v = (x.to(dtype) for x in qkv())
    mixed = attend_visible(q, k, v, causal(T, S), tap=recorder)
    assert mixed.dtype == dtype
    assert recorder.tensors["scores"].dtype == dtype
    assert recorder.tensors["weights"].dtype == torch.float32
    assert_within(recorder.tensors["weights"].sum(-1), torch.ones(B, H, T), 1e-6)


def test_a_tap_sees_scores_before_the_mask_and_weights_before_dropout() -> None:
    recorder = Recorder()
    q, k, v = qkv(H)
    attend_visible(q, k, v, causal(T, S), dropout=0.5, tap=recorder)
    assert_within(recorder.tensors["scores"], q @ k.mT / math.sqrt(d), 1e-14)
    assert_within(recorder.tensors["weights"].sum(-1), torch.ones(B, H, T).double(), 1e-14)
    assert recorder.tensors["weights"][0, 0].eq(0).tolist() == [[False] * (i + 3) + [True] * (2 - i) for i in range(T)]


def test_what_a_tap_returns_is_what_attention_goes_on_with() -> None:
    class Uniform(Tap):
        def __call__(self, name: str, tensor: Tensor) -> Tensor:
            return torch.full_like(tensor, 1 / S) if name == "weights" else tensor

        def within(self, scope: str) -> Uniform:
            return self

    q, k, v = qkv(H)
    mean = v.mean(-2, keepdim=True).expand(B, H, T, d_v)
    assert_within(attend_visible(q, k, v, causal(T, S), tap=Uniform()), mean, 1e-14)

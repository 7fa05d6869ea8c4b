"""The checks of a decoder: a right model passes, each planted fault is named, and silence is no proof."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from clearhead.checking.decoder import check_decoder, kernels_agree, no_future, no_future_gradient, past_is_seen
from clearhead.checking.finding import Finding
from clearhead.models.build import build
from clearhead.models.choices import Fused, Kernel, Visible
from clearhead.models.config import DecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.ops import Mask
from tests.oracles import faulty_attention as faulty
from tests.oracles.faulty_attention import name_of

CONFIG = DecoderConfig(vocab=29, layers=2, heads=4, kv_heads=2, width=12, context=9, dropout=0.3)
LEAK, PAST, KERNEL = "causal.future-leak", "causal.past-lost", "kernel.differs"


def with_kernel(attend: Callable[..., Tensor], *, last_only: bool = False) -> Decoder:
    """A model with another kernel, in all blocks or in the last."""
    model = build(CONFIG, seed=0)
    for block in list(model.blocks)[-1 if last_only else 0 :]:
        block.attention.attend = attend
    return model


def faults(findings: list[Finding]) -> set[str]:
    return {finding.id for finding in findings if not finding.passed}


@pytest.mark.parametrize("kernel", [Visible(), Fused()], ids=["visible", "fused"])
@pytest.mark.parametrize("context", [2, 9, 70])
def test_a_right_model_passes(kernel: Kernel, context: int) -> None:
    config = replace(CONFIG, kernel=kernel, context=context)
    findings = check_decoder(build(config, seed=0), config)
    assert faults(findings) == set()
    assert [finding.id for finding in findings] == [LEAK, LEAK, PAST, KERNEL]
    assert [finding.largest for finding in findings[:2]] == [0, 0]
    assert findings[-1].largest < 1e-12


def test_a_context_of_one_has_neither_future_nor_past() -> None:
    config = replace(CONFIG, context=1)
    findings = check_decoder(build(config, seed=0), config)
    assert [finding.id for finding in findings] == [LEAK, LEAK, KERNEL]
    assert faults(findings) == set()
    assert "no future to see" in findings[0].evidence


def test_windows_of_one_key_have_no_past_by_design() -> None:
    config = replace(CONFIG, window=1)
    assert faults(check_decoder(build(config, seed=0), config)) == set()


def test_the_model_is_not_touched() -> None:
    model = build(CONFIG, seed=0)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    check_decoder(model, CONFIG)
    assert model.training
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("last_only", [False, True], ids=["every block", "the last block"])
@pytest.mark.parametrize(
    "attend", faulty.faults(faulty.NoMask, faulty.MaskReversed, faulty.MaskAfterSoftmax), ids=name_of
)
def test_a_leak_is_named(attend: Callable[..., Tensor], last_only: bool) -> None:
    """A mask after the softmax leaks nothing of the values, but the sum below the fraction sees the future."""
    assert LEAK in faults(check_decoder(with_kernel(attend, last_only=last_only), CONFIG))


def late_leak(q: Tensor, k: Tensor, v: Tensor, visible: Mask, **options: object) -> Tensor:
    """Right but for one place: the query before the last sees the last key."""
    right = faulty.Sound()

    class OneMore(faulty.Sound):
        def allowed(self, visible: object, scores: Tensor) -> Tensor:
            allowed = super().allowed(visible, scores).clone()
            allowed[..., -2, -1] = True
            return allowed

    return (OneMore() if q.shape[-2] > 2 else right)(q, k, v, visible, **options)


def test_a_leak_at_one_place_is_found() -> None:
    assert LEAK in faults(check_decoder(with_kernel(late_leak), CONFIG))


@pytest.mark.parametrize(
    "attend",
    faulty.faults(
        faulty.NoScale, faulty.ScaledByLength, faulty.HeadsTiled, faulty.SoftmaxOverQueries, faulty.StrictTriangle
    ),
    ids=name_of,
)
def test_the_models_own_kernel_is_held_to_the_definition(attend: Callable[..., Tensor]) -> None:
    """Not only two kernels that the check brings itself."""
    assert KERNEL in faults(check_decoder(with_kernel(attend), CONFIG))


def test_the_oracles_sound_kernel_passes() -> None:
    """The faults above are found for their fault, not for being written by somebody else."""
    assert faults(check_decoder(with_kernel(faulty.Sound()), CONFIG)) == set()


def test_a_fused_kernel_that_differs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clearhead.models.build.attend_fused", faulty.ScaledByLength())
    assert faults(check_decoder(build(CONFIG, seed=0), CONFIG)) == {KERNEL}


def test_a_difference_beyond_rounding_is_found() -> None:
    """A millionth of the scale: far below what anybody sees in a loss."""

    class SlightlyScaled(faulty.Sound):
        def scale(self, q: Tensor, k: Tensor) -> float:
            return super().scale(q, k) * (1 + 1e-6)

    assert faults(check_decoder(with_kernel(SlightlyScaled()), CONFIG)) == {KERNEL}


def exact(change: Callable[[Decoder], None]) -> tuple[Decoder, Tensor]:
    """A changed model in float64, and ids for it."""
    model = build(CONFIG, seed=0).double().eval()
    with torch.no_grad():
        change(model)
    return model, torch.randint(CONFIG.vocab, (2, CONFIG.context))


def test_a_model_that_says_always_the_same_proves_nothing() -> None:
    """It does not see the future; it does not see anything."""
    untied = replace(CONFIG, tied=False)
    model, ids = build(untied, seed=0).double().eval(), torch.randint(CONFIG.vocab, (2, CONFIG.context))
    nn.init.zeros_(model.head.weight)
    assert not no_future(model, ids).passed
    assert not no_future_gradient(model, ids).passed
    assert LEAK in faults(check_decoder(model, untied))


class Cut(nn.Module):
    """Passes nothing on, neither numbers nor gradients."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.ones_like(x).requires_grad_()


def test_a_model_without_any_way_back_to_its_input_is_found_too() -> None:
    model, ids = exact(lambda model: setattr(model, "norm", Cut()))
    assert not no_future_gradient(model, ids).passed


def test_a_model_that_sees_itself_alone_has_lost_its_past() -> None:
    """Causal, but the gradient to every earlier input is 0."""
    model = with_kernel(faulty.SelfOnly()).double().eval()
    ids = torch.randint(CONFIG.vocab, (2, CONFIG.context))
    assert not past_is_seen(model, ids).passed
    blind, ids = exact(lambda model: [block.attention.output.weight.zero_() for block in model.blocks])
    assert not past_is_seen(blind, ids).passed
    assert PAST in faults(check_decoder(with_kernel(faulty.SelfOnly()), CONFIG))


def test_the_evidence_holds_the_numbers() -> None:
    findings = check_decoder(with_kernel(faulty.NoMask()), CONFIG)
    for finding in findings:
        assert "e+00" in finding.evidence or "e-" in finding.evidence
        assert "\n" not in finding.evidence
    assert findings[0].largest > 1e-9


def test_kernels_are_compared_on_the_models_own_weights() -> None:
    """With weights of another model the logits would agree as well."""
    model = build(CONFIG, seed=3).double().eval()
    with torch.no_grad():
        model.head.weight.mul_(torch.nan)
    ids = torch.randint(CONFIG.vocab, (2, CONFIG.context))
    assert not kernels_agree(model, CONFIG, ids).passed

"""The checks of an encoder-decoder: right models pass, and each planted fault is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from clearhead.checking.encoder_decoder import check_encoder_decoder
from clearhead.checking.finding import Finding
from clearhead.generation.stores import GrowingStore
from clearhead.layers.attention import MultiHeadAttention
from clearhead.layers.memory import CrossStore, Memory
from clearhead.models.build import build
from clearhead.models.choices import Fused, Kernel, PostNorm, Relative, Rotary, Visible
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops.masks import EVERYTHING, Allowed
from tests.oracles import faulty_attention as faulty

CONFIG = EncoderDecoderConfig(
    vocab=29, source_vocab=23, layers=2, encoder_layers=1, heads=4, kv_heads=2, width=12, context=9, source_context=11,
    dropout=0.3,
)  # fmt: skip
IDS = [
    "causal.future-leak", "causal.future-leak", "causal.past-lost", "cross.source-lost", "cache.mismatch",
    "mask.ignored", "kernel.differs",
]  # fmt: skip
RIGHT = EncoderDecoder.remember


def found(model: EncoderDecoder | None = None, config: EncoderDecoderConfig = CONFIG) -> list[Finding]:
    return check_encoder_decoder(build(config, seed=0) if model is None else model, config)


def faults(findings: list[Finding]) -> set[str]:
    return {finding.id for finding in findings if not finding.passed}


@pytest.mark.parametrize("kernel", [Visible(), Fused()], ids=["visible", "fused"])
@pytest.mark.parametrize(
    "changes",
    [{}, {"block": PostNorm()}, {"positions": Rotary()}, {"positions": Relative()}, {"source_vocab": None}],
    ids=str,
)
def test_a_right_model_passes(kernel: Kernel, changes: dict[str, object]) -> None:
    model = build(replace(CONFIG, kernel=kernel, **changes), seed=0)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    findings = check_encoder_decoder(model, replace(CONFIG, kernel=kernel, **changes))
    assert faults(findings) == set()
    assert [finding.id for finding in findings] == IDS
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert model.training


def test_small_contexts_and_kernels_of_their_own_are_checked_as_far_as_they_go() -> None:
    assert [each.id for each in found(config=replace(CONFIG, context=1, source_context=2))] == [
        "causal.future-leak", "causal.future-leak", "cross.source-lost", "cache.mismatch", "kernel.differs",
    ]  # fmt: skip
    assert [each.id for each in found(config=replace(CONFIG, softcap=5.0))] == IDS[:-1]


def test_a_decoder_that_sees_the_future_is_named() -> None:
    model = build(CONFIG, seed=0)
    for block in model.decoder.blocks:
        block.attention.attend = faulty.NoMask()
    assert "causal.future-leak" in faults(found(model))


def test_a_decoder_that_sees_itself_alone_is_named() -> None:
    model = build(CONFIG, seed=0)
    for block in model.decoder.blocks:
        block.attention.attend = faulty.SelfOnly()
    assert "causal.past-lost" in faults(found(model))


def changed(patch: pytest.MonkeyPatch, change: Callable[[Memory], Memory]) -> None:
    """Every memory is another."""

    def remember(self: EncoderDecoder, source: Tensor, **more: object) -> CrossStore:
        store = RIGHT(self, source, **more)
        return CrossStore([change(memory) for memory in store.memories], store.own)

    patch.setattr(EncoderDecoder, "remember", remember)


def test_padding_that_is_seen_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    changed(monkeypatch, lambda memory: memory._replace(visible=EVERYTHING))
    assert faults(found()) == {"mask.ignored"}


def test_a_source_that_is_not_read_to_its_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Allowed(torch.tensor([[True] + [False] * (CONFIG.encoder.context - 1)]))
    changed(monkeypatch, lambda memory: memory._replace(v=memory.v * 0))
    assert "cross.source-lost" in faults(found())
    monkeypatch.undo()
    # The encoder mixes all positions into the first, unless each sees itself alone.
    model = build(CONFIG, seed=0)
    for block in model.encoder.blocks:
        block.attention.attend = faulty.SelfOnly()
    changed(monkeypatch, lambda memory: memory._replace(visible=first) if memory.k.shape[2] == 11 else memory)
    assert "cross.source-lost" in faults(found(model))


def test_a_cache_that_forgets_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = type(GrowingStore(build(CONFIG, seed=0).decoder).layer(0))
    right = layer.append

    def fading(self: object, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        k, v = right(self, k, v)  # type: ignore[arg-type]
        self.kept = (k, 0.9 * v)  # type: ignore[attr-defined]
        return k, v

    monkeypatch.setattr(layer, "append", fading)
    assert "cache.mismatch" in faults(found())


def test_a_kernel_that_differs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    right = MultiHeadAttention.across

    def across(self: MultiHeadAttention, x: Tensor, memory: Memory, **tap: object) -> Tensor:
        out = right(self, x, memory, **tap)
        return out * (1 + 1e-6) if "fused" in self.attend.__name__ else out

    monkeypatch.setattr(MultiHeadAttention, "across", across)
    assert faults(found()) == {"kernel.differs"}


@pytest.mark.parametrize("context", [9, 11, 14])
def test_cross_attention_that_is_causal_is_named(monkeypatch: pytest.MonkeyPatch, context: int) -> None:
    """Query t asks no more of the source than its first t + 1 positions; the encoder does not mix them.

    With a target as long as the source or longer, its last position asks for all of them and would show nothing.
    """
    right = MultiHeadAttention.across

    def across(self: MultiHeadAttention, x: Tensor, memory: Memory, **tap: object) -> Tensor:
        triangle = torch.ones(x.shape[1], memory.k.shape[2], dtype=torch.bool).tril()
        return right(self, x, memory._replace(visible=Allowed(triangle)), **tap)

    monkeypatch.setattr(MultiHeadAttention, "across", across)
    config = replace(CONFIG, context=context)
    model = build(config, seed=0)
    for block in model.encoder.blocks:
        block.attention.attend = faulty.SelfOnly()
    assert "cross.source-lost" in faults(found(model, config))


def test_an_encoder_that_reads_padding_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cross-attention leaves the padding out, but every feature has been mixed with it."""
    right = Encoder.forward
    monkeypatch.setattr(Encoder, "forward", lambda self, ids, *, real, tap: right(self, ids, tap=tap))
    assert faults(found()) == {"mask.ignored"}


def test_a_branch_that_adds_nothing_has_lost_the_source() -> None:
    model = build(CONFIG, seed=0)
    for block in model.decoder.blocks:
        torch.nn.init.zeros_(block.cross_attention.output.weight)
    assert faults(found(model)) == {"cross.source-lost"}


def test_a_cache_that_loses_its_oldest_token_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = type(GrowingStore(build(CONFIG, seed=0).decoder).layer(0))
    right = layer.append

    def append(self: object, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        k, v = right(self, k, v)  # type: ignore[arg-type]
        return torch.cat([0 * k[:, :, :1], k[:, :, 1:]], dim=2), torch.cat([0 * v[:, :, :1], v[:, :, 1:]], dim=2)

    monkeypatch.setattr(layer, "append", append)
    assert faults(found()) == {"cache.mismatch"}


def test_another_kernel_in_one_part_alone_is_named() -> None:
    """In the encoder, in the decoder's own attention, in its cross-attention."""
    for part in ("encoder", "own", "cross"):
        model = build(CONFIG, seed=0)
        blocks = (model.encoder if part == "encoder" else model.decoder).blocks
        attention = blocks[-1].cross_attention if part == "cross" else blocks[-1].attention
        attention.attend = faulty.ScaledByLength()
        assert "kernel.differs" in faults(found(model)), part


def test_every_seed_finds_the_same_and_the_numbers_stand_in_the_evidence() -> None:
    model = build(CONFIG, seed=0)
    first, again, other = (check_encoder_decoder(model, CONFIG, seed=seed) for seed in (3, 3, -4))
    assert first == again != other
    assert faults(other) == set()
    assert all("e-" in finding.evidence or "e+" in finding.evidence for finding in first)
    assert all("\n" not in finding.evidence for finding in first)

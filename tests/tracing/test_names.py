"""The table of names and axes tells the truth about every tensor that a forward shows."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clearhead.models import choices as kinds
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.tracing import AXES, NAMES, Recorder, axes_of
from clearhead.tracing import names as names_module

# Of the names in the table, a decoder without a source shows those that do not begin so.
OTHERS = ("segments", "head.", "blocks.*.cross")
OWN = [name for name in NAMES if not name.startswith(OTHERS)]
SIZES = {"B": 7, "T": 3, "S": 3, "M": 5, "D": 10, "H": 4, "K": 2, "d": 6, "F": 14, "V": 11}
LAYERS = 5
KERNELS = [kinds.Visible(), kinds.Fused()]
GATED = kinds.GEGLU()


def traced(kernel: kinds.Kernel, activation: kinds.Activation = GATED) -> dict[str, Tensor]:
    """What a forward shows, all sizes distinct (but S = T, as it must be in a forward of a decoder without a cache)."""
    config = DecoderConfig(
        vocab=SIZES["V"],
        layers=LAYERS,
        heads=SIZES["H"],
        kv_heads=SIZES["K"],
        width=SIZES["D"],
        head_width=SIZES["d"],
        feedforward_width=SIZES["F"],
        context=9,
        activation=activation,
        kernel=kernel,
    )
    recorder = Recorder()
    build(config, seed=0)(torch.randint(SIZES["V"], (SIZES["B"], SIZES["T"])), tap=recorder)
    return recorder.tensors


def check_axes(tensors: dict[str, Tensor], sizes: dict[str, int] = SIZES) -> None:
    """Every tensor has the axes of the table."""
    for name, tensor in tensors.items():
        try:
            axes = axes_of(name)
        except KeyError:
            raise AssertionError(f"{name} is not in the table") from None
        assert tuple(tensor.shape) == tuple(sizes[axis] for axis in axes), name


@pytest.mark.parametrize("activation", [kinds.GELU(), kinds.SwiGLU()])
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_tensor_of_a_forward_has_the_axes_of_the_table(
    kernel: kinds.Kernel, activation: kinds.Activation
) -> None:
    check_axes(traced(kernel, activation))


def test_the_visible_kernel_shows_every_name_of_a_decoder_for_every_block() -> None:
    expected = {name.replace("*", str(block)) for name in OWN for block in range(LAYERS)}
    assert set(traced(kinds.Visible())) == expected


def test_what_the_fused_kernel_does_not_hold_is_computed_again_in_its_place() -> None:
    assert list(traced(kinds.Visible())) == list(traced(kinds.Fused())) == list(traced(kinds.Blockwise()))


def test_a_feed_forward_without_a_gate_shows_all_but_the_gate() -> None:
    hidden = {f"blocks.{block}.feedforward.gate" for block in range(LAYERS)}
    assert set(traced(kinds.Visible())) - set(traced(kinds.Visible(), kinds.GELU())) == hidden


def test_names_come_in_the_order_of_the_table() -> None:
    later = tuple(f"blocks.{block}." for block in range(1, LAYERS))
    shown = [name for name in traced(kinds.Visible()) if not name.startswith(later)]
    assert [name.replace("blocks.0.", "blocks.*.") for name in shown] == OWN


def test_every_axis_has_a_meaning() -> None:
    assert {axis for axes in NAMES.values() for axis in axes.split()} == set(AXES) == set(SIZES)
    assert len(set(SIZES.values())) == len(SIZES) - 1  # S = T in a forward of a decoder without a cache


def test_the_axes_of_a_name() -> None:
    assert axes_of("blocks.3.attention.weights") == ("B", "H", "T", "S")
    assert axes_of("blocks.12.attention.k") == ("B", "K", "T", "d")
    assert axes_of("logits") == ("B", "T", "V")


@pytest.mark.parametrize("name", ["weights", "blocks.attention.weights", "blocks.x.output", "blocks.0.blocks.0.output"])
def test_a_name_that_no_forward_shows_is_an_error(name: str) -> None:
    with pytest.raises(KeyError):
        axes_of(name)


@pytest.mark.parametrize(
    ("name", "axes"),
    [
        ("blocks.*.attention.weights", "B K T S"),
        ("blocks.*.attention.k", "B H T d"),
        ("blocks.*.attention.q", "B T H d"),
        ("blocks.*.feedforward.hidden", "B T D"),
        ("logits", "T B V"),
    ],
)
def test_a_wrong_row_in_the_table_is_found(monkeypatch: pytest.MonkeyPatch, name: str, axes: str) -> None:
    monkeypatch.setitem(names_module.NAMES, name, axes)
    with pytest.raises(AssertionError):
        check_axes(traced(kinds.Visible()))


def test_a_missing_row_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    # A copy: what is taken out of a dict and put back stands at its end.
    monkeypatch.setattr(names_module, "NAMES", {n: axes for n, axes in NAMES.items() if n != "blocks.*.middle"})
    with pytest.raises(AssertionError, match=r"blocks\.0\.middle is not in the table"):
        check_axes(traced(kinds.Visible()))

"""One tensor as a picture: the largest of each field, zero in the middle, as a trace has it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from clearhead.tracing.names import known_axes
from clearhead.tracing.trace import summary
from clearhead.web import flow, opening, stage
from clearhead.web.answer import unpacked
from clearhead.web.opening import opened
from clearhead.web.session import RefusedError, Session
from clearhead.web.summing import NEVER_TAKEN, Numbers, summing
from tests.web.read_models import TEXT, decoder, loaded_of, target_of
from tests.web.test_opening import traced


def pictured(session: Session, name: str) -> tuple[dict[str, Any], NDArray[Any]]:
    header, arrays = unpacked(stage.answer(session, {"name": name}).body)
    return header, arrays["picture"]


def by_hand(tensor: Tensor, field: tuple[int, int]) -> NDArray[np.float64]:
    """The number of the largest size in each field, with loops."""
    matrix = tensor.reshape(-1, tensor.shape[-1]).double().numpy()
    rows, columns = (-(-size // each) for size, each in zip(matrix.shape, field, strict=True))
    found = np.zeros((rows, columns))
    for row in range(rows):
        for column in range(columns):
            part = matrix[row * field[0] : (row + 1) * field[0], column * field[1] : (column + 1) * field[1]].ravel()
            found[row, column] = part[np.abs(part).argmax()]
    return found


def check_picture(header: dict[str, Any], picture: NDArray[Any], name: str, tensor: Tensor) -> None:
    """Sizes, ends and every byte."""
    own = tensor[0] if known_axes(name)[:1] == ("B",) else tensor
    assert (header["rows"], header["columns"]) == (own.numel() // own.shape[-1], own.shape[-1])
    assert (header["least"], header["most"]) == pytest.approx((float(own.min()), float(own.max())), rel=1e-6)
    wanted = by_hand(own, tuple(header["pooled"]))
    assert picture.shape == wanted.shape
    assert max(picture.shape) <= stage.MOST
    end = max(abs(header["least"]), abs(header["most"]))
    back = (picture / 127.5 - 1) * end
    assert np.abs(back - wanted).max() <= end / 255 * 1.01


SOME = [("decoder", "rotary, fused"), ("decoder", "soft-cap"), ("decoder", "sinks"), ("decoder", "window, ALiBi"),
        ("encoder", "BERT"), ("encoder", "first, dense"), ("pair", "T5")]  # fmt: skip


@pytest.mark.parametrize(("kind", "variant"), SOME)
def test_every_tensor_is_drawn_as_a_trace_has_it(kind: str, variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "MOST", 7)
    session = opened(loaded_of(kind, variant), TEXT, target_of(kind))
    for name, tensor in traced(session).items():
        header, picture = pictured(session, name)
        check_picture(header, picture, name, tensor)
        told = summary(tensor)
        told.pop("bytes")
        assert header["stage"]["summary"] == pytest.approx(told, rel=1e-6, abs=1e-6)
    with pytest.raises(AssertionError):
        check_picture(header, picture[::-1, ::-1], name, tensor)
    with pytest.raises(AssertionError):
        check_picture(header, 255 - picture, name, tensor)


@pytest.mark.parametrize("kind", ["decoder", "pair"])
def test_many_logits_are_computed_when_they_are_opened(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, heads = loaded_of(kind, {"decoder": "learned", "pair": "T5"}[kind]), list[int]()
    head: torch.nn.Linear = getattr(loaded.model, "decoder", loaded.model).head
    handle = head.register_forward_hook(lambda *_: heads.append(1))
    monkeypatch.setattr(opening, "LOGITS_FEW", 10)
    session = opened(loaded, TEXT, target_of(kind))
    assert heads == [], "opening computes none of them"
    last = session.stages[-1]
    assert last.summary == {**NEVER_TAKEN, "bytes": last.shape[1] * last.shape[2] * 8}
    (told,) = (each for each in json.loads(flow.answer(session, {}).body)["stages"] if each["name"] == last.name)
    assert set(told["summary"].values()) == {None}
    header, picture = pictured(session, last.name)
    assert len(heads) == 1, "the picture and the numbers are of one computation"
    handle.remove()
    wanted = traced(session)[last.name]
    check_picture(header, picture, last.name, wanted)
    numbers = {key: value for key, value in summary(wanted).items() if key != "bytes"}
    assert header["stage"]["summary"] == pytest.approx(numbers, rel=1e-6, abs=1e-6)
    # Opened with them, the stage has the same numbers; those of three positions are others.
    monkeypatch.setattr(opening, "LOGITS_FEW", 1 << 21)
    again = pictured(opened(loaded, TEXT, target_of(kind)), last.name)[0]["stage"]["summary"]
    assert again == pytest.approx(numbers, rel=1e-6, abs=1e-6)
    taken: list[Numbers] = []
    assert len(list(summing(iter([wanted[:, :3]]), taken))) == 1
    assert taken[0]["mean"] != pytest.approx(numbers["mean"], rel=1e-6, abs=1e-6)


def test_a_field_keeps_its_largest_size_with_its_sign() -> None:
    matrix = torch.tensor([[1.0, -5.0, 2.0], [0.5, 4.0, -2.5], [0.0, 0.0, 3.0]])
    picture, least, most = stage._picture(iter([matrix[:1], matrix[1:]]), (3, 3), (2, 2))
    assert picture.tolist() == [[-5.0, -2.5], [0.0, 3.0]]
    assert (least, most) == (-5.0, 4.0)
    assert stage._bytes(picture, 5.0).tolist() == [[0, 64], [128, 204]]


def test_what_is_not_finite_is_passed_over() -> None:
    matrix = torch.tensor([[torch.nan, -torch.inf], [2.0, torch.inf], [torch.nan, torch.nan]])
    picture, least, most = stage._picture(iter([matrix]), (3, 2), (1, 1))
    assert picture.tolist() == [[0.0, 0.0], [2.0, 0.0], [0.0, 0.0]]
    assert (least, most) == (2.0, 2.0)


def test_what_cannot_be_drawn_is_refused() -> None:
    session = opened(decoder("learned"), TEXT)
    for name in ("", "blocks.9.output", "blocks.0.attention", "embedding "):
        with pytest.raises(RefusedError) as refused:
            stage.answer(session, {"name": name})
        assert refused.value.status == 400
    with torch.no_grad():
        loaded = loaded_of("decoder", "untied, biases")
        before = loaded.model.head.weight.clone()  # type: ignore[union-attr]
        loaded.model.head.weight.fill_(torch.nan)  # type: ignore[union-attr]
    broken = opened(loaded, TEXT)
    assert broken.stages[-1].summary["mean"] is None
    with pytest.raises(RefusedError) as refused:
        stage.answer(broken, {"name": "logits"})
    assert refused.value.status == 422
    with torch.no_grad():
        loaded.model.head.weight.copy_(before)  # type: ignore[union-attr]


def test_the_forward_ends_at_the_tensor_that_is_asked_for() -> None:
    session = opened(decoder("learned"), TEXT)
    seen: list[int] = []
    handles = [
        block.register_forward_hook(lambda *_, index=index: seen.append(index))
        for index, block in enumerate(session.loaded.model.blocks)  # type: ignore[union-attr]
    ]
    stage.answer(session, {"name": "blocks.0.output"})
    assert seen == [], "a block that is left in the middle has no output"
    stage.answer(session, {"name": "blocks.1.attention_norm"})
    assert seen == [0]
    for handle in handles:
        handle.remove()

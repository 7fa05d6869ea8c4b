"""One query's weights, scores and mask are those of a trace."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from clearhead.messages import say
from clearhead.ops.recompute import scores_of
from clearhead.web import row
from clearhead.web.answer import unpacked
from tests.web.heads_opened import ALL, name_of, places, query, recorded, refusal, session_of


def check_row(kind: str, variant: str) -> None:
    of = session_of(kind, variant)
    kept = recorded(of, "*")
    for part, layer, head in places(of)[::3]:
        name = name_of(part, layer)
        for asked in (0, 4, 6):
            header, arrays = unpacked(row.answer(of, query(part, layer, head, query=asked)).body)
            weights, scores = (kept[f"{name}.{each}"][0, head, asked].float() for each in ("weights", "scores"))
            assert header["keys"] == len(weights)
            assert np.abs(arrays["weights"] - weights.numpy()).max() <= 1e-6
            assert np.abs(arrays["scores"] - scores.numpy()).max() <= 1e-6 * max(1.0, float(scores.abs().max()))
            seen = of.ran[name].visible.matrix().expand(1, 1, header["queries"], header["keys"])[0, 0, asked]
            assert arrays["visible"].tolist() == seen.int().tolist()
            assert not arrays["weights"][~seen.numpy()].any()


@pytest.mark.parametrize(("kind", "variant"), ALL)
def test_a_row_is_that_of_a_trace(kind: str, variant: str) -> None:
    check_row(kind, variant)


@pytest.mark.parametrize("by", [(1, 0), (0, 1)])
def test_a_neighbour_is_found(by: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    if by[0]:
        monkeypatch.setattr(row, "scores_of", lambda ran, heads, queries: scores_of(ran, heads, [queries[0] + 1]))
    else:
        kept = row.one_head
        monkeypatch.setattr(row, "one_head", lambda ran, head: kept(ran, (head + 1) % ran.q.shape[-3]))
    with pytest.raises(AssertionError):
        check_row("decoder", "learned")


def test_a_16_bit_model_is_read_in_float32() -> None:
    of = session_of("decoder", "rotary, fused")
    ran = of.ran["blocks.1.attention"]
    short = ran._replace(q=ran.q.bfloat16(), k=ran.k.bfloat16(), v=ran.v.bfloat16())
    wide = short._replace(q=short.q.double(), k=short.k.double(), v=short.v.double())
    found = []
    for each in (short, wide):
        of.ran["blocks.1.attention"] = each  # type: ignore[index]
        found.append(unpacked(row.answer(of, query("attention", 1, 3, query=9)).body)[1]["scores"])
    of.ran["blocks.1.attention"] = ran  # type: ignore[index]
    assert np.abs(found[0] - found[1]).max() < 1e-5
    rounded = scores_of(short, [3], [9])[0, 0, 0].float().numpy()
    assert np.abs(rounded - found[1]).max() > 1e-4


def test_what_is_not_there_is_refused_in_one_line() -> None:
    of = session_of("decoder", "learned")
    good = query("attention", 1, 3, query=12)
    row.answer(of, good)
    parts = "attention"
    for change, told in {
        ("part", "mlp"): say("heads.no_part", value="mlp", parts=parts),
        ("layer", "2"): say("heads.outside", name="layer", value=2, last=1),
        ("head", "4"): say("heads.outside", name="head", value=4, last=3),
        ("query", "13"): say("heads.outside", name="query", value=13, last=12),
        ("query", "-1"): say("heads.not_a_number", name="query", value="-1", last=12),
        ("head", "²"): say("heads.not_a_number", name="head", value="²", last=3),
        ("head", "٣"): say("heads.not_a_number", name="head", value="٣", last=3),
        ("layer", "1\n"): say("heads.not_a_number", name="layer", value="1\n", last=1),
    }.items():
        assert refusal(row.answer, of, {**good, change[0]: change[1]}) == (400, told)
        assert "\n" not in told
    for name in good:
        rest = {key: value for key, value in good.items() if key != name}
        assert refusal(row.answer, of, rest) == (400, say("heads.missing", name=name))


def test_parts_of_an_encoder_decoder() -> None:
    of = session_of("pair", "T5")
    assert {part for part, _, _ in places(of)} == {"encoder.attention", "decoder.attention", "decoder.cross_attention"}
    header, _ = unpacked(row.answer(of, query("decoder.cross_attention", 1, 2, query=12)).body)
    assert (header["queries"], header["keys"]) == (13, 7)
    assert torch.tensor([len(of.ids), len(of.source)]).tolist() == [13, 7]

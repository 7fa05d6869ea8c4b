"""Gemma 3 of transformers, small and with random weights, and ours read from its configuration and its tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.formats.load import Loaded
from clearhead.formats.rows import Row
from clearhead.generation.generate import generate
from clearhead.models import choices as kinds
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig, Sight
from tests.formats.hugging_face.gemmas import REAL, VARIANTS, ids, in_float64, theirs_of
from tests.formats.hugging_face.given import (
    LETTERS,
    SOURCE,
    as_saved,
    check_parity,
    family_of,
    ours_of,
    read,
    same_names_and_shapes,
)

FLOAT64, AS_IT_IS, FLOAT32 = 1e-12, 1e-6, 1e-5


@pytest.mark.parametrize("real", [None, REAL], ids=["no padding", "padding at the left"])
@pytest.mark.parametrize("name", VARIANTS)
def test_logits_and_blocks(name: str, real: Tensor | None) -> None:
    check_parity(theirs_of(name, padded=real is not None), torch.float32, FLOAT32, ids=ids(), real=real)
    check_parity(in_float64(theirs_of(name, padded=True)), torch.float64, FLOAT64, ids=ids(), real=real)


def test_in_float64_as_it_is() -> None:
    """Six norms a block are taken in float32, more than in any other family: over five blocks that is more than 1e-6."""
    check_parity(theirs_of("two blocks"), torch.float64, AS_IT_IS, ids=ids())


def with_cycle(change: Callable[[Sight], Sight]) -> Callable[[DecoderConfig], DecoderConfig]:
    return lambda config: replace(config, cycle=tuple(change(sight) for sight in config.sights))


def swapped(config: DecoderConfig) -> DecoderConfig:
    """Blocks with a window take the positions of the others, and the other way round."""
    local = config.sights[0].positions
    return replace(
        with_cycle(lambda sight: replace(sight, positions=None if sight.positions else local))(config),
        positions=config.positions,
    )


def kept(**fields: Any) -> Callable[[DecoderConfig], DecoderConfig]:
    return lambda config: replace(config, **fields)


def crossed(row: Row) -> Row:
    """The norms behind attention and before the feed-forward part, the one for the other."""
    names = {
        "post_attention_layernorm": "pre_feedforward_layernorm",
        "pre_feedforward_layernorm": "post_attention_layernorm",
    }
    for there, other in names.items():
        if there in row.parts[0].name:
            return replace(row, parts=(replace(row.parts[0], name=row.parts[0].name.replace(there, other)),))
    return row


FAULTS: dict[str, Any] = {
    "gains without the offset": {"change": kept(norm=kinds.RMSNorm(eps=1e-5))},
    "epsilon": {"change": kept(norm=kinds.RMSNorm(eps=1e-6, offset=True))},
    "a window of one more": {
        "change": with_cycle(lambda sight: replace(sight, window=sight.window and sight.window + 1))
    },
    "a window of one less": {
        "change": with_cycle(lambda sight: replace(sight, window=sight.window and sight.window - 1))
    },
    "local and global bases swapped": {"change": swapped},
    "not stretched": {"change": kept(positions=kinds.Rotary(theta=200.0))},
    "embedding as it is": {"change": kept(scale_embedding=False)},
    "scores by the head's width": {"change": kept(attention_scale=None)},
    "exact gelu": {"change": kept(activation=kinds.GEGLU())},
    "norms crossed": {"move": crossed},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_not_gemma_is_caught(fault: str) -> None:
    with pytest.raises(AssertionError, match=r"^differs by"):
        check_parity(in_float64(theirs_of(padded=True)), torch.float64, FLOAT64, ids=ids(), **FAULTS[fault])


def check_greedy(theirs: Any, change: Callable[[DecoderConfig], DecoderConfig] | None = None) -> int:
    """Their best tokens, with and without a cache, are ours, in both ways; how many different ones there were.

    In float64: the best logit of theirs stands out by more than their float32 norms move it.
    """
    ours = ours_of(theirs, torch.float64, change=change)
    loaded, prompt, steps = Loaded(ours, LETTERS, read(as_saved(theirs.config)), SOURCE), ids(5)[:1], 12
    options = {"max_new_tokens": steps, "do_sample": False}
    expected = theirs.generate(prompt, attention_mask=torch.ones_like(prompt), use_cache=True, **options)
    again = theirs.generate(prompt, attention_mask=torch.ones_like(prompt), use_cache=False, **options)
    assert expected.tolist() == again.tolist()
    cached = generate(loaded, prompt[0].tolist(), max_tokens=steps, temperature=0, eos=()).ids
    written = prompt
    for _ in range(steps):
        written = torch.cat([written, ours(written)[:, -1:].argmax(-1)], -1)
    assert [*prompt[0].tolist(), *cached] == written[0].tolist() == expected[0].tolist()
    return len(set(cached))


GREEDY = ("biases, a head of its own", 0.6)


@torch.no_grad()
def test_greedy_texts() -> None:
    """Past the window, and past where a cache begins to forget."""
    assert max(check_greedy(theirs_of(*GREEDY)) for _ in range(2)) > 4


@torch.no_grad()
def test_a_greedy_text_of_another_model_is_caught() -> None:
    without_window = with_cycle(lambda sight: replace(sight, window=None))
    with pytest.raises(AssertionError):
        [check_greedy(theirs_of(*GREEDY), without_window) for _ in range(4)]


@pytest.mark.parametrize("name", VARIANTS)
def test_the_rows_are_their_tensors(name: str) -> None:
    theirs = theirs_of(name)
    config = read(as_saved(theirs.config))
    same_names_and_shapes(family_of("gemma3_text").rows(config), build(config), theirs)

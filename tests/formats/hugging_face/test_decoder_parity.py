"""GPT-2, GPT-NeoX, Llama, Mistral, Qwen2 and Qwen3 of transformers, and ours read from their configuration and tensors.

Their own code computes angles, and all but GPT-2 and NeoX the norms, in float32 whatever the model's type: in float64 the differences are
those of float32, and with these two places computed in float64 none is left. (Matrices of 0.3 make a softmax sharp enough that roundings of
float32 grow to 1.3e-6.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.formats.load import Loaded
from clearhead.formats.rows import Row
from clearhead.generation.generate import generate, generate_batch
from clearhead.generation.request import Request
from clearhead.generation.sampling import SamplingSettings
from clearhead.models.choices import LayerNorm, RMSNorm, Rotary
from clearhead.models.config import DecoderConfig, Sight
from tests.formats.hugging_face.decoders import EACH, VARIANTS, theirs
from tests.formats.hugging_face.given import LETTERS, V, check_parity, opened, ours_of

B, T, NEW = 3, 7, 9
LEFT = torch.arange(T) >= torch.tensor([[0], [2], [5]])
GREEDY = SamplingSettings(temperature=0.0)
FLOAT32 = 1e-5


def float64(variant: str) -> float:
    return 1e-10 if VARIANTS[variant][0] == "GPT2" else 1e-6


def ids() -> Tensor:
    return torch.randint(V, (B, T))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_same_numbers_as_transformers(variant: str) -> None:
    model, given = theirs(variant, std=0.2), ids()
    for real in (None, LEFT):
        check_parity(model, torch.float32, FLOAT32, ids=given, real=real)
    for real in (None, LEFT):
        check_parity(model, torch.float64, float64(variant), ids=given, real=real)


def in_float64(model: Any) -> Any:
    """The model with its norms and the angles of unscaled frequencies in float64."""
    for module in model.modules():
        if type(module).__name__.endswith("RMSNorm"):
            norm = nn.RMSNorm(len(module.weight), eps=module.variance_epsilon)
            norm.weight = module.weight
            module.forward = norm.forward
        elif type(module).__name__.endswith("RotaryEmbedding"):
            module.forward = partial(angles, module.config.rope_parameters["rope_theta"], 2 * len(module.inv_freq))
    return model


def angles(theta: float, turned: int, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
    frequencies = theta ** -(torch.arange(0, turned, 2, dtype=torch.float64) / turned)
    both = (position_ids[..., None] * frequencies).repeat(1, 1, 2)
    return both.cos(), both.sin()


@pytest.mark.parametrize("variant", EACH)
def test_nothing_but_their_places_of_float32_differs(variant: str) -> None:
    check_parity(in_float64(theirs(variant)), torch.float64, 1e-12, ids=ids(), real=LEFT)


# Faults


@dataclass(frozen=True)
class Spoilt(Row):
    """A row whose tensor is spoilt when it is put together."""

    spoil: Callable[[Tensor], Tensor] = torch.Tensor.clone

    @property
    def plain(self) -> bool:
        return False

    def join(self, theirs: Sequence[Tensor]) -> Tensor:
        return self.spoil(super().join(theirs))


def spoilt(name: str, spoil: Callable[[Tensor, DecoderConfig], Tensor]) -> Callable[[DecoderConfig], Any]:
    """A fault of the tensors of ours with this end of the name."""

    def move(config: DecoderConfig) -> Callable[[Row], Row]:
        def moved(row: Row) -> Row:
            ends = row.ours.endswith(name)
            return Spoilt(row.ours, row.parts, spoil=lambda x: spoil(x, config)) if ends else row

        return moved

    return move


def queries_permuted(qkv: Tensor, config: DecoderConfig) -> Tensor:
    """As if q had the order of rows that a GGUF file has."""
    d, count = config.width_of_head, config.heads * config.width_of_head
    q = qkv[:count].reshape(config.heads, d // 2, 2, -1).transpose(1, 2).reshape(count, -1)
    return torch.cat([q, qkv[count:]])


def keys_for_values(qkv: Tensor, config: DecoderConfig) -> Tensor:
    d = config.width_of_head
    q, k, v = qkv.split([config.heads * d, config.key_value_heads * d, config.key_value_heads * d])
    return torch.cat([q, v, k])


ROW_FAULTS = {"queries permuted": queries_permuted, "keys and values exchanged": keys_for_values}


@pytest.mark.parametrize("variant", EACH)
@pytest.mark.parametrize("fault", ROW_FAULTS)
def test_rows_in_another_place_are_caught(fault: str, variant: str) -> None:
    model = theirs(variant)
    move = spoilt("attention.qkv.weight", ROW_FAULTS[fault])(opened(model).config)
    with pytest.raises(AssertionError, match=r"^differs by"):
        check_parity(model, torch.float64, float64(variant), ids=ids(), move=move)


def with_eps(config: DecoderConfig) -> DecoderConfig:
    assert isinstance(config.norm, LayerNorm | RMSNorm)
    return replace(config, norm=replace(config.norm, eps=10 * config.norm.eps))


def without_scaling(config: DecoderConfig) -> DecoderConfig:
    assert isinstance(config.positions, Rotary)
    return replace(config, positions=Rotary(theta=config.positions.theta, fraction=config.positions.fraction))


def wider(config: DecoderConfig) -> DecoderConfig:
    windows = [sight.window and sight.window + 1 for sight in config.sights]
    return replace(config, window=None, cycle=tuple(Sight(window) for window in windows))


def one_block_late(config: DecoderConfig) -> DecoderConfig:
    return replace(config, window=None, cycle=(config.sights[-1], *config.sights[:-1]))


FAULTS: dict[str, tuple[Callable[[DecoderConfig], DecoderConfig], tuple[str, ...]]] = {
    "epsilon": (with_eps, EACH),
    "scaling forgotten": (without_scaling, tuple(v for v in VARIANTS if v.endswith(("linear", "llama3", "yarn")))),
    "window wider by one": (wider, ("mistral", "qwen2, windows", "qwen3, biases, windows")),
    "window one block late": (one_block_late, ("qwen2, windows",)),
}
CASES = [(fault, variant) for fault, (_, variants) in FAULTS.items() for variant in variants]


@pytest.mark.parametrize(("fault", "variant"), CASES)
def test_another_configuration_is_caught(fault: str, variant: str) -> None:
    with pytest.raises(AssertionError, match=r"^differs by"):
        check_parity(theirs(variant), torch.float64, float64(variant), ids=ids(), change=FAULTS[fault][0])


def test_padding_that_is_forgotten_is_caught() -> None:
    model, given = theirs("llama").double(), ids()
    ours = ours_of(model, torch.float64)
    with torch.no_grad():
        expected = ours(given, real=LEFT)
        assert not torch.allclose(ours(given)[LEFT], expected[LEFT], rtol=0, atol=1e-6)


# Texts


def by_them(model: Any, prompt: Tensor, real: Tensor, *, cached: bool) -> list[list[int]]:
    """The NEW tokens that `generate` of transformers writes behind each row."""
    made = model.generate(
        prompt, attention_mask=real.long(), do_sample=False, max_new_tokens=NEW, use_cache=cached, pad_token_id=0
    )
    return [row[prompt.shape[1] :] for row in made.tolist()]


@torch.no_grad()
def without_cache(ours: Any, prompt: list[int]) -> list[int]:
    """The best token at each step, everything read anew; each is better by enough for rounding not to choose."""
    written = list(prompt)
    for _ in range(NEW):
        best = ours(torch.tensor([written]))[0, -1].topk(2)
        assert best.values[0] - best.values[1] > 1e-5, "no clear choice"
        written.append(int(best.indices[0]))
    return written[len(prompt) :]


def check_texts(variant: str, move: Callable[[Row], Row] | None = None) -> set[int]:
    """Cached and not, alone and in a batch with padding at the left, ours and theirs: one text. Returns its tokens."""
    model = theirs(variant, std=0.6).double()
    prompt = ids()
    ours = ours_of(model, torch.float64, move=move)
    loaded = Loaded(ours, LETTERS, opened(model).config, Path("here"))
    prompts = [row[kept].tolist() for row, kept in zip(prompt, LEFT, strict=True)]
    expected = by_them(model, prompt, LEFT, cached=True)
    assert by_them(model, prompt, LEFT, cached=False) == expected
    alone = [generate(loaded, each, temperature=0.0, max_tokens=NEW, eos=()).ids for each in prompts]
    batch = generate_batch(loaded, [Request(each, NEW, GREEDY, eos=()) for each in prompts])
    assert [list(each) for each in alone] == expected, "other tokens"
    assert [list(each.ids) for each in batch] == expected, "other tokens"
    assert [without_cache(ours, each) for each in prompts] == expected, "other tokens"
    return {token for row in expected for token in row}


@pytest.mark.parametrize("variant", EACH)
def test_the_same_texts_as_transformers(variant: str) -> None:
    written = set[int]()
    for _ in range(2):
        written |= check_texts(variant)
    # A model that repeats itself would tell little.
    assert len(written) > 5


def test_other_texts_are_caught() -> None:
    move = spoilt("attention.qkv.weight", keys_for_values)(opened(theirs("llama")).config)
    with pytest.raises(AssertionError, match=r"^other tokens"):
        check_texts("llama", move)

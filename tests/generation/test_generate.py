"""The decode loop: against an argmax loop, against the distribution, and in whole characters."""

from __future__ import annotations

import codecs
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from clearhead.formats.load import Loaded
from clearhead.generation.generate import generate, generate_batch, stream
from clearhead.generation.request import Request
from clearhead.generation.sampling import SamplingSettings, probabilities
from clearhead.layers import NO_STORE, Store
from clearhead.layers.look import Look
from clearhead.messages import UserError
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.text import ByteTokenizer, CharacterTokenizer, Tokenizer
from tests.generation.solo import solo

LETTERS = "\n abcdefgh小猫😀"
CONFIG = DecoderConfig(layers=2, heads=2, width=8, context=6)


def ready(tokenizer: Tokenizer, seed: int = 0) -> Loaded:
    """A model with opinions: weights ten times as large as those of a fresh one."""
    config = replace(CONFIG, vocab=tokenizer.size)
    model = build(config, seed=seed).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(10)
    return Loaded(model, tokenizer, config, Path("here"))


@pytest.fixture(scope="module")
def letters() -> Loaded:
    """A model over 14 characters."""
    return ready(CharacterTokenizer.of(LETTERS))


@pytest.fixture(scope="module")
def of_bytes() -> Loaded:
    """A model over bytes, which writes much that is no character."""
    return ready(ByteTokenizer())


def argmax_loop(loaded: Loaded, ids: list[int], count: int) -> list[int]:
    """Greedy decoding in its plainest form."""
    ids = list(ids)
    for _ in range(count):
        with torch.no_grad():
            ids.append(int(loaded.model(torch.tensor([ids[-CONFIG.context :]]))[0, -1].argmax()))
    return ids[-count:]


@pytest.mark.parametrize("prompt", ["a", "abcde", "小猫小猫小猫小猫abc"])
def test_temperature_0_is_the_argmax_loop_past_the_context_too(letters: Loaded, prompt: str) -> None:
    made = generate(letters, prompt, max_tokens=20, temperature=0)
    assert made.ids == argmax_loop(letters, letters.tokenizer.encode(prompt), 20)
    assert made.chances == [1.0] * 20
    assert all(logprob < 0 for logprob in made.logprobs)


def test_the_models_answers_depend_on_what_they_read(letters: Loaded) -> None:
    """Or the loop above would prove nothing."""
    assert len({generate(letters, sign, max_tokens=1, temperature=0).ids[0] for sign in LETTERS}) > 3


def test_reading_the_first_tokens_in_place_of_the_last_would_be_found(letters: Loaded) -> None:
    """The planted fault: a crop from the wrong end."""
    ids = letters.tokenizer.encode("小猫小猫小猫小猫abc")
    with torch.no_grad():
        wrong = int(letters.model(torch.tensor([ids[: CONFIG.context]]))[0, -1].argmax())
    assert argmax_loop(letters, ids, 1) != [wrong]


def test_the_same_seed_writes_the_same_and_another_another(letters: Loaded) -> None:
    texts = [generate(letters, "a", max_tokens=30, seed=seed).text for seed in (5, 5, 6)]
    assert texts[0] == texts[1] != texts[2]


def test_the_draws_are_the_calls_own(letters: Loaded) -> None:
    """Neither do they depend on the random state of the process, nor do they change it."""
    before = torch.get_rng_state()
    first = generate(letters, "a", max_tokens=10).ids
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(77)
    assert generate(letters, "a", max_tokens=10).ids == first


def test_settings_reach_the_draw(letters: Loaded) -> None:
    greedy = generate(letters, "a", max_tokens=12, temperature=0).ids
    assert generate(letters, "a", max_tokens=12, top_k=1).ids == greedy
    assert generate(letters, "a", max_tokens=12, temperature=1e-30).ids == greedy
    assert generate(letters, "a", max_tokens=12, temperature=5.0).ids != greedy


def test_the_logprob_is_the_models_and_the_chance_is_that_of_the_settings(letters: Loaded) -> None:
    ids = letters.tokenizer.encode("ab")
    settings = SamplingSettings(temperature=0.7, top_k=5)
    for step in islice(solo(letters.model, ids, settings, seed=1), 9):
        with torch.no_grad():
            logits = letters.model(torch.tensor([ids[-CONFIG.context :]]))[0, -1]
        assert step.chance == pytest.approx(float(probabilities(logits, settings)[step.id]), abs=1e-6)
        assert step.logprob == pytest.approx(float(logits.log_softmax(-1)[step.id]), abs=1e-5)
        ids.append(step.id)


class Fixed(nn.Module):
    """A model that always has the same logits."""

    context = 3
    blocks = ()
    looks = (Look(),)

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(logits, requires_grad=False)

    def forward(
        self, ids: Tensor, *, real: Tensor | None = None, store: Store = NO_STORE, tap: object = None
    ) -> Tensor:
        store.advance(ids.shape[1])
        return self.logits.expand(*ids.shape, -1)


def chi_square(drawn: list[int], chances: list[float]) -> float:
    expected = [len(drawn) * chance for chance in chances]
    return sum((drawn.count(i) - wanted) ** 2 / wanted for i, wanted in enumerate(expected) if wanted > 0)


def test_draws_follow_the_distribution() -> None:
    """χ² with 4 degrees of freedom is below 18.5 in 999 of 1000 samples; the seed is fixed."""
    settings = SamplingSettings(temperature=0.8, top_k=5)
    logits = torch.tensor([0.5, 1.0, -0.5, 0.0, 0.8, -3.0])
    chances = probabilities(logits, settings).tolist()
    steps = solo(Fixed(logits), [0], settings, seed=3)
    drawn = [step.id for step in islice(steps, 3000)]
    assert chances[5] == 0
    assert 5 not in drawn
    assert chi_square(drawn, chances) < 18.5
    # The planted fault: draws with another temperature are told apart by the same number.
    assert chi_square(drawn, probabilities(logits, SamplingSettings(1.1, 5)).tolist()) > 18.5


@pytest.mark.parametrize("prompt", ["小", "ab", "😀"])
@pytest.mark.parametrize("seed", range(4))
def test_pieces_joined_are_the_text_and_never_a_broken_character(of_bytes: Loaded, prompt: str, seed: int) -> None:
    options = {"max_tokens": 60, "seed": seed}
    pieces = list(stream(of_bytes, prompt, **options))
    made = generate(of_bytes, prompt, **options)
    assert "".join(piece.text for piece in pieces) == made.text
    assert [piece.step.id for piece in pieces if piece.step] == made.ids
    assert len(made.ids) == len(made.logprobs) == 60
    # All but a character that was cut at the end: a decoder that may still get more bytes leaves it out.
    assert made.text == codecs.getincrementaldecoder("utf-8")(errors="replace").decode(bytes(made.ids))
    assert [piece.step for piece in pieces].count(None) == 1
    assert pieces[-1].step is None
    assert all(not 0xD800 <= ord(sign) <= 0xDFFF for piece in pieces for sign in piece.text)


def test_a_character_of_several_bytes_comes_in_one_piece() -> None:
    """The model is made to write 猫😀, byte by byte."""
    wanted = "猫😀".encode()

    class Writes(Fixed):
        written = 0

        def forward(
            self, ids: Tensor, *, real: Tensor | None = None, store: Store = NO_STORE, tap: object = None
        ) -> Tensor:
            store.advance(ids.shape[1])
            logits = torch.zeros(1, ids.shape[1], 256)
            logits[0, -1, wanted[self.written % len(wanted)]] = 9
            self.written += 1
            return logits

    loaded = Loaded(Writes(torch.zeros(1)), ByteTokenizer(), replace(CONFIG, vocab=256), Path("here"))  # type: ignore[arg-type]
    texts = [piece.text for piece in stream(loaded, "a", max_tokens=7, temperature=0)]
    assert texts == ["", "", "猫", "", "", "", "😀", ""]
    loaded.model.written = 0
    unfinished = [piece.text for piece in stream(loaded, "a", max_tokens=5, temperature=0)]
    assert unfinished == ["", "", "猫", "", "", ""], "a character that was cut is no text"


def test_a_prompt_may_be_ids(letters: Loaded) -> None:
    ids = letters.tokenizer.encode("abc")
    assert generate(letters, ids, max_tokens=8) == generate(letters, "abc", max_tokens=8)
    assert generate(letters, tuple(ids), max_tokens=8) == generate(letters, "abc", max_tokens=8)


def test_an_unknown_character_is_read_as_unknown(letters: Loaded) -> None:
    assert len(generate(letters, "狗", max_tokens=4).ids) == 4


@pytest.mark.parametrize("prompt", ["", []])
def test_an_empty_prompt_is_refused(letters: Loaded, prompt: str | list[int]) -> None:
    with pytest.raises(UserError, match="empty"):
        generate(letters, prompt)


@pytest.mark.parametrize("wrong", [14, 99, -1])
@pytest.mark.parametrize("behind", [0, CONFIG.context], ids=["seen", "before the context"])
def test_an_id_outside_the_vocabulary_is_refused(letters: Loaded, wrong: int, behind: int) -> None:
    assert letters.tokenizer.size == 14
    with pytest.raises(UserError, match=f"{wrong} .*14"):
        generate(letters, [1, wrong, *[2] * behind], max_tokens=2)


@pytest.mark.parametrize(
    "options", [{"prompt": [1.5]}, {"eos": [1.0]}, {"allowed": [2.5]}, {"logit_bias": {1.5: 1.0}}], ids=str
)
def test_an_id_that_is_no_whole_number_is_refused_not_cut_off(letters: Loaded, options: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="integer"):
        stream(letters, **{"prompt": "a", **options})


def test_ids_may_come_as_a_tensor(letters: Loaded) -> None:
    drawn = generate(letters, torch.tensor([1, 2]), max_tokens=4, seed=1)
    assert drawn.ids == generate(letters, [1, 2], max_tokens=4, seed=1).ids
    assert generate(letters, [1, 2], max_tokens=4, seed=1, eos=torch.tensor(drawn.ids[:1])).finish_reason == "eos"


def test_requests_may_come_one_by_one_and_are_padded_left_or_right_alone(letters: Loaded) -> None:
    requests = [Request("a", 4), Request("ab", 3)]
    assert generate_batch(letters, iter(requests)) == generate_batch(letters, requests)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="padding = middle"):
        generate_batch(letters, requests, padding="middle")  # type: ignore[arg-type]


def test_no_tokens_are_no_text(letters: Loaded) -> None:
    made = generate(letters, "a", max_tokens=0)
    assert (made.text, made.ids, made.logprobs) == ("", [], [])


@pytest.mark.parametrize("options", [{"max_tokens": -1}, {"temperature": -1.0}, {"top_k": -1}], ids=str)
def test_settings_are_refused_before_anything_is_written(letters: Loaded, options: dict[str, float]) -> None:
    with pytest.raises(UserError, match=next(iter(options))):
        stream(letters, "a", **options)


@pytest.mark.parametrize("seed", [-1, 0, 2**63, 2**64, 10**30])
def test_any_whole_number_is_a_seed_or_is_refused(letters: Loaded, seed: int) -> None:
    try:
        assert len(generate(letters, "a", max_tokens=3, seed=seed).ids) == 3
    except UserError as error:
        assert "seed" in str(error)  # noqa: PT017 - either is right, a traceback is not

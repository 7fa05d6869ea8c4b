"""An encoder-decoder answers: the source is read once, the answer is written with a cache, and ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from clearhead.formats.load import Loaded
from clearhead.generation.generate import generate, stream
from clearhead.generation.loop import Step, Writing
from clearhead.generation.sampling import SamplingSettings, probabilities
from clearhead.generation.stores import DoublingStore
from clearhead.layers.store import Places
from clearhead.messages import UserError
from clearhead.models.build import build
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.text import ByteTokenizer, MarkedTokenizer
from clearhead.training.fit import fit
from clearhead.training.losses import exact_match, target_token
from clearhead.training.optimizer import adamw
from clearhead.training.pairs import IdPair, Marks, batch_of

TOKENIZER = MarkedTokenizer(ByteTokenizer())
MARKS = Marks(TOKENIZER.begin, TOKENIZER.end)
CONFIG = EncoderDecoderConfig(vocab=TOKENIZER.size, layers=1, heads=2, width=32, context=12, source_context=10)
WORDS = {"one": "eno", "two": "小猫", "three": "eerht", "four": "ruof", "猫": "a😀b", "six": "xis"}


def ids(word: str, answer: str) -> IdPair:
    return IdPair(TOKENIZER.encode_array(word), TOKENIZER.encode_array(answer))


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    """A model that has learnt most of the words, not all."""
    model = build(CONFIG, seed=0)
    known = batch_of([ids(*pair) for pair in WORDS.items()], MARKS)
    optimizer = adamw(model, lr=1e-2)
    for _ in fit(model, lambda _: known, target_token, optimizer=optimizer, schedule=lambda _: 1e-2, steps=60):
        pass
    return Loaded(model.double().eval(), TOKENIZER, CONFIG, Path("here"))


def test_a_greedy_answer_is_right_exactly_where_the_measure_says_so(loaded: Loaded) -> None:
    asked = {**WORDS, "seven": "neves", "ten": "net"}
    written = {word: generate(loaded, word, temperature=0).text == answer for word, answer in asked.items()}
    measured = {
        word: bool(exact_match(loaded.model, batch_of([ids(word, answer)], MARKS))[0]) for word, answer in asked.items()
    }
    assert written == measured
    assert set(written.values()) == {True, False}


def test_an_answer_ends_with_the_mark_and_its_logprobs_are_those_of_one_forward(loaded: Loaded) -> None:
    out = generate(loaded, "two", temperature=0)
    assert (out.text, out.ids[-1]) == ("小猫", MARKS.end)
    warm = generate(loaded, "two", temperature=1.0, seed=3)
    source = torch.tensor([[*TOKENIZER.encode("two"), MARKS.end]])
    with torch.no_grad():
        logits = loaded.model(source, torch.tensor([[MARKS.begin, *warm.ids[:-1]]]))
    chances = logits[0].log_softmax(-1).gather(-1, torch.tensor(warm.ids)[:, None])[:, 0]
    assert warm.logprobs == pytest.approx(chances.tolist(), abs=1e-9)


def test_pieces_joined_are_the_text_in_whole_characters(loaded: Loaded) -> None:
    pieces = [piece.text for piece in stream(loaded, "猫", temperature=0)]
    assert "".join(pieces) == "a😀b"
    assert "😀" in pieces


def test_seeds_reproduce(loaded: Loaded) -> None:
    texts = [generate(loaded, "one", temperature=3.0, seed=seed).ids for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_ids_may_be_the_source(loaded: Loaded) -> None:
    assert generate(loaded, TOKENIZER.encode("four"), temperature=0).text == "ruof"


def test_the_answer_stops_at_max_tokens_and_where_the_context_is_full(loaded: Loaded) -> None:
    assert len(generate(loaded, "three", max_tokens=2, temperature=0).ids) == 2
    assert generate(loaded, "three", max_tokens=0, temperature=0).ids == []
    endless = build(replace(CONFIG, head_bias=True), seed=5).eval()
    with torch.no_grad():
        endless.decoder.head.bias[MARKS.end] = -100.0
    out = generate(Loaded(endless, TOKENIZER, CONFIG, Path("here")), "one", max_tokens=500)
    assert len(out.ids) == CONFIG.context


def test_the_source_is_read_once(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    reads, right = [], Encoder.forward
    monkeypatch.setattr(Encoder, "forward", lambda self, *a, **k: reads.append(1) or right(self, *a, **k))
    generate(loaded, "three", temperature=0)
    assert len(reads) == 1


def test_a_source_that_is_not_read_is_found(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: one memory for all."""
    kept = loaded.model.remember(torch.tensor([[*TOKENIZER.encode("one"), MARKS.end]]))
    monkeypatch.setattr(EncoderDecoder, "remember", lambda self, source, **more: kept)
    assert generate(loaded, "three", temperature=0).text != "eerht"


def read_anew(loaded: Loaded, word: str, settings: SamplingSettings, seed: int) -> list[int]:
    """The plainest loop: for each token, source and answer are read from their beginnings."""
    source, written = torch.tensor([[*TOKENIZER.encode(word), MARKS.end]]), [MARKS.begin]
    generator = torch.Generator().manual_seed(seed)
    while written[-1] != MARKS.end and len(written) <= CONFIG.context:
        with torch.no_grad():
            logits = loaded.model(source, torch.tensor([written]))[0, -1]
        written.append(int(torch.multinomial(probabilities(logits, settings), 1, generator=generator)))
    return written[1:]


@pytest.mark.parametrize("temperature", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("word", ["one", "two", "猫", "unknown"])
def test_an_answer_with_a_cache_is_the_answer_read_anew(loaded: Loaded, word: str, temperature: float) -> None:
    for seed in range(5):
        settings = SamplingSettings(temperature=temperature)
        made = generate(loaded, word, temperature=temperature, seed=seed)
        assert made.ids == read_anew(loaded, word, settings, seed)
        assert MARKS.end not in made.ids[:-1]
        assert made.text == TOKENIZER.decode(made.ids)


def test_a_store_that_loses_its_place_is_found(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: every token of the answer stands where the first does."""
    right = DoublingStore.places

    def places(store: DoublingStore, length: int, real: torch.Tensor | None, device: torch.device) -> Places:
        found = right(store, length, real, device)
        return found._replace(queries=range(length), keys=range(length - len(found.keys), length))

    monkeypatch.setattr(DoublingStore, "places", places)
    greedy = SamplingSettings(temperature=0)
    assert generate(loaded, "three", temperature=0).ids != read_anew(loaded, "three", greedy, 0)


def test_answers_draw_nothing_from_the_process(loaded: Loaded) -> None:
    before = torch.get_rng_state()
    first = generate(loaded, "one", temperature=3.0, seed=4)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(77)
    assert generate(loaded, "one", temperature=3.0, seed=4) == first
    assert generate(loaded, "one", temperature=0, seed=1) == generate(loaded, "one", temperature=0, seed=2)


def test_a_mark_within_an_answer_is_no_text(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    """At high temperatures a begin mark may be drawn, between two bytes of a character too."""
    cat = TOKENIZER.encode("猫")
    written = [cat[0], MARKS.begin, *cat[1:], MARKS.end, cat[0]]

    def forced(_: object, rows: list[Writing]) -> Iterator[tuple[Writing, Step]]:
        for id in written:
            rows[0].ids.append(id)
            yield rows[0], Step(id, -1.0, 0.5)
            if not rows[0].open:
                return

    monkeypatch.setattr("clearhead.generation.writing.decode", forced)
    made = generate(loaded, "one")
    assert (made.text, made.ids, made.logprobs) == ("猫", written[:-1], [-1.0] * 5)
    cut = generate(loaded, "one", max_tokens=2)
    assert (cut.text, len(cut.ids)) == ("", 2)


@pytest.mark.parametrize(
    ("prompt", "named"),
    [("", "empty"), ([1, TOKENIZER.size], "258"), ([1, -1], "-1"), ("much too long a source", "10")],
)
def test_what_cannot_be_answered(loaded: Loaded, prompt: str | list[int], named: str) -> None:
    with pytest.raises(UserError, match=named):
        generate(loaded, prompt)

"""Scores of texts: every token once, from exactly the tokens before it, whatever the batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from clearhead.formats.load import Loaded
from clearhead.messages import UserError
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.ops.loss import IGNORED
from clearhead.text import ByteTokenizer, CharacterTokenizer, MarkedTokenizer, Tokenizer
from clearhead.text.bpe_training import train_bpe
from clearhead.training import scoring
from clearhead.training.batches import Batch
from clearhead.training.scoring import Score, losses_of, score

CONTEXT = 7
# Documents of several windows, of one, of a part of one, and of almost nothing.
TEXTS = ["abba cab 猫 dad bead abbacab.", "bad cab!", "dad", "é", "", "ab"]
CHARACTERS, BYTES = CharacterTokenizer.of("".join(TEXTS)), ByteTokenizer()
# "ab", "猫" and others are one token each, and "é" is two.
JOINED = train_bpe([*TEXTS, "猫 猫"], vocab=262)
EXACT = {"rel": 1e-12, "abs": 0.0}


def loaded_with(tokenizer: Tokenizer, dtype: torch.dtype = torch.float64) -> Loaded:
    """A small decoder that has learnt nothing, with weights large enough to have opinions."""
    config = DecoderConfig(layers=2, heads=2, width=8, context=CONTEXT, vocab=tokenizer.size, dropout=0.3)
    model = build(config, seed=0).to(dtype)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3)
    return Loaded(model, tokenizer, config, Path("nowhere"))


def sequences(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """The ids that are read and scored, marks among them."""
    if isinstance(tokenizer, MarkedTokenizer):
        return [[tokenizer.begin, *tokenizer.encode(text), tokenizer.end] for text in texts]
    return [tokenizer.encode(text) for text in texts]


def one_by_one(loaded: Loaded, texts: Sequence[str], stride: int, limit: int | None = None) -> list[float]:
    """-ln p of every token, each by a forward of its own on the very ids that may be seen, and nothing else."""
    model, losses = loaded.model.eval(), []
    for ids in sequences(loaded.tokenizer, texts):
        for place in range(1, len(ids)):
            # The first of the windows, `stride` apart, whose T inputs and one more reach this far.
            begin = next(start for start in range(0, place + 1, stride) if start + CONTEXT >= place)
            with torch.no_grad():
                logits = model(torch.tensor([ids[begin:place]]))[0, -1].double()
            losses.append(-(logits - logits.exp().sum().log())[ids[place]].item())
    return losses[:limit]


def documented(loaded: Loaded, text: str, stride: int) -> tuple[float, int]:
    """Σ -ln p and count by the recipe for fixed-length models: windows of ids, of which the end is labelled.

    Its `max_length` counts the ids of a window with the last target, which is no input: T + 1.
    """
    ids, model = torch.tensor([loaded.tokenizer.encode(text)]), loaded.model.eval()
    total, count, previous = 0.0, 0, 0
    for begin in range(0, ids.shape[1], stride):
        end = min(begin + CONTEXT + 1, ids.shape[1])
        labels = ids[:, begin:end].clone()
        labels[:, : previous - begin] = IGNORED
        with torch.no_grad():
            logits = model(ids[:, begin : end - 1])
        total += nn.functional.cross_entropy(logits[0], labels[0, 1:], ignore_index=IGNORED, reduction="sum").item()
        count += int((labels[:, 1:] != IGNORED).sum())
        previous = end
        if end == ids.shape[1]:
            break
    return total, count


TOKENIZERS = pytest.mark.parametrize(
    "tokenizer",
    [CHARACTERS, BYTES, JOINED, MarkedTokenizer(CHARACTERS), MarkedTokenizer(BYTES), MarkedTokenizer(JOINED)],
    ids=["characters", "bytes", "joined", "marked characters", "marked bytes", "marked joined"],
)


@TOKENIZERS
@pytest.mark.parametrize("stride", [1, 3, 5, CONTEXT, None])
def test_each_token_is_predicted_from_exactly_what_it_may_see(tokenizer: Tokenizer, stride: int | None) -> None:
    loaded = loaded_with(tokenizer)
    losses = one_by_one(loaded, TEXTS, stride or CONTEXT)
    found = score(loaded, TEXTS, stride=stride)
    assert found.loss == pytest.approx(sum(losses) / len(losses), **EXACT)
    assert (found.tokens, found.context, found.stride) == (len(losses), CONTEXT, stride or CONTEXT)
    marked = isinstance(tokenizer, MarkedTokenizer)
    assert found.ends == (len(TEXTS) if marked else 0)
    assert found.perplexity == pytest.approx(math.exp(found.loss), **EXACT)


@pytest.mark.parametrize("stride", [1, 4, 6])
def test_the_documented_recipe_gives_the_same(stride: int) -> None:
    loaded = loaded_with(CHARACTERS)
    total, count = documented(loaded, TEXTS[0], stride)
    found = score(loaded, TEXTS[0], stride=stride)
    assert (found.tokens, found.loss) == (count, pytest.approx(total / count, **EXACT))


def test_more_before_it_helps_no_model_that_has_learnt_nothing_but_changes_the_number() -> None:
    """The strides are not one and the same under different names."""
    loaded = loaded_with(CHARACTERS)
    assert len({score(loaded, TEXTS, stride=stride).loss for stride in range(1, CONTEXT + 1)}) == CONTEXT


def right_for_every_batch(scored: Callable[[Loaded, int], float]) -> None:
    """The check: one number, that of the oracle, whatever goes through the model together."""
    loaded = loaded_with(MarkedTokenizer(CHARACTERS))
    losses = one_by_one(loaded, TEXTS, CONTEXT)
    for batch in (1, 2, 3, 7, 100):
        assert scored(loaded, batch) == pytest.approx(sum(losses) / len(losses), **EXACT)


def by_score(loaded: Loaded, batch: int) -> float:
    return score(loaded, TEXTS, batch=batch).loss


def test_the_number_depends_neither_on_the_batch_nor_on_padding() -> None:
    right_for_every_batch(by_score)


def mean_of_means(model: nn.Module, batches: Iterable[Batch], told: Callable[[int], None]) -> tuple[float, int]:
    """The planted fault: each batch weighs the same, however many targets it has."""
    with torch.no_grad():
        losses = [losses_of(model.eval()(batch.inputs), batch.targets) for batch in batches]
    count = sum(map(len, losses))
    return sum(each.mean().item() for each in losses) / len(losses) * count, count


def counts_padding(logits: Tensor, targets: Tensor) -> Tensor:
    """The planted fault: what fills up a row is a target like any other; the count is put right, so that only this is wrong."""
    losses = losses_of(logits, targets.clamp_min(0))
    return losses[: int((targets != IGNORED).sum())]


def sees_its_batch(batch: Batch) -> Batch:
    """The planted fault: padding goes to where the others end, before the text."""
    gaps = [int((row == IGNORED).sum()) for row in batch.targets]
    rolled = [tuple(part.roll(gap) for part in row) for gap, row in zip(gaps, zip(*batch, strict=True), strict=True)]
    return Batch(*(torch.stack(kind) for kind in zip(*rolled, strict=True)))


@pytest.mark.parametrize(
    ("part", "fault"), [("summed", mean_of_means), ("losses_of", counts_padding), ("trimmed", sees_its_batch)]
)
def test_a_planted_fault_of_batches_is_found(monkeypatch: pytest.MonkeyPatch, part: str, fault: object) -> None:
    monkeypatch.setattr(scoring, part, fault)
    with pytest.raises(AssertionError):
        right_for_every_batch(by_score)


def test_a_mark_that_is_left_out_is_found() -> None:
    """The planted fault: the text of a marked tokenizer without its marks."""
    loaded = loaded_with(MarkedTokenizer(CHARACTERS))
    bare = Loaded(loaded.model, CHARACTERS, loaded.config, loaded.source)
    losses = one_by_one(bare, TEXTS, CONTEXT)
    found = score(loaded, TEXTS)
    assert found.tokens != len(losses)
    assert abs(found.loss - sum(losses) / len(losses)) > 1e-6


@TOKENIZERS
@pytest.mark.parametrize("stride", [2, CONTEXT])
def test_the_first_tokens_alone(tokenizer: Tokenizer, stride: int) -> None:
    loaded = loaded_with(tokenizer)
    every = one_by_one(loaded, TEXTS, stride)
    for limit in (1, 5, 24, 25, 26, 33, len(every), len(every) + 9):
        found = score(loaded, TEXTS, stride=stride, limit=limit)
        losses = every[:limit]
        assert (found.tokens, found.loss) == (len(losses), pytest.approx(sum(losses) / len(losses), **EXACT))


def scored_bytes(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[int, int]:
    """Bytes and characters of what is scored, counted on the text itself."""
    if isinstance(tokenizer, MarkedTokenizer):
        return sum(len(text.encode()) for text in texts), sum(map(len, texts))
    if isinstance(tokenizer, CharacterTokenizer):
        return sum(len(text[1:].encode()) for text in texts), sum(len(text[1:]) for text in texts)
    skipped = [len(JOINED.tokenizer.id_to_token(tokenizer.encode(text)[0])) if text else 0 for text in texts]
    skipped = skipped if tokenizer is JOINED else [1] * len(texts)
    left = [text.encode()[count:] for text, count in zip(texts, skipped, strict=True)]
    # The last byte of a character is not followed by one that goes on with it.
    last = [sum(byte & 0xC0 != 0x80 for byte in [*data[1:], 0x20]) if data else 0 for data in left]
    return sum(map(len, left)), sum(last)


@TOKENIZERS
def test_bits_are_those_of_the_scored_text(tokenizer: Tokenizer) -> None:
    loaded = loaded_with(tokenizer)
    found = score(loaded, TEXTS)
    assert (found.bytes, found.characters) == scored_bytes(tokenizer, TEXTS)
    total = sum(one_by_one(loaded, TEXTS, CONTEXT))
    assert found.bits_per_byte == pytest.approx(total / math.log(2) / found.bytes, **EXACT)
    assert found.bits_per_character == pytest.approx(total / math.log(2) / found.characters, **EXACT)
    assert found.unknown == 0
    # With a limit that cuts nothing the ids are counted, not the text: the same.
    limited = score(loaded, TEXTS, limit=found.tokens)
    assert (limited.bytes, limited.characters) == (found.bytes, found.characters)


@pytest.mark.parametrize("limit", range(1, 12))
def test_bits_of_the_first_bytes(limit: int) -> None:
    """A limit falls into the middle of a character: its bytes so far count, the character not yet."""
    text = "a猫b😀c"
    found = score(loaded_with(BYTES), text, limit=limit)
    data = text.encode()[: min(limit, 10) + 1]
    whole = data.decode(errors="ignore")
    assert (found.bytes, found.characters) == (len(data) - 1, len(whole) - 1)


def test_guessing_has_the_bits_of_the_vocabulary() -> None:
    """A model whose logits are all equal: 8 bits a byte, whatever the text; by hand."""
    loaded = loaded_with(BYTES)
    with torch.no_grad():
        for weight in loaded.model.parameters():
            weight.zero_()
    found = score(loaded, "猫ab")
    assert (found.tokens, found.bytes, found.characters) == (4, 4, 3)
    assert found.loss == pytest.approx(math.log(256), **EXACT)
    assert found.bits_per_byte == pytest.approx(8, **EXACT)
    assert found.bits_per_character == pytest.approx(32 / 3, **EXACT)
    assert found.perplexity == pytest.approx(256, **EXACT)


def test_characters_that_are_not_known_are_counted() -> None:
    loaded = loaded_with(CHARACTERS)
    # The first one is not scored, so neither it nor its bytes count.
    found = score(loaded, ["ßa狗b", "a\ufffd"])
    assert (found.unknown, found.tokens, found.characters, found.bytes) == (2, 4, 4, 1 + 3 + 1 + 3)
    assert score(loaded, "abba").unknown == 0
    assert score(loaded_with(BYTES), "ßa狗b").unknown == 0


def test_parts_of_a_text_are_one_text() -> None:
    from clearhead.text.documents import Document  # noqa: PLC0415

    loaded, text = loaded_with(CHARACTERS), TEXTS[0]
    parts = [text[:1], "", text[1:10], text[10:]]
    cut = score(loaded, lambda: iter([Document(None, None, iter(parts))]))
    assert cut == score(loaded, text) == score(loaded, [text])
    assert cut != score(loaded, parts)


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    found = score(loaded_with(CHARACTERS), TEXTS, batch=2, progress=lambda *each: told.append(each))
    assert told[0] == (sum(map(len, TEXTS)), 0)
    assert told[-1] == (found.tokens, found.tokens)
    assert sorted(told[1:]) == told[1:]


def test_dropout_is_off_and_the_modes_are_restored() -> None:
    loaded = loaded_with(CHARACTERS)
    loaded.model.train()
    loaded.model.blocks[1].eval()
    first, second = score(loaded, TEXTS), score(loaded, TEXTS)
    assert first == second
    assert loaded.model.training
    assert not loaded.model.blocks[1].training


def test_sixteen_bits_are_lifted() -> None:
    """-ln p in float32 at least: in bfloat16 a loss near 5 has steps of 0.03."""
    logits = torch.randn(2, 3, 40, dtype=torch.bfloat16)
    targets = torch.tensor([[3, IGNORED, 7], [39, 0, IGNORED]])
    found = losses_of(logits, targets)
    assert found.dtype == torch.float32
    exact = losses_of(logits.double(), targets)
    assert exact.dtype == torch.float64
    torch.testing.assert_close(found.double(), exact, rtol=1e-6, atol=0)
    assert (found.to(torch.bfloat16).double() - exact).abs().max() > 1e-3
    assert score(loaded_with(CHARACTERS, torch.bfloat16), TEXTS).tokens == score(loaded_with(CHARACTERS), TEXTS).tokens


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"stride": 0}, "stride = 0 must be 1 ... 7"),
        ({"stride": 8}, "stride = 8 must be 1 ... 7"),
        ({"batch": 0}, "batch = 0 must be ≥ 1"),
        ({"limit": 0}, "limit = 0 must be ≥ 1"),
    ],
    ids=str,
)
def test_numbers_out_of_range(given: dict[str, int], said: str) -> None:
    with pytest.raises(UserError, match=said):
        score(loaded_with(CHARACTERS), TEXTS, **given)


@pytest.mark.parametrize("texts", ["", "a", [], ["a", "", "b"]], ids=repr)
def test_nothing_to_score(texts: str | list[str]) -> None:
    with pytest.raises(UserError, match="at least two tokens"):
        score(loaded_with(CHARACTERS), texts)


def test_with_marks_the_end_of_nothing_is_scored() -> None:
    found = score(loaded_with(MarkedTokenizer(BYTES)), "")
    assert (found.tokens, found.ends, found.documents, found.bytes) == (1, 1, 1, 0)
    assert math.isnan(found.bits_per_byte)


def test_a_loss_beyond_floats() -> None:
    endless = Score(710.0, 1, 0, 1, 1, 1, 0, CONTEXT, CONTEXT)
    assert endless.perplexity == math.inf
    assert math.isnan(Score(math.nan, 1, 0, 1, 1, 1, 0, CONTEXT, CONTEXT).perplexity)

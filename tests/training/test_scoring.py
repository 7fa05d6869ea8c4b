"""Scores of texts: every token once, from exactly the tokens before it, whatever the batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import pytest
import torch
from torch import Tensor, nn

from clearhead.formats.load import Loaded
from clearhead.messages import UserError
from clearhead.ops.loss import IGNORED
from clearhead.text import MarkedTokenizer, Tokenizer
from clearhead.text.documents import Document
from clearhead.training import scoring
from clearhead.training.batches import Batch
from clearhead.training.scoring import Score, losses_of, score
from tests.training.toy_scores import BYTES, CHARACTERS, CONTEXT, EXACT, TEXTS, TOKENIZERS, loaded_with, one_by_one


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


def test_parts_of_a_text_are_one_text() -> None:
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

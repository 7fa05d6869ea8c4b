"""The losses of counting, against the same formulas written as loops over tokens."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.messages import UserError
from clearhead.text import CharacterTokenizer, baselines, bigram_loss, split_document, unigram_loss

VOCAB = 5
DOCUMENTS = st.lists(st.lists(st.integers(0, VOCAB - 1), max_size=13), max_size=4)
SCORED = st.lists(st.lists(st.integers(0, VOCAB - 1), min_size=2, max_size=11), min_size=1, max_size=3)


def unigram_by_hand(train, token):
    count = Counter(id for document in train for id in document)
    return (count[token] + 1) / (count.total() + VOCAB)


def bigram_by_hand(train, before, token):
    after = Counter(b for document in train for a, b in pairwise(document) if a == before)
    if not after:
        return unigram_by_hand(train, token)
    return (after[token] + len(after) * unigram_by_hand(train, token)) / (after.total() + len(after))


def arrays(documents):
    return [np.array(document, dtype=np.int64) for document in documents]


@given(DOCUMENTS, SCORED)
def test_both_equal_their_formulas(train, validation):
    pairs = [pair for document in validation for pair in pairwise(document)]
    unigram = -sum(math.log(unigram_by_hand(train, b)) for _, b in pairs) / len(pairs)
    bigram = -sum(math.log(bigram_by_hand(train, a, b)) for a, b in pairs) / len(pairs)
    assert unigram_loss(arrays(train), arrays(validation), VOCAB) == pytest.approx(unigram, abs=1e-12)
    assert bigram_loss(arrays(train), arrays(validation), VOCAB) == pytest.approx(bigram, abs=1e-12)


@given(DOCUMENTS)
def test_the_probabilities_sum_to_one(train):
    for before in range(VOCAB):
        losses = [bigram_loss(arrays(train), arrays([[before, token]]), VOCAB) for token in range(VOCAB)]
        assert sum(math.exp(-loss) for loss in losses) == pytest.approx(1, abs=1e-12)


def test_by_hand():
    train, validation = [[0, 1, 0, 1, 0, 2]], [[0, 1]]
    # c(1) = 2 of 6, V = 4: p(1) = 3/10. After 0: 1 twice, 2 once, so D = 2: p(1 | 0) = (2 + 2 * 0.3) / (3 + 2).
    assert unigram_loss(train, validation, 4) == pytest.approx(-math.log(0.3))
    assert bigram_loss(train, validation, 4) == pytest.approx(-math.log(2.6 / 5))


def test_no_pair_is_counted_across_documents():
    # The planted fault: joined into one document, 1 would have been followed by 2.
    apart = bigram_loss([[0, 1], [2, 3]], [[1, 2]], 4)
    joined = bigram_loss([[0, 1, 2, 3]], [[1, 2]], 4)
    assert apart == pytest.approx(-math.log(2 / 8))
    assert joined < apart


@given(DOCUMENTS, SCORED, st.integers(1, 9))
def test_blocks_change_nothing(train, validation, block):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(baselines, "BLOCK", block)
        in_blocks = [loss(arrays(train), arrays(validation), VOCAB) for loss in (unigram_loss, bigram_loss)]
    whole = [loss(arrays(train), arrays(validation), VOCAB) for loss in (unigram_loss, bigram_loss)]
    assert in_blocks == pytest.approx(whole, abs=1e-12)


class Watched:
    """A document that is only read in slices, and knows the longest."""

    def __init__(self, ids):
        self.ids, self.longest, self.last = np.array(ids), 0, 0

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, places):
        start, stop, step = places.indices(len(self))
        assert step == 1
        self.longest, self.last = max(self.longest, stop - start), max(self.last, stop)
        return self.ids[start:stop]


@pytest.mark.parametrize("loss", [unigram_loss, bigram_loss])
def test_long_documents_are_read_in_slices_and_the_first_tokens_counted(loss, monkeypatch):
    ids = [0, 1, 2, 1, 0, 3, 3, 1, 2, 0, 4, 1, 2, 2, 3, 1, 0, 2]
    train, more, validation = Watched(ids), Watched([4, 4, 4, 4, 4, 4, 4]), Watched(ids[::-1])
    everything = loss([train, more], [validation], VOCAB)
    assert everything == loss([ids, [4] * 7], [ids[::-1]], VOCAB)
    monkeypatch.setattr(baselines, "BLOCK", 5)
    for most in (18, 20, 7):
        monkeypatch.setattr(baselines, "MOST_COUNTED", most)
        train, more, validation = Watched(ids), Watched([4] * 7), Watched(ids[::-1])
        counted = loss([train, more], [validation], VOCAB)
        assert max(train.longest, more.longest, validation.longest) == 5
        assert (train.last, more.last, validation.last) == (min(most, 18), most - min(most, 18), 18)
        assert counted == pytest.approx(loss([ids[:most], [4] * (most - 18)], [ids[::-1]], VOCAB), abs=1e-12)
        # The planted fault: had the rest been counted, the loss would be another.
        assert abs(counted - everything) > 1e-3


def test_without_training_text_every_token_is_as_likely():
    assert unigram_loss([], [[1, 2, 3]], 7) == pytest.approx(math.log(7))
    assert bigram_loss([[4]], [[1, 2, 3]], 7) == pytest.approx(-math.log(1 / 8))


def test_a_large_vocabulary():
    vocab = 60_000
    ids = np.random.default_rng(3).integers(0, vocab, 100_000)
    ids[-1] = vocab - 1
    assert bigram_loss([ids], [ids], vocab) < unigram_loss([ids], [ids[:5000]], vocab)


@pytest.mark.parametrize("loss", [unigram_loss, bigram_loss])
def test_mistakes_are_one_line(loss):
    with pytest.raises(UserError, match="no next token to score"):
        loss([[0, 1]], [[1], []], 4)
    with pytest.raises(UserError, match="Token id 4 is outside the vocabulary of 4"):
        loss([[0, 4]], [[1, 2]], 4)
    with pytest.raises(UserError, match="Token id 9 is outside the vocabulary of 4"):
        loss([[0, 1]], [[1, 9]], 4)


@pytest.mark.parametrize(
    ("name", "unigram", "bigram"), [("shakespeare.txt", 3.347, 2.486), ("tang-song.txt", 6.385, 5.328)]
)
def test_real_texts(texts, name, unigram, bigram):
    text = (texts / name).read_text(encoding="utf-8")
    tokenizer = CharacterTokenizer.of(text)
    split = split_document(text, 64)
    train, validation = [tokenizer.encode_array(split.train)], [tokenizer.encode_array(split.validation)]
    assert unigram_loss(train, validation, tokenizer.size) == pytest.approx(unigram, abs=1e-3)
    assert bigram_loss(train, validation, tokenizer.size) == pytest.approx(bigram, abs=1e-3)

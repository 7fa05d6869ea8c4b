"""Files of pairs as data: what is recorded of them, what is kept for validation, what is learnt from them."""

from __future__ import annotations

import gzip
import hashlib
import math
from pathlib import Path

import pytest
import torch

from clearhead.messages import UserError
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.ops.loss import IGNORED
from clearhead.text import ByteTokenizer, CharacterTokenizer, MarkedTokenizer, Pair, Tokenizer
from clearhead.training import pair_data
from clearhead.training.data_choice import DataChoice
from clearhead.training.losses import exact_match, target_token
from clearhead.training.pair_data import PairData, PairTexts, prepare_pairs, read_pair_texts
from clearhead.training.pairs import PairBatch

# 30 pairs of 20 sources: two of each three lines answer the same source.
PAIRS = [Pair(f"猫{n - n % 3 if n % 3 < 2 else n}", "鸟" * (1 + n % 4) + str(n)) for n in range(30)]
CONFIG = EncoderDecoderConfig()


def written(path: Path, pairs: list[Pair], encoding: str = "utf-8", end: str = "\n") -> str:
    path.write_bytes("".join(f"{source}\t{target}{end}" for source, target in pairs).encode(encoding))
    return str(path)


def character_tokenizer(pairs: list[Pair]) -> MarkedTokenizer:
    return MarkedTokenizer(CharacterTokenizer.of("".join(side for pair in pairs for side in pair)))


@pytest.fixture
def texts(tmp_path: Path) -> PairTexts:
    return read_pair_texts([written(tmp_path / "pairs.tsv", PAIRS)])


@pytest.fixture
def data(texts: PairTexts) -> PairData:
    return prepare_pairs(texts, character_tokenizer(PAIRS))


def test_files_are_one_behind_the_other_and_are_recorded_with_their_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "a.tsv", PAIRS[:4])
    written(tmp_path / "b.tsv", PAIRS[4:])
    monkeypatch.chdir(tmp_path)
    read = read_pair_texts(["a.tsv", "b.tsv"])
    assert read.pairs == PAIRS
    digest = hashlib.sha256("\n".join(f"{source}\t{target}" for source, target in PAIRS).encode()).hexdigest()
    files = [str((tmp_path / name).resolve()) for name in ("a.tsv", "b.tsv")]
    assert read.source == {"pairs": files, "encoding": "auto", "sha256": digest}


def test_the_pairs_of_a_folder_are_those_of_its_files(tmp_path: Path) -> None:
    """Of .tsv and .csv, compressed or not, in the order of their paths; what else is there is passed over."""
    (tmp_path / "more").mkdir()
    written(tmp_path / "b.tsv", PAIRS[:4])
    rows = "".join(f"{source},{target}\n" for source, target in PAIRS[4:9])
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(rows.encode()))
    written(tmp_path / "more/a.TSV", PAIRS[9:])
    (tmp_path / "readme.md").write_text("no pairs")
    written(tmp_path / ".hidden.tsv", PAIRS)
    read = read_pair_texts([str(tmp_path)])
    assert read.pairs == PAIRS
    assert read.source["pairs"] == [str(tmp_path.resolve())]
    names = [("b.tsv", 1), ("c.csv.gz", 1), ("more/a.TSV", 1)]
    assert [read.places[number] for number in (0, 4, 9)] == [(str(tmp_path / name), line) for name, line in names]
    # A file that is named itself may be called as it likes.
    written(tmp_path / "pairs.txt", PAIRS)
    assert read_pair_texts([str(tmp_path / "pairs.txt")]).pairs == PAIRS
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"empty holds no text: .* end with \.tsv \.csv"):
        read_pair_texts([str(tmp_path / "empty")])


def test_the_hash_is_of_the_pairs_not_of_how_they_were_stored(tmp_path: Path, texts: PairTexts) -> None:
    """So a file may be saved anew in another encoding, or with other line ends, and is the same data."""
    other = read_pair_texts([written(tmp_path / "other.tsv", PAIRS, "utf-16", "\r\n")])
    assert other.source["sha256"] == texts.source["sha256"]
    assert len(other.notes) == 3, "the encoding, its mark, the line ends"
    assert texts.notes == ()


@pytest.mark.parametrize("change", ["order", "target", "one less", "sides swapped"])
def test_another_pair_is_another_hash(tmp_path: Path, texts: PairTexts, change: str) -> None:
    pairs = {
        "order": [PAIRS[1], PAIRS[0], *PAIRS[2:]],
        "target": [Pair(PAIRS[0].source, "x"), *PAIRS[1:]],
        "one less": PAIRS[:-1],
        "sides swapped": [Pair(*reversed(pair)) for pair in PAIRS],
    }[change]
    assert read_pair_texts([written(tmp_path / "other.tsv", pairs)]).source["sha256"] != texts.source["sha256"]


def test_the_encoding_asked_for_is_used_and_recorded(tmp_path: Path) -> None:
    path = written(tmp_path / "big5.tsv", [Pair("小貓看見了", "鳥"), Pair("很高興", "貓")], "big5")
    read = read_pair_texts([path], DataChoice(encoding="big5"))
    assert read.pairs[0] == ("小貓看見了", "鳥")
    assert read.source["encoding"] == "big5"


def test_without_a_file_there_is_nothing_to_learn() -> None:
    with pytest.raises(UserError, match="a source, a tab and a target"):
        read_pair_texts([])


def test_a_bad_file_among_good_ones_is_named(tmp_path: Path) -> None:
    good = written(tmp_path / "good.tsv", PAIRS)
    (tmp_path / "bad.tsv").write_text("a\tb\nno tab\n")
    with pytest.raises(UserError, match=r"ine 2 of .*bad\.tsv"):
        read_pair_texts([good, str(tmp_path / "bad.tsv")])


@pytest.mark.parametrize("tokenizer", [character_tokenizer(PAIRS), MarkedTokenizer(ByteTokenizer())], ids=["character", "byte"])  # fmt: skip
def test_the_ids_are_the_texts_without_marks(texts: PairTexts, tokenizer: MarkedTokenizer) -> None:
    data = prepare_pairs(texts, tokenizer)
    back = [Pair(tokenizer.decode(pair.source), tokenizer.decode(pair.target)) for pair in data.train + data.validation]
    assert sorted(back) == sorted(PAIRS)
    assert all(max(*pair.source, *pair.target) < tokenizer.begin for pair in data.train + data.validation)


def test_no_source_of_the_validation_is_trained_on(data: PairData) -> None:
    sources = [{tuple(pair.source) for pair in part} for part in (data.train, data.validation)]
    assert not sources[0] & sources[1]
    assert (len(data.train), len(data.validation)) == (27, 3)
    assert len({pair.source for pair in PAIRS}) == 20


def test_the_example_is_validated_not_trained_on(data: PairData) -> None:
    assert data.example in PAIRS
    assert tuple(data.validation[0].source) == tuple(data.tokenizer.encode(data.example.source))
    assert tuple(data.validation[0].target) == tuple(data.tokenizer.encode(data.example.target))


def test_counts_by_hand(tmp_path: Path) -> None:
    pairs = [Pair("ab", "c"), Pair("abcde", "c"), Pair("a", "abc"), Pair("b", "bcab")]
    data = prepare_pairs(read_pair_texts([written(tmp_path / "few.tsv", pairs)]), character_tokenizer(pairs))
    assert (len(data.train), len(data.validation)) == (3, 1)
    # Both with a mark, in both parts: the longest may be among those kept for validation.
    assert data.longest == (6, 5)
    kept = len(data.example.target) + 1
    assert data.tokens == 2 + 2 + 4 + 5 - kept
    assert data.tokens_a_step(CONFIG, 6) == pytest.approx(6 * data.tokens / 3)
    # a, b, c, d, e, the unknown character, and two marks.
    assert data.uniform == math.log(8)


@pytest.mark.parametrize("last", [0, 1], ids=["the longest is trained on", "the longest validates"])
def test_the_longest_is_of_both_parts(tmp_path: Path, last: int) -> None:
    pairs = [Pair("a", "b"), Pair("c", "d")]
    held = prepare_pairs(read_pair_texts([written(tmp_path / "two.tsv", pairs)]), character_tokenizer(pairs)).example
    pairs = [Pair(pair.source, "long" if (pair == held) == bool(last) else pair.target) for pair in pairs]
    data = prepare_pairs(read_pair_texts([written(tmp_path / "two.tsv", pairs)]), character_tokenizer(pairs))
    assert len(data.validation[0].target) == (4 if last else 1)
    assert data.longest == (2, 5)


def test_the_place_of_the_longest_is_told(tmp_path: Path) -> None:
    """By tokens, in whichever file, empty lines counted; of equals the first."""
    (tmp_path / "a.tsv").write_text("abc\tabc\n\n\nabcd\ta\n", encoding="utf-8")
    (tmp_path / "b.tsv").write_text("x\ty\n\n猫猫猫\t猫\ndcba\tabcd\n", encoding="utf-8")
    files = [str(tmp_path / "a.tsv"), str(tmp_path / "b.tsv")]
    read = read_pair_texts(files)
    characters = prepare_pairs(read, character_tokenizer(read.pairs))
    assert characters.places_of_longest == ((files[0], 4), (files[1], 4))
    assert prepare_pairs(read, MarkedTokenizer(ByteTokenizer())).places_of_longest == ((files[1], 3), (files[1], 4))


def rows(batch: PairBatch, tokenizer: Tokenizer) -> list[Pair]:
    """What a batch holds, as text; marks give none."""
    sources = [row[real] for row, real in zip(batch.source, batch.source_real, strict=True)]
    targets = [row[row != IGNORED] for row in batch.targets]
    return [
        Pair(tokenizer.decode(source.tolist()), tokenizer.decode(target.tolist()))
        for source, target in zip(sources, targets, strict=True)
    ]


def test_the_objective_trains_on_one_part_and_is_judged_by_the_other(
    data: PairData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_data, "EVALUATION_PAIRS", 2)
    objective = data.objective(CONFIG, batch=9, seed=1)
    trained = [pair for step in range(3) for pair in rows(objective.batches(step), data.tokenizer)]
    for _ in range(2):
        batches = list(objective.validation())
        assert [len(batch.source) for batch in batches] == [2, 1]
        judged = [pair for batch in batches for pair in rows(batch, data.tokenizer)]
        assert judged[0] == data.example
        assert sorted(trained + judged) == sorted(PAIRS)
    assert objective.loss is target_token
    assert objective.measures == {"exact_match": exact_match}
    other = data.objective(CONFIG, batch=9, seed=2)
    assert not torch.equal(other.batches(0).source, objective.batches(0).source)


def test_an_evaluation_takes_fewer_long_pairs_at_a_time(tmp_path: Path) -> None:
    """Of a thousand short pairs one is long; what the short ones are compared with stays as it was."""
    pairs = [Pair(f"{n}", "x") for n in range(9999)]
    short = prepare_pairs(read_pair_texts([written(tmp_path / "short.tsv", pairs)]), character_tokenizer(pairs))
    assert [len(batch.source) for batch in short.objective(CONFIG, batch=9, seed=0).validation()] == [256] * 3 + [231]
    number = pairs.index(short.example)
    pairs[number] = Pair(short.example.source, "x" * 2047)
    long = prepare_pairs(read_pair_texts([written(tmp_path / "long.tsv", pairs)]), character_tokenizer(pairs))
    assert long.example == pairs[number]
    batches = list(long.objective(CONFIG, batch=9, seed=0).validation())
    assert [len(batch.source) for batch in batches] == [1, *[256] * 3, 230]
    assert sum(batch.inputs.shape[1] for batch in batches[1:]) == 8


def test_the_marks_are_those_of_the_tokenizer(data: PairData) -> None:
    batch = data.objective(CONFIG, batch=9, seed=0).batches(0)
    assert set(batch.inputs[:, 0].tolist()) == {data.tokenizer.begin}
    last_real = batch.source_real.sum(-1, keepdim=True) - 1
    assert set(batch.source.gather(1, last_real)[:, 0].tolist()) == {data.tokenizer.end}
    assert (batch.targets == data.tokenizer.end).sum(-1).tolist() == [1] * 9


def test_one_source_alone_cannot_be_split(tmp_path: Path) -> None:
    pairs = [Pair("a", "b"), Pair("a", "c")]
    texts = read_pair_texts([written(tmp_path / "one.tsv", pairs)])
    with pytest.raises(UserError, match="two different sources"):
        prepare_pairs(texts, character_tokenizer(pairs))

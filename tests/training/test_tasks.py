"""What is learnt from documents: nothing is made for each of many, and tables are judged by what an evaluation scores."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from clearhead.formats.token_files import TokenFile, TokenSpans, write_tokens
from clearhead.ops.loss import IGNORED
from clearhead.text import ByteTokenizer
from clearhead.text.encoding import Encoded
from clearhead.training import tasks
from clearhead.training.batches import lengths_of
from clearhead.training.masking import Hiding, masked_whole
from clearhead.training.tasks import HiddenTokens, PackedDocuments, RunningText, first_scored

BEGIN, END, MASK = 50, 51, 52
LENGTHS = (4, 1, 0, 7, 2, 9, 3)


def documents_of(*lengths: int) -> list[np.ndarray]:
    """Ids that tell the place among all."""
    ends = np.cumsum(lengths)
    return [np.arange(end - length, end) for end, length in zip(ends, lengths, strict=True)]


def token_file(path: Path, count: int) -> TokenFile:
    rows = (Encoded(np.full(1 + number % 3, number % 256), 1, ends=True) for number in range(count))
    return write_tokens(path, ByteTokenizer(), rows, source="")


def test_lengths_of_a_token_file_are_those_of_its_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = token_file(tmp_path / "tokens", 50).documents
    one_by_one = [len(document) for document in documents]
    assert lengths_of(list(documents)).tolist() == one_by_one
    monkeypatch.delattr(TokenSpans, "__getitem__")
    assert lengths_of(documents).tolist() == one_by_one


def kept_by(count: int, path: Path, monkeypatch: pytest.MonkeyPatch) -> float:
    """Bytes a document that the tables of counts hold at most, what they read aside."""
    file = token_file(path, count)
    training, validation = file.documents, file.documents[:3]
    assert len(file.ends) == count
    monkeypatch.setattr(tasks, "bigram_loss", lambda train, *_: sum(1 for _ in train))
    monkeypatch.setattr(tasks, "unigram_loss", lambda train, *_: sum(1 for _ in train))
    tracemalloc.start()
    assert PackedDocuments(BEGIN, END).levels(training, validation, 256) == {"unigram": count, "bigram": count}
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / count


def test_nothing_is_made_for_each_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: a list of marked documents takes more than 100 bytes for each."""
    assert kept_by(20_000, tmp_path / "tokens", monkeypatch) < 8
    lazy = tasks._MarkedDocuments
    monkeypatch.setattr(tasks, "_MarkedDocuments", lambda *each: list(lazy(*each)))
    assert kept_by(20_000, tmp_path / "tokens", monkeypatch) > 100


def targets_of(task: RunningText | PackedDocuments, documents: list[np.ndarray]) -> list[int]:
    """What an evaluation scores."""
    objective = task.objective(documents, documents, 3, batch=2, seed=0)
    return [int(id) for batch in objective.validation() for id in batch.targets[batch.targets != IGNORED]]


def levelled(task: RunningText | PackedDocuments, documents: list[np.ndarray]) -> list[int]:
    """What the tables are judged by."""
    marks = (task.begin, task.end) if isinstance(task, PackedDocuments) else (None, None)
    return [id for each in first_scored(documents, *marks) for id in each[1 : len(each)].tolist()]


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 8, 13, 20, 27, 99])
@pytest.mark.parametrize(
    "task", [RunningText(), PackedDocuments(BEGIN, END), PackedDocuments(None, END), PackedDocuments(None, None, False)]
)
def test_the_tables_are_judged_by_the_text_that_an_evaluation_scores(
    task: RunningText | PackedDocuments, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "EVALUATION_LIMIT", limit)
    documents = documents_of(*LENGTHS)
    found = targets_of(task, documents)
    assert len(found) == min(limit, len(targets_of(task, documents))) > 0
    assert levelled(task, documents) == found


def test_marks_that_are_not_counted_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: marks come after the counting, so that the tables are judged by more text."""
    monkeypatch.setattr(tasks, "EVALUATION_LIMIT", 13)
    documents = documents_of(*LENGTHS)
    found = targets_of(PackedDocuments(BEGIN, END), documents)
    faulty = [id for each in first_scored(documents) for id in [*each[:].tolist(), END]]
    assert len(faulty) > len(found) == len(levelled(PackedDocuments(BEGIN, END), documents))


@pytest.mark.parametrize("limit", [1, 6, 9, 20, 34, 99])
def test_hidden_tokens_are_of_the_text_that_is_counted(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole windows are read; the tables stop inside the last of them."""
    monkeypatch.setattr(tasks, "EVALUATION_LIMIT", limit)
    documents, context = documents_of(*LENGTHS), 4
    windows = masked_whole(
        documents, context, 1, 0, hiding=Hiding(MASK, 50, rate=1.0), begin=BEGIN, end=END, limit=limit
    )
    read = [int(id) for batch in windows for id in batch.targets[batch.targets != IGNORED]]
    counted = np.concatenate(HiddenTokens(BEGIN, END, Hiding(MASK, 50))._first_read(documents)).tolist()
    shared = min(len(read), len(counted))
    assert read[:shared] == counted[:shared]
    assert abs(len(read) - len(counted)) <= context

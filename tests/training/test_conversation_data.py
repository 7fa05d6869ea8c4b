"""Files of conversations as data: what is recorded of them, what is kept for validation, what is learnt from them."""

from __future__ import annotations

import json
import math
import runpy
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
import torch

from clearhead import generate
from clearhead.formats.load import Loaded
from clearhead.generation.chat import CHAT_TEMPLATE, ChatTemplate, Role, Turn, fitted, template_of
from clearhead.messages import UserError
from clearhead.models.build import build
from clearhead.models.choices import Rotary
from clearhead.models.config import DecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.text import ByteTokenizer, CharacterTokenizer, MarkedTokenizer
from clearhead.training import conversation_data
from clearhead.training.conversation_data import (
    ConversationData,
    ConversationTexts,
    prepare_conversations,
    read_conversation_texts,
)
from clearhead.training.conversations import Answered, all_conversations, answers_right
from clearhead.training.fit import evaluate, evaluating, fit
from clearhead.training.losses import next_token
from clearhead.training.optimizer import adamw
from clearhead.training.schedules import warmup_cosine
from tests.house.source import ROOT

Talk = list[tuple[Role, str]]
QUESTIONS = ROOT / "examples" / "questions.py"
BYTES = MarkedTokenizer(ByteTokenizer())
CONFIG = DecoderConfig()
# 30 conversations of 20 questions: two of each three lines ask the same; some go on, some begin with the system.
TALKS: list[Talk] = [
    [("system", "短")] * (n % 2)
    + [("user", f"猫{n - n % 3 if n % 3 < 2 else n}?"), ("assistant", "鸟" * (1 + n % 4) + str(n))]
    + [("user", "And?"), ("assistant", "No.")] * (n % 5 == 0)
    for n in range(30)
]


def written(path: Path, talks: Sequence[Talk]) -> str:
    lines = [{"messages": [{"role": role, "content": content} for role, content in talk]} for talk in talks]
    path.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines), encoding="utf-8")
    return str(path)


def read(path: Path, talks: Sequence[Talk]) -> ConversationTexts:
    return read_conversation_texts([written(path, talks)])


@pytest.fixture
def texts(tmp_path: Path) -> ConversationTexts:
    return read(tmp_path / "talks.jsonl", TALKS)


@pytest.fixture
def data(texts: ConversationTexts) -> ConversationData:
    return prepare_conversations(texts, BYTES, CHAT_TEMPLATE)


def plain(talk: Talk) -> str:
    """A conversation as the ids of it read."""
    return "".join(f"{role}\n{content}" for role, content in talk)


def test_files_are_one_behind_the_other_and_are_recorded_with_their_hash(
    tmp_path: Path, texts: ConversationTexts
) -> None:
    files = [written(tmp_path / "a.jsonl", TALKS[:4]), written(tmp_path / "b.jsonl", TALKS[4:])]
    both = read_conversation_texts(files)
    assert [list(map(tuple, each.turns)) for each in both.conversations] == TALKS
    assert both.source["conversations"] == [str(Path(file).resolve()) for file in files]
    assert both.source["sha256"] == texts.source["sha256"]
    other = read(tmp_path / "other.jsonl", [*TALKS[:-1], [*TALKS[-1], ("assistant", "x")]])
    assert other.source["sha256"] != texts.source["sha256"]


def test_the_template_is_recorded_too(texts: ConversationTexts, data: ConversationData) -> None:
    other = prepare_conversations(texts, BYTES, "{# the same #}" + CHAT_TEMPLATE)
    assert data.source["sha256"] == other.source["sha256"]
    assert data.source["template_sha256"] != other.source["template_sha256"]


def test_no_question_of_the_validation_is_trained_on(data: ConversationData) -> None:
    parts = [[BYTES.decode(each.ids) for each in part] for part in (data.train, data.validation)]
    assert sorted(parts[0] + parts[1]) == sorted(map(plain, TALKS))
    questions = [{text.split("user\n")[1].split("?")[0] for text in part} for part in parts]
    assert not questions[0] & questions[1]
    assert len(questions[0] | questions[1]) == 20
    assert (len(parts[0]), len(parts[1])) == (27, 3)


def test_which_validate_does_not_depend_on_the_order(tmp_path: Path, data: ConversationData) -> None:
    turned = prepare_conversations(read(tmp_path / "turned.jsonl", TALKS[::-1]), BYTES, CHAT_TEMPLATE)
    assert [each.ids.tolist() for each in turned.validation] == [each.ids.tolist() for each in data.validation[::-1]]


def test_one_question_alone_cannot_be_split(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="3 conversations"):
        prepare_conversations(read(tmp_path / "one.jsonl", [TALKS[1]] * 3), BYTES, CHAT_TEMPLATE)


def test_the_example_is_the_first_question_that_is_validated(data: ConversationData) -> None:
    source, target, prompt = data.example
    (talk,) = (talk for talk in TALKS if ("user", source) in talk and ("assistant", target) in talk)
    first = data.validation[0]
    assert first.ids[: len(prompt)].tolist() == prompt
    assert BYTES.decode(first.ids[len(prompt) :]).startswith(target)
    turns = [Turn(role, content) for role, content in talk[: talk.index(("assistant", target))]]
    assert fitted(turns, ChatTemplate.of(CHAT_TEMPLATE, BYTES), BYTES, 999)[1] == prompt


def test_counts_by_hand(tmp_path: Path) -> None:
    talks: list[Talk] = [[("user", "q" * n), ("assistant", "abc"[:n])] for n in (1, 2, 3)]
    data = prepare_conversations(read(tmp_path / "few.jsonl", talks), BYTES, CHAT_TEMPLATE)
    held = len(data.example.target)
    assert (len(data.train), len(data.validation)) == (2, 1)
    assert data.tokens == 2 + 3 + 4 - (held + 1)
    assert data.tokens_a_step(CONFIG, 6) == pytest.approx(6 * data.tokens / 2)
    # begin user\n qqq end begin assistant\n abc end, and the last is a target only.
    assert data.longest == 1 + 5 + 3 + 1 + 1 + 10 + 3
    assert data.uniform == math.log(258)
    assert data.notes == ("2 train and 1 validate",)
    data.must_fit(24)
    with pytest.raises(UserError, match=r"line 3 of .*few\.jsonl.* 24 positions.* 23;"):
        data.must_fit(23)


def test_a_conversation_that_cannot_be_learnt_is_named_with_its_line(tmp_path: Path) -> None:
    texts = read(tmp_path / "talks.jsonl", [TALKS[1], TALKS[4], [("user", "a"), ("assistant", "Z")]])
    for source, reason in (
        (
            "{{ raise_exception('no Z') if messages[-1].content == 'Z' }}{% for m in messages %}{{ m.content }};{% endfor %}",
            "no Z",
        ),
        ("{{ 'Y' if messages[-1].content == 'Z' }}{% for m in messages %}{{ m.content }};{% endfor %}", "otherwise"),
    ):
        with pytest.raises(UserError, match=rf"line 3 of .*talks\.jsonl.*{reason}"):
            prepare_conversations(texts, BYTES, source)
    with pytest.raises(UserError, match=r"line 1 of .*talks\.jsonl"):
        texts.written("{{ 1 / 0 }}")


def test_answers_without_an_end_are_told_of(texts: ConversationTexts) -> None:
    assert "no mark ends" in prepare_conversations(texts, ByteTokenizer(), CHAT_TEMPLATE).notes[-1]
    endless = "{% for m in messages %}{{ m.content }}\n{% endfor %}"
    assert "no mark ends" in prepare_conversations(texts, BYTES, endless).notes[-1]


def test_a_tokenizer_made_of_what_is_written_knows_all_of_it(texts: ConversationTexts) -> None:
    made = CharacterTokenizer.of("".join(texts.written(CHAT_TEMPLATE)))
    template = ChatTemplate.of(CHAT_TEMPLATE, made)
    for talk in ([("user", "猫"), ("assistant", "鸟")], [("system", "短"), ("user", "A")]):
        turns = [Turn(role, content) for role, content in talk]
        assert 0 not in template.ids(turns, made)
    assert len(texts.written(CHAT_TEMPLATE)) == 31


def test_the_objective_trains_on_one_part_and_is_judged_by_the_other(
    data: ConversationData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_data, "EVALUATION_CONVERSATIONS", 2)
    objective = data.objective(CONFIG, batch=9, seed=1)
    said = [BYTES.decode(row.tolist()).rstrip("\0") for step in range(3) for row in objective.batches(step).inputs]
    for _ in range(2):
        batches = list(objective.validation())
        assert [len(batch.inputs) for batch in batches] == [2, 1]
        judged = [BYTES.decode(row.tolist()).rstrip("\0") for batch in batches for row in batch.inputs]
        # The mark behind the last answer is a target only.
        assert sorted(said + judged) == sorted(map(plain, TALKS))
    assert objective.loss is next_token
    assert objective.measures == {"answers_right": answers_right}
    assert not torch.equal(data.objective(CONFIG, batch=9, seed=2).batches(0).inputs, objective.batches(0).inputs)


def questions() -> list[Talk]:
    """The questions of examples/questions.py."""
    asked = runpy.run_path(str(QUESTIONS))["questions"]()
    return [[("user", question), ("assistant", answer)] for question, answer in asked]


def trained(data: ConversationData, steps: int, width: int) -> Loaded:
    """A small model that has begun to learn the answers."""
    vocab = data.tokenizer.size
    config = DecoderConfig(vocab=vocab, layers=2, heads=4, width=width, context=data.longest, positions=Rotary())
    model = build(config, seed=0)
    objective = data.objective(config, batch=30, seed=0)
    optimizer = adamw(model, lr=3e-3, weight_decay=0.1, betas=(0.9, 0.99))
    schedule = partial(warmup_cosine, lr=3e-3, steps=steps, warmup=steps // 10, final=0.1)
    for _ in fit(model, objective.batches, objective.loss, optimizer=optimizer, schedule=schedule, steps=steps):
        pass
    assert isinstance(model, Decoder)
    return Loaded(model, data.tokenizer, config, Path(), CHAT_TEMPLATE)


def share_right(loaded: Loaded, conversations: Sequence[Answered]) -> float:
    return evaluate(loaded.model, all_conversations(conversations, 99, tokens=9999), answers_right)


def marked(texts: ConversationTexts) -> MarkedTokenizer:
    return MarkedTokenizer(CharacterTokenizer.of("".join(texts.written(CHAT_TEMPLATE))))


def test_an_answer_counts_as_right_if_and_only_if_it_is_what_is_written(tmp_path: Path) -> None:
    """The measure reads; here the model is asked as in a chat, writes, and stops by itself."""
    talks = questions()[76:96]
    texts = read(tmp_path / "questions.jsonl", talks)
    data = prepare_conversations(texts, marked(texts), CHAT_TEMPLATE)
    loaded = trained(data, 80, width=32)
    template = template_of(loaded)
    every = dict(zip(data.places, data.train + data.validation, strict=True))
    counted, wrote = [], []
    for line, (question, answer) in enumerate(talks, start=1):
        (conversation,) = (each for place, each in every.items() if place.line == line)
        counted.append(share_right(loaded, [conversation]) == 1)
        _, ids = fitted([Turn(*question)], template, data.tokenizer, 99)
        with evaluating(loaded.model):
            said = generate(loaded, ids, max_tokens=9, temperature=0)
        wrote.append(said.text == answer[1] and said.finish_reason == "eos")
    assert counted == wrote
    assert 0.2 < sum(counted) / len(counted) < 0.9, "some are right and some wrong"


def test_there_are_two_hundred_questions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(QUESTIONS), run_name="__main__")
    (tmp_path / "questions.jsonl").write_text(capsys.readouterr().out, encoding="utf-8")
    talks = read_conversation_texts([str(tmp_path / "questions.jsonl")]).conversations
    assert [list(map(tuple, talk.turns)) for talk in talks] == questions()
    assert len({talk.turns[0] for talk in talks}) == len(talks) == 200


@pytest.mark.slow
def test_two_hundred_questions_are_learnt(tmp_path: Path) -> None:
    texts = read(tmp_path / "questions.jsonl", questions())
    data = prepare_conversations(texts, marked(texts), CHAT_TEMPLATE)
    assert share_right(trained(data, 450, width=128), data.train) >= 0.95

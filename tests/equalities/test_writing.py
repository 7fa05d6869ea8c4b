"""Writing: a row of a batch is its solo run, a draft changes nothing, a beam's score is its log-probability."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch

from clearhead.formats.load import Loaded
from clearhead.generation.beams import beam_search
from clearhead.generation.drafts import LookupDraft, ModelDraft
from clearhead.generation.draws import dice
from clearhead.generation.generate import generate, generate_batch
from clearhead.generation.loop import Writing, decode
from clearhead.generation.pace import Pace
from clearhead.generation.request import Request
from clearhead.generation.rows import Overflow, Reader, Row, Side
from clearhead.generation.sampling import SamplingSettings
from clearhead.models.decoder import Decoder
from clearhead.text import CharacterTokenizer
from tests.equalities import faults_use as h
from tests.equalities import faults_writing as w
from tests.equalities.registry import claim, close
from tests.equalities.variants import CONTEXT, VARIANTS, model_of

PROMPTS = ([3], [1, 2, 3, 4, 5, 6, 7], [9, 9, 2], list(range(10)))
TOKENIZER = CharacterTokenizer("abcdefghij")
SOME = (
    "learned",
    "learned, fused, MQA",
    "no positions",
    "sinusoidal, post-norm",
    "rotary, fused",
    "ALiBi",
    "window",
    "cycle",
    "soft-cap",
)
"""A cover: every kind of position, a ring, windows that alternate, a kernel of its own."""


def loaded_of(variant: str) -> Loaded:
    return Loaded(model_of(variant), TOKENIZER, VARIANTS[variant], Path("here"))


@claim(
    "A row of a ragged batch = its solo run: ids, and logprobs to 1e-10, padded left or right, past the context too",
    "长短不一的批次中的每一行 = 单独运行：词元相同，对数概率误差不超过 1e-10（左右填充、超出上下文都一样）",
    over=SOME,
    faults={
        w.read_at_the_pad: "learned",
        w.ended_rows_stay: "rotary, fused",
        h.rows_unordered: "ALiBi",
    },
)
def test_a_row_is_its_solo_run(variant: str) -> None:
    loaded = loaded_of(variant)
    requests = [
        Request(prompt, 5 + 4 * i, SamplingSettings(temperature=0.9, top_p=0.95, presence_penalty=0.3), seed=i)
        for i, prompt in enumerate((*PROMPTS, PROMPTS[0]))
    ]
    sides: tuple[tuple[Side, Overflow], ...] = (("left", "recompute"), ("right", "window"), ("left", "stop"))
    for side, overflow in sides:
        made = generate_batch(loaded, requests, overflow=overflow, padding=side)
        for request, row in zip(requests, made, strict=True):
            (alone,) = generate_batch(loaded, [request], overflow=overflow)
            assert row.ids == alone.ids
            close(
                torch.tensor(row.logprobs, dtype=torch.float64),
                torch.tensor(alone.logprobs, dtype=torch.float64),
                1e-10,
            )


class Always(Pace):
    """Proposes three tokens whenever it may."""

    def next(self, most: int) -> int:
        return min(3, most)


def drafted(model: Decoder, prompt: list[int], settings: SamplingSettings, overflow: Overflow) -> Iterator[list[int]]:
    """The text with each kind of draft: the model itself, another model, the text's own n-grams."""
    other = model_of("learned, fused, MQA")
    drafts = [ModelDraft(Reader(draft, "window"), Row(list(prompt)), Always(0.0)) for draft in (model, other)]
    for draft in (*drafts, LookupDraft(11, Always(0.0))):
        row = Writing(list(prompt), sampling=settings, draw=dice(0), draft=draft)
        for _ in decode(Reader(model, overflow), [row]):
            row.open = len(row.ids) < 3 * CONTEXT
        yield row.ids


@claim(
    "Greedy with a draft = greedy without: a draft that is right, one that is wrong, the text's own n-grams; past the context too",
    "有提议者的贪心解码 = 没有提议者的贪心解码：提议全对、多错、取自文本自身的 n 元组；超出上下文也一样",
    over=SOME,
    faults={w.rejected_stay: "rotary, fused", w.all_accepted: "learned"},
)
def test_greedy_with_a_draft_is_greedy(variant: str) -> None:
    loaded = loaded_of(variant)
    assert isinstance(loaded.model, Decoder)
    for prompt in PROMPTS:
        for overflow in ("window", "recompute"):
            plain = generate(loaded, prompt, max_tokens=3 * CONTEXT - len(prompt), temperature=0, overflow=overflow)
            for ids in drafted(loaded.model, prompt, SamplingSettings(temperature=0), overflow):
                assert ids == [*prompt, *plain.ids]


@claim(
    "The score of a beam = the log-probability of its text by one forward, to 1e-10",
    "束的得分 = 一次前向给出的该文本的对数概率，误差不超过 1e-10",
    over=SOME,
    faults={w.beams_not_reordered: "learned", h.rows_unordered: "rotary, fused"},
)
@torch.no_grad()
def test_a_beam_is_worth_its_probability(variant: str) -> None:
    loaded = loaded_of(variant)
    for prompt in PROMPTS[:3]:
        for beam in beam_search(loaded, prompt, beams=5, max_tokens=CONTEXT - len(prompt)):
            logprobs = loaded.model(torch.tensor([[*prompt, *beam.ids[:-1]]]))[0].log_softmax(-1)[len(prompt) - 1 :]
            score = logprobs.gather(-1, torch.tensor(beam.ids)[:, None]).sum()
            close(torch.tensor(beam.score, dtype=torch.float64), score, 1e-10)

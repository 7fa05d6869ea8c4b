"""A small encoder-decoder that translates sentences of a small English into Chinese: learnt in some seconds, for a real alignment."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from clearhead.formats.load import Loaded
from clearhead.models.build import build
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.text.bpe_training import train_bpe
from clearhead.text.marked import MarkedTokenizer
from clearhead.training.fit import fit
from clearhead.training.losses import target_token
from clearhead.training.optimizer import adamw
from clearhead.training.pairs import Drawn, IdPair, Marks
from clearhead.training.schedules import warmup_cosine

KINDS = {"small": "小", "black": "黑", "white": "白", "old": "老", "red": "红"}
THINGS = {"cat": "猫", "dog": "狗", "bird": "鸟", "horse": "马", "fish": "鱼"}
VERBS = {"sees": "看", "follows": "跟", "hears": "听", "loves": "爱"}
PLACES = {"garden": "园", "house": "屋", "river": "河"}
TIMES = {"today": "今", "tomorrow": "明"}
SOURCE = "the small cat sees the black dog in the garden today"
TARGET = "今天小猫在园里看黑狗"
STEPS, LR = 250, 3e-3


def sentence(generator: np.random.Generator) -> tuple[str, str]:
    """English and Chinese, in which time and place stand before the verb."""

    def one(words: dict[str, str]) -> str:
        return str(generator.choice(list(words)))

    kinds, things, verb, place, time = (
        [one(KINDS), one(KINDS)],
        [one(THINGS), one(THINGS)],
        one(VERBS),
        one(PLACES),
        one(TIMES),
    )
    english = f"the {kinds[0]} {things[0]} {verb} the {kinds[1]} {things[1]} in the {place} {time}"
    who, whom = (KINDS[kind] + THINGS[thing] for kind, thing in zip(kinds, things, strict=True))
    return english, f"{TIMES[time]}天{who}在{PLACES[place]}里{VERBS[verb]}{whom}"


@cache
def translating(seed: int = 0) -> Loaded:
    """The model, when it has learnt; its tokens are words of English and characters of Chinese."""
    generator = np.random.default_rng(seed)
    pairs = [sentence(generator) for _ in range(300)]
    letters = [letter for _, chinese in pairs for letter in chinese]
    tokenizer = MarkedTokenizer(train_bpe([english for english, _ in pairs] + letters, vocab=400))
    config = EncoderDecoderConfig(vocab=tokenizer.size, layers=2, heads=4, width=64, context=24)
    model = build(config, seed=seed)
    assert isinstance(model, EncoderDecoder)

    def pair(generator: np.random.Generator) -> IdPair:
        english, chinese = sentence(generator)
        return IdPair(tokenizer.encode_array(english), tokenizer.encode_array(chinese))

    batches = Drawn(pair, Marks(tokenizer.begin, tokenizer.end), batch=32, seed=seed)
    for _ in fit(
        model,
        batches,
        target_token,
        optimizer=adamw(model, lr=LR),
        schedule=lambda step: warmup_cosine(step, lr=LR, steps=STEPS, warmup=50, final=0.1),
        steps=STEPS,
    ):
        pass
    return Loaded(model.eval(), tokenizer, config, Path("translating"))

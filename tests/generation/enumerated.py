"""The exact distribution of what a program of draws writes, and that of the chain it should write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import torch
from torch import Tensor

from clearhead.generation.draws import Draw
from clearhead.generation.loop import Writing, decode
from clearhead.generation.pace import Round, Speculation
from clearhead.generation.rows import Reader
from clearhead.generation.sampling import SamplingSettings, probabilities
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder

Distribution = dict[tuple[int, ...], float]
"""From a text (what was written, without the prompt) to its chance."""


@dataclass
class Path:
    """One way through a program of draws: follows a script of choices, then always takes the first that is possible."""

    script: list[int]
    weight: float = 1.0
    open: list[int] = field(default_factory=list)
    """At each draw, how many possible choices come after the one taken."""
    taken: list[int] = field(default_factory=list)

    def draw(self, chances: Tensor) -> int:
        """As `Draw`: the chance of the choice goes into the weight; what has no chance is no choice."""
        possible = chances.nonzero()[:, 0].tolist()
        place = self.script[len(self.taken)] if len(self.taken) < len(self.script) else 0
        self.taken.append(place)
        self.open.append(len(possible) - 1 - place)
        chances = chances.double()
        self.weight *= float(chances[possible[place]] / chances.sum())
        return possible[place]

    def following(self) -> list[int] | None:
        """The script of the next path, depth first; None after the last."""
        last = max((depth for depth, left in enumerate(self.open) if left), default=None)
        return None if last is None else [*self.taken[:last], self.taken[last] + 1]


def enumerated(run: Callable[[Draw], tuple[int, ...]]) -> Distribution:
    """What `run` writes, over all paths of its draws."""
    found: Distribution = {}
    script: list[int] | None = []
    while script is not None:
        path = Path(script)
        text = run(path.draw)
        found[text] = found.get(text, 0.0) + path.weight
        script = path.following()
    return found


def written(reader: Reader, row: Writing, count: int) -> tuple[int, ...]:
    """`count` tokens behind a row's prompt; fewer where the context ends the text."""
    prompt = len(row.ids)
    for _ in decode(reader, [row]):
        full = reader.overflow == "stop" and len(row.view) > reader.decoder.context
        row.open = len(row.ids) - prompt < count and not full
    return tuple(row.ids[prompt:])


def chain(
    reader: Reader, prompt: Sequence[int], settings: SamplingSettings, count: int, source: Sequence[int] = ()
) -> Distribution:
    """The same by forwards without any store: Π p(x_t | what the model sees before t), for every text."""
    found: Distribution = {(): 1.0}
    for _ in range(count):
        longer: Distribution = {}
        for text, chance in found.items():
            ids = [*prompt, *text]
            if reader.overflow == "stop" and len(ids) > reader.decoder.context:
                longer[text] = longer.get(text, 0.0) + chance
                continue
            for id, p in enumerate(after(reader, ids, settings, source).tolist()):
                if p:
                    longer[(*text, id)] = chance * p
        found = longer
    return found


def after(reader: Reader, ids: Sequence[int], settings: SamplingSettings, source: Sequence[int] = ()) -> Tensor:
    """The distribution of the token after `ids`, from one forward over what the model sees of them."""
    seen = torch.tensor([ids[view_start(reader, len(ids)) :]])
    inputs = (torch.tensor([source]), seen) if source else (seen,)
    with torch.inference_mode():
        logits = reader.model(*inputs)[0, -1]
    counts = torch.tensor([ids.count(id) for id in range(len(logits))]).to(logits)
    return probabilities(logits, settings, counts)


def view_start(reader: Reader, length: int) -> int:
    """Where the view of a text of `length` ids begins, by the rules in words; the text has grown one by one."""
    context, start = reader.decoder.context, 0
    if reader.overflow == "recompute":
        return max(0, length - context)
    for end in range(length + 1):
        if end - start > context:
            start = end - max(1, context // 2)
    return start


def farthest(found: Distribution, wanted: Distribution) -> float:
    """The largest difference of a text's chances."""
    return max(abs(found.get(text, 0.0) - wanted.get(text, 0.0)) for text in found.keys() | wanted.keys())


class Always:
    """A pace without thought: always k tokens, as far as there is room."""

    def __init__(self, k: int) -> None:
        self.k = k

    def next(self, most: int) -> int:
        return min(self.k, most)

    def learn(self, round: Round) -> None:
        pass

    def report(self) -> Speculation:
        return Speculation(0, 0, None)


def opinionated(config: DecoderConfig | EncoderDecoderConfig, seed: int, std: float = 0.5) -> Decoder | EncoderDecoder:
    """A model whose distributions are far from flat and from each other, in float64."""
    model, generator = build(config, seed=seed).double().eval(), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=std, generator=generator)
    return model


def nearly(model: Decoder | EncoderDecoder, std: float = 0.15) -> Decoder | EncoderDecoder:
    """A model that mostly agrees with `model`."""
    other, generator = deepcopy(model), torch.Generator().manual_seed(9)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype), alpha=std)
    return other

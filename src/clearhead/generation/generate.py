"""Generating text with a loaded model: a decoder continues a prompt, an encoder-decoder answers it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from clearhead.formats.load import Loaded
from clearhead.generation.request import Request
from clearhead.generation.rows import Overflow, Side
from clearhead.generation.sampling import SamplingSettings
from clearhead.generation.writing import Generation, Helper, Piece, gathered, pieces
from clearhead.ops.tap import NO_TAP, Tap


def generate(
    loaded: Loaded,
    prompt: str | Sequence[int],
    *,
    max_tokens: int = 200,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition_penalty: float = 1.0,
    presence_penalty: float = 0.0,
    frequency_penalty: float = 0.0,
    logit_bias: Mapping[int, float] | None = None,
    allowed: Collection[int] | None = None,
    seed: int = 0,
    stop: Sequence[str] = (),
    eos: Collection[int] | None = None,
    alternatives: int = 0,
    overflow: Overflow | None = None,
    draft: Helper | None = None,
) -> Generation:
    """Continue `prompt` by `max_tokens` tokens at most; or, with an encoder-decoder, answer it.

    Args:
        loaded: what `load` gave.
        prompt: text or token ids; for an encoder-decoder the source, without marks. May be empty where the tokenizer has a mark that
            begins a text.
        max_tokens: how many tokens to generate at most, at least 0.
        temperature: 1 draws from the model's own distribution, below is bolder, 0 takes the best token.
        top_k: draw among the k best tokens only; None or 0 for all.
        top_p: draw among the fewest best tokens whose probability reaches p.
        min_p: draw among the tokens at least p times as probable as the best one.
        repetition_penalty: what a token that has occurred, in the prompt or behind it, is divided by; at least 1.
        presence_penalty: what is taken off the logit of a token that has occurred.
        frequency_penalty: what is taken off for each time that it has occurred.
        logit_bias: token id -> what is added to its logit; -inf forbids it.
        allowed: the ids that can be drawn; all if None.
        seed: the same seed writes the same text on the same machine.
        stop: strings that end the text, which does not contain them; they may begin and end within tokens.
        eos: ids that end the text and are no part of it; those of the model, or else of its tokenizer, if None; none if empty.
        alternatives: how many of the model's best tokens are named at each place.
        overflow: past the context "recompute" reads the last `context` tokens anew for each token, "window" forgets the older
            half, "stop" ends the text; None is "recompute" for a decoder and "stop" for an encoder-decoder.
        draft: a smaller model with the same tokenizer, or "lookup" for the text's own n-grams, proposes tokens: the same distribution
            (at temperature 0 the same text), sooner.

    Raises:
        UserError: if there is nothing to continue, an id is outside the vocabulary, a prompt or source is too long, or a setting is
            out of range.
    """
    return gathered(
        stream(
            loaded,
            prompt,
            max_tokens=max_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            presence_penalty=presence_penalty,
            frequency_penalty=frequency_penalty,
            logit_bias=logit_bias,
            allowed=allowed,
            seed=seed,
            stop=stop,
            eos=eos,
            alternatives=alternatives,
            overflow=overflow,
            draft=draft,
        )
    )


def stream(
    loaded: Loaded,
    prompt: str | Sequence[int],
    *,
    max_tokens: int = 200,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition_penalty: float = 1.0,
    presence_penalty: float = 0.0,
    frequency_penalty: float = 0.0,
    logit_bias: Mapping[int, float] | None = None,
    allowed: Collection[int] | None = None,
    seed: int = 0,
    stop: Sequence[str] = (),
    eos: Collection[int] | None = None,
    alternatives: int = 0,
    overflow: Overflow | None = None,
    draft: Helper | None = None,
    tap: Tap = NO_TAP,
) -> Iterator[Piece]:
    """The same as `generate`, piece by piece as it is written; only whole characters, and joined they are the text.

    A character is a Unicode code point: no piece ends within one. Mistakes are raised at once, not with the first piece.

    The further `tap` sees, or replaces, the named tensors of every forward that reads the text:

        recorder = Recorder("blocks.*.attention.weights")
        for piece in ch.stream(loaded, "小猫", tap=recorder):
            recorder.tensors  # of the forward that this token was drawn from
    """
    sampling = SamplingSettings(
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        repetition_penalty=repetition_penalty,
        presence_penalty=presence_penalty,
        frequency_penalty=frequency_penalty,
        logit_bias=logit_bias or {},
        allowed=None if allowed is None else frozenset(allowed),
    )
    request = Request(prompt, max_tokens, sampling, seed, stop, eos, alternatives)
    return (piece for _, piece in pieces(loaded, [request], overflow=overflow, draft=draft, tap=tap))


def generate_batch(
    loaded: Loaded,
    requests: Sequence[Request],
    *,
    overflow: Overflow | None = None,
    padding: Side = "left",
    draft: Helper | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Generation]:
    """Write several texts side by side: what each request would get alone, sooner.

    Equal prompts are read once, so that n samples of one prompt are n requests with n seeds.

    Args:
        loaded: what `load` gave.
        requests: each with its own prompt, settings, seed and ends.
        overflow: as in `generate`.
        padding: where shorter prompts are filled up; no result depends on it.
        draft: as in `generate`; texts with a draft are written one beside the other, not in one forward.
        progress: is told how many tokens of the prompts have been read, and of how many.

    Raises:
        UserError: as `generate`.
    """
    # Gone through more than once.
    requests = list(requests)
    if not requests:
        return []
    found: list[list[Piece]] = [[] for _ in requests]
    for index, piece in pieces(loaded, requests, overflow=overflow, padding=padding, draft=draft, progress=progress):
        found[index].append(piece)
    return [gathered(each) for each in found]

"""Running their module: what it reads, how it is called, in which number type, and whether its cache gives the same."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.common.trial import apart
from clearhead.checking.families.known import Known
from clearhead.checking.families.theirs import Seen, first_tensor, seen_in
from clearhead.checking.families.walk import EXPLAINED, GROWN, Ids, Walk
from clearhead.checking.kinds.kind import Found
from clearhead.checking.report import Check, Fault
from clearhead.checking.rounding import UNIT
from clearhead.checking.strangers import Attempt
from clearhead.formats.opened import Config
from clearhead.messages import UserError, say
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig

ROWS, LENGTH, SOURCE, STEPS = 2, 11, 7, 3
"""How many rows and tokens are read, how many of a source, and how many tokens are read one by one from a cache."""

WIDEST = 40
"""The longest text that is read only to see the end of a window."""

TOLD = ("logits", "prediction_logits", "last_hidden_state")
"""What a result calls what matters in it."""


def ids_for(config: Config, seed: int) -> Ids:
    """Random ids: more than a window shows where that is a few tokens; of an encoder-decoder a source and a target."""
    generator = torch.Generator().manual_seed(seed)
    windows = [sight.window for sight in getattr(config, "sights", ()) if sight.window is not None]
    length = max([LENGTH, *(window + 4 for window in windows if window + 4 <= WIDEST)])
    sizes = [min(length, config.context)]
    if isinstance(config, EncoderDecoderConfig):
        sizes.insert(0, min(SOURCE, config.encoder.context))
    return tuple(torch.randint(config.vocab, (ROWS, size), generator=generator) for size in sizes)


def ran(known: Known, make: Callable[[], nn.Module], config: Config, ids: Ids) -> tuple[nn.Module, Seen, torch.dtype]:
    """Theirs, what was seen in it, and the narrowest type that it uses: in float64, or in float32 where it refuses that.

    Raises:
        UserError: if it cannot be run in either.
    """
    reason = ""
    for dtype in (torch.float64, torch.float32):
        module = make()
        narrow = narrowest(module)
        before = {name: buffer.dtype for name, buffer in module.named_buffers()}
        module = module.to(dtype).eval()
        rounded = [each for name, each in module.named_buffers() if before[name] != torch.float64]
        for call in _calls(module, config, ids):
            with Attempt() as attempt:
                seen = seen_in(module, known.family.name, known.family.base, config, call, rounded=rounded)
                _told(seen, config)
                return module, seen, narrow
            reason = attempt.reason
    raise UserError(say("families.not_run", name=known.home.__name__, reason=reason))


def narrowest(module: nn.Module) -> torch.dtype:
    """The narrowest type of a buffer, and float32 at least: angles that were rounded stay so in float64."""
    kinds = [buffer.dtype for buffer in module.buffers() if buffer.dtype in UNIT]
    return max([torch.float32, *kinds], key=lambda kind: UNIT[kind])


def _calls(module: Any, config: Config, ids: Ids) -> Iterator[Callable[[], Any]]:
    if isinstance(config, EncoderDecoderConfig):
        yield lambda: module(input_ids=ids[0], decoder_input_ids=ids[1], use_cache=False)
    elif not isinstance(config, EncoderConfig):
        yield lambda: module(input_ids=ids[0], use_cache=False)
    yield lambda: module(*ids)


def _told(seen: Seen, config: Config) -> None:
    """What the module gave stands for what its last parts gave: it may do something more to it."""
    logits = {EncoderConfig: "head.logits", EncoderDecoderConfig: "decoder.logits"}.get(type(config), "logits")
    for name, stage in (
        *((name, logits) for name in TOLD[:2]),
        ("last_hidden_state", "norm"),
        ("pooler_output", "head.output"),
    ):
        value = getattr(seen.result, name, None)
        if isinstance(value, Tensor):
            seen.keep(stage, value, "")
    if isinstance(seen.result, Tensor) and seen.result.shape[-1] == config.vocab:
        seen.keep(logits, seen.result, "")


def output_of(result: Any) -> Tensor | None:
    """The logits, or the features of a bare model."""
    named = (getattr(result, name, None) for name in TOLD)
    return next((value for value in named if isinstance(value, Tensor)), first_tensor(result))


def cached(module: Any, walk: Walk, where: str) -> Found:
    """Whether tokens read one by one from its own cache give what all of them at once gave.

    Args:
        module: theirs, as it ran.
        walk: ours beside theirs, for what rounding explains.
        where: what the fault is named by.
    """
    name, whole = "family.cache", output_of(walk.seen.result)
    steps: list[Tensor] = []
    with Attempt() as attempt, torch.no_grad():
        steps = _stepped(module, walk.ids)
    if whole is None or not steps:
        return Found((Check(name, "skipped", say("families.no_cache", reason=attempt.reason or "-")),))
    expected = whole[:, -STEPS - 1 :]
    gap = apart(torch.cat(steps, dim=1), expected)
    allowed = max(EXPLAINED, GROWN * _grown(walk))
    shown, most = f"{gap:.1e}", f"{allowed:.1e}"
    if gap <= allowed:
        return Found((Check(name, "pass", say("families.cached", steps=STEPS, gap=shown, allowed=most), gap),))
    text = say("families.cache_apart", steps=STEPS, gap=shown, allowed=most)
    fault = Fault("cache.mismatch", "consistent", text, where, say("families.cache_fix"), gap)
    return Found((Check(name, "fail", text, gap),), (fault,))


def _stepped(module: Any, ids: Ids) -> list[Tensor]:
    """The last outputs, each read alone but for the first; nothing if the module gives no cache."""
    first, found = ids[-1][:, :-STEPS], []
    extra: dict[str, Any] = {}
    # Newer releases have another word for it, and warn of the older.
    word = "cache" if "cache" in inspect.signature(module.forward).parameters else "past_key_values"
    made = module(**_fields(ids, first), use_cache=True)
    if len(ids) == 2:
        extra = {"encoder_outputs": (made.encoder_last_hidden_state,)}
    found.append(_last(made))
    for step in range(ids[-1].shape[1] - STEPS, ids[-1].shape[1]):
        store = getattr(made, "cache", None) or getattr(made, "past_key_values", None)
        if store is None:
            return []
        given = {("decoder_input_ids" if extra else "input_ids"): ids[-1][:, step : step + 1], word: store, **extra}
        made = module(**given, use_cache=True)
        found.append(_last(made))
    return found


def _fields(ids: Ids, target: Tensor) -> dict[str, Tensor]:
    return {"input_ids": target} if len(ids) == 1 else {"input_ids": ids[0], "decoder_input_ids": target}


def _last(result: Any) -> Tensor:
    output = output_of(result)
    assert output is not None
    return output[:, -1:]


def _grown(walk: Walk) -> float:
    """What float32 does to the whole of ours."""
    with torch.no_grad():
        exact = walk.model(*walk.ids)
        rough = walk.rough(*walk.ids)
    return apart(exact, rough)

"""A language model's own `generate`: each row is what it is alone, after its end nothing follows, and no pad is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.lm_case import LmCase, last_of
from clearhead.checking.kinds.lm_finding import failed, passed, skipped
from clearhead.checking.signatures import signature_of
from clearhead.checking.strangers import Attempt, Seeded
from clearhead.messages import say

METHODS = (
    "generate",
    "sample",
    "greedy",
    "generate_greedy",
    "greedy_decode",
    "decode",
    "complete",
    "generate_text",
    "greedy_generate",
)
NEW = r"max_?new_?tokens|max_?tokens|n_?tokens|num_?tokens|steps|n|n_?steps|new_tokens|max_steps|num_new_tokens|tokens_to_generate|max_gen_len|count|n_new|seq_len"
TOTAL = r"max_?len(gth)?|length|total_len"
END = r"eos(_?token)?(_?id)?|eot(_id)?|stop(_?token)?(_?id)?|end_?(token|id|of_text)|eos_idx"
PAD = r"pad(_?token)?(_?id)?|pad_idx"
MASK = r"attention_mask|mask|prompt_mask|padding_mask|pad_mask|real|keep"
LENGTHS = r"(prompt_)?(lengths?|lens)"
STEPS = 6


class Writer:
    """How the model's method is called, greedily."""

    def __init__(self, case: LmCase, method: str, made: Any) -> None:
        self.case, self.method = case, method
        self.parameters = signature_of(getattr(made, method)).parameters

    def name(self, pattern: str) -> str | None:
        """The parameter of that meaning, after the ids."""
        return next((name for name in list(self.parameters)[1:] if re.fullmatch(pattern, name.lower())), None)

    def __call__(
        self,
        ids: Tensor,
        *,
        steps: int = STEPS,
        end: int | None = None,
        pad: int | None = None,
        keep: Tensor | None = None,
        greedy: bool = True,
    ) -> Tensor:
        """Prompts (B,T) and what was written after them, (B,T+n)."""
        given: dict[str, Any] = {}
        new, total = self.name(NEW), self.name(TOTAL)
        if new is not None:
            given[new] = steps
        elif total is not None:
            given[total] = ids.shape[1] + steps
        named = (
            (END, end),
            (PAD, pad),
            (MASK, None if keep is None else keep.long()),
            (LENGTHS, None if keep is None else keep.sum(1)),
        )
        for pattern, value in named:
            name = self.name(pattern)
            if name is not None and value is not None:
                given[name] = value
        if greedy:
            given |= {
                name: value
                for name, value in (("top_k", 1), ("do_sample", False), ("greedy", True))
                if name in self.parameters
            }
            if (
                "top_k" not in self.parameters
                and "temperature" in self.parameters
                and "do_sample" not in self.parameters
            ):
                given["temperature"] = 1e-6 if self.parameters["temperature"].default not in (0, 0.0) else 0.0
        module = self.case.case.ready()
        with torch.no_grad(), Seeded(1):
            result = getattr(module, self.method)(ids.clone(), **given)
        return _ids(result, ids)


def _ids(result: Any, prompt: Tensor) -> Tensor:
    """The ids (B,T+n) that a method gave; without the prompt they get it back."""
    found = result[0] if isinstance(result, tuple) else result
    if isinstance(found, list):
        longest = max(len(row) for row in found)
        rows = [[int(i) for i in row] for row in found]
        found = torch.tensor([row + [row[-1]] * (longest - len(row)) for row in rows])
    if not isinstance(found, Tensor) or found.dim() != 2 or found.is_floating_point():
        raise ValueError("gives no ids (B,T)")
    begins = found.shape[1] >= prompt.shape[1] and torch.equal(found[:, : prompt.shape[1]], prompt)
    return found if begins else torch.cat([prompt, found], 1)


def generating(case: LmCase) -> Found:
    """What is asked of a method that writes."""
    made = case.case.target.make()
    method = next(
        (name for name in METHODS if isinstance(made, nn.Module) and callable(getattr(made, name, None))), None
    )
    if method is None or case.call is not None:
        return Found()
    with Attempt() as attempt:
        writer = Writer(case, method, made)
        prompts = case.ids(3, 3, 8)
        if not torch.equal(writer(prompts), writer(prompts)):
            return skipped("generate.finished-rows", say("lm.not_greedy", method=method))
        return _finished(writer, prompts) + _padded(writer) + _hidden(writer)
    return skipped("generate.finished-rows", say("lm.generate_raises", method=method, reason=attempt.reason))


def _alone(writer: Writer, prompts: Tensor, call: Callable[[Tensor], Tensor]) -> list[list[int]]:
    width = prompts.shape[1]
    return [call(prompts[row : row + 1])[0, width:].tolist() for row in range(prompts.shape[0])]


def _finished(writer: Writer, prompts: Tensor) -> Found:
    """An end that one row writes early and another does not."""
    if writer.name(END) is None:
        return skipped("generate.finished-rows", say("lm.no_end", method=writer.method))
    vocab, width = writer.case.vocab, prompts.shape[1]
    for seed in range(8, 20):
        prompts = writer.case.ids(3, 3, seed)
        free = _alone(writer, prompts, lambda ids: writer(ids, end=None))
        row, end = _early(free)
        if end is not None:
            break
    else:
        return skipped("generate.finished-rows", say("lm.same_rows", method=writer.method))
    pad = next(token for token in range(vocab) if token != end and all(token not in each for each in free))
    together = writer(prompts, end=end, pad=pad)[:, width:].tolist()
    for index, (found, alone) in enumerate(zip(together, free, strict=True)):
        cut = alone.index(end) + 1 if end in alone else len(alone)
        kept, after = found[:cut], found[cut:]
        stopped = len(set(after)) <= 1 and not (
            set(after) & (set(alone) - {end}) and alone[cut : cut + len(after)] == after
        )
        if kept != alone[:cut] or not stopped or (after and after[0] not in (pad, end, 0, -1) and after[0] in alone):
            evidence = say(
                "lm.row_goes_on", method=writer.method, row=index, end=end, found=str(found), alone=str(alone[:cut])
            )
            return failed("generate.finished-rows", evidence, where=writer.method)
    return passed("generate.finished-rows", say("lm.rows_end", method=writer.method, end=end, row=row))


def _early(rows: list[list[int]]) -> tuple[int, int | None]:
    """A row and a token of its beginning that no other row writes before its end."""
    for place in (1, 0, 2):
        for index, row in enumerate(rows):
            others = [token for other, each in enumerate(rows) if other != index for token in each]
            if row[place] not in others and row[place] not in row[:place] and set(row[place + 1 :]) - {row[place]}:
                return index, row[place]
    # A row that repeats one token goes on with the end itself: that shows nothing.
    return 0, None


def _padded(writer: Writer) -> Found:
    """Prompts of unequal lengths, padded as the method may want it: on the left, or on the right."""
    if writer.name(MASK) is None and writer.name(LENGTHS) is None:
        return Found()
    prompts, pad = writer.case.ids(2, 5, 30), 0
    short = 3
    keep = torch.ones_like(prompts, dtype=torch.bool)
    alone = [writer(prompts[0:1, :short])[0, short:].tolist(), writer(prompts[1:2])[0, 5:].tolist()]
    reasons = []
    wrong: dict[str, list[int]] = {}
    for side in ("left", "right"):
        rows, real = prompts.clone(), keep.clone()
        place = slice(0, 5 - short) if side == "left" else slice(short, 5)
        kept = slice(5 - short, 5) if side == "left" else slice(0, short)
        rows[0, kept] = prompts[0, :short]
        rows[0, place], real[0, place] = pad, False
        with Attempt() as attempt:
            found = writer(rows, keep=real, pad=pad)[:, 5:].tolist()
            if [row[:STEPS] for row in found] == alone:
                return passed(
                    "generate.pad-read",
                    say(
                        "lm.pads_skipped",
                        method=writer.method,
                        side=say("lm.left") if side == "left" else say("lm.right"),
                    ),
                )
            wrong[side] = found[0]
        reasons.append(attempt.reason)
    if len(wrong) < 2:
        return skipped(
            "generate.pad-read",
            say("lm.generate_raises", method=writer.method, reason="; ".join(filter(None, reasons))),
        )
    evidence = say("lm.pad_read", method=writer.method, pads=5 - short, found=str(wrong["right"]), alone=str(alone[0]))
    return failed("generate.pad-read", evidence, where=writer.method)


def _hidden(writer: Writer) -> Found:
    """One token for many equal prompts, nothing asked for: every token that is likely enough must turn up."""
    for name, parameter in writer.parameters.items():
        wanted = (1, 1.0) if name == "temperature" else (None, 0, 1.0)
        asks = re.fullmatch(r"(top_?)?[kp]|min_p|top_.*|filter_?(thres\w*|p|k)|thres(hold)?|temperature", name)
        if asks and parameter.default not in (*wanted, parameter.empty):
            # It says so in its signature.
            return Found()
    rows = 600
    prompt = writer.case.ids(1, 3, 8)
    given = writer(prompt.repeat(rows, 1), steps=1, greedy=False)[:, 3]
    seen = torch.bincount(given, minlength=writer.case.vocab)
    if int((seen > 0).sum()) < 3:
        return Found()
    with torch.no_grad():
        chances = last_of(writer.case, writer.case.case.ready(), prompt)[0].softmax(-1)
    floor = chances[: len(seen)][seen > 0].min()
    tail = chances[chances < floor].sum().item()
    # The chance that a draw from all of it never falls there.
    if (1 - tail) ** rows < 1e-12:
        return failed(
            "sampling.hidden-default",
            say(
                "lm.hidden",
                method=writer.method,
                seen=int((seen > 0).sum()),
                vocab=len(chances),
                tail=f"{tail:.2g}",
                rows=rows,
            ),
            where=writer.method,
        )
    return passed("sampling.hidden-default", say("lm.whole", method=writer.method, seen=int((seen > 0).sum())))

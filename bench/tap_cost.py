"""What a tap that does nothing costs a forward: its calls, counted and timed, over the forward's own time.

    python -m bench.tap_cost [--tokens 128]

The sizes are those of the demo's model. A forward without any call cannot be run beside it without another model, so the calls are timed
by themselves, with the names and tensors of that very forward.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from clearhead.models.build import build
from clearhead.models.choices import Rotary
from clearhead.models.config import DecoderConfig
from clearhead.ops.tap import NO_TAP, Ran, Scoped, Tap


class Calls(Tap):
    """Keeps what a forward says to its tap."""

    def __init__(self) -> None:
        self.named: list[tuple[str, Tensor]] = []
        self.scopes = 0
        self.ran: list[Ran] = []

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        self.named.append((name, tensor))
        return tensor

    def within(self, scope: str) -> Tap:
        self.scopes += 1
        return _Counted(self, f"{scope}.")

    def attended(self, name: str, ran: Ran) -> Ran:
        self.ran.append(ran)
        return ran


class _Counted(Scoped):
    """A scope whose own scopes are counted too."""

    def within(self, scope: str) -> Scoped:
        self.tap.scopes += 1
        return _Counted(self.tap, f"{self.prefix}{scope}.")


def seconds(run: Callable[[], object], times: int) -> float:
    """Median wall time of one run."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        run()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--tokens", type=int, default=128)
    options.add_argument("--rounds", type=int, default=300)
    asked = options.parse_args()
    config = DecoderConfig(vocab=230, layers=4, heads=4, width=128, context=128, positions=Rotary())
    model, ids, calls = build(config, seed=0).eval(), torch.arange(asked.tokens)[None], Calls()
    with torch.inference_mode():
        model(ids, tap=calls)

        def silent() -> None:
            for name, tensor in calls.named:
                NO_TAP(name, tensor)
            for _ in range(calls.scopes):
                NO_TAP.within("blocks")
            for ran in calls.ran:
                NO_TAP.attended("weights", Ran(*ran))

        shares = []
        for _ in range(7):
            shares.append(seconds(silent, asked.rounds) / seconds(lambda: model(ids), asked.rounds))
    count = len(calls.named) + calls.scopes + len(calls.ran)
    print(f"{count} calls a forward of {asked.tokens} tokens: {statistics.median(shares):.2%} of its time")


if __name__ == "__main__":
    main()

"""Checks of a decoder: it does not see the future, and its kernels agree."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from clearhead.checking.finding import Finding
from clearhead.formats.weights import fill, own_tensors
from clearhead.layers.store import NO_STORE, Store
from clearhead.messages import say
from clearhead.models.build import build
from clearhead.models.choices import Fused, Visible
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops.tap import Scoped, Tap

AGREEMENT = 1e-12
"""How far kernels may differ in float64, beside the size of the logits."""


LONGEST, LONGEST_LARGE, LARGE = 128, 24, 20_000_000
"""How many tokens are read at most, and of a model with more numbers than `LARGE`: beyond them there is no other way to go wrong."""


def looked_at(model: nn.Module, context: int) -> int:
    """How many tokens a check reads."""
    return min(context, LONGEST_LARGE if is_large(model) else LONGEST)


def is_large(model: nn.Module) -> bool:
    """Whether checking the model takes more than a moment."""
    return sum(parameter.numel() for parameter in model.parameters()) > LARGE


def check_decoder(model: Decoder, config: DecoderConfig, *, seed: int = 0) -> list[Finding]:
    """Run every check of this file on a copy of the model in float64.

    Args:
        model: in any mode; it is not touched.
        config: what the model was built from.
        seed: of the ids that it reads.
    """
    length = looked_at(model, model.context)
    ids = torch.randint(config.vocab, (2, length), generator=torch.Generator().manual_seed(seed % 2**64))
    exact = copy.deepcopy(model).cpu().double().eval()
    findings = [no_future(exact, ids), no_future_gradient(exact, ids)]
    # A model whose every window shows a query itself alone has no past to see, by design.
    if length > 1 and any(look.window != 1 for look in model.looks):
        findings.append(past_is_seen(exact, ids))
    # Soft-capping and sinks have one kernel, the definition itself: there is no other to compare it with.
    if config.softcap is None and not config.sinks:
        findings.append(kernels_agree(exact, config, ids))
    return findings


def no_future(model: Decoder, ids: Tensor, store: Store = NO_STORE) -> Finding:
    """Change every token from t on; outputs before t must not move at all, and those from t on must.

    Tried at t = 1, an odd place, the last place, and those in between that a blockwise kernel might treat apart.
    """
    length, vocab = ids.shape[-1], model.embedding.num_embeddings
    leak, least_answer = 0.0, float("inf")
    with torch.no_grad():
        before = model(ids, store=store)
        for place in _places(length):
            changed = torch.cat([ids[:, :place], (ids[:, place:] + 1) % vocab], dim=1)
            moved = (model(changed, store=store) - before).abs()
            leak = max(leak, moved[:, :place].max().item())
            least_answer = min(least_answer, moved[:, place:].max().item())
    if not _places(length):
        return Finding("causal.future-leak", True, 0.0, say("checking.no_future_to_see"))
    passed = leak == 0 and least_answer > 0
    evidence = say("checking.future", places=len(_places(length)), leak=f"{leak:.1e}", answer=f"{least_answer:.1e}")
    return Finding("causal.future-leak", passed, leak, evidence)


def no_future_gradient(model: Decoder, ids: Tensor, store: Store = NO_STORE) -> Finding:
    """d logits[t] / d embedding[s] must be 0 for every s > t, and not 0 for s = t, or the probe would prove nothing."""
    reach = _reach(model, ids, store)
    leak = max(max(size[place:], default=0.0) for place, size in reach.items())
    own = min(size[place - 1] for place, size in reach.items())
    evidence = say("checking.future_gradient", leak=f"{leak:.1e}", own=f"{own:.1e}")
    return Finding("causal.future-leak", leak == 0 and own > 0, leak, evidence)


def past_is_seen(model: Decoder, ids: Tensor, store: Store = NO_STORE) -> Finding:
    """d logits[t] / d embedding[s] must not be 0 for some s < t."""
    past = min(max(size[: place - 1]) for place, size in _reach(model, ids, store).items() if place > 1)
    return Finding("causal.past-lost", past > 0, past, say("checking.past", past=f"{past:.1e}"))


def _reach(model: Decoder, ids: Tensor, store: Store) -> dict[int, list[float]]:
    """For places t: how strongly the output before t depends on the input at each position."""
    length = ids.shape[-1]
    probe = Leaf("input")
    logits = model(ids, store=store, tap=probe)
    reach = {}
    for place in [*_places(length), length]:
        target = logits[:, place - 1].square().sum()
        (gradient,) = torch.autograd.grad(target, probe.leaf, retain_graph=True, materialize_grads=True)
        reach[place] = gradient.abs().amax(dim=(0, 2)).tolist()
    return reach


def kernels_agree(
    model: Decoder | EncoderDecoder, config: DecoderConfig | EncoderDecoderConfig, *ids: Tensor
) -> Finding:
    """The model as it is, and its weights with the visible and the fused kernel: logits equal to rounding, in float64."""
    with torch.no_grad():
        logits = [model(*ids)]
    for kernel in (Visible(), Fused()):
        twin = build(replace(config, kernel=kernel), seed=0).double().eval()
        fill(twin, own_tensors(model), Path("model"))
        with torch.no_grad():
            logits.append(twin(*ids))
    difference, allowed = apart(logits, logits[1])
    evidence = say("checking.kernels", difference=f"{difference:.1e}", allowed=f"{allowed:.1e}")
    return Finding("kernel.differs", difference <= allowed, difference, evidence)


def apart(found: Iterable[Tensor], definition: Tensor) -> tuple[float, float]:
    """How far logits are from what they should be, at most, and how far rounding allows them to be."""
    difference = max((each - definition).abs().max().item() for each in found)
    return difference, AGREEMENT * max(1.0, definition.abs().max().item())


class Leaf(Tap):
    """A tap that makes the tensor of one name a leaf, so that gradients end there.

    Args:
        name: of the tensor, such as `input`.
    """

    leaf: Tensor

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """The leaf in place of the tensor that has the name."""
        if name != self.name:
            return tensor
        self.leaf = tensor.detach().requires_grad_()
        return self.leaf

    def within(self, scope: str) -> Tap:
        """The same tap, for names that begin with `scope` and a dot."""
        return Scoped(self, f"{scope}.")


def _places(length: int) -> list[int]:
    """Places t to try, 1 <= t < length: the first, an odd one, around block edges, the last."""
    wanted = {1, 3, length // 2, length - 1, *(edge + shift for edge in (16, 32, 64) for shift in (-1, 0, 1))}
    return sorted(place for place in wanted if 1 <= place < length)

"""Checks of an encoder-decoder: it reads the whole source and no padding, does not see the future, and its kernels agree."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from clearhead.checking.decoder import (
    Leaf,
    apart,
    kernels_agree,
    looked_at,
    no_future,
    no_future_gradient,
    past_is_seen,
)
from clearhead.checking.finding import Finding
from clearhead.generation.stores import GrowingStore
from clearhead.layers.memory import CrossStore
from clearhead.messages import say
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.encoder_decoder import EncoderDecoder

PADDING = 3
"""How many padding tokens are put behind a source, to see whether they matter."""


def check_encoder_decoder(model: EncoderDecoder, config: EncoderDecoderConfig, *, seed: int = 0) -> list[Finding]:
    """Run every check of this file on a copy of the model in float64.

    Args:
        model: in any mode; it is not touched.
        config: what the model was built from.
        seed: of the ids that it reads.
    """
    generator = torch.Generator().manual_seed(seed % 2**64)
    source = torch.randint(config.encoder.vocab, (2, looked_at(model, config.encoder.context)), generator=generator)
    target = torch.randint(config.vocab, (2, looked_at(model, config.context)), generator=generator)
    exact = copy.deepcopy(model).cpu().double().eval()
    with torch.no_grad():
        memory = exact.remember(source)
    findings = [no_future(exact.decoder, target, memory), no_future_gradient(exact.decoder, target, memory)]
    if config.context > 1:
        findings.append(past_is_seen(exact.decoder, target, memory))
    findings += [source_is_seen(exact, source, target), cache_agrees(exact, target, memory)]
    if config.encoder.context > PADDING:
        findings.append(padding_is_ignored(exact, source, target))
    if config.softcap is None and not config.sinks:
        findings.append(kernels_agree(exact, config, source, target))
    return findings


def source_is_seen(model: EncoderDecoder, source: Tensor, target: Tensor) -> Finding:
    """d logits[t] / d source[s] must not be 0 for any t and s: cross-attention is never causal."""
    probe = Leaf("encoder.input")
    logits = model(source, target, tap=probe)
    weakest = float("inf")
    for place in {0, target.shape[-1] - 1}:
        (gradient,) = torch.autograd.grad(logits[:, place].square().sum(), probe.leaf, retain_graph=True)
        weakest = min(weakest, gradient.abs().amax(-1).min().item())
    return Finding("cross.source-lost", weakest > 0, weakest, say("checking.source", weakest=f"{weakest:.1e}"))


@torch.no_grad()
def padding_is_ignored(model: EncoderDecoder, source: Tensor, target: Tensor) -> Finding:
    """Other tokens at padding must not move a logit, nor may the padding itself."""
    short = source[:, :-PADDING]
    alone = model(short, target)
    real = (torch.arange(source.shape[-1]) < short.shape[-1]).expand(source.shape)
    contents = [source, torch.where(real, source, (source + 1) % model.encoder.embedding.num_embeddings)]
    moved, allowed = apart((model(ids, target, source_real=real) for ids in contents), alone)
    evidence = say("checking.padding", moved=f"{moved:.1e}", allowed=f"{allowed:.1e}")
    return Finding("mask.ignored", moved <= allowed, moved, evidence)


@torch.no_grad()
def cache_agrees(model: EncoderDecoder, target: Tensor, memory: CrossStore) -> Finding:
    """One token at a time with a cache must give what one forward gives."""
    whole = model.decoder(target, store=memory)
    store = memory.beside(GrowingStore(model.decoder))
    parts = torch.cat([model.decoder(token, store=store) for token in torch.split(target, 1, dim=1)], dim=1)
    difference, allowed = apart([parts], whole)
    evidence = say("checking.cache", difference=f"{difference:.1e}", allowed=f"{allowed:.1e}")
    return Finding("cache.mismatch", difference <= allowed, difference, evidence)

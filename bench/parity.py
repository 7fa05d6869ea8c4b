"""Logits beside nanoGPT's model.py and the course's gpt.py, with copied weights, in float64.

    python -m bench.parity --nanogpt path/to/nanoGPT/model.py --course path/to/gpt.py

Prints the largest difference for each file given; exit status 1 if one is above 1e-12.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from bench.peers import definitions
from clearhead.models.build import build
from clearhead.models.choices import GELU, LayerNorm
from clearhead.models.config import DecoderConfig
from clearhead.models.presets import PRESETS

LIMIT = 1e-12


def copy(ours: nn.Module, values: dict[str, Tensor]) -> None:
    """Give every tensor of our model its value; each is named once."""
    own = dict(ours.named_parameters())
    if own.keys() != values.keys():
        raise ValueError(f"names differ: {sorted(own.keys() ^ values.keys())}")
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(values[name].reshape(parameter.shape))


def largest_difference(ours: nn.Module, peer: nn.Module, vocab: int, context: int) -> float:
    """Of the logits at the last position, for texts of several lengths (both files can give those)."""
    worst = 0.0
    for length in (1, 3, context // 2 + 1, context):
        ids = torch.randint(vocab, (2, length))
        with torch.no_grad():
            theirs = peer(ids)[0]
            worst = max(worst, (ours(ids)[:, -theirs.shape[1] :] - theirs).abs().max().item())
    return worst


def nanogpt(path: Path, *, bias: bool) -> float:
    """Largest difference from nanoGPT's model, with or without its biases."""
    config = DecoderConfig(
        vocab=65,
        layers=3,
        heads=4,
        width=48,
        context=17,
        activation=GELU(),
        norm=LayerNorm(bias=bias),
        qkv_bias=bias,
        bias=bias,
    )
    peer_file = definitions(path)
    peer = peer_file.GPT(
        peer_file.GPTConfig(block_size=17, vocab_size=65, n_layer=3, n_head=4, n_embd=48, dropout=0.0, bias=bias)
    )
    peer, ours = redrawn(peer), build(config).double().eval()
    names = {
        "transformer.wte.weight": "embedding.weight",
        "transformer.wpe.weight": "positions.table",
        "transformer.ln_f": "norm",
        "transformer.h.": "blocks.",
        ".ln_1.": ".attention_norm.",
        ".ln_2.": ".feedforward_norm.",
        ".attn.c_attn.": ".attention.qkv.",
        ".attn.c_proj.": ".attention.output.",
        ".mlp.c_fc.": ".feedforward.up.",
        ".mlp.c_proj.": ".feedforward.down.",
    }
    copy(ours, {renamed(name, names): tensor for name, tensor in peer.named_parameters()})
    return largest_difference(ours, peer, config.vocab, config.context)


def course(path: Path) -> float:
    """Largest difference from the course's model, of which every head has layers of its own."""
    config = replace(PRESETS["course"], layers=2, heads=3, width=24, context=11, dropout=0.0)
    sizes = {
        "block_size": 11,
        "n_embd": 24,
        "n_head": 3,
        "n_layer": 2,
        "dropout": 0.0,
        "vocab_size": 65,
        "device": "cpu",
    }
    peer = redrawn(definitions(path, sizes).GPTLanguageModel())
    ours = build(config).double().eval()
    names = {
        "token_embedding_table.": "embedding.",
        "position_embedding_table.weight": "positions.table",
        "ln_f": "norm",
        "lm_head": "head",
        ".ln1.": ".attention_norm.",
        ".ln2.": ".feedforward_norm.",
        ".sa.proj.": ".attention.output.",
        ".ffwd.net.0.": ".feedforward.up.",
        ".ffwd.net.2.": ".feedforward.down.",
    }
    values = {renamed(name, names): tensor for name, tensor in peer.named_parameters() if ".heads." not in name}
    for index, block in enumerate(peer.blocks):
        parts = [getattr(head, part).weight for part in ("query", "key", "value") for head in block.sa.heads]
        values[f"blocks.{index}.attention.qkv.weight"] = torch.cat(parts)
    copy(ours, values)
    return largest_difference(ours, peer, config.vocab, config.context)


def redrawn(model: nn.Module) -> nn.Module:
    """The model in float64, every weight large enough to matter."""
    model = model.double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    return model


def renamed(name: str, names: dict[str, str]) -> str:
    for old, new in names.items():
        name = name.replace(old, new)
    return name


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--nanogpt", type=Path, help="nanoGPT's model.py")
    options.add_argument("--course", type=Path, help="gpt.py of the course")
    asked = options.parse_args()
    torch.manual_seed(0)
    found: dict[str, float] = {}
    if asked.nanogpt:
        found["nanoGPT, biases"] = nanogpt(asked.nanogpt, bias=True)
        found["nanoGPT, no biases"] = nanogpt(asked.nanogpt, bias=False)
    if asked.course:
        found["course"] = course(asked.course)
    for name, difference in found.items():
        print(f"{name:<20} {difference:.1e}")
    return int(not found or max(found.values()) > LIMIT)


if __name__ == "__main__":
    sys.exit(main())

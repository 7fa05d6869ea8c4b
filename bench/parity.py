"""Logits beside nanoGPT's model.py and the course's gpt.py, their weights saved by `torch.save` and opened by us, in float64.

    python -m bench.parity --nanogpt path/to/nanoGPT/model.py --course path/to/gpt.py

Prints the largest difference for each file given; exit status 1 if one is above 1e-12.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import nn

from bench.peers import definitions
from clearhead.formats.assemble import assemble
from clearhead.formats.pickles.checkpoint import open_pickle

LIMIT = 1e-12


def largest_difference(peer: nn.Module, saved: object, vocab: int, context: int) -> float:
    """Of the logits at the last position, for texts of several lengths (both files can give those).

    Args:
        peer: the other model.
        saved: what its training would save.
        vocab: how many ids there are.
        context: the longest text.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ckpt.pt"
        torch.save(saved, path)
        ours, _ = assemble(open_pickle(path), torch.float64, "cpu")
    worst = 0.0
    for length in (1, 3, context // 2 + 1, context):
        ids = torch.randint(vocab, (2, length))
        with torch.no_grad():
            theirs = peer(ids)[0]
            worst = max(worst, (ours(ids)[:, -theirs.shape[1] :] - theirs).abs().max().item())
    return worst


def nanogpt(path: Path, *, bias: bool) -> float:
    """Largest difference from nanoGPT's model, with or without its biases."""
    sizes = {"block_size": 17, "vocab_size": 65, "n_layer": 3, "n_head": 4, "n_embd": 48, "dropout": 0.0, "bias": bias}
    peer_file = definitions(path)
    peer = redrawn(peer_file.GPT(peer_file.GPTConfig(**sizes)))
    # As a compiled model on several devices is saved.
    weights = {f"module._orig_mod.{name}": tensor for name, tensor in peer.state_dict().items()}
    saved = {"model": weights, "model_args": sizes, "iter_num": 3, "config": {"dataset": "none"}}
    return largest_difference(peer, saved, vocab=65, context=17)


def course(path: Path) -> float:
    """Largest difference from the course's model, of which every head has layers of its own."""
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
    return largest_difference(peer, peer.state_dict(), vocab=65, context=11)


def redrawn(model: nn.Module) -> nn.Module:
    """The model in float64, every weight large enough to matter."""
    model = model.double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    return model


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

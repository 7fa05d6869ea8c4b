"""Small models of transformers with random weights, read as a folder would be: through their configuration and their names."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.formats.assemble import assemble
from clearhead.formats.fields import Fields
from clearhead.formats.hugging_face.families import FAMILIES
from clearhead.formats.hugging_face.family import Family
from clearhead.formats.opened import Config, Opened
from clearhead.formats.rows import Row
from clearhead.formats.tensors import HeldTensors
from clearhead.text import CharacterTokenizer
from clearhead.tracing import Recorder
from tests.oracles.compare import largest_difference

SOURCE = Path("config.json")
LETTERS = CharacterTokenizer.of("abcdefghijklmnopqrstuvw")
V = LETTERS.size
"""How many tokens the small models have, and their tokenizer: 24."""


def family_of(name: str, classes: Sequence[str] = ()) -> Family:
    """The family that config.json calls so, and of several the one that has a class of these; else the first."""
    own = [family for family in FAMILIES if family.name == name]
    return next((family for family in own if {*family.architectures} & {*classes}), own[0])


def read(data: dict[str, Any], family: str | None = None) -> Any:
    """The configuration of a config.json, every field of it understood."""
    name = family or data["model_type"]
    fields = Fields(data, SOURCE, name)
    found = family_of(name, data.get("architectures") or ()).read(fields)
    fields.done()
    return found


def as_saved(config: Any) -> dict[str, Any]:
    """A configuration of transformers as its own file holds it: all fields, not only those that differ from defaults."""
    data: dict[str, Any] = json.loads(json.dumps(config.to_dict(), default=str))
    return data


def saved_tensors(theirs: Any) -> dict[str, Tensor]:
    """The tensors of a model of transformers under the names that they have in its files."""
    newer = "lm_head." if theirs.config.model_type == "gpt_neox" else None
    there: dict[str, Tensor] = theirs.state_dict()
    return {name.replace(newer, "embed_out.") if newer else name: tensor for name, tensor in there.items()}


def random_weights(model: Any, std: float = 0.3) -> Any:
    """Every weight random: matrices by `std`, gains about 1, biases not 0. What computes nothing is left."""
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if name.endswith("bias"):
                tensor.normal_(std=0.1)
            elif tensor.dim() == 1:
                tensor.normal_(mean=1.0, std=0.3)
            else:
                tensor.normal_(std=std)
    return model.eval()


def opened(
    theirs: Any,
    *,
    change: Callable[[Any], Config] | None = None,
    move: Callable[[Row], Row] | None = None,
) -> Opened:
    """A model of transformers as a reader of its folder finds it.

    Args:
        theirs: the model.
        change: a fault: the configuration, in place of the one that was read.
        move: a fault: a row, in place of the one that the family has.
    """
    data = as_saved(theirs.config) | {"architectures": [type(theirs).__name__]}
    family = family_of(data["model_type"], data["architectures"])
    found = read(data)
    config = found if change is None else change(found)
    rows = [row if move is None else move(row) for row in family.rows(config)]
    tensors = HeldTensors(SOURCE, saved_tensors(theirs))
    return Opened(config, LETTERS, tensors, tuple(rows), SOURCE, f"Hugging Face {family.name}", family.unused)


def ours_of(theirs: Any, dtype: torch.dtype, **faults: Any) -> Any:
    """Our model with the weights of theirs, which is turned into the same type."""
    return assemble(opened(theirs.to(dtype), **faults), dtype, "cpu")[0]


def assert_near(actual: Tensor, expected: Tensor, within: float) -> None:
    """Assert that no number differs by more than `within` times the largest of those expected, or `within` if that is below 1."""
    assert actual.dtype == expected.dtype, f"{actual.dtype} is not {expected.dtype}"
    difference = largest_difference(actual, expected) / max(1.0, expected.abs().max().item())
    assert difference <= within, f"differs by {difference:.3g}, more than {within:.3g}"


@torch.no_grad()
def check_parity(
    theirs: Any, dtype: torch.dtype, within: float, *, ids: Tensor, real: Tensor | None = None, **faults: Any
) -> None:
    """A decoder's logits, what enters the first block and what leaves each one, at the real tokens.

    Args:
        theirs: a causal model of transformers.
        dtype: both compute in it.
        within: how far apart, of the largest number of each tensor.
        ids: (B,T).
        real: (B,T), False for padding.
        faults: as in `opened`.
    """
    ours, recorder = ours_of(theirs, dtype, **faults), Recorder()
    positions = None if real is None else (real.long().cumsum(-1) - 1).clamp(min=0)
    made = theirs(
        ids,
        attention_mask=None if real is None else real.long(),
        position_ids=positions,
        output_hidden_states=True,
        use_cache=False,
    )
    logits = ours(ids, real=real, tap=recorder)
    places = torch.ones_like(ids, dtype=torch.bool) if real is None else real
    # The last of theirs is after the last norm.
    names = ["input", *(f"blocks.{index}.output" for index in range(len(made.hidden_states) - 2)), "norm"]
    for name, expected in zip(names, made.hidden_states, strict=True):
        assert_near(recorder.tensors[name][places], expected[places], within)
    assert_near(logits[places], made.logits[places], within)


def same_names_and_shapes(rows: Sequence[Row], ours: nn.Module, theirs: Any, unused: Sequence[str] = ()) -> None:
    """Assert that the rows name just the tensors of theirs, and that splitting ours gives their shapes."""
    there = {name: tuple(tensor.shape) for name, tensor in saved_tensors(theirs).items() if name not in unused}
    state = ours.state_dict()
    here = {name: tuple(part.shape) for row in rows for name, part in row.split(state[row.ours]).items()}
    assert here == there

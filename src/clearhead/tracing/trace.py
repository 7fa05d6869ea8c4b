"""What a model did with a text: one forward, recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from clearhead.formats.load import Loaded
from clearhead.messages import UserError, say
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops.tap import NO_TAP, Tap
from clearhead.tracing.aliases import own_pattern
from clearhead.tracing.edit import Chain
from clearhead.tracing.names import known_axes
from clearhead.tracing.parts import Model, module_of
from clearhead.tracing.record import Recorder
from clearhead.tracing.select import Heads, Selection


@dataclass(frozen=True, repr=False)
class Trace(Mapping[str, Tensor]):
    """Named tensors of one forward, in its order. Printed, it is the walk of shapes: a line a tensor."""

    tensors: dict[str, Tensor]
    tokens: list[str] = field(default_factory=list)
    """Each token of the text that the model wrote or continued, as it is shown to a reader."""
    source: list[str] = field(default_factory=list)
    """Each token of the text that an encoder read."""
    differences: dict[str, float] = field(default_factory=dict)
    """For weights that were computed again: how far what they mix is from what ran, at most."""
    positions: list[int] | None = None
    """Which queries were kept, as they were asked: negative ones count from the end (`places`); all if None."""
    heads: Heads = None
    """Which heads were kept."""

    def __getitem__(self, name: str) -> Tensor:
        """A tensor by its name, or TransformerLens' name of it."""
        return self.tensors[own_pattern(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def axes(self, name: str) -> tuple[str, ...]:
        """The axes of a tensor, such as ("B", "H", "T", "S"); none for one that a part of your own emits.

        `tracing.AXES` says what the letters mean.
        """
        return known_axes(own_pattern(name))

    def places(self, name: str) -> list[int]:
        """Which positions of its text a tensor holds, counted from the start: of the source where its axis of queries is M.

        Args:
            name: of the tensor.
        """
        length = len(self.tokens if "T" in self.axes(name) else self.source)
        places = Selection(positions=self.positions).places(length)
        return list(range(length)) if places is None else places

    def to_dict(self) -> dict[str, Tensor]:
        """The tensors alone."""
        return dict(self.tensors)

    def save(self, path: str | Path) -> None:
        """Write the tensors as safetensors; tokens, axes, heads, positions and differences stand in its metadata as JSON."""
        told = {
            "tokens": self.tokens,
            "source": self.source,
            "axes": {name: list(self.axes(name)) for name in self},
            "differences": self.differences,
            "positions": self.positions,
            "heads": self.heads if not isinstance(self.heads, Mapping) else {str(k): v for k, v in self.heads.items()},
        }
        metadata = {key: json.dumps(value, ensure_ascii=False) for key, value in told.items()}
        # Copies: what passes on unchanged is one tensor under two names, which the format refuses.
        copies = {name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in self.items()}
        save_file(copies, str(path), metadata)

    def __repr__(self) -> str:
        return table(self)

    def _repr_html_(self) -> str:
        rows = [_cells(name, tensor) for name, tensor in self.items()]
        lines = ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in [HEADINGS, *rows]]
        return f"<table>{''.join(lines)}</table>"


HEADINGS = ("name", "axes", "sizes", "mean", "std", "least", "most", "bytes")


def table(trace: Mapping[str, Tensor]) -> str:
    """The walk of shapes: name, axes, sizes, mean, standard deviation, range and bytes of each tensor."""
    rows = [HEADINGS, *(_cells(name, tensor) for name, tensor in trace.items())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = [
        [
            cell.ljust(width) if i < 3 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in rows
    ]
    return "\n".join("  ".join(row).rstrip() for row in padded)


def summary(tensor: Tensor) -> dict[str, float | int | None]:
    """Mean, standard deviation, range and bytes of a tensor; None where no number is finite."""
    shown = tensor.detach().double()
    finite = shown[shown.isfinite()]
    numbers: dict[str, float | int | None] = dict.fromkeys(("mean", "std", "least", "most"))
    if finite.numel():
        numbers["mean"], numbers["std"] = float(finite.mean()), float(finite.std(correction=0))
        numbers["least"], numbers["most"] = float(finite.min()), float(finite.max())
    return {**numbers, "bytes": tensor.numel() * tensor.element_size()}


def _cells(name: str, tensor: Tensor) -> tuple[str, ...]:
    told = summary(tensor)
    numbers = ["-" if told[key] is None else f"{told[key]:.4g}" for key in ("mean", "std", "least", "most")]
    return name, " ".join(known_axes(name)), "×".join(map(str, tensor.shape)), *numbers, f"{told['bytes']:,}"


@dataclass(frozen=True)
class Input:
    """What a forward reads, and its tokens as they are shown."""

    ids: Tensor
    source: Tensor | None
    tokens: list[str]
    source_tokens: list[str]


def input_of(model: Model, text: str | Sequence[int], target: str | Sequence[int] | None = None) -> Input:
    """The text as the model reads it; for an encoder-decoder the source, and the target behind the mark that begins it.

    Raises:
        UserError: if a text is given and no tokenizer, a target and no encoder, or there is nothing to read.
    """
    loaded = model if isinstance(model, Loaded) else None
    ids, device = _ids(loaded, text), next(module_of(model).parameters()).device
    if not isinstance(module_of(model), EncoderDecoder):
        if target is not None:
            raise UserError(say("tracing.target_alone"))
        return Input(torch.tensor([ids], device=device), None, _shown(loaded, ids), [])
    answer = [] if target is None else _ids(loaded, target)
    if loaded is not None:
        begin, end = loaded.tokenizer.begin, loaded.tokenizer.end
        assert begin is not None, "an answer needs marks that begin and end it"
        assert end is not None
        ids, answer = [*ids, end], [begin, *answer]
    if not answer:
        raise UserError(say("tracing.no_target"))
    return Input(
        torch.tensor([answer], device=device),
        torch.tensor([ids], device=device),
        _shown(loaded, answer),
        _shown(loaded, ids),
    )


def run(model: Model, read: Input, tap: Tap = NO_TAP) -> Tensor:
    """One forward: logits (B,T,V)."""
    module = module_of(model)
    logits: Tensor = module(read.ids, tap=tap) if read.source is None else module(read.source, read.ids, tap=tap)
    return logits


def trace(
    model: Model,
    text: str | Sequence[int],
    *,
    target: str | Sequence[int] | None = None,
    names: str | Sequence[str] = "*",
    heads: Heads = None,
    positions: Sequence[int] | None = None,
    edits: Tap = NO_TAP,
) -> Trace:
    """Run the model on a text and keep the named tensors. Nothing is changed on the model, its mode included.

        ch.trace(loaded, "小猫趴在", names="blocks.*.attention.weights", heads={3: [2]})

    Weights of a fused kernel are computed again from the q and k that ran, and `differences` says how far what they mix is from what
    ran. Memory is that of one forward without gradients and of what was asked.

    Args:
        model: what `load` gave, or a model.
        text: text or ids; for an encoder-decoder the source, without marks.
        target: for an encoder-decoder, what it has written so far, without the mark that begins it; nothing if None.
        names: patterns; `*` stands for anything. TransformerLens' names are understood.
        heads: which heads of all blocks, or a mapping from blocks to heads; all if None.
        positions: which queries, negative ones from the end; all if None.
        edits: an `Editor`; what it changed is what is kept.

    Raises:
        UserError: if a text is given and the model has no tokenizer, a target and it has no encoder, or no tensor has such a name.
        IndexError: if a head or a position is not there.
    """
    recorder, read = Recorder(names, heads=heads, positions=positions), input_of(model, text, target)
    with torch.no_grad():
        run(model, read, Chain(edits, recorder))
    return traced(recorder, read)


def traced(recorder: Recorder, read: Input) -> Trace:
    """What a recorder kept, with the tokens that were read.

    Raises:
        UserError: if it kept nothing.
    """
    must_have_kept(recorder)
    selection = recorder.selection
    differences = {name: float(difference) for name, difference in recorder.differences.items()}
    places = None if selection.positions is None else list(selection.positions)
    return Trace(recorder.tensors, read.tokens, read.source_tokens, differences, places, selection.heads)


def must_have_kept(recorder: Recorder) -> None:
    """Raise a UserError if no tensor has a name that was asked for."""
    names = recorder.selection.names
    if not recorder.tensors:
        raise UserError(say("tracing.no_name", names=names if isinstance(names, str) else " ".join(names)))


def _ids(loaded: Loaded | None, text: str | Sequence[int]) -> list[int]:
    if not isinstance(text, str):
        return list(text)
    if loaded is None:
        raise UserError(say("tracing.no_tokenizer"))
    return loaded.read(text)


def _shown(loaded: Loaded | None, ids: Sequence[int]) -> list[str]:
    return [str(id) for id in ids] if loaded is None else loaded.tokenizer.pieces(ids)

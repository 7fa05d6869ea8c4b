"""The run directory: everything about one training, in files that can be read without clearhead.

runs/x/
  config.json        format_version, model, and what the training recorded (settings, data, versions)
  tokenizer.json     text <-> ids
  chat_template.jinja  if you put one there: how conversations are written down, as in Hugging Face folders
  metrics.jsonl      a line per update
  base.safetensors   the weights that stay as they are, written once, if the run trains changes of low rank (LoRA)
  checkpoints/
    000500/          model.safetensors (with LoRA the changes alone), training.safetensors (optimisers, random numbers),
                     state.json (step, validation loss; settings and versions that it was trained with)
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clearhead.formats.atomic import discard, new_folder, remove_leftovers, write_json, write_text
from clearhead.messages import UserError, say
from clearhead.models.codec import from_plain, to_plain
from clearhead.models.config import ModelConfig
from clearhead.models.low_rank import LowRank, low_rank_of
from clearhead.text import Tokenizer, tokenizer_from_dict
from clearhead.text.files import read_raw

FORMAT_VERSION = 1


@dataclass(frozen=True)
class Checkpoint:
    """A state of a run that can be loaded and gone on from."""

    path: Path
    step: int
    """How many updates the weights have had."""
    val_loss: float | None
    """Validation loss at that step, if it was evaluated there and is a number (nats per token)."""


@dataclass(frozen=True)
class Run:
    """A run directory."""

    path: Path
    model: ModelConfig
    tokenizer: Tokenizer
    details: dict[str, Any]
    """What the training recorded: settings, data, versions.

    `init` says what the run began with, if not with fresh weights: `model`, its name, and `sha256`, the digest of its
    weights. `lora` holds a `LowRank` as plain data, if its changes alone are trained.
    """

    @property
    def lora(self) -> LowRank | None:
        """What is trained beside weights that stay as they are; None where all weights are trained.

        Raises:
            UserError: if the description says something else than a `LowRank`.
        """
        plain = self.details.get("lora")
        return None if plain is None else low_rank_of(plain)

    @property
    def base(self) -> Path:
        """The file of the weights that stay as they are, in a run that trains at low rank."""
        return self.path / "base.safetensors"

    @property
    def begins_with(self) -> str | None:
        """The digest of the weights that the run began with; None if they were fresh."""
        begun = self.details.get("init")
        return str(begun.get("sha256")) if isinstance(begun, dict) else None

    @property
    def opening(self) -> tuple[int, ...]:
        """Ids that a text begins with, as an imported model was trained; none for what was trained here."""
        return _ids(self.details.get("opening"))

    @property
    def closing(self) -> tuple[int, ...]:
        """Ids that a text ends with where it is read whole."""
        return _ids(self.details.get("closing"))

    @property
    def ends(self) -> tuple[int, ...]:
        """All ids at which a text of an imported model ends, where they are not its tokenizer's end alone."""
        return _ids(self.details.get("ends"))

    @property
    def metrics(self) -> Path:
        """The file of update lines."""
        return self.path / "metrics.jsonl"

    def chat_template(self) -> str | None:
        """How conversations are written down for the model; None for a base model, which has none.

        Raises:
            UserError: if the file cannot be read as text.
        """
        file = self.path / "chat_template.jinja"
        return read_raw(file, "utf-8").text if file.exists() else None

    def checkpoints(self) -> list[Checkpoint]:
        """Every complete checkpoint, oldest first."""
        folders = [
            folder for folder in (self.path / "checkpoints").glob("*") if folder.name.isdecimal() and folder.is_dir()
        ]
        folders.sort(key=lambda folder: int(folder.name))
        return [_checkpoint(folder) for folder in folders]

    def latest(self) -> Checkpoint:
        """The checkpoint with the most updates."""
        return self._some()[-1]

    def best(self) -> Checkpoint:
        """The checkpoint with the lowest validation loss; the latest if none was evaluated."""
        scored = [(each.val_loss, each.step, each) for each in self._some() if each.val_loss is not None]
        return min(scored)[2] if scored else self.latest()

    def prune(self, keep: int = 2) -> None:
        """Delete every checkpoint but the latest ones and the best, and what killed processes left unfinished.

        The latest two are what `clearhead verify-resume` needs: it goes from the one to the other.

        Args:
            keep: how many of the latest stay; the very latest always does.
        """
        found = self.checkpoints()
        kept = {self.best().path, *(each.path for each in found[-max(1, keep) :])}
        for each in found:
            if each.path not in kept:
                discard(each.path)
        remove_leftovers(self.path / "checkpoints")

    def new_checkpoint(self, step: int) -> Path:
        """Where the checkpoint of `step` belongs; fill it inside `atomic.new_folder`."""
        return self.path / "checkpoints" / f"{step:06d}"

    def _some(self) -> list[Checkpoint]:
        found = self.checkpoints()
        if not found:
            raise UserError(say("formats.no_checkpoint", path=self.path))
        return found


def create_run(
    path: Path, model: ModelConfig, tokenizer: Tokenizer, details: dict[str, Any], chat_template: str | None = None
) -> Run:
    """Make the run directory `path`, or write its description anew; a chat template that is there stays if none is given.

    Raises:
        UserError: if it cannot be written.
    """
    try:
        (path / "checkpoints").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(say("formats.cannot_write", path=path, reason=error.strerror)) from error
    remove_leftovers(path)
    remove_leftovers(path / "checkpoints")
    write_json(path / "tokenizer.json", tokenizer.to_dict())
    if chat_template is not None:
        write_text(path / "chat_template.jinja", chat_template)
    write_json(path / "config.json", {"format_version": FORMAT_VERSION, "model": to_plain(model), **details})
    return Run(path, model, tokenizer, details)


def read_run(path: Path) -> Run:
    """The run in directory `path`.

    Raises:
        UserError: if there is none, or its description cannot be understood.
    """
    if not path.exists():
        raise UserError(say("formats.no_model", path=path))
    if not (path / "config.json").is_file():
        raise UserError(say("formats.not_a_run", path=path))
    details = read_json(path / "config.json")
    version = details.pop("format_version", None)
    if version != FORMAT_VERSION:
        raise UserError(say("formats.version", path=path, found=version, known=FORMAT_VERSION))
    model = from_plain(details.pop("model", None), ModelConfig)
    return Run(path, model, tokenizer_from_dict(read_json(path / "tokenizer.json")), details)


def find_run(path: Path) -> tuple[Run, Path | None]:
    """The run that `path` names, and the checkpoint folder if it names one of those.

    Raises:
        UserError: as `read_run`.
    """
    path = path if path.name else path.resolve()
    is_checkpoint = path.parent.name == "checkpoints" and (path / "model.safetensors").exists()
    return (read_run(path.parent.parent), path) if is_checkpoint else (read_run(path), None)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object.

    Raises:
        UserError: if the file is missing or is not a JSON object.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(say("formats.bad_json", path=path, reason=error)) from error
    if not isinstance(data, dict):
        raise UserError(say("formats.bad_json", path=path, reason=type(data).__name__))
    return data


def _ids(written: object) -> tuple[int, ...]:
    """Ids as a description holds them; a file that somebody has damaged holds none."""
    return tuple(id for id in written if isinstance(id, int)) if isinstance(written, list) else ()


def _checkpoint(folder: Path) -> Checkpoint:
    loss = read_json(folder / "state.json").get("val_loss")
    # NaN is neither below nor above anything: as a loss it would win every comparison or none, by its place.
    return Checkpoint(folder, int(folder.name), loss if isinstance(loss, int | float) and math.isfinite(loss) else None)


__all__ = ["FORMAT_VERSION", "Checkpoint", "Run", "create_run", "find_run", "new_folder", "read_json", "read_run"]

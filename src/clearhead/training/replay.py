"""Proof on a run that stopping and going on changes nothing: one interval again, from its checkpoint to the next."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import torch
from torch import Tensor

from clearhead.formats.run import Checkpoint, Run, read_json, read_run
from clearhead.formats.weights import digest, read_tensors
from clearhead.messages import UserError, say
from clearhead.training.data_choice import Watch, unwatched
from clearhead.training.environment import differences, environment, recorded_environment
from clearhead.training.fit import Update
from clearhead.training.plan import Plan, resumed_plan
from clearhead.training.record import read_record
from clearhead.training.run import Evaluated, Training
from clearhead.training.settings import TrainingSettings

Line = dict[str, float | int | None]
"""The numbers of one update, as metrics.jsonl has them."""

ROUNDING = 1e-3
"""A relative difference of losses and weights up to which another machine explains it, or a GPU, whose kernels may add in any order."""


@dataclass(frozen=True)
class Compared:
    """One part of the state after the interval, as the run recorded it and as the replay found it."""

    part: str
    """weights, optimizer, random or metrics."""
    recorded: str
    """SHA-256."""
    replayed: str
    """SHA-256."""
    difference: str | None
    """What differs first and by how much, in words; None if nothing does."""
    count: int
    """Of its tensors, or lines."""

    @property
    def equal(self) -> bool:
        """Whether every bit is the same."""
        return self.recorded == self.replayed


@dataclass(frozen=True)
class Replay:
    """What came of a replay."""

    first: int
    """The step whose checkpoint it began with."""
    last: int
    """The step whose checkpoint it is compared with."""
    parts: tuple[Compared, ...]
    fault: str | None
    """What the differences look like: resume.rng, resume.data, resume.optimizer; None if nothing differs, or rounding alone."""
    explanation: str | None
    """The same in words; None if nothing differs."""
    environment: tuple[str, ...]
    """What decides over bits and is not as recorded, if anything."""

    @property
    def equal(self) -> bool:
        """Whether every bit of every part is the same."""
        return all(each.equal for each in self.parts)


def interval(run: Run) -> tuple[Checkpoint, Checkpoint]:
    """The checkpoint before the last, and the last.

    Raises:
        UserError: if the run has fewer than two.
    """
    found = run.checkpoints()
    if len(found) < 2:
        raise UserError(say("resuming.one_checkpoint", path=run.path, count=len(found)))
    return found[-2], found[-1]


def replay(
    out: Path,
    files: Sequence[str] = (),
    *,
    device: torch.device,
    watch: Watch = unwatched,
    progress: Callable[[int], None] = lambda step: None,
) -> Replay:
    """Train the run in `out` again from its checkpoint before the last to its last, elsewhere, and compare.

    The run stays as it is: the replay happens in a temporary folder, on the run's own data and settings.

    Args:
        out: the run directory.
        files: where its data is now, if it has moved.
        device: where the model runs.
        watch: who is told how far reading is.
        progress: told the step after each update.

    Raises:
        UserError: if there are no two checkpoints, a file is damaged, or the data is not what the run was trained on.
    """
    before, last = interval(read_run(out))
    plan = resumed_plan(out, files, {}, watch=watch)
    plan = replace(plan, settings=_settings_of(plan, last))
    if plan.settings.steps < last.step:
        raise UserError(say("resuming.not_reached", path=out, steps=plan.settings.steps, last=last.step))
    recorded = _stored(last)
    recorded_lines = _recorded_lines(plan.run, before.step, last.step)
    with _elsewhere(plan.run, before) as copied:
        training, lines = _again(replace(plan, run=copied), last.step, device, progress)
        replayed = _stored(training.run.latest())
    parts = (*_compare(recorded, replayed), _compare_lines(recorded_lines, lines))
    differing = differences(recorded_environment(plan.run, last), environment(device))
    near = _largest(recorded["weights"], replayed["weights"]) <= ROUNDING
    excused = near and (bool(differing) or device.type != "cpu")
    fault, explanation = _diagnosis(parts, recorded_lines, lines, excused=excused)
    return Replay(before.step, last.step, parts, fault, explanation, tuple(differing))


def _again(plan: Plan, last: int, device: torch.device, progress: Callable[[int], None]) -> tuple[Training, list[Line]]:
    """Train from the run's checkpoint to step `last`, and save there; and the lines of the updates."""
    training = Training(plan.run, plan.settings, plan.objective, device)
    lines: list[Line] = []
    for event in training.events(stop=lambda: training.step >= last):
        if isinstance(event, Update):
            lines.append({"step": event.step, "loss": event.loss, "lr": event.lr, "grad_norm": event.grad_norm})
            progress(event.step)
        elif isinstance(event, Evaluated) and lines:
            lines[-1] |= {"val_loss": event.val_loss, **event.measures}
    training.save_if_new()
    return training, [_finite(line) for line in lines]


def _settings_of(plan: Plan, last: Checkpoint) -> TrainingSettings:
    """The settings of the interval: those of its last checkpoint, as a run may be made longer after it.

    Between the two nothing is saved that nobody asked for, and nothing is deleted.
    """
    said = read_json(last.path / "state.json").get("training")
    known = {field.name for field in fields(TrainingSettings)}
    whole = asdict(plan.settings) | (said if isinstance(said, dict) and said.keys() <= known else {})
    try:
        return TrainingSettings(**whole)
    except TypeError as error:
        raise UserError(say("training.not_recorded", out=last.path, reason=error)) from error


@contextmanager
def _elsewhere(run: Run, checkpoint: Checkpoint) -> Iterator[Run]:
    """A copy of the run, as it was at a checkpoint, in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="clearhead-", ignore_cleanup_errors=True) as folder:
        copied = replace(run, path=Path(folder))
        try:
            shutil.copytree(checkpoint.path, copied.new_checkpoint(checkpoint.step))
            if run.base.exists():
                shutil.copy2(run.base, copied.base)
        except OSError as error:
            raise UserError(say("formats.cannot_write", path=folder, reason=error.strerror or error)) from error
        yield copied


def _stored(checkpoint: Checkpoint) -> dict[str, dict[str, Tensor]]:
    """The tensors of a checkpoint by part."""
    training = read_tensors(checkpoint.path / "training.safetensors")
    random = {name: tensor for name, tensor in training.items() if name.startswith("random.")}
    return {
        "weights": read_tensors(checkpoint.path / "model.safetensors"),
        "optimizer": {name: tensor for name, tensor in training.items() if name not in random},
        "random": random,
    }


def _compare(recorded: dict[str, dict[str, Tensor]], replayed: dict[str, dict[str, Tensor]]) -> tuple[Compared, ...]:
    return tuple(
        Compared(part, digest(one), digest(replayed[part]), _first_difference(one, replayed[part]), len(one))
        for part, one in recorded.items()
    )


def _first_difference(recorded: Mapping[str, Tensor], replayed: Mapping[str, Tensor]) -> str | None:
    """The first tensor, by name, that is not the same to the last bit, and by how much at most."""
    for name in sorted(recorded.keys() | replayed.keys()):
        if name not in recorded or name not in replayed:
            return say("resuming.only_one_has", name=name)
        one, other = recorded[name], replayed[name]
        if digest({name: one}) != digest({name: other}):
            same = one.shape == other.shape
            largest = f"{(one.double() - other.double()).abs().max().item():.3g}" if same else "?"
            return say("resuming.tensor_differs", name=name, largest=largest)
    return None


def _recorded_lines(run: Run, first: int, last: int) -> list[Line]:
    """What the run recorded of the updates after `first`, up to `last`; a line that is none is left out."""
    with suppress(OSError):
        return [line for line in read_record(run.metrics) if first < line["step"] <= last]
    return []


def _compare_lines(recorded: Sequence[Line], replayed: Sequence[Line]) -> Compared:
    """The numbers that both have of the same updates; how fast they were is no part of it."""
    numbers = {line["step"]: line for line in recorded}
    pairs = [(numbers[line["step"]], line) for line in replayed if line["step"] in numbers]
    # Which measures stand in a line may change from one release to the next: what both have is compared.
    shared = [(name, one, other) for one, other in pairs for name in other if name in one]
    hashes = (_hashed([one[name] for name, one, _ in shared]), _hashed([other[name] for name, _, other in shared]))
    differing = [(name, one, other) for name, one, other in shared if one[name] != other[name]]
    said = None
    if differing:
        name, one, other = differing[0]
        said = say("resuming.line_differs", step=one["step"], name=name, recorded=one[name], replayed=other[name])
    return Compared("metrics", *hashes, said, len(pairs))


def _hashed(numbers: Sequence[float | int | None]) -> str:
    return hashlib.sha256(json.dumps(numbers).encode()).hexdigest()


def _largest(recorded: Mapping[str, Tensor], replayed: Mapping[str, Tensor]) -> float:
    """The largest difference of two tensors, as a part of the largest number in them; infinite where they do not fit."""
    parts = [math.inf] if recorded.keys() != replayed.keys() else [0.0]
    for name in recorded.keys() & replayed.keys():
        one, other = recorded[name].double(), replayed[name].double()
        fit = one.shape == other.shape
        parts.append((one - other).abs().max().item() / max(one.abs().max().item(), 1e-30) if fit else math.inf)
    return max(parts)


def _diagnosis(
    parts: Sequence[Compared], recorded: Sequence[Line], replayed: Sequence[Line], *, excused: bool
) -> tuple[str | None, str | None]:
    """Which fault of resumption the differences look like, and that in words.

    The random numbers are drawn in the same count whatever they are, so a state that is elsewhere at the end was so at the
    beginning. The first update starts from the weights of the checkpoint: its loss depends on the data and on dropout, and what
    comes after it on the optimiser, too.

    Args:
        parts: what was compared.
        recorded: the lines of the run.
        replayed: those of the replay.
        excused: whether the machine explains weights that are so far apart.
    """
    equal = {each.part: each.equal for each in parts}
    if all(equal.values()):
        return None, None
    if not equal["random"]:
        return "resume.rng", say("resuming.looks_like_rng")
    one, other = (lines[0] if lines else {} for lines in (recorded, replayed))
    known = one.get("step") is not None and one.get("step") == other.get("step")
    near = not known or math.isclose(one["loss"] or math.nan, other["loss"] or math.nan, rel_tol=ROUNDING)
    if excused and near:
        return None, say("resuming.looks_like_rounding")
    if not known or all(one.get(name) == other.get(name) for name in ("loss", "grad_norm")):
        return "resume.optimizer", say("resuming.looks_like_optimizer")
    return "resume.data", say("resuming.looks_like_data")


def _finite(line: Line) -> Line:
    """As metrics.jsonl has it, where a number that is not finite is null."""
    return {name: value if value is not None and math.isfinite(value) else None for name, value in line.items()}

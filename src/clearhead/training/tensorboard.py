"""A training in TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clearhead.formats.atomic import clear_failure
from clearhead.messages import UserError, say

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class TensorBoard:
    """A `Dashboard` that writes event files, which `tensorboard --logdir FOLDER` shows; nothing is sent anywhere.

    Args:
        folder: where the event files go; a folder for each run under a common one shows them together.

    Raises:
        UserError: if the package tensorboard is not installed; by `start` if the folder cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - an extra that only this dashboard needs
        except ImportError:
            raise UserError(say("plot.no_tensorboard")) from None
        self._folder, self._make = folder, SummaryWriter
        self._writer: SummaryWriter | None = None

    def start(self, settings: Mapping[str, Any], step: int) -> None:
        """Begin a file; what older files of the folder say of updates after `step` is no longer shown.

        Raises:
            UserError: if the folder cannot be written.
        """
        with clear_failure(self._folder):
            self._writer = self._make(str(self._folder), purge_step=step + 1)
        rows = "".join(f"| {_cell(name)} | {_cell(value)} |\n" for name, value in settings.items())
        self._writer.add_text("settings", f"| | |\n|---|---|\n{rows}", step)

    def log(self, step: int, values: Mapping[str, float], texts: Mapping[str, str]) -> None:
        """A point of a curve for each value, a text for each text."""
        assert self._writer is not None, "start comes first"
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        for name, text in texts.items():
            # Four spaces: shown as it was written, not as the Markdown that it may look like.
            self._writer.add_text(name, "".join(f"    {line}\n" for line in text.splitlines()), step)

    def finish(self) -> None:
        """Write what is left and close the file."""
        if self._writer is not None:
            self._writer.close()


def _cell(value: object) -> str:
    """A cell of a Markdown table: one line, in which a bar is no border."""
    return " ".join(str(value).split()).replace("|", "\\|")

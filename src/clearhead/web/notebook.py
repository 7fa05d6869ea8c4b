"""The explorer in a notebook: the page as one file inside a frame, without a server, and still there when the notebook is opened again."""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path

from clearhead.formats.atomic import write_text
from clearhead.formats.load import Loaded, load
from clearhead.messages import UserError, say
from clearhead.web.export import exported


@dataclass(frozen=True, repr=False)
class Explored:
    """A prompt that a model has read, as a page that a notebook shows.

    Args:
        page: HTML, the whole of it.
        height: of the frame, in pixels.
    """

    page: str
    height: int

    def save(self, path: str | Path) -> None:
        """Write the page, which opens from disk in any browser.

        Args:
            path: of an .html file.

        Raises:
            UserError: if it cannot be written.
        """
        write_text(Path(path), self.page)

    def _repr_html_(self) -> str:
        # Scripts of the page alone, in an origin of their own: they reach nothing of the notebook. A document around it that does not say
        # how its letters are written cannot spoil these.
        inside = html.escape(self.page).encode("ascii", "xmlcharrefreplace").decode()
        return (
            f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{inside}" title="clearhead" '
            f'width="100%" height="{self.height}" style="border: 0"></iframe>'
        )

    def __repr__(self) -> str:
        return say("explore.in_notebook", size=f"{len(self.page) / 2**20:.1f} MiB")


def explore(model: Loaded | str | Path, text: str, *, target: str | None = None, height: int = 700) -> Explored:
    """The explorer's page of one prompt, for a notebook: the last line of a cell shows it.

    The page is one file, so it needs no server and no network, and a notebook that was saved still shows it; it holds the prompt.

    Args:
        model: a model, or what `load` takes.
        text: what it reads; the source of an encoder-decoder.
        target: what an encoder-decoder has written so far; what it writes by itself if None.
        height: of the frame, in pixels.

    Raises:
        UserError: if there is no such model, it cannot read the text, or what is given is no text.
    """
    for each in (text, *([] if target is None else [target])):
        if not isinstance(each, str):
            raise UserError(say("explore.no_text", value=each, kind=type(each).__name__))
    loaded = model if isinstance(model, Loaded) else load(model)
    return Explored(exported(loaded, text, target), height)

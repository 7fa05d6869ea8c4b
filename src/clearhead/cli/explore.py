"""`clearhead explore`: a page on which a model is seen at work, served on this machine or written to one file."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser, Namespace

from clearhead.cli.loading import loaded_model
from clearhead.cli.options import MODEL, add_device, parse, parser, tell, use_threads
from clearhead.formats.atomic import write_text
from clearhead.messages import UserError, say, speaking
from clearhead.web.files import VIEWS, builtin
from clearhead.web.hosts import is_loopback
from clearhead.web.serving import PORT, address_of, go_there, leave_cores, listening, return_memory, serve
from clearhead.web.sessions import GIGABYTES

if TYPE_CHECKING:
    from clearhead.formats.load import Loaded

LANGUAGES = ("en", "zh")
PAGES = (".html", ".htm")
"""How the name of a page may end: a file of another kind would open as text."""


def options() -> ArgumentParser:
    """The flags of `clearhead explore`."""
    made = parser("explore")
    made.add_argument(
        "model", type=str, nargs="?", default=None, help=f"{MODEL}; the one that comes with clearhead if not given"
    )
    made.add_argument(
        "-p", "--prompt", type=str, default=None, help="the text to begin with; for an encoder-decoder the source"
    )
    made.add_argument("--target", type=str, default=None, help="for an encoder-decoder: what it has written so far")
    made.add_argument("--view", type=str, default=None, help=f"where the page begins: {', '.join(VIEWS)}")
    made.add_argument("--lang", type=str, default=None, help="en or zh; the browser's language if not given")
    made.add_argument("--export", type=str, default=None, help="write the page to this .html file, and serve nothing")
    made.add_argument(
        "--port", type=int, default=None, help=f"0 takes any that is free; {PORT}, or one near it, if not given"
    )
    made.add_argument(
        "--host",
        type=str,
        default="127.0.0.1",
        help="address to listen on; others than this machine's own let strangers in",
    )
    made.add_argument("--no-browser", action="store_true", help="print the address alone")
    made.add_argument(
        "--memory", type=float, default=GIGABYTES, help="gigabytes that opened prompts may keep; the oldest go first"
    )
    add_device(made)
    return made


def run(arguments: Sequence[str]) -> int:
    """Serve the page until Ctrl-C, or write it."""
    asked = parse(options(), arguments)
    _check(asked)
    if asked.export is None:
        # Before the threads are counted, which loads PyTorch.
        leave_cores()
        return_memory()
    use_threads(asked.threads)
    with speaking(asked.lang):
        if asked.export is None:
            _serve(asked)
        else:
            _write(asked)
    return 0


def _check(asked: Namespace) -> None:
    """Mistakes that need no model to be seen."""
    if asked.view not in (None, *VIEWS):
        raise UserError(say("explore.no_view", view=asked.view, known=", ".join(VIEWS)))
    if asked.lang not in (None, *LANGUAGES):
        raise UserError(say("explore.no_language", lang=asked.lang))
    if asked.target is not None and asked.prompt is None:
        raise UserError(say("cli.generate.needs", flag="--target", other="-p"))
    if not 0 < asked.memory < float("inf"):
        raise UserError(say("explore.no_memory", memory=asked.memory))
    if asked.export is not None:
        _check_export(Path(asked.export))


def _check_export(path: Path) -> None:
    if path.is_dir():
        raise UserError(say("explore.is_folder", path=path))
    if path.suffix.lower() not in PAGES:
        raise UserError(say("explore.no_page", path=path))
    if not path.parent.is_dir():
        raise UserError(say("explore.no_folder", path=path, folder=path.parent))


def _serve(asked: Namespace) -> None:
    # Before the model, which takes long: whoever comes early waits, and a port that is taken is said at once.
    listener = listening(asked.host, asked.port)
    with listener:
        loaded, name = _loaded(asked)
        from clearhead.web.app import make_app  # noqa: PLC0415 - torch comes after the flags are right

        app = make_app(
            loaded, state=_state(asked), hosts=_names(asked.host), memory=int(asked.memory * 2**30), name=name
        )
        if not is_loopback(asked.host):
            tell(say("explore.open_to_others", host=asked.host))
        address = address_of(listener)
        print(say("explore.address", address=address), flush=True)
        if not asked.no_browser:
            go_there(address)
        serve(app, listener)


def _write(asked: Namespace) -> None:
    loaded, _ = _loaded(asked)
    from clearhead.web.export import exported  # noqa: PLC0415

    text, target = _prompt(asked, loaded)
    page = exported(loaded, text, target, _state(asked))
    write_text(Path(asked.export), page)
    print(say("explore.written", path=asked.export, size=f"{len(page.encode()) / 2**20:,.2f} MiB"))


def _loaded(asked: Namespace) -> tuple[Loaded, str | None]:
    """The model, and what it is called where its folder does not say."""
    if asked.model is None:
        return loaded_model(str(builtin()), asked.dtype, asked.device), "built-in"
    return loaded_model(asked.model, asked.dtype, asked.device), None


def _prompt(asked: Namespace, loaded: Loaded) -> tuple[str, str | None]:
    """The text and the target that are asked for; an example where none is, as the page would open it."""
    if asked.prompt is not None:
        return asked.prompt, asked.target
    from clearhead.web.told import model_told  # noqa: PLC0415

    examples = json.loads(model_told(loaded).body)["prompts"] or [{"text": "", "target": None}]
    return examples[0]["text"], examples[0]["target"]


def _state(asked: Namespace) -> dict[str, str]:
    """What the page shows where its address does not say."""
    told: Mapping[str, str | None] = {
        "view": asked.view,
        "lang": asked.lang,
        "text": asked.prompt,
        "target": asked.target,
    }
    return {name: value for name, value in told.items() if value is not None}


def _names(host: str) -> tuple[str, ...]:
    """By which names the server may be called that listens on `host`."""
    own = socket.gethostname()
    return (host,) if is_loopback(host) else (host, own, f"{own}.local")

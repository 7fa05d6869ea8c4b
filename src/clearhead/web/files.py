"""The files of the page, as they lie in the package. Imports without torch."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from urllib.parse import urlencode

from clearhead import __version__
from clearhead.messages import UserError, say

ROOT = '<html lang="en">'
STYLE = '<link rel="stylesheet" href="/static/style.css">'
IMPORTS = '<script type="importmap">{"imports": {}}</script>'
MAIN = '<script type="module" src="/static/js/main.js"></script>'
"""What is written over in `index.html`; it stands there exactly so."""

VIEWS = ("tokens", "flow", "atlas", "head", "cell", "mask", "cache", "alignment")
"""The views of the page, by the names that its address has for them."""

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
"""Media types of the files. Others are not given away: the folder holds what the page needs."""


def static_files() -> dict[str, bytes]:
    """What lies in `static`, by its path there: "style.css", "js/main.js"."""
    return dict(sorted(_under(files("clearhead.web") / "static", "")))


def import_map(modules: Mapping[str, str]) -> str:
    """The import map that gives the modules their names: "js/api.js" is imported as "clearhead/api.js".

    Args:
        modules: the address of each module, by its path in `static`.
    """
    names = {f"clearhead/{path.removeprefix('js/')}": address for path, address in modules.items()}
    # Nothing in a script may look like its end.
    return json.dumps({"imports": names}).replace("<", "\\u003c")


def served_page(static: Mapping[str, bytes], state: Mapping[str, str]) -> tuple[str, str]:
    """`index.html` as the server gives it, and the hash of its import map for the policy that lets it run.

    Args:
        static: the files.
        state: what the page shows where its address does not say: view, lang, text, target.
    """
    imports = import_map({path: f"/static/{path}" for path in static if path.endswith(".js")})
    page = static["index.html"].decode().replace(IMPORTS, f'<script type="importmap">{imports}</script>')
    if state:
        page = page.replace(ROOT, with_state(ROOT, state))
    return page, f"'sha256-{base64.b64encode(hashlib.sha256(imports.encode()).digest()).decode()}'"


def with_state(root: str, state: Mapping[str, str]) -> str:
    """The tag of the root with the state that a page opens with where its address is empty.

    Args:
        root: `<html ...>`.
        state: fields of the address.
    """
    # A lone surrogate, which a terminal can give, has no place in an address.
    told = urlencode(state, errors="replace")
    return root.replace(">", f' data-state="#{html.escape(told)}">')


def version() -> str:
    """The release, and a digest of the sources that answer: what was kept of another is not what these would say."""
    sources = sorted(
        ((each.name, each) for each in files("clearhead.web").iterdir() if each.name.endswith(".py")),
        key=lambda each: each[0],
    )
    digest = hashlib.blake2b(b"".join(each.read_bytes() for _, each in sources), digest_size=10)
    return f"{__version__} {digest.hexdigest()}"


def builtin() -> Path:
    """Where the model that comes with the package lies.

    Raises:
        UserError: if it is not there.
    """
    path = Path(str(files("clearhead.web") / "model"))
    if not path.is_dir():
        raise UserError(say("explore.no_builtin", path=path))
    return path


def _under(folder: Traversable, before: str) -> Iterator[tuple[str, bytes]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _under(each, f"{before}{each.name}/")
        elif Path(each.name).suffix in KINDS:
            yield before + each.name, each.read_bytes()

"""The page as one file: its own texts, and in it the answers that it would ask for.

The file needs no server and no network, and nothing in it but its own scripts may run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import quote, urlencode

from clearhead.formats.load import Loaded
from clearhead.messages import UserError
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.cost import parameters
from clearhead.web import effects, mask
from clearhead.web.answer import Answer
from clearhead.web.answers import answer
from clearhead.web.files import IMPORTS, MAIN, ROOT, VIEWS, import_map, static_files, with_state
from clearhead.web.mask_rule import understood
from clearhead.web.opening import opened
from clearhead.web.session import RefusedError, Session

ROOM = 3 << 18
"""Bytes of answers beyond what is looked at, at most: other rows, heads and tensors, so that a person can look around."""

QUICK = 1 << 28
"""Up to how many parameters × tokens it is computed what would be without a weight, and the pictures of tensors that are not looked at:
each is a forward."""

FIELDS = ("view", "sort", "drawing", "mask", "steps", "held", "at", "align", "lang")
"""Fields of the state that say how something is shown, beside those that say where the page looks."""

STYLE = re.compile(r'<link rel="stylesheet" href="/static/([\w.-]+)">')
CHARSET = '<meta charset="utf-8">'
END = "</body>"


class Question(NamedTuple):
    """What a page asks of a prompt that is open.

    Args:
        path: as in `answers.PATHS`.
        query: its fields.
    """

    path: str
    query: Mapping[str, str]

    @property
    def key(self) -> str:
        """Its name in the file, as `question` of `api.js` writes it: the fields in alphabetical order."""
        told = urlencode(sorted(self.query.items()), quote_via=quote, safe="!~*'()")
        return f"{self.path}?{told}" if told else self.path


class Place(NamedTuple):
    """Where a page looks.

    Args:
        part: of the attentions, "attention" or another.
        layer: of them.
        head: of it.
        query: the position that looks.
        key: the position that is looked at.
        stage: the tensor whose numbers are open; "" for none.
        mask: that stands in every layer; "" for the model's own.
    """

    part: str
    layer: int
    head: int
    query: int
    key: int
    stage: str
    mask: str = ""

    @property
    def of_head(self) -> dict[str, str]:
        """The fields of a question about the head."""
        return {"part": self.part, "layer": str(self.layer), "head": str(self.head)}


def exported(
    shown: Session | Loaded, text: str, target: str | None = None, state: Mapping[str, str] | None = None
) -> str:
    """The page of a prompt as one HTML file, which opens from disk with the network off.

    It holds whatever is looked at, and as much beside it as has room: all rows of the head, the other heads (of its layer, if all are too
    many) at the same query, the other cells of the row, pictures of tensors. What it does not hold the page says.

    Args:
        shown: a prompt that is open, or the model that reads it.
        text: as it was typed.
        target: what an encoder-decoder has written so far; what it writes by itself if None.
        state: where the page looks first: `view`, `part`, `layer`, `head`, `query`, `key`, `stage`, and `FIELDS`.

    Raises:
        UserError: if the model cannot read the text.
    """
    if not isinstance(shown, Session):
        try:
            shown = opened(shown, text, target)
        except RefusedError as refused:
            raise UserError(str(refused)) from None
    place, asked = place_of(shown, state or {}), dict(state or {})
    told = {name: asked[name] for name in FIELDS if asked.get(name)}
    if told.get("view") not in (None, *VIEWS):
        del told["view"]
    told |= {name: str(value) for name, value in place._asdict().items()} | {"text": text}
    return _page(answers_of(shown, place), told if target is None else told | {"target": target})


def place_of(session: Session, state: Mapping[str, str]) -> Place:
    """Where a page with this state looks: the nearest that exists, as `resolved` of `places.js` has it.

    Args:
        session: the prompt.
        state: fields of the address.
    """
    known = parts_of(session)
    part = state["part"] if state.get("part") in known else known[-1]
    queries, keys = _lengths(session, part)
    stage = state.get("stage", "")
    return Place(
        part,
        min(_number(state, "layer", 0), _layers(session, part) - 1),
        min(_number(state, "head", 0), session.loaded.config.heads - 1),
        min(_number(state, "query", queries - 1), queries - 1),
        min(_number(state, "key", 0), keys - 1),
        stage if any(stage == each.name for each in session.stages) else "",
        understood(state.get("mask", "")),
    )


def parts_of(session: Session) -> list[str]:
    """The attentions of a session's model."""
    if isinstance(session.loaded.config, EncoderDecoderConfig):
        return ["encoder.attention", "decoder.attention", "decoder.cross_attention"]
    return ["attention"]


def answers_of(session: Session, place: Place) -> dict[str, Answer]:
    """The answers that a file holds, by their keys.

    Args:
        session: the prompt.
        place: where the page looks.
    """
    found = _answered(session, [*_looked_at(place), *_aligned(session, place)])
    room = ROOM
    for group in _beside(session, place):
        units = [unit for unit in ([each for each in unit if each.key not in found] for unit in group) if unit]
        if not units:
            continue
        # All of a kind or none: a page on which some heads open and others do not would be a riddle.
        first = _answered(session, units[0])
        if len(units) * _size(first) > room:
            continue
        more = first | _answered(session, (each for unit in units[1:] for each in unit))
        room -= _size(more)
        found |= more
    return found


def _answered(session: Session, asked: Iterable[Question]) -> dict[str, Answer]:
    """The answers that there are; what is refused (the picture of a tensor without a finite number) the page does without."""
    found = {}
    for each in asked:
        with suppress(RefusedError):
            found[each.key] = answer(session, *each)
    return found


def _looked_at(place: Place) -> Iterator[Question]:
    """What the views ask for at once."""
    for path in ("model", "open", "tokens", "flow", "atlas"):
        yield Question(path, {})
    yield from _seen(place)
    yield from (Question(*each) for each in mask.questions(place.part, place.layer, place.mask))
    yield Question("cache", {})
    if place.stage:
        yield Question("stage", {"name": place.stage})


def _seen(place: Place) -> list[Question]:
    """A head, the row of its query, and the cell of its key."""
    row = {**place.of_head, "query": str(place.query)}
    return [Question("head", place.of_head), Question("row", row), Question("cell", {**row, "key": str(place.key)})]


def _beside(session: Session, place: Place) -> Iterator[list[list[Question]]]:
    """What a person may look at next, the nearest first: groups of units, which belong together."""
    queries, keys = _lengths(session, place.part)
    row = {**place.of_head, "query": str(place.query)}
    quick = sum(parameters(session.loaded.config).values()) * (len(session.ids) + len(session.source)) <= QUICK
    yield [[Question("row", {**row, "query": str(query)})] for query in range(queries)]
    if quick:
        yield from ([[Question(*each) for each in unit]] for unit in effects.questions(session, row, place.key))
    every = [
        place._replace(
            part=part, layer=layer, head=head, query=min(place.query, count - 1), key=min(place.key, seen - 1)
        )
        for part in parts_of(session)
        for count, seen in [_lengths(session, part)]
        for layer in range(_layers(session, part))
        for head in range(session.loaded.config.heads)
    ]
    yield [_seen(each) for each in every]
    yield [_seen(each) for each in every if (each.part, each.layer) == (place.part, place.layer)]
    yield [[Question("cell", {**row, "key": str(key)})] for key in range(keys)]
    if session.source:
        yield [_aligned(session, place._replace(query=query))[:2] for query in range(len(session.ids))]
        yield [_aligned(session, each) for each in every if each.part == "decoder.cross_attention"]
    if quick:
        for group in mask.beside(session, place.part, place.layer, place.mask):
            yield [[Question(*each) for each in unit] for unit in group]
        yield [[Question("stage", {"name": each.name})] for each in session.stages]


def _aligned(session: Session, place: Place) -> list[Question]:
    """The alignment of an encoder-decoder with the row of a token: the mean of all layers, of this layer, and this head."""
    if not isinstance(session.loaded.config, EncoderDecoderConfig):
        return []
    layer, query = min(place.layer, session.loaded.config.layers - 1), min(place.query, len(session.ids) - 1)
    whose: list[dict[str, str]] = [{}, {"layer": str(layer)}, {"layer": str(layer), "head": str(place.head)}]
    paths: tuple[tuple[str, dict[str, str]], ...] = (("alignment", {}), ("aligned", {"query": str(query)}))
    return [Question(path, {**fields, **more}) for fields in whose for path, more in paths]


def _lengths(session: Session, part: str) -> tuple[int, int]:
    """How many tokens look and are looked at."""
    own, source = len(session.ids), len(session.source)
    if part == "encoder.attention":
        return source, source
    return own, source if part == "decoder.cross_attention" else own


def _layers(session: Session, part: str) -> int:
    config = session.loaded.config
    if isinstance(config, EncoderDecoderConfig) and part == "encoder.attention":
        return config.encoder.layers
    return config.layers


def _number(state: Mapping[str, str], name: str, otherwise: int) -> int:
    """A position of an address; what is none is as if it were not there."""
    told = state.get(name, "")
    return int(told) if re.fullmatch(r"[0-9]{1,7}", told) else otherwise


def _size(answers: Mapping[str, Answer]) -> int:
    return sum(len(each.body) for each in answers.values())


def _page(answers: Mapping[str, Answer], state: Mapping[str, str]) -> str:
    """`index.html` with all that it needs inside."""
    static = static_files()
    modules = {path: _address(body) for path, body in static.items() if path.endswith(".js")}
    bodies = {key: {"kind": each.kind, "body": base64.b64encode(each.body).decode()} for key, each in answers.items()}
    strings = {name: json.loads(static[f"{name}.json"]) for name in ("en", "zh")}
    data = _data("answers", bodies) + _data("strings", strings)
    imports, root = import_map(modules), with_state(ROOT, state)
    # What was not there when this name was made cannot bear it: a script that came with the prompt does not run. Modules hand it on to
    # those that they import, so that no other text of a `data:` address runs either.
    once = hashlib.blake2b((data + imports + root).encode(), digest_size=16).hexdigest()
    page = static["index.html"].decode()
    styles = [static[name].decode() for name in STYLE.findall(page)]
    for before, after in (
        (ROOT, root),
        (CHARSET, f'{CHARSET}\n<meta http-equiv="Content-Security-Policy" content="{_policy(once)}">'),
        (IMPORTS, f'<script type="importmap" nonce="{once}">{imports}</script>'),
        (MAIN, f'<script type="module" nonce="{once}">import "clearhead/main.js";</script>'),
        (END, f"{data}{END}"),
    ):
        assert page.count(before) == 1, before
        page = page.replace(before, after)
    return STYLE.sub(lambda _: f'<style nonce="{once}">\n{styles.pop(0)}</style>', page)


def _address(body: bytes) -> str:
    return f"data:text/javascript;charset=utf-8;base64,{base64.b64encode(body).decode()}"


def _data(name: str, told: Mapping[str, object]) -> str:
    """Data in a script that does not run; nothing in it may look like its end."""
    text = json.dumps(told, ensure_ascii=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>\n'


def _policy(once: str) -> str:
    return (
        f"default-src 'none'; script-src 'nonce-{once}'; style-src 'nonce-{once}'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )

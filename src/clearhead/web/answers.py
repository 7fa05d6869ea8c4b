"""Everything that can be asked of a prompt that is open: the table from a path to what answers it.

HTTP calls it, and so does whoever writes the page to a file: the same question has the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from clearhead.messages import say
from clearhead.web import (
    alignment,
    atlas,
    cache,
    cell,
    effect,
    effects,
    flow,
    head,
    mask,
    masked,
    row,
    stage,
    tokens,
    told,
)
from clearhead.web.answer import Answer, as_json
from clearhead.web.session import RefusedError, Session


def opening(session: Session, query: Mapping[str, str]) -> Answer:
    """What a page is told when its prompt has been opened.

    Args:
        session: the forward.
        query: not read.

    Returns:
        JSON: `{session, seconds, tokens, source, target, cut}`; `target` is what an encoder-decoder has written, null elsewhere.
    """
    read = tokens.told(session)
    return as_json(
        {
            "session": session.id,
            "seconds": session.seconds,
            "tokens": read["tokens"],
            "source": read["source"],
            "target": session.target,
            "cut": session.cut,
        }
    )


PATHS: dict[str, Callable[[Session, Mapping[str, str]], Answer]] = {
    "model": told.answer,
    "open": opening,
    "tokens": tokens.answer,
    "flow": flow.answer,
    "stage": stage.answer,
    "atlas": atlas.answer,
    "head": head.answer,
    "row": row.answer,
    "cell": cell.answer,
    "mask": mask.answer,
    "masked": masked.answer,
    "effect": effect.answer,
    "effects": effects.answer,
    "cache": cache.answer,
    "alignment": alignment.answer,
    "aligned": alignment.row,
    "written": alignment.written,
}
"""What answers each path."""

HEAD = ("part", "layer", "head")
FIELDS: dict[str, tuple[str, ...]] = {
    "stage": ("name",),
    "head": HEAD,
    "row": (*HEAD, "query"),
    "cell": (*HEAD, "query", "key"),
    "mask": ("part", "layer", "mask"),
    "masked": ("mask",),
    "effect": (*HEAD, "query", "key", "at"),
    "effects": (*HEAD, "query", "at", "from"),
    "cache": ("steps",),
    "alignment": ("layer", "head"),
    "aligned": ("query", "layer", "head"),
}
"""The fields that a path reads; none where it is not named. A misspelt one would be answered as if it were not there."""

EVERYWHERE = ("lang",)
"""What any question may bear: it changes in which language a refusal is said, and no answer."""


def answer(session: Session, path: str, query: Mapping[str, str]) -> Answer:
    """What is asked of a prompt that is open. The same each time.

    Args:
        session: the forward.
        path: one of `PATHS`.
        query: the fields of the address.

    Raises:
        RefusedError: 404 if there is no such path; 400 if it reads no such field; or as the path has it.
    """
    if path not in PATHS:
        raise RefusedError(404, say("explore.no_question", path=path[:80], known=", ".join(PATHS)))
    known = FIELDS.get(path, ())
    strange = next((name for name in query if name not in (*known, *EVERYWHERE)), None)
    if strange is not None and known:
        raise RefusedError(400, say("explore.no_field", path=path, field=strange[:40], known=", ".join(known)))
    if strange is not None:
        raise RefusedError(400, say("explore.no_fields", path=path, field=strange[:40]))
    return PATHS[path](session, query)

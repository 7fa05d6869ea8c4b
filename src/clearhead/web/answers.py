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
        JSON: `{session, seconds, tokens, source, cut}`.
    """
    read = tokens.told(session)
    return as_json(
        {
            "session": session.id,
            "seconds": session.seconds,
            "tokens": read["tokens"],
            "source": read["source"],
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


def answer(session: Session, path: str, query: Mapping[str, str]) -> Answer:
    """What is asked of a prompt that is open. The same each time.

    Args:
        session: the forward.
        path: one of `PATHS`.
        query: the fields of the address.

    Raises:
        RefusedError: 404 if there is no such path; or as the path has it.
    """
    if path not in PATHS:
        raise RefusedError(404, say("explore.no_question", path=path[:80], known=", ".join(PATHS)))
    return PATHS[path](session, query)

"""One cell of a head, term by term: from q and k to a weight, and to what it mixes in.

All is computed in float64 from the q, k and v that ran, so that what stands on the page can be worked out again by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from clearhead.layers.look import RotaryTurn
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops.rotary import Rotation
from clearhead.ops.tap import Ran
from clearhead.web.answer import Answer, as_json
from clearhead.web.place import Place, number, place_of
from clearhead.web.session import Session
from clearhead.web.weighing import first_row, one_head


@torch.no_grad()
def answer(session: Session, query: Mapping[str, str]) -> Answer:
    """The arithmetic of one cell.

        dot = Σ_i q_i k_i,  score = cap · tanh(dot · scale / cap) + bias,  weight = exp(score - highest) / total

    without a cap dot · scale + bias. `total` sums the exponentials of all keys that the query sees, and of the sink. `before` is what q
    and k were before they were turned: the vectors that ran, turned back.

    Args:
        session: the forward.
        query: `part`, `layer`, `head`, `query` and `key`.

    Returns:
        JSON; a number that is none (infinite, not a number) is null.

    Raises:
        RefusedError: if there is no such head, query or key.
    """
    place = place_of(session, query)
    queries, keys = place.sizes
    asked, key = number(query, "query", queries), number(query, "key", keys)
    ran = _double(one_head(place.ran, place.head))
    told = {**place.told(), "query": asked, "key": key}
    told |= _vectors(session, place, ran, asked, key)
    return as_json(_plain(told | _softmax(ran, asked, key)))


def _vectors(session: Session, place: Place, ran: Ran, asked: int, key: int) -> dict[str, Any]:
    """q and k before and after they were turned, and the product, term by term."""
    q, k = ran.q[0, 0, asked], ran.k[0, 0, key]
    turn = _turn_of(session, place)
    rotation = None
    before: dict[str, Tensor | None] = {"q": None, "k": None}
    if turn is not None:
        length, model = place.ran.k.shape[-2], place.ran.q
        turned = turn(range(length), model.dtype, model.device)
        assert isinstance(turned, Rotation)
        # As many queries as keys: a session keeps nothing from before.
        places = {"q": asked, "k": key}
        before = {name: turned_back(vector, turned, places[name]) for name, vector in (("q", q), ("k", k))}
        angles = {name: torch.atan2(turned.sin[at], turned.cos[at]) for name, at in places.items()}
        rotation = {
            "interleaved": turn.interleaved,
            "turned": turn.turned,
            "factor": turn.attention_factor,
            "angles": angles,
        }
    terms = q * k
    return {
        "q": {"before": before["q"], "after": q},
        "k": {"before": before["k"], "after": k},
        "rotation": rotation,
        "terms": terms,
        "dot": terms.sum(),
    }


def turned_back(vector: Tensor, turned: Rotation, place: int) -> Tensor:
    """What a turned vector was before: the turn by the opposite angle, with the factor that YaRN puts on it taken off twice.

    Args:
        vector: q or k as it ran, (d), in float64.
        turned: the turn of all positions.
        place: its position.
    """
    cos, sin = turned.cos[place].double(), turned.sin[place].double()
    # cos² + sin² is the factor squared; what rounding left of it goes too, so that turning gives the vector back.
    size = cos.square() + sin.square()
    return Rotation(cos / size, -sin / size, turned.interleaved)(vector)


def _turn_of(session: Session, place: Place) -> RotaryTurn | None:
    """How the layer turns q and k; None if it does not."""
    if place.crosses:
        return None
    model = session.loaded.model
    if isinstance(model, EncoderDecoder):
        turn = (model.encoder if place.part.startswith("encoder.") else model.decoder).looks[place.layer].turn
    else:
        turn = model.looks[place.layer].turn
    return turn if isinstance(turn, RotaryTurn) else None


def _softmax(ran: Ran, asked: int, key: int) -> dict[str, Any]:
    """From the row's products to the weight of a key, and what it mixes in."""
    q, keys, values = ran.q[0, 0, asked], ran.k[0, 0], ran.v[0, 0]
    scale = len(q) ** -0.5 if ran.scale is None else ran.scale
    scores = keys @ q * scale
    if ran.cap is not None:
        scores = ran.cap * torch.tanh(scores / ran.cap)
    bias = None if ran.bias is None else _line(ran.bias, ran, asked)
    scores = scores if bias is None else scores + bias
    seen = _line(ran.visible.matrix(q.device), ran, asked)
    hidden = scores.masked_fill(~seen, -torch.inf)
    sink = None if ran.sinks is None else ran.sinks[0].double()
    highest = hidden.amax() if sink is None else torch.maximum(hidden.amax(), sink)
    nothing = bool(highest == -torch.inf)
    exponentials = torch.zeros_like(hidden) if nothing else torch.exp(hidden - highest)
    of_sink = None if sink is None else torch.exp(sink - highest)
    total = exponentials.sum() + (0.0 if of_sink is None else of_sink)
    weight = exponentials[key] / (1.0 if nothing else total)
    return {
        "scale": scale,
        "cap": ran.cap,
        "bias": None if bias is None else bias[key],
        "score": scores[key],
        "visible": bool(seen[key]),
        "highest": None if nothing else highest,
        "exponential": exponentials[key],
        "sink": None if of_sink is None else {"score": sink, "exponential": of_sink, "weight": of_sink / total},
        "total": total,
        "weight": weight,
        "v": values[key],
        "share": weight * values[key],
        "mixed": ran.mixed[0, 0, asked],
    }


def _double(ran: Ran) -> Ran:
    return ran._replace(
        mixed=ran.mixed.double(),
        q=ran.q.double(),
        k=ran.k.double(),
        v=ran.v.double(),
        bias=None if ran.bias is None else ran.bias.double(),
    )


def _line(matrix: Tensor, ran: Ran, asked: int) -> Tensor:
    """The row of a query, (S), of what broadcasts to (1,1,T,S)."""
    return first_row(matrix).expand(1, ran.q.shape[-2], ran.k.shape[-2])[0, asked]


def _plain(told: Any) -> Any:
    """As JSON can say it."""
    if isinstance(told, dict):
        return {name: _plain(each) for name, each in told.items()}
    if isinstance(told, Tensor):
        return _plain(told.tolist())
    if isinstance(told, list):
        return [_plain(each) for each in told]
    return None if isinstance(told, float) and not -torch.inf < told < torch.inf else told

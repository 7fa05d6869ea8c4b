"""Differences made by hand."""

from clearhead.checking.diff.report import Difference, Pair, Reason, TensorRow

SAME = tuple(TensorRow(f"blocks.{n}.weight", f"h.{n}.w", "same") for n in range(14))
PAIRS = tuple(
    Pair(f"blocks.{n}.norm", f"h.{n}.ln", (2, 5, 6), (n % 4) * 1e-15, 6e-14, "equal", "att.py:31") for n in range(13)
)
EQUAL = Difference("runs/x", "att.py:GPT", "the 5 ids of the text", "own", PAIRS, None, (), SAME)

AWAY = tuple(Pair(p.a, p.b, p.shape, 2e-3, p.allowed, "differs", p.where) for p in PAIRS)
PARTED = Difference(
    "runs/x",
    "att.py:GPT",
    "2 x 11 random ids below 61",
    "own",
    (*PAIRS[:4], *AWAY[4:]),
    AWAY[4],
    (Reason("norm.eps", "reproduced", "blocks.4.norm", "A has eps 1e-05, B 1e-06", 2e-3, 3e-16),),
    tuple(TensorRow(row.a, row.b, "changed", f"off by {n}%") for n, row in enumerate(SAME)),
    ("a float32 island",),
)

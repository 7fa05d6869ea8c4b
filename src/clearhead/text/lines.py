"""What stands in somebody else's file, as a line of ours can hold it.

Names, words and what libraries say of them may hold anything: line breaks, or the codes that clear a screen and rename a window.
"""

from __future__ import annotations

__all__ = ["one_line", "reason_of", "shown"]


def one_line(text: str, most: int = 200) -> str:
    """A text as one line: white space is one space, what cannot be printed is spelt as Python spells it, and the end is cut off.

    Args:
        text: what a library says, which may repeat what it has read.
        most: how many characters of it are told.
    """
    joined = " ".join(text.split())[:most]
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in joined)


def reason_of(error: BaseException) -> str:
    """What an error says, as one line: its first, since libraries add advice in further ones; its kind if it says nothing."""
    return one_line(str(error).strip().partition("\n")[0]) or type(error).__name__


def shown(word: str, most: int = 100) -> str:
    """A name or a word from a file: itself, or between quotation marks if it is empty, long or cannot be printed."""
    return word if 0 < len(word) <= most and word.isprintable() else repr(word[:60])

"""Says whether a piece of text is a sentence of the built-in corpus, with regular expressions made of its tables.

It shares the tables with the writer and the scorer, and nothing else: no automaton, no probabilities. A sentence is judged
alone: who the hero is may change from one to the next, but within one name, kind and pronoun must agree.
"""

import re

from clearhead.text.corpus.chinese import CHINESE
from clearhead.text.corpus.english import ENGLISH
from clearhead.text.corpus.grammar import Language, Word

_MENTION = re.compile(r"\{(?:new )?(\w+)(?:\.(\w+))?\}")
_BETWEEN = re.compile(r"\n\n| ?")


def sentences(text: str, *, starts_whole: bool = False) -> list[str]:
    """The complete sentences of a sample: what stands before the first full stop (unless `starts_whole`) and after the last
    is left out, and so is what may stand between two sentences (a space, or the blank line between stories)."""
    pieces = re.findall(r"[^.。]*[.。]", text)
    return [_BETWEEN.sub("", piece, count=1) for piece in pieces[0 if starts_whole else 1 :]]


def is_sentence(piece: str) -> bool:
    """Whether some pattern of some language gives exactly this text, with agreement inside it."""
    return any(
        (match := expression.fullmatch(piece)) and _agrees(language, match.groupdict())
        for language, expression in _EXPRESSIONS
    )


def _form(word: Word, name: str) -> str:
    if name[0].isupper():
        return word.forms[name.lower()].capitalize()
    return word.forms[name]


def _expression(language: Language, pattern: str) -> re.Pattern[str]:
    """Every mention becomes the alternatives of its list; those of a story variable get a name, to be compared afterwards."""
    parts, end = [], 0
    for index, mention in enumerate(_MENTION.finditer(pattern)):
        name, form = mention[1], mention[2] or "text"
        rows = language.words[language.variables.get(name, name)]
        said = "|".join(re.escape(text) for text in sorted({_form(row, form) for row in rows}, key=len, reverse=True))
        label = f"?P<{name}_{form}_{index}>" if name in language.variables else "?:"
        parts += [re.escape(pattern[end : mention.start()]), f"({label}{said})"]
        end = mention.end()
    return re.compile("".join(parts) + re.escape(pattern[end:]))


def _agrees(language: Language, said: dict[str, str]) -> bool:
    """Whether one row for each variable explains all that was said of it, two variables of one list having different rows."""
    fits: dict[str, set[int]] = {}
    for label, text in said.items():
        name, form, _ = label.rsplit("_", 2)
        rows = language.words[language.variables[name]]
        found = {index for index, row in enumerate(rows) if _form(row, form) == text}
        fits[name] = fits.get(name, found) & found
    people = [rows for name, rows in fits.items() if language.variables[name] == "character"]
    # Two non-empty sets have different representatives unless both hold the same single row.
    return all(fits.values()) and len(set().union(*people)) >= len(people)


_EXPRESSIONS = [
    (language, _expression(language, pattern))
    for language in (ENGLISH, CHINESE)
    for step in language.steps
    for _, pattern in step.patterns
]

"""What a proof hands over: claims with a bar, tables, pictures; each said in English and in Chinese."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple


class Words(NamedTuple):
    """The same, twice."""

    en: str
    zh: str


@dataclass(frozen=True)
class Claim:
    """One sentence, the number that was measured for it, and the bar that the number must reach."""

    words: Words
    measured: float
    sign: Literal["≥", "≤"]
    bar: float
    form: str = ".1%"
    """How both numbers are written."""

    @property
    def right(self) -> bool:
        """Whether the bar is reached; what is not a number reaches none."""
        return self.measured >= self.bar if self.sign == "≥" else self.measured <= self.bar

    @property
    def found(self) -> str:
        return format(self.measured, self.form)

    @property
    def wanted(self) -> str:
        return f"{self.sign} {self.bar:{self.form}}"


def at_least(en: str, zh: str, measured: float, bar: float, form: str = ".1%") -> Claim:
    """A claim that the number is the bar or more."""
    return Claim(Words(en, zh), measured, "≥", bar, form)


def at_most(en: str, zh: str, measured: float, bar: float, form: str = ".1%") -> Claim:
    """A claim that the number is the bar or less."""
    return Claim(Words(en, zh), measured, "≤", bar, form)


@dataclass(frozen=True)
class Table:
    """Measured numbers without a bar."""

    caption: Words
    head: list[tuple[str, str]]
    """English, Chinese."""
    rows: list[list[str]]


@dataclass(frozen=True)
class Picture:
    """An SVG, to be written as docs/proofs/NAME.svg."""

    name: str
    caption: Words
    svg: str


@dataclass(frozen=True)
class Report:
    """All that one proof found."""

    claims: list[Claim]
    tables: list[Table]
    pictures: list[Picture]

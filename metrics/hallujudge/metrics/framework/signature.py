"""Signatures: short strings that state exactly how a score was computed."""

from __future__ import annotations

from dataclasses import dataclass

CARD_MARK = ",card="
"""What comes before the hash of a judge's report card, at the end of the judge's field."""

CARD_NOTE = "The report card"
"""How the note with a card's main figures begins."""


def signature_value(text: str) -> str:
    """Return a field's value as signatures print it."""
    return text.replace("|", "/").replace("\n", " ").replace("\r", " ")


def signature_field(signature: str, key: str) -> str:
    """Return the value of a field of a printed signature; empty without the field."""
    fields = (part.partition(":") for part in signature.split("|")[1:])
    return next((value for name, _, value in fields if name == key), "")


def judge_of(signature: str) -> str:
    """Return the judge of a run from its printed signature, without the judge's report card."""
    return signature_field(signature, "judge").partition(CARD_MARK)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Declared fields in a declared order, printed as ``metric|key:value|key:value``.

    Two runs with equal signatures over equal inputs have equal numbers. Fields are declared by the
    metric, never read off an object, so that renaming an attribute can't change a signature.
    """

    metric: str
    """Name of the metric or score."""
    fields: tuple[tuple[str, str], ...]
    """Keys and values of everything that the score depends on, except the inputs."""

    def extended(self, *fields: tuple[str, str]) -> Signature:
        """Return the signature with more fields appended."""
        return Signature(metric=self.metric, fields=(*self.fields, *fields))

    def __str__(self) -> str:
        text = "|".join([self.metric, *[f"{key}:{value}" for key, value in self.fields]])
        # Nearly all values print as they are, so the whole value is checked first.
        if text.count("|") == len(self.fields) and "\n" not in text and "\r" not in text:
            return text
        parts = [f"{key}:{signature_value(value)}" for key, value in self.fields]
        return "|".join([self.metric, *parts])

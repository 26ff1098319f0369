"""A human label."""

from __future__ import annotations

from dataclasses import dataclass

from hallujudge.metrics.framework.results import JsonValue

__all__ = ["Label"]

_WORDS = {True: "not_supported", False: "supported", None: "unsure"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What a person says of a claim, of some words of a response, or of a whole item."""

    item: str
    """Id of the item."""
    hallucinated: bool | None
    """Whether it is hallucinated; None if the annotator is unsure."""
    claim: int | None = None
    """Place of the claim in the item's evidence; None for words or a whole item."""
    span: tuple[int, int] | None = None
    """First character of the labelled words and the position after the last."""
    text: str = ""
    """The claim or the words; empty if the file does not have them."""
    annotator: str = ""
    """Name of the annotator."""
    signature: str = ""
    """Signature of the run that was labelled; empty if the file does not have it."""
    run: str = ""
    """Identity of that run, as the page exports it; empty if the file does not have it."""

    @property
    def key(self) -> tuple[object, ...]:
        """Return what tells the label from others; a later one with the same key replaces it."""
        return self.item, self.claim, self.span, self.annotator

    def to_json(self) -> dict[str, JsonValue]:
        """Return the label as a line of ``labels.jsonl``."""
        line: dict[str, JsonValue] = {"item": self.item, "label": _WORDS[self.hallucinated]}
        if self.claim is not None:
            line["claim"] = self.claim
        if self.span is not None:
            line["start"], line["end"] = self.span
        for name in ("text", "annotator", "signature", "run"):
            if value := getattr(self, name):
                line[name] = value
        return line

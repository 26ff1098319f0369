"""What a response's score rests on, in a sentence for harnesses and observers that show one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def explanation(name: str, score: float, evidence: Mapping[str, Any]) -> str:
    """Return what a response's score rests on.

    Args:
        name: The score's name.
        score: Its value.
        evidence: The evidence, as ``items.jsonl`` has it.
    """
    if name.endswith("recall") and (missed := _missed(name, evidence)) is not None:
        return (
            f"{name} {score:.4g}: {'missed: ' + ', '.join(missed) if missed else 'nothing missed'}"
        )
    claims = [claim for claim in evidence.get("claims") or () if isinstance(claim, Mapping)]
    wrong = [" ".join(c.get("triplet", ())) for c in claims if c.get("verdict") == "not_supported"]
    answers = [
        f"answered {each.get('answer') or 'nothing that can be read'}, label {each.get('label')}"
        for each in evidence.get("answers") or ()
    ]
    found = {
        "hallucinated": _words(evidence.get("hallucinated")),
        "hallucinated objects": _words(_part(evidence, "objects").get("hallucinated")),
        "hallucinated behaviors": _words(_part(evidence, "behaviors").get("hallucinated")),
        "not supported": wrong,
    }
    shown = [f"{what}: {', '.join(words)}" for what, words in found.items() if words]
    why = "; ".join([*answers, *shown]) or "nothing hallucinated"
    return f"{name} {score:.4g}: {why}"


def _missed(name: str, evidence: Mapping[str, Any]) -> list[str] | None:
    """Return the references that a response does not mention; None if its metric lists none."""
    kind = {"object_recall": "objects", "behavior_recall": "behaviors"}.get(name)
    found = _part(evidence, kind) if kind else evidence
    return _words(found["missed"]) if "missed" in found else None


def _part(evidence: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a part of the evidence; a list of the same name is another metric's."""
    found = evidence.get(name)
    return found if isinstance(found, Mapping) else {}


def _words(found: Sequence[Any] | None) -> list[str]:
    """Return words, of which evidence may hold pairs with what they were mapped to."""
    return [str(one if isinstance(one, str) else one[0]) for one in found or ()]

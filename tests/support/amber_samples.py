"""A small archive of AMBER's own: annotations, tables, answers and nouns."""

from __future__ import annotations

from typing import Any

from hallujudge.sdk import InputOptions

__all__ = [
    "ANNOTATIONS",
    "ASSOCIATIONS",
    "INPUTS",
    "NOUNS",
    "QUESTIONS",
    "RESPONSES",
    "RUN",
    "SAFE",
]

ASSOCIATIONS: dict[str, list[str]] = {
    "person": ["man", "people"],
    "man": [],
    "tree": ["leaf"],
    "dog": ["puppy"],
    "sun": ["light"],
    "shoe": [],
}
SAFE = ("shoe", "light")
ANNOTATIONS: list[dict[str, Any]] = [
    {
        "id": 1,
        "type": "generative",
        "truth": ["person", "man", "shoe", "tree", "tree"],
        "hallu": ["dog", "sun"],
    },
    {"id": 2, "type": "generative", "truth": ["tree"], "hallu": ["man"]},
    {"id": 3, "type": "discriminative-hallucination", "truth": "no"},
    {"id": 4, "type": "discriminative-attribute-state", "truth": "yes"},
    {"id": 5, "type": "discriminative-attribute-number", "truth": "no"},
    {"id": 6, "type": "discriminative-attribute-action", "truth": "no"},
    {"id": 7, "type": "relation", "truth": "no"},
    {"id": 8, "type": "discriminative-relation", "truth": "yes"},
]
RESPONSES: list[dict[str, Any]] = [
    {"id": 1, "response": "A man and his shoe near a puppy."},
    {"id": 2, "response": None},
    *(
        {"id": key, "response": text}
        for key, text in zip(
            range(3, 9), ["No", "Yes", "No.", "I am not sure", None, "No"], strict=True
        )
    ),
]
NOUNS: list[dict[str, Any]] = [
    {"id": 1, "nouns": ["man", "shoe", "puppy", "field"]},
    {"id": 2, "nouns": ["tree", "tree", "person"]},
]
QUESTIONS = [{"id": n, "image": f"{n % 3}.jpg", "query": "Is it so?"} for n in range(1, 9)]
INPUTS = InputOptions(
    own={"nouns": NOUNS, "questions": QUESTIONS, "associations": ASSOCIATIONS, "safe_words": SAFE}
)
RUN: dict[str, Any] = {"responses": RESPONSES, "references": ANNOTATIONS, "inputs": INPUTS}
"""Arguments of a run over everything."""

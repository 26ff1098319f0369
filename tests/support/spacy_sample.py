"""Blank spaCy pipelines with made vectors or made trees; spaCy is optional."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

__all__ = ["made_model", "made_parser", "parsed"]

LABELS = ("nsubj", "dobj", "prep", "pobj")


def made_model(folder: Path, vectors: Mapping[str, Sequence[float]]) -> Path:
    """Write the pipeline and return its folder; skip the test where spaCy is not installed."""
    spacy = pytest.importorskip("spacy", reason="spaCy is not installed")
    import numpy as np

    model = spacy.blank("en")
    for word, vector in vectors.items():
        model.vocab.set_vector(word, np.array(vector, dtype=np.float32))
    model.meta["name"] = "made"
    model.to_disk(folder / "made")
    return folder / "made"


def parsed(vocab: Any, rows: str) -> Any:
    """Return a document with the tree of rows like ``dogs/NOUN/NNS/nsubj/1/dog``.

    The parts are the word, its part of speech, its tag, its label, the distance to its head and its
    lemma.
    """
    tokens = pytest.importorskip("spacy.tokens", reason="spaCy is not installed")
    parts = [row.rsplit("/", 5) for row in rows.split()]
    marks = ",.?'"
    return tokens.Doc(
        vocab,
        words=[part[0] for part in parts],
        spaces=[after[0][0] not in marks for after in parts[1:]] + [False],
        pos=[part[1] for part in parts],
        tags=[part[2] for part in parts],
        deps=[part[3] for part in parts],
        heads=[i + int(part[4]) for i, part in enumerate(parts)],
        lemmas=[part[5] for part in parts],
    )


def made_parser(
    trees: Mapping[str, str],
    labels: Sequence[str] = LABELS,
    noticed: Callable[[], object] = lambda: None,
) -> Any:
    """Return a pipeline that knows the trees of some texts; every other text has no verb.

    Args:
        trees: Text -> its rows, as :func:`parsed` reads them.
        labels: The labels that its parser says it has.
        noticed: Called for every text.
    """
    spacy = pytest.importorskip("spacy", reason="spaCy is not installed")

    class Parser:
        def __init__(self) -> None:
            self.labels = labels

        def __call__(self, doc: Any) -> Any:
            noticed()
            if doc.text in trees:
                return parsed(doc.vocab, trees[doc.text])
            rows = " ".join(f"{t.text}/X/XX/{'dep' if t.i else 'ROOT'}/{-t.i}/x" for t in doc)
            return parsed(doc.vocab, rows) if len(doc) else doc

    model = spacy.blank("en")
    spacy.Language.factory("made_parser", func=lambda nlp, name: Parser())
    model.add_pipe("made_parser", name="parser")
    model.meta.update(name="made", version="1.0")
    return model

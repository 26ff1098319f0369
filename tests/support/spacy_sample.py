"""A blank spaCy pipeline with made vectors; spaCy is optional."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

__all__ = ["made_model"]


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

"""Words compared by a spaCy model with made vectors."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.messages import expected_message
from support.spacy_sample import made_model

from hallujudge.judge_service.engine.families.amber import WordVectors
from hallujudge.judge_service.errors import InvalidInputError, MissingExtraError

VECTORS = {
    "dog": (1.0, 0.0, 0.0),
    "hound": (0.9, 0.1, 0.0),
    "wolf": (0.79, 0.613, 0.0),
    "tree": (0.0, 0.0, 1.0),
}


def test_words_with_a_cosine_above_the_threshold_are_similar(tmp_path: Path) -> None:
    vectors = WordVectors(str(made_model(tmp_path, VECTORS)))
    assert vectors.similar("dog", "hound")
    assert vectors.similar("dog", "dog")
    # The cosine of dog and wolf is 0.79.
    assert not vectors.similar("dog", "wolf")
    assert not vectors.similar("dog", "tree")
    assert not vectors.similar("dog", "unheard")
    assert vectors.similar("unheard", "unheard"), "equal words need no vector"
    assert vectors.label.startswith("cosine>0.8@en_made-")


def test_a_model_without_vectors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="has no vectors"):
        WordVectors(str(made_model(tmp_path, {})))


def test_a_missing_model_is_named_with_the_command_that_installs_it() -> None:
    pytest.importorskip("spacy", reason="spaCy is not installed")
    with pytest.raises(
        MissingExtraError,
        match=expected_message(
            "judge_service.extractors.library_extractors:en-no-such-model-but-it-is"
        ),
    ):
        WordVectors("en_no_such_model")


def test_without_spacy_its_installation_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(
        MissingExtraError,
        match=expected_message("sdk.cli.installation_checks:python-spacy-download-en-core-web-lg"),
    ):
        WordVectors()

"""Nouns as AMBER's script finds them, with small data in nltk's layout."""

from __future__ import annotations

from pathlib import Path

import nltk
import pytest
from support.nltk_sample import write_nltk_data

from hallujudge.judge_service.errors import MissingExtraError
from hallujudge.judge_service.extractors.library_extractors import (
    NltkNounExtractor,
)


def test_nouns_are_lemmas_with_their_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nltk.data, "path", [str(write_nltk_data(tmp_path / "nltk"))])
    found = NltkNounExtractor()
    assert found.extract("The man saw two puppies, a tree and its leaves. Man!") == (
        *("man", "puppy", "tree", "leaf", "Man"),
    )
    assert found.extract("") == ()
    assert found.label == f"nltk-{nltk.__version__}"


def test_missing_data_are_named_with_the_command_that_installs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    with pytest.raises(MissingExtraError) as caught:
        NltkNounExtractor()
    assert str(caught.value).endswith(
        "python -m nltk.downloader punkt_tab averaged_perceptron_tagger_eng wordnet"
    )

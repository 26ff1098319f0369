"""Where a claim's words are in a text, and the root forms of verbs."""

from __future__ import annotations

import pytest

from hallujudge.judge_service.extractors.extractor_interface import Keyword
from hallujudge.judge_service.extractors.llm_extractors import (
    Places,
    root_form,
)


@pytest.mark.parametrize("verb", ["ride", "saw", "found", "sing", "lie", "pick", "photobomb"])
def test_base_forms_are_root_forms(verb: str) -> None:
    assert root_form(verb) == verb


@pytest.mark.parametrize(
    ("form", "root"),
    [("rides", "ride"), ("rode", "ride"), ("putting", "put"), ("is", "be"), ("held", "hold"),
     ("carried", "carry"), ("lying", "lie")],
)  # fmt: skip
def test_other_forms_are_not(form: str, root: str) -> None:
    assert root_form(form) == root


def test_places_stay_cheap_in_a_text_that_repeats_itself() -> None:
    places = Places("pick " * 50_000 + "it up")
    assert places.behavior("pick up").end == 0, "too many places to try each"
    assert places.behavior("picks").end == 0
    assert Places("He picked it up").behavior("pick up") == Keyword(text="pick up", start=3, end=15)

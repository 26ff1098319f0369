"""Places of a claim's words in a text, root forms of verbs, and sentences as claims."""

from __future__ import annotations

import pytest

from hallujudge.judge_service.extractors import Keyword
from hallujudge.judge_service.extractors.llm_extractors import Places, SentenceExtractor, root_form


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


async def test_sentences() -> None:
    text = 'Dr. Lee rides at 5 p.m. today! "Go," she says. 3 dogs run.\n\nThe end'
    (found,) = await SentenceExtractor().extract_many([text])
    assert [sentence.text for sentence, _ in found] == [
        "Dr. Lee rides at 5 p.m. today!", '"Go," she says.', "3 dogs run.", "The end",
    ]  # fmt: skip
    assert all(text[slice(*span)] == sentence.text for sentence, span in found)
    assert SentenceExtractor().extract(" \n ... ") == []

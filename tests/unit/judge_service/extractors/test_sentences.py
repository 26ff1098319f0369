"""Sentences as claims."""

from __future__ import annotations

from hallujudge.judge_service.extractors.llm_extractors import (
    SentenceExtractor,
)


async def test_sentences() -> None:
    text = 'Dr. Lee rides at 5 p.m. today! "Go," she says. 3 dogs run.\n\nThe end'
    (found,) = await SentenceExtractor().extract_many([text])
    assert [sentence.text for sentence, _ in found] == [
        "Dr. Lee rides at 5 p.m. today!", '"Go," she says.', "3 dogs run.", "The end",
    ]  # fmt: skip
    assert all(text[slice(*span)] == sentence.text for sentence, span in found)
    assert SentenceExtractor().extract(" \n ... ") == []

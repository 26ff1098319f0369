"""The extractors that ask a language model, and the sentence baseline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import scripted_llm as llm

from hallujudge.judge_service.errors import UnavailableError
from hallujudge.judge_service.extractors.llm import (
    LlmKeywordExtractor,
    LlmTripletExtractor,
    SentenceExtractor,
)
from hallujudge.judge_service.extractors.values import KeywordExtractor, TripletExtractor
from hallujudge.judge_service.judges import (
    ChatClient,
    ChatSettings,
    Endpoint,
    RetryPolicy,
    VerdictCache,
)

TEXT = "A man isn't riding the Brown  horse. The man holds a rope."


def client_of(server: llm.ScriptedLlm) -> ChatClient:
    endpoint = Endpoint(url=server.url, timeout_seconds=5)
    return ChatClient(ChatSettings(endpoint=endpoint, model="m", retry=RetryPolicy(attempts=1)))


def said(*triplets: tuple[str, str, str]) -> str:
    names = ("object1", "relation", "object2")
    return json.dumps({"triplets": [dict(zip(names, t, strict=True)) for t in triplets]})


async def test_claims_with_their_places() -> None:
    answer = said(("man", "isn't riding", "brown horse"), ("man", "holds", "rope"),
                  ("man", "holds", "rope"), ("rider", "near", "fence"))  # fmt: skip
    async with llm.ScriptedLlm(llm.saying(answer)) as server:
        client = client_of(server)
        extractor = LlmTripletExtractor(client)
        (claims,) = await extractor.extract_many([TEXT])
        await client.close()
    assert isinstance(extractor, TripletExtractor)
    assert extractor.label.startswith("llm:m:extract-triplets-1@")
    assert [claim.parts[2] for claim in claims] == ["brown horse", "rope", "fence"]
    first = claims[0]
    assert TEXT[slice(*first.subject_span)] == "man"
    assert TEXT[slice(*first.object_span)] == "Brown  horse"
    assert (first.start, first.end) == (first.subject_span.start, first.object_span.end)
    assert claims[2].object_span == (0, 0)
    assert server.requests[0]["response_format"]["json_schema"]["schema"]["required"] == [
        "triplets"
    ]


async def test_a_text_without_claims_gives_an_empty_list_not_a_failure() -> None:
    async with llm.ScriptedLlm(llm.saying(said())) as server:
        client = client_of(server)
        (result,) = await LlmTripletExtractor(client).try_many(["Hello."])
        await client.close()
    assert (result.found, result.reason) == ([], "")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "REPLY_NOT_JSON"),
        ("(man, riding, horse)", "REPLY_NOT_JSON"),
        ('{"triplets": [{"object1"', "REPLY_NOT_JSON"),
        ("[" * 100_000, "REPLY_NOT_JSON"),
        ("[]", "REPLY_WRONG_SCHEMA"),
        ("{}", "REPLY_WRONG_SCHEMA"),
        ('{"triplets": {}}', "REPLY_WRONG_SCHEMA"),
        ('{"triplets": [], "note": 1}', "REPLY_WRONG_SCHEMA"),
        ('{"triplets": [["man", "riding", "horse"]]}', "REPLY_WRONG_SCHEMA"),
        ('{"triplets": [{"object1": "man", "relation": "riding"}]}', "REPLY_WRONG_SCHEMA"),
        (said(("man", "", "horse")), "REPLY_WRONG_SCHEMA"),
        (said(("man", "riding", "horse" * 1000)), "REPLY_WRONG_SCHEMA"),
        (said(*((str(n), "is", "x") for n in range(500))), "REPLY_WRONG_SCHEMA"),
        (json.dumps({"triplets": [{"object1": 1, "relation": "r", "object2": "o"}]}),
         "REPLY_WRONG_SCHEMA"),
    ],
)  # fmt: skip
async def test_what_is_not_a_list_of_claims_is_no_extraction(content: str, reason: str) -> None:
    async with llm.ScriptedLlm(llm.saying(content)) as server:
        client = client_of(server)
        extractor = LlmTripletExtractor(client)
        (result,) = await extractor.try_many([TEXT])
        with pytest.raises(UnavailableError, match=reason):
            await extractor.extract_many([TEXT])
        await client.close()
    assert (result.found, result.reason) == (None, reason)
    assert len(result.detail) < 400


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (llm.completion(said(), finish="length"), "REPLY_TRUNCATED"),
        (llm.completion(None, refusal="no"), "JUDGE_REFUSED"),
        (llm.error(500), "JUDGE_SERVER_ERROR"),
        (llm.error(400, "x", "context_length_exceeded"), "PROMPT_TOO_LONG"),
    ],
)
async def test_failures_have_reasons(reply: llm.Reply, reason: str) -> None:
    async with llm.ScriptedLlm(llm.always(reply)) as server:
        client = client_of(server)
        results = await LlmTripletExtractor(client).try_many([TEXT, TEXT * 5000])
        await client.close()
    assert [result.reason for result in results] == [reason] * 2


async def test_answers_are_remembered_and_failures_are_not(tmp_path: Path) -> None:
    steps = (llm.saying("oops"), llm.saying(said(("man", "holds", "rope"))))
    async with llm.ScriptedLlm(*steps) as server:
        cache = VerdictCache(tmp_path / "c")
        client = client_of(server)
        extractor = LlmTripletExtractor(client, cache=cache)
        results: list[Any] = [(await extractor.try_many([TEXT]))[0] for _ in range(3)]
        await client.close()
        cache.close()
    assert server.chats == 2
    assert results[0].found is None
    assert results[1].found == results[2].found
    assert results[2].usage.prompt_tokens == 100


async def test_keywords() -> None:
    answer = json.dumps({"objects": ["Horse", "horse", "rope"], "behaviors": ["ride"]})
    async with llm.ScriptedLlm(llm.saying(answer)) as server:
        client = client_of(server)
        extractor = LlmKeywordExtractor(client)
        (words,) = await extractor.extract_many([TEXT])
        await client.close()
    assert isinstance(extractor, KeywordExtractor)
    assert [word.text for word in words.objects] == ["horse", "rope"]
    assert TEXT[words.objects[0].start : words.objects[0].end] == "horse"
    assert [(word.text, word.start, word.end) for word in words.behaviors] == [("ride", 0, 0)]


@pytest.mark.parametrize(
    "content",
    ["{}", '{"objects": ["x"]}', '{"objects": [1], "behaviors": []}',
     '{"objects": [""], "behaviors": []}', '{"objects": "x", "behaviors": []}'],
)  # fmt: skip
async def test_keywords_that_are_none(content: str) -> None:
    async with llm.ScriptedLlm(llm.saying(content)) as server:
        client = client_of(server)
        (result,) = await LlmKeywordExtractor(client).try_many([TEXT])
        await client.close()
    assert result.reason == "REPLY_WRONG_SCHEMA"


async def test_sentences() -> None:
    text = 'Dr. Lee rides at 5 p.m. today! "Go," she says. 3 dogs run.\n\nThe end'
    (found,) = await SentenceExtractor().extract_many([text])
    assert [sentence.text for sentence, _ in found] == [
        "Dr. Lee rides at 5 p.m. today!", '"Go," she says.', "3 dogs run.", "The end",
    ]  # fmt: skip
    assert all(text[slice(*span)] == sentence.text for sentence, span in found)
    assert SentenceExtractor().extract(" \n ... ") == []

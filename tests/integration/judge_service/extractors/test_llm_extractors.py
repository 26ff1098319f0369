"""The extractors that ask a language model, at a scripted server."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.threads import PATIENCE

from hallujudge.judge_service.extractors import DescriptionPair, Keywords, PairKeywords
from hallujudge.judge_service.extractors.llm_extractor_base import Extraction
from hallujudge.judge_service.extractors.llm_extractors import (
    LlmKeywordExtractor,
    LlmTripletExtractor,
)
from hallujudge.judge_service.llm.call_policy import RetryPolicy
from hallujudge.judge_service.llm.chat_settings import ChatSettings
from hallujudge.judge_service.llm.client import ChatClient
from hallujudge.judge_service.llm.http import Endpoint
from hallujudge.judge_service.llm.verdict_cache import VerdictCache

TEXT = "A man isn't riding the Brown  horse. The man holds a rope."


def client_of(server: llm.ScriptedLlm) -> ChatClient:
    endpoint = Endpoint(url=server.url, timeout_seconds=PATIENCE)
    return ChatClient(
        ChatSettings(endpoint=endpoint, model="m", retry=RetryPolicy(attempts=1, outage_seconds=0))
    )


def said(*triplets: tuple[str, str, str]) -> str:
    names = ("object1", "relation", "object2")
    return json.dumps({"triplets": [dict(zip(names, t, strict=True)) for t in triplets]})


async def test_claims_with_their_places() -> None:
    answer = said(("man", "isn't riding", "brown horse"), ("man", "holds", "rope"),
                  ("man", "holds", "rope"), ("rider", "near", "fence"))  # fmt: skip
    async with llm.ScriptedLlm(llm.saying(answer)) as server:
        client = client_of(server)
        extractor = LlmTripletExtractor(client)
        (result,) = await extractor.try_many([TEXT])
        await client.close()
    claims = result.found
    assert claims is not None
    assert extractor.label.startswith("llm:m:extract-triplets-2@")
    assert [claim.parts[2] for claim in claims] == ["brown horse", "rope", "fence"]
    first = claims[0]
    assert TEXT[slice(*first.subject_span)] == "man"
    assert TEXT[slice(*first.object_span)] == "Brown  horse"
    assert (first.start, first.end) == (first.subject_span.start, first.object_span.end)
    assert claims[2].object_span == (0, 0)
    assert server.requests[0]["response_format"]["json_schema"]["schema"]["required"] == [
        "triplets"
    ]


@pytest.mark.parametrize("text", ["", " \n\t"])
async def test_an_empty_text_causes_no_call(text: str) -> None:
    async with llm.ScriptedLlm(llm.saying(said(("man", "holds", "rope")))) as server:
        client = client_of(server)
        (result,) = await LlmTripletExtractor(client).try_many([text])
        await client.close()
    assert (result.found, server.chats) == ([], 0)


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
async def test_what_is_not_a_list_of_claims_is_not_an_extraction(content: str, reason: str) -> None:
    async with llm.ScriptedLlm(llm.saying(content)) as server:
        client = client_of(server)
        extractor = LlmTripletExtractor(client)
        (result,) = await extractor.try_many([TEXT])
        await client.close()
    assert (result.found, result.reason) == (None, reason)
    assert len(result.detail) < 400


@pytest.mark.parametrize(
    "claim",
    [
        ["man", "riding", "horse"],
        {"object1": "man", "relation": "riding"},
        {"object1": "man", "relation": "", "object2": "horse"},
        {"object1": "man", "relation": "riding", "object2": "horse" * 1000},
        {"object1": 1, "relation": "riding", "object2": "horse"},
        {"object1": "man", "relation": "riding", "object2": "horse", "note": "\ud800"},
        None,
    ],
)
async def test_an_invalid_claim_is_rejected_alone(claim: Any) -> None:
    content = json.loads(said(("man", "holds", "rope")))
    content["triplets"].insert(0, claim)
    async with llm.ScriptedLlm(llm.saying(json.dumps(content))) as server:
        client = client_of(server)
        (result,) = await LlmTripletExtractor(client).try_many([TEXT])
        await client.close()
    assert result.found is not None
    assert [claim.parts for claim in result.found] == [("man", "holds", "rope")]
    (entry,) = result.invalid
    assert (entry.place, entry.repaired) == ("triplets", "")
    assert entry.problem
    assert len(entry.text.encode()) <= 83


async def test_the_schema_constrains_every_part_of_a_claim() -> None:
    async with llm.ScriptedLlm(llm.saying(said())) as server:
        client = client_of(server)
        await LlmTripletExtractor(client).try_many([TEXT])
        await client.close()
    schema = server.requests[0]["response_format"]["json_schema"]["schema"]
    claim = schema["properties"]["triplets"]["items"]
    assert claim["additionalProperties"] is False
    for part in claim["required"]:
        pattern = claim["properties"][part]["pattern"]
        assert re.search(pattern, "isn't riding")
        assert not re.search(pattern, "")
        assert not re.search(pattern, " ")


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
        await cache.close()
    assert server.chats == 2
    assert results[0].found is None
    assert results[1].found == results[2].found
    assert results[2].usage.prompt_tokens == 100


PAIR = DescriptionPair(
    reference="Two men ride the Brown  horse. They pick the ropes up.",
    predicted="A man was riding a horse, and holds up a rope.",
)


def lists(
    reference: tuple[list[Any], list[Any]] = ([], []),
    predicted: tuple[list[Any], list[Any]] = ([], []),
    **more: Any,
) -> str:
    """An answer with (objects, behaviors) of either description."""
    return json.dumps(
        {
            "reference_objects": reference[0], "reference_behaviors": reference[1],
            "predicted_objects": predicted[0], "predicted_behaviors": predicted[1], **more,
        }
    )  # fmt: skip


GOOD = lists((["Man", "brown horse", "rope"], ["ride", "pick up"]), (["man", "saddle"], ["ride"]))


async def test_keywords_of_both_descriptions_come_from_one_call() -> None:
    async with llm.ScriptedLlm(llm.saying(GOOD)) as server:
        client = client_of(server)
        extractor = LlmKeywordExtractor(client)
        (result,) = await extractor.try_many([PAIR])
        await client.close()
    assert server.chats == 1
    assert extractor.label.startswith("llm:m:extract-keywords-3@")
    assert result.found is not None
    found = result.found
    assert [word.text for word in found.reference.objects] == ["man", "brown horse", "rope"]
    assert [word.text for word in found.predicted.objects] == ["man", "saddle"]
    written = {
        PAIR.reference[word.start : word.end]
        for word in (*found.reference.objects, *found.reference.behaviors)
    }
    assert written == {"men", "Brown  horse", "ropes", "ride", "pick the ropes up"}
    said = {w.text: PAIR.predicted[w.start : w.end] for w in found.predicted.behaviors}
    assert said == {"ride": "riding"}
    saddle = found.predicted.objects[1]
    assert (saddle.start, saddle.end) == (0, 0), "not in the text, so it has no place there"


async def test_the_prompt_holds_both_texts_and_the_schema_all_four_lists() -> None:
    async with llm.ScriptedLlm(llm.saying(GOOD)) as server:
        client = client_of(server)
        await LlmKeywordExtractor(client).try_many([PAIR])
        await client.close()
    (body,) = server.requests
    prompt = llm.prompt_of(body)
    assert prompt.index("<<<REFERENCE\n") < prompt.index("<<<PREDICTED\n")
    assert "Two men ride" in prompt
    assert "was riding" in prompt
    schema = body["response_format"]["json_schema"]["schema"]
    assert set(schema["required"]) == set(json.loads(GOOD)) == set(schema["properties"])
    assert schema["additionalProperties"] is False
    pattern = schema["properties"]["reference_objects"]["items"]["pattern"]
    for word, good in (("polar bear", True), ("dog", True), ("big red ball", False), ('a"', False)):
        assert bool(re.search(pattern, word)) is good
    verbs = schema["properties"]["predicted_behaviors"]["items"]["pattern"]
    assert re.search(verbs, "take care of")


async def test_keywords_of_single_texts() -> None:
    answer = lists(predicted=(["Horse", "horse", "rope"], ["ride"]))
    async with llm.ScriptedLlm(llm.saying(answer)) as server:
        client = client_of(server)
        extractor = LlmKeywordExtractor(client)
        pairs = [DescriptionPair(predicted=text) for text in (TEXT, " \n")]
        result, nothing = await extractor.try_many(pairs)
        await client.close()
    assert nothing.found == PairKeywords()
    assert result.found is not None
    words = result.found.predicted
    assert server.chats == 1, "an empty text costs no call"
    assert [word.text for word in words.objects] == ["horse", "rope"]
    assert TEXT[words.objects[0].start : words.objects[0].end] == "horse"
    assert [TEXT[word.start : word.end] for word in words.behaviors] == ["riding"]


@pytest.mark.parametrize(
    ("content", "reason", "says"),
    [
        ("{}", "REPLY_WRONG_SCHEMA", "keys"),
        ("[]", "REPLY_WRONG_SCHEMA", "keys"),
        (GOOD[:-4], "REPLY_NOT_JSON", ""),
        (f"Here you are: {GOOD}", "REPLY_NOT_JSON", ""),
        ('{"objects": ["man"], "behaviors": []}', "REPLY_WRONG_SCHEMA", "keys"),
        (lists(note="done"), "REPLY_WRONG_SCHEMA", "keys"),
        (lists(([1], [])), "REPLY_WRONG_SCHEMA", "'1'"),
        (lists((["", "x" * 101], ["run"])), "REPLY_WRONG_SCHEMA", "'reference_objects'"),
        (lists((["man"], ["run"]), (["man"], [7])), "REPLY_WRONG_SCHEMA", "'predicted_behaviors'"),
        (lists(({}, [])), "REPLY_WRONG_SCHEMA", "'reference_objects' is not a list"),  # type: ignore[arg-type]  # on purpose
        (lists((["man in a suit"], [])), "REPLY_WRONG_SCHEMA", "more than two words"),
        (lists((["man"] * 401, [])), "REPLY_WRONG_SCHEMA", "401 entries"),
        (GOOD.replace("{", '{"reference_objects": [], ', 1), "REPLY_WRONG_SCHEMA", "duplicate key"),
    ],
)
async def test_keywords_that_are_none(content: str, reason: str, says: str) -> None:
    async with llm.ScriptedLlm(llm.saying(content)) as server:
        client = client_of(server)
        (result,) = await LlmKeywordExtractor(client).try_many([PAIR])
        await client.close()
    assert (result.found, result.reason) == (None, reason)
    assert says in result.detail
    assert len(result.detail) < 400


async def extracted(content: str, pair: DescriptionPair = PAIR) -> Extraction[PairKeywords]:
    async with llm.ScriptedLlm(llm.saying(content)) as server:
        client = client_of(server)
        (result,) = await LlmKeywordExtractor(client).try_many([pair])
        await client.close()
    return result


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("red plastic cup", "plastic cup"),
        ("big brown horse", "horse"),
        ("man in a suit", ""),
        ("very very big", ""),
        ("", ""),
        ("x" * 101, ""),
        ("a\u0000b", ""),
        ("\ud800", ""),
        (7, ""),
        (["man"], ""),
    ],
)
async def test_an_invalid_object_is_repaired_or_rejected_alone(said: Any, kept: str) -> None:
    result = await extracted(lists((["man", said, "rope"], ["ride"]), (["man"], ["ride"])))
    assert result.found is not None
    assert result.found.reference.words("objects") == ("man", *filter(None, [kept]), "rope")
    assert result.found.predicted.words("objects") == ("man",)
    (entry,) = result.invalid
    assert (entry.place, entry.repaired) == ("reference_objects", kept)
    assert entry.problem
    assert entry.text.isprintable()
    assert len(entry.text) <= 81


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("riding", "ride"),
        ("was riding", "ride"),
        ("has been running", "run"),
        ("picks up", "pick up"),
        ("holding hands", "hold hands"),
        ("has a ball", "have a ball"),
        ("is", "be"),
    ],
)
async def test_a_behaviour_is_put_into_root_form(said: str, kept: str) -> None:
    result = await extracted(lists(predicted=([], ["wave", said])))
    assert result.found is not None
    assert result.found.predicted.words("behaviors") == ("wave", kept)
    assert [tuple(entry) for entry in result.invalid] == [
        ("predicted_behaviors", said, "not in root form", kept)
    ]


async def test_a_repaired_keyword_that_is_there_already_is_kept_once() -> None:
    result = await extracted(lists((["plastic cup", "red plastic cup"], [])))
    assert result.found is not None
    assert result.found.reference.words("objects") == ("plastic cup",)
    assert [entry.repaired for entry in result.invalid] == ["plastic cup"]


async def test_an_empty_description_has_no_keywords() -> None:
    empty = DescriptionPair(reference="A dog runs.", predicted="")
    result = await extracted(lists((["dog"], ["run"]), (["dog"], [])), empty)
    assert result.found is not None
    assert result.found.predicted == Keywords()
    assert result.found.reference.words("objects") == ("dog",)
    assert [tuple(entry) for entry in result.invalid] == [
        ("predicted_objects", "dog", "the predicted description is empty", "")
    ]


async def test_transferred_synonyms_are_another_prompt_label_and_cache_entry(
    tmp_path: Path,
) -> None:
    async with llm.ScriptedLlm(llm.saying(GOOD)) as server:
        cache = VerdictCache(tmp_path / "c")
        client = client_of(server)
        labels, counts = [], []
        for synonyms in ("keep", "transfer", "keep", "transfer"):
            extractor = LlmKeywordExtractor(client, synonyms=synonyms, cache=cache)
            assert (await extractor.try_many([PAIR]))[0].found is not None
            labels.append(extractor.label.partition("@")[0])
            counts.append(server.chats)
        await client.close()
        await cache.close()
    assert labels[:2] == ["llm:m:extract-keywords-3", "llm:m:extract-keywords-transfer-1"]
    assert counts == [1, 2, 2, 2]
    kept, transferred = (body["messages"][0]["content"] for body in server.requests)
    assert "Synonyms" not in kept
    assert "same word in every list" in transferred


async def test_answers_are_kept_by_both_texts(tmp_path: Path) -> None:
    other = DescriptionPair(reference=PAIR.reference, predicted="A man rides.")
    swapped = DescriptionPair(reference=PAIR.predicted, predicted=PAIR.reference)
    async with llm.ScriptedLlm(llm.saying(GOOD)) as server:
        cache = VerdictCache(tmp_path / "c")
        client = client_of(server)
        extractor = LlmKeywordExtractor(client, cache=cache)
        counts = []
        for pair in (PAIR, other, swapped, PAIR, other, swapped):
            (result,) = await extractor.try_many([pair])
            assert result.found is not None
            counts.append(server.chats)
        await client.close()
        await cache.close()
    assert counts == [1, 2, 3, 3, 3, 3]

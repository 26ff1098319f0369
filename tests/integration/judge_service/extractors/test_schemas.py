"""The schemas of extraction, as the engines of servers read them: llguidance and outlines."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from llguidance import LLMatcher, LLTokenizer
from outlines_core.json_schema import build_regex_from_schema
from support import scripted_llm as llm
from support.chat_clients import client_of

from hallujudge.judge_service.extractors import DescriptionPair
from hallujudge.judge_service.extractors.llm_extractor_base import LlmRootChooser, RootQuestion
from hallujudge.judge_service.extractors.llm_extractors import (
    AskedAnswer,
    LlmKeywordExtractor,
    LlmObjectExtractor,
    LlmTripletExtractor,
)

_LISTS = ("reference_objects", "reference_behaviors", "predicted_objects", "predicted_behaviors")
ANSWERS = {
    "triplets": '{"triplets":[{"object1":"old man","relation":"isn\'t","object2":"caf\u00e9"}]}',
    "keywords": json.dumps({key: ["polar bear"] for key in _LISTS}, separators=(",", ":")),
    "objects": '{"objects":["dog","traffic light, red"]}',
    "roots": '{"1":"dog"}',
}


PAIR = DescriptionPair(predicted="A man.")


async def schema_of(name: str) -> str:
    async with llm.ScriptedLlm() as server:
        client = client_of(server)
        calls: Any = {
            "triplets": lambda: LlmTripletExtractor(client).planned("A man."),
            "keywords": lambda: LlmKeywordExtractor(client).planned(
                DescriptionPair(predicted="A man.")
            ),
            "objects": lambda: LlmObjectExtractor(client).planned(AskedAnswer("", "A dog.")),
            "roots": lambda: LlmRootChooser(client, "objects").planned(
                (RootQuestion(word="hound", roots=("dog", "cat")),)
            ),
        }
        planned = await calls[name]()
        await client.close()
    return json.dumps(planned.request.schema)


def accepted(schema: str, text: str) -> set[bool]:
    """Return whether each engine lets a model write a text as its whole answer."""
    grammar = LLMatcher.grammar_from_json_schema(schema)
    assert LLMatcher.validate_grammar(grammar) == ""
    matcher = LLMatcher(LLTokenizer("byte"), grammar, log_level=0)
    guided = matcher.consume_tokens(list(text.encode())) and matcher.is_accepting()
    return {guided, re.fullmatch(build_regex_from_schema(schema), text) is not None}


@pytest.mark.parametrize("name", ANSWERS)
async def test_engines_take_the_schema_and_its_answers_only(name: str) -> None:
    schema = await schema_of(name)
    answer = ANSWERS[name]
    json.loads(answer)
    assert accepted(schema, answer) == {True}
    for wrong in (
        answer[:-1],
        answer.replace('"', '"x', 1),
        re.sub(r"(\w)(\"[\]}])", r"\1\\n\2", answer),
        re.sub(r"(\w)(\"[\]}])", r"\1 \2", answer),
        re.sub(r"(\w)(\"[\]}])", r'\1\\"\2', answer),
    ):
        assert wrong != answer
        assert accepted(schema, wrong) == {False}, wrong


@pytest.mark.parametrize("name", ANSWERS)
async def test_patterns_name_no_class_of_characters(name: str) -> None:
    # llama.cpp 7e4c0a9 ends every call whose schema has \s between brackets: "unknown escape".
    patterns = re.findall(r'"pattern": "((?:[^"\\]|\\.)*)"', await schema_of(name))
    assert not any(re.search(r"\\[sSdDwWbB]", json.loads(f'"{text}"')) for text in patterns)

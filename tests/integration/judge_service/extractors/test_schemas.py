"""The schemas of extraction, as the engines of servers read them: llguidance and outlines.

tests/servers asks xgrammar, which needs torch, and llama.cpp.
"""

from __future__ import annotations

import json
import re

import pytest
from llguidance import LLMatcher, LLTokenizer
from outlines_core.json_schema import build_regex_from_schema
from support.extraction_schemas import ANSWERS, schemas, wrong_answers


def accepted(schema: str, text: str) -> set[bool]:
    """Return whether each engine lets a model write a text as its whole answer."""
    grammar = LLMatcher.grammar_from_json_schema(schema)
    assert LLMatcher.validate_grammar(grammar) == ""
    matcher = LLMatcher(LLTokenizer("byte"), grammar, log_level=0)
    guided = matcher.consume_tokens(list(text.encode())) and matcher.is_accepting()
    return {guided, re.fullmatch(build_regex_from_schema(schema), text) is not None}


@pytest.mark.parametrize("name", ANSWERS)
async def test_engines_take_the_schema_and_its_answers_only(name: str) -> None:
    schema = (await schemas())[name]
    json.loads(ANSWERS[name])
    assert accepted(schema, ANSWERS[name]) == {True}
    for wrong in wrong_answers(name):
        assert accepted(schema, wrong) == {False}, wrong


@pytest.mark.parametrize("name", ANSWERS)
async def test_patterns_name_no_class_of_characters(name: str) -> None:
    # llama.cpp 7e4c0a9 ends every call whose schema has \s between brackets: "unknown escape".
    patterns = re.findall(r'"pattern": "((?:[^"\\]|\\.)*)"', (await schemas())[name])
    assert not any(re.search(r"\\[sSdDwWbB]", json.loads(f'"{text}"')) for text in patterns)

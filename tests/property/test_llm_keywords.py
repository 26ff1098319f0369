"""Whatever a model answers, it is either four sound lists or no answer, and never an exception."""

from __future__ import annotations

import asyncio
import json
import re

from hypothesis import example, given
from hypothesis import strategies as st

from hallujudge.judge_service.extractors import DescriptionPair, Keywords
from hallujudge.judge_service.extractors.llm_extractors import LlmKeywordExtractor, Places
from hallujudge.judge_service.llm.budget import Usage
from hallujudge.judge_service.llm.chat import ChatRequest
from hallujudge.judge_service.llm.chat_replies import ChatReply
from hallujudge.judge_service.llm.chat_settings import ChatSettings
from hallujudge.judge_service.llm.client import Answer, ChatClient
from hallujudge.judge_service.llm.http import Endpoint

NAMES = ("reference_objects", "reference_behaviors", "predicted_objects", "predicted_behaviors")
PAIR = DescriptionPair(reference="Two men ride a horse.", predicted="A man picks it up.")


class Saying(ChatClient):
    """A client that gives one answer to every question, without a server."""

    def __init__(self, content: str) -> None:
        super().__init__(ChatSettings(endpoint=Endpoint(url="http://127.0.0.1:9/v1"), model="m"))
        self.content = content

    async def ask(self, request: ChatRequest, **_how: object) -> Answer:
        return Answer(ChatReply(content=self.content), Usage())


WORDS = st.sampled_from(["man", "Horse ", "ride", "riding", "pick up", "a b c", "", "\ud800"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)
NEAR = st.fixed_dictionaries({name: st.lists(WORDS, max_size=4) | VALUES for name in NAMES})


def sound(keywords: Keywords, text: str) -> bool:
    words = [*keywords.objects, *keywords.behaviors]
    return (
        all(0 <= word.start <= word.end <= len(text) for word in words)
        and all(len(word.text.split()) <= 2 for word in keywords.objects)
        and all(word.text and word.text == word.text.lower() for word in words)
        and len({word.text for word in keywords.objects}) == len(keywords.objects)
    )


@given(content=(NEAR | VALUES).map(json.dumps) | st.text(max_size=50))
@example(content="[" * 5000)
@example(content=json.dumps({name: ["pick up"] for name in NAMES}))
def test_an_answer_is_sound_or_none(content: str) -> None:
    (result,) = asyncio.run(LlmKeywordExtractor(Saying(content)).try_many([PAIR]))
    if result.found is None:
        assert result.reason in ("REPLY_NOT_JSON", "REPLY_WRONG_SCHEMA")
    else:
        assert sound(result.found.reference, PAIR.reference)
        assert sound(result.found.predicted, PAIR.predicted)
        listed = json.loads(content)["reference_objects"]
        here = [entry for entry in result.invalid if entry.place == "reference_objects"]
        texts = {" ".join(word.lower().split()) for word in listed if isinstance(word, str)}
        found = {word.text for word in result.found.reference.objects}
        repaired = {entry.repaired for entry in here if entry.repaired}
        assert found <= texts | repaired, "nothing is put in"
        assert len(listed) - len(here) <= sum(
            isinstance(word, str) and " ".join(word.lower().split()) in found for word in listed
        ), "nothing is dropped unseen"
        assert found or not listed, "a list of invalid entries only is no empty list"


@given(st.lists(st.sampled_from(["dog", "dogs", "a", "ride", "riding", "red", ","]), max_size=12))
def test_places_agree_with_a_plain_look_through_the_words(words: list[str]) -> None:
    text = " ".join(words)
    for keyword, forms in (("dog", "dogs?"), ("ride", "rid(?:e|ing)")):
        found = Places(text).behavior(keyword)
        exact = re.search(rf"\b{keyword}\b", text)
        plain = exact or re.search(rf"\b{forms}\b", text)
        assert (found.start, found.end) == (plain.span() if plain else (0, 0))

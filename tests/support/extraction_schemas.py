"""The schemas of all extractors that ask a language model, with an answer to each."""

from __future__ import annotations

import json
import re

from support import scripted_llm as llm
from support.chat_clients import client_of

from hallujudge.judge_service.extractors import DescriptionPair
from hallujudge.judge_service.extractors.llm_extractors import (
    AskedAnswer,
    LlmKeywordExtractor,
    LlmObjectExtractor,
    LlmTripletExtractor,
)
from hallujudge.studies.root_suggestions import LlmRootChooser, RootQuestion

_LISTS = ("reference_objects", "reference_behaviors", "predicted_objects", "predicted_behaviors")
ANSWERS = {
    "triplets": '{"triplets":[{"object1":"old man","relation":"isn\'t","object2":"caf\u00e9"}]}',
    "keywords": json.dumps({key: ["polar bear"] for key in _LISTS}, separators=(",", ":")),
    "objects": '{"objects":["dog","traffic light, red"]}',
    "roots": '{"1":"dog"}',
}
"""What a model may write."""


async def schemas() -> dict[str, str]:
    """Return name -> schema as JSON."""
    async with llm.ScriptedLlm() as server:
        client = client_of(server)
        planned = {
            "triplets": await LlmTripletExtractor(client).planned("A man."),
            "keywords": await LlmKeywordExtractor(client).planned(
                DescriptionPair(predicted="A man.")
            ),
            "objects": await LlmObjectExtractor(client).planned(AskedAnswer("", "A dog.")),
            "roots": await LlmRootChooser(client, "objects").planned(
                (RootQuestion(word="hound", roots=("dog", "cat")),)
            ),
        }
        await client.close()
    return {name: json.dumps(call.request.schema) for name, call in planned.items() if call}


def wrong_answers(name: str) -> list[str]:
    """Return texts that a schema does not let a model write."""
    answer = ANSWERS[name]
    wrong = [
        answer[:-1],
        answer.replace('"', '"x', 1),
        re.sub(r"(\w)(\"[\]}])", r"\1\\n\2", answer),
        re.sub(r"(\w)(\"[\]}])", r"\1 \2", answer),
        re.sub(r"(\w)(\"[\]}])", r'\1\\"\2', answer),
    ]
    assert answer not in wrong
    return wrong

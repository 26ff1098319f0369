"""Outputs of batch APIs: OpenAI's, which Azure, vLLM and Mistral write too, and Anthropic's.

A line is one request: the caller's ``custom_id``, and the reply or why there is none.
"""

from __future__ import annotations

from collections.abc import Mapping

from .archive_reader import ArchiveReader, converting, first_text, mapping_at, message_text
from .harnesses import response_of_output


def _openai(values: Mapping[str, object]) -> Mapping[str, object]:
    body = mapping_at(mapping_at(values, "response"), "body")
    # Providers put the error beside the response, or in its body.
    failed = values.get("error") or body.get("error")
    text = _completion(body)
    return {
        "id": values.get("custom_id"),
        "response": {"error": failed} if failed and text is None else text,
    }


def _completion(body: Mapping[str, object]) -> object:
    """Return the text of a body of ``/chat/completions``, ``/completions`` or ``/responses``."""
    choice = first_text(body.get("choices"))
    if isinstance(choice, Mapping):
        message = mapping_at(choice, "message")
        found = response_of_output(body)
        return message_text(message.get("refusal", choice.get("text"))) if found is None else found
    output = body.get("output")
    said = [
        each
        for each in (output if isinstance(output, list) else ())
        if isinstance(each, Mapping) and each.get("type") == "message"
    ]
    return message_text(said[-1].get("content")) if said else None


def _anthropic(values: Mapping[str, object]) -> Mapping[str, object]:
    result = mapping_at(values, "result")
    text = message_text(mapping_at(result, "message").get("content"))
    failed = result.get("error") or result.get("type")
    return {
        "id": values.get("custom_id"),
        "response": {"error": failed} if text is None else text,
    }


def _is_openai(values: Mapping[str, object]) -> bool:
    response = values.get("response")
    return (isinstance(response, Mapping) and "body" in response) or (
        response is None and isinstance(values.get("error"), Mapping)
    )


_REMEDY = "name a metric that scores its answers, and give its references with references=…"
READERS = (
    ArchiveReader(
        name="an output file of OpenAI's batch API",
        keys=("custom_id", "response"),
        matches=_is_openai,
        any_metric=True,
        convert=converting(_openai),
        model_key="response.body.model",
        remedy=_REMEDY,
    ),
    ArchiveReader(
        name="an output file of Anthropic's batch API",
        keys=("custom_id", "result"),
        matches=lambda values: "type" in mapping_at(values, "result"),
        any_metric=True,
        convert=converting(_anthropic),
        model_key="result.message.model",
        remedy=_REMEDY,
    ),
)

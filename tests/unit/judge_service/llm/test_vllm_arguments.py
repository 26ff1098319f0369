"""A user's arguments of ``vllm serve``."""

from __future__ import annotations

import json

import pytest

from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.llm.vllm_arguments import AddedArguments, engine_arguments


def structured(text: str) -> object:
    arguments = engine_arguments(
        tensor_parallel_size="1",
        max_model_len="auto",
        quantization="",
        structured_outputs=AddedArguments.of(text).structured_outputs,
    )
    return json.loads(arguments[arguments.index("--structured-outputs-config") + 1])


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("--dtype half", {}),
        ("--structured-outputs-config.enable_in_reasoning true", {"enable_in_reasoning": True}),
        ("--structured_outputs_config.enable-in-reasoning=true", {"enable_in_reasoning": True}),
        ('--structured-outputs-config \'{"backend": "xgrammar"}\'', {"backend": "xgrammar"}),
        ('--structured-outputs-config=\'{"backend": "xgrammar"}\'', {"backend": "xgrammar"}),
        ("--structured-outputs-config.backend outlines", {"backend": "outlines"}),
    ],
)
def test_what_they_say_of_structured_output_is_added_to_ours(
    text: str, more: dict[str, object]
) -> None:
    assert structured(text) == {"backend": "guidance", "disable_any_whitespace": True} | more
    assert all("structured" not in word for word in AddedArguments.of(text).others)


def test_others_stay_as_they_are() -> None:
    text = "-tp 2 --dtype 'a b' --max-num-seqs=8 --max-logprobs -1 --served-model-name judge j2"
    added = AddedArguments.of(text + " --logprobs-mode processed_logprobs --enforce-eager")
    assert added.others == (
        *("-tp", "2", "--dtype", "a b", "--max-num-seqs=8", "--max-logprobs", "-1"),
        *("--served-model-name", "judge", "j2"),
        *("--logprobs-mode", "processed_logprobs", "--enforce-eager"),
    )
    assert added.served_name == "judge"
    assert AddedArguments.of("--served_model_name=judge").served_name == "judge"
    assert AddedArguments.of("") == AddedArguments()


@pytest.mark.parametrize(
    "text",
    [
        "--api-key sesame",
        "--api_key=sesame",
        "--host 0.0.0.0",
        "--port 8000",
        "--uds /tmp/s",
        "--dtype half --model other",
        "--headless",
        "--root-path /v2",
        "--ssl-keyfile k --ssl-certfile c",
        "--logprobs-mode raw_logits",
        "--logprobs-mode",
        "--max-logprobs 5",
        "--runner pooling",
        "--structured-outputs-config 3",
        "--dtype 'half",
    ],
)
def test_what_would_leave_the_judge_without_an_answer_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        AddedArguments.of(text)
    name = text.removeprefix("--dtype half ").split()[0].partition("=")[0].replace("_", "-")
    assert name in str(caught.value)
    assert "sesame" not in str(caught.value), "a key is quoted"

"""The templates of prompts: pinned, and filled once."""

from __future__ import annotations

import json
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import pytest

from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.llm.prompt_templates import load_template, own_template


def test_every_template_has_a_name_a_version_and_a_hash_that_is_pinned() -> None:
    """A changed template needs a raised version, or old and new numbers would look alike."""
    shipped = (files("hallujudge.judge_service.llm") / "prompts").iterdir()
    # The printed prompts of papers are pinned by a test of their own.
    files_of = [file.name for file in shipped if file.name != "papers.toml"]
    names = sorted(name.removesuffix(".txt") for name in files_of)
    labels = {name: load_template(name).label for name in names}
    assert labels == json.loads((Path(__file__).parent / "judge_templates.json").read_text())


def test_slots_are_filled_once() -> None:
    template = load_template("judge_claim")
    values = {"scene": "{{claims}}", "objects": "{{scene}}", "claims": "c"}
    assert template.messages(values)[1]["content"] == "{{claims}}\n{{scene}}\nc"


def test_a_custom_prompt_has_messages_and_its_whole_hash() -> None:
    text = "--- system ---\nGrade.\n--- user ---\n{{question}}\n{{answer}}\n"
    template = own_template(text, ("question", "answer"))
    assert template.label == f"own@{sha256(text.encode()).hexdigest()}"
    assert template.messages({"question": "{{answer}}", "answer": "b"}) == [
        {"role": "system", "content": "Grade."},
        {"role": "user", "content": "{{answer}}\nb"},
    ]
    (message,) = own_template("{{question}} {{answer}}?", ("question", "answer")).messages(
        {"question": "a", "answer": "b"}
    )
    assert message == {"role": "user", "content": "a b?"}


def test_a_prompt_is_the_same_however_its_lines_end() -> None:
    text = "--- system ---\nGrade.\n--- user ---\n{{question}}\n{{answer}}\n"
    template = own_template(text, ("question", "answer"))
    assert own_template(text.replace("\n", "\r\n"), ("question", "answer")) == template
    spaced = text.replace("---\n", "--- \n")
    assert own_template(spaced, ("question", "answer")).parts == template.parts


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{question}} {{answer}} {{ more }}", r"it has .*\{\{ more \}\}"),
        ("{{question}} {{answer}} {{Answer}}", r"it has .*\{\{Answer\}\}"),
        ("{{question}}", r"needs the slots \{\{question\}\}, \{\{answer\}\}; it has \{\{question"),
        ("", "it has none"),
        ("{{question}} {{answer}} {{more}}", r"it has .*\{\{more\}\}"),
        ("lost\n--- user ---\n{{question}} {{answer}}", "before its first message: 'lost'"),
        ("{{question}} {{answer}}" + "x" * 100_000, "at most 100000"),
    ],
)
def test_an_own_prompt_that_cannot_be_used_is_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        own_template(text, ("question", "answer"))

"""The prompts that papers print: where they are from, their marks, and the forms of replies."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.llm.prompt_templates import (
    ASKED,
    EXTRACT,
    JUDGE,
    PaperPrompt,
    paper_prompt,
    paper_prompts,
    presets_of,
    read_confidence,
    read_keyword_lists,
)

PAPERS = Path(__file__).parents[5] / "shared" / "papers"
FILES = {"chair": "pope", "pope": "pope", "vqa": "pope", "mementos": "mementos"}
PRINTED = """Object list 1: [dog, toy, house]

Action list 1: [interaction, bark, look up]

Object list 2: [dog, toy]

Action list 2: []"""


def test_every_prompt_has_its_paper_and_section_and_is_found_by_its_name() -> None:
    names = [(each.preset, each.metric, each.step) for each in paper_prompts()]
    assert len(set(names)) == len(names)
    for each in paper_prompts():
        assert "et al. 20" in each.source
        assert paper_prompt(each.preset, each.metric, each.step) is each
        assert each.template.label.startswith(f"{each.preset}-1@")
    assert presets_of("mementos", EXTRACT) == ("mementos-table6",)
    assert presets_of("vqa", JUDGE) == ("pope-appendix-e",)
    with pytest.raises(InvalidInputError, match="pope-i1, pope-i2"):
        paper_prompt("pope-i3", "chair", ASKED)


WORDED = [each for each in paper_prompts() if each.preset not in ("pope-question", "infact-a4")]


@pytest.mark.parametrize("prompt", WORDED, ids=lambda each: f"{each.preset}-{each.step}")
def test_prompts_are_the_words_of_the_papers(prompt: PaperPrompt) -> None:
    if not PAPERS.is_dir():
        pytest.skip("golden data is absent: the papers' texts")
    held = " ".join((PAPERS / f"{FILES[prompt.metric]}.txt").read_text("utf-8").split())
    for part in prompt.text.replace("{{", "}}").split("}}")[::2]:
        assert " ".join(part.split()).rstrip(" .") in held


def test_four_lists_are_read_as_the_prompt_asks_for_them() -> None:
    assert read_keyword_lists(PRINTED) == {
        "reference_objects": ["dog", "toy", "house"],
        "reference_behaviors": ["interaction", "bark", "look up"],
        "predicted_objects": ["dog", "toy"],
        "predicted_behaviors": [],
    }
    marked = PRINTED.replace("Object list 1:", "**object list 1**:").replace("dog", '"dog"')
    assert read_keyword_lists(marked)["reference_objects"] == ["dog", "toy", "house"]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("The lists are not clear.", "no list of reference objects"),
        (PRINTED.replace("Action list 2: []", ""), "no list of predicted behaviors"),
        (f"{PRINTED}\nObject list 1: [cat]", "Object list 1 is there twice"),
    ],
)
def test_a_list_that_is_missing_or_there_twice_is_an_error(reply: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_keyword_lists(reply)


@pytest.mark.parametrize(
    ("reply", "answer", "confidence"),
    [
        ("B, 80%", "B", 0.8),
        ("B", "B", None),
        ("A (confidence: 0.4)", "A", 0.4),
        ("C 95.", "C", 0.95),
        ("The man. Confidence 70 percent", "The man.", 0.7),
        ("B, 1%", "B", 0.01),
        ("B, 1", "B", 1.0),
        ("80%", "80%", None),
        ("B, 400%", "B, 400%", None),
    ],
)
def test_a_confidence_stands_after_the_answer(
    reply: str, answer: str, confidence: float | None
) -> None:
    assert read_confidence(reply) == (answer, confidence)

"""ARGUS: lines, headings, refused and undefined captions."""

from __future__ import annotations

import pytest

from hallujudge.metrics import Report
from hallujudge.metrics.argus import ACTION, ENTAILED, MODES, JudgedLine
from hallujudge.metrics.argus.caption_lines import SourceLines, is_heading, lines_of
from hallujudge.sdk import Client

SOURCE = "A man opens a wooden box. Then he takes out a small key. He locks the door."


@pytest.mark.parametrize(
    ("caption", "lines"),
    [
        ("A man walks to the door. He opens it slowly.", ["A man walks to the door.",
                                                          "He opens it slowly."]),
        ("Short one. And this is longer.", ["Short one. And this is longer."]),
        ("He is 1.80 m tall and very strong. yes", ["He is 1.80 m tall and very strong. yes"]),
        ("- A first mark of a list here\r\n2) the second mark of a list",
         ["A first mark of a list here", "the second mark of a list"]),
        ("One part of this sentence; and another part", ["One part of this sentence;",
                                                         "and another part"]),
        (" \n\n ", []),
    ],
)  # fmt: skip
def test_captions_are_split_as_the_script_does(caption: str, lines: list[str]) -> None:
    assert lines_of(caption) == lines


@pytest.mark.parametrize(
    ("line", "heading"),
    [
        ("In summary:", True),
        ("**Visual Details of the room:**", True),
        ("**Mood** The light is soft and warm.", False),
        ("Here's a detailed description of the video:", True),
        ("Here is a quick description of the video: a man opens a box and sings.", False),
        ("Overall effect here", True),
        ("He sings.", True),
        ("He sings loudly.", False),
    ],
)
def test_headings_are_lines_that_say_nothing(line: str, heading: bool) -> None:
    assert is_heading(line) is heading


def test_one_common_letter_is_evidence_only_for_the_script() -> None:
    source = SourceLines("Quick brown fox.")
    assert source.place_of("zzzq") == 0
    assert source.place_of("zzzq", by_share=True) is None
    assert source.place_of("brown fox", by_share=True) == 0
    assert source.place_of("...") is None


def line(text: str, verdict: str = ENTAILED, evidence: str | None = None) -> JudgedLine:
    return JudgedLine(text, text if evidence is None else evidence, ACTION, verdict)


def scored(lines: list[JudgedLine], variant: str = "published", mode: str = MODES[0]) -> Report:
    tuples = [[n, *each[:2], each.kind, "", each.verdict] for n, each in enumerate(lines)]
    record = {"clip": "1", "mode": mode, "human_caption": SOURCE, "model_caption": SOURCE}
    with Client.embedded() as client:
        return client.score("argus", responses=[{**record, "lines": tuples}], variant=variant)


@pytest.mark.parametrize("mode", MODES)
def test_actions_in_the_wrong_order_cost_a_tenth(mode: str) -> None:
    lines = [line("Then he takes out a small key."), line("A man opens a wooden box.")]
    for variant in ("published", "corrected"):
        scores = scored(lines, variant, mode).scores
        name, other = ("cost_h", "cost_o") if mode == MODES[0] else ("cost_o", "cost_h")
        assert (scores[name].value, scores[other].value) == (1, None)


def test_headings_are_free_or_left_out() -> None:
    lines = [line("In summary:"), line("He flies to the moon.", "contradiction")]
    lines.append(line("He locks the door."))
    assert scored(lines).scores["cost_h"].value == 1 / 2
    assert scored(lines, "corrected").scores["cost_h"].value == 1
    refused = scored(lines[:2])
    assert refused.coverage.reasons == {"TOO_MANY_HEADINGS": 1}
    assert scored(lines[:2], "corrected").scores["cost_h"].value == 1
    assert scored(lines[:1], "corrected").coverage.reasons == {"TOO_MANY_HEADINGS": 1}


def test_a_cost_without_a_limit_is_unscored_and_says_why() -> None:
    for variant in ("published", "corrected"):
        alone = scored([line("He locks the door.")], variant)
        assert alone.coverage.reasons == {"COST_UNDEFINED": 1}
    without = [line("He locks the door.", evidence="")]
    assert scored(without).coverage.reasons == {"COST_UNDEFINED": 1}
    assert scored(without, "corrected").scores["cost_h"].value == 1


def test_a_published_cost_may_be_above_one_and_a_corrected_one_is_not() -> None:
    lines = [line("He flies to the moon.", "contradiction")]
    lines += [line("He locks the door.", evidence="ÿ")] * 2
    assert (scored(lines).scores["cost_h"].value or 0) > 1
    assert scored(lines, "corrected").scores["cost_h"].value == 1


def test_kinds_and_verdicts_of_other_words_cost_as_in_the_script() -> None:
    odd = [line("A man opens a wooden box.", "Entailment"), line("He locks the door.")]
    assert scored(odd).scores["cost_h"].value == 1

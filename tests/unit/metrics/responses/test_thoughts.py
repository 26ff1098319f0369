"""Division of responses into thoughts and answers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.thoughts import FORMS

from hallujudge.metrics.answers.choices import read_choice
from hallujudge.metrics.answers.yes_no import YES_NO_PARSERS
from hallujudge.metrics.responses import PLAIN_READER, answer_of, is_plain
from hallujudge.metrics.responses.forms import ANSWER_MARKS, BOXED, Form, own_forms
from hallujudge.metrics.responses.forms import FORMS as MARKS
from hallujudge.metrics.responses.thoughts import (
    Said,
    divided,
    lmms_eval_division,
    with_thought,
    without_keyed_thought,
)

THOUGHT = "Is there a dog? Yes, or no."


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("answer", ["A cat.", "No", "B, A, C", "It has two lines.\nAnd this one."])
def test_every_form_is_divided(form: str, answer: str) -> None:
    said = divided(FORMS[form](THOUGHT, answer))
    assert (said.answer, said.finished) == (answer, True)
    assert said.thought == THOUGHT
    assert divided(said.answer) == Said(said.answer)


@pytest.mark.parametrize("form", MARKS, ids=lambda form: form.name)
def test_every_listed_mark_is_known(form: object) -> None:
    said = divided(f"{form.opening}{THOUGHT}{form.closing}A cat.")  # type: ignore[attr-defined]
    assert (said.answer, said.thought) == ("A cat.", THOUGHT)


@pytest.mark.parametrize("form", ANSWER_MARKS, ids=lambda form: form.name)
def test_every_listed_mark_of_answers_is_known(form: object) -> None:
    text = f"<think>{THOUGHT}</think>{form.opening}A cat.{form.closing}"  # type: ignore[attr-defined]
    assert divided(text).answer == "A cat."


# What models write, with the special tokens that a server is asked to keep.
WRITTEN = {
    "Apriel 1.6": "{thought}\n[BEGIN FINAL RESPONSE]\n{answer}\n<|end|>",
    "Command A Plus": "{thought}<|END_THINKING|><|START_TEXT|>{answer}<|END_TEXT|>",
    "Command A Plus, no end of the thought": "{thought}<|START_TEXT|>{answer}",
    "Gemma 4": "<|channel>thought\n{thought}<channel|>{answer}<turn|>",
    "Hunyuan 3": "<think:opensource>{thought}</think:opensource>{answer}",
    "Hunyuan 4, opened by the prompt": "{thought}</think:6124c78e>\n\n{answer}",
    "Inkling": (
        "<|content_thinking|>{thought}<|end_message|>"
        "<|message_model|><|content_text|>{answer}<|end_message|><|content_model_end_sampling|>"
    ),
    "K2 Horizon": "<ifm|think>{thought}</ifm|think>{answer}",
    "K2 Horizon, fast": "{thought}</ifm|think_fast>{answer}",
    "K2 Horizon, faster": "<ifm|think_faster>{thought}</ifm|think_faster>\n{answer}",
    "Kimi-K3": (
        "<|open|>think<|sep|>{thought}<|close|>think<|sep|><|open|>response<|sep|>{answer}"
        "<|close|>response<|sep|><|close|>message<|sep|><|end_of_msg|>"
    ),
    "Kimi-K3, opened by the prompt": (
        "{thought}<|close|>think<|sep|><|open|>response<|sep|>{answer}<|close|>response<|sep|>"
    ),
    "Kimi-K3, without special tokens": "{thought}thinkresponse{answer}responsemessage",
    "Kimi-K3, no end of the thought": "{thought}<|open|>response<|sep|>{answer}",
    "Marco-o1": "<Thought>{thought}</Thought>\n<Output>\n{answer}\n</Output>",
    "Muse Glimmer": (
        " to=self<|message|>{thought}<|eom|><|start|>assistant to=user<|message|>{answer}<|eot|>"
    ),
    "openPangu": "[unused16]{thought}[unused17]{answer}[unused10]",
    "PLaMo 3": "<|plamo:begin_think:plamo|>{thought}<|plamo:end_think:plamo|>{answer}",
    "Reflection-70B": (
        "<thinking>{thought}</thinking>\n<reflection>So.</reflection>\n<output>{answer}</output>"
    ),
    "Solar Open": "<|think|>{thought}<|end|><|begin|>assistant<|content|>{answer}<|end|>",
    "Solar Open 2": "{thought}<|think:end|>{answer}<|im:end|>",
}


@pytest.mark.parametrize("family", WRITTEN)
def test_what_a_family_writes_is_read(family: str) -> None:
    for answer in ("No", "B", "A cat sits."):
        reading = PLAIN_READER.read(WRITTEN[family].format(thought=THOUGHT, answer=answer))
        assert reading.answer == answer
        assert reading.thought.startswith(THOUGHT)
        assert "|" not in reading.thought
        assert reading.finished
    text = PLAIN_READER.read(WRITTEN[family].format(thought="Yes, or A.", answer="No")).answer
    assert YES_NO_PARSERS["published"](text or "") == "no"
    text = PLAIN_READER.read(WRITTEN[family].format(thought="Yes, or A.", answer="B")).answer
    assert read_choice(text or "", {"A": "a cat", "B": "a dog"}).choice == "B"


@pytest.mark.parametrize(
    "text",
    [
        "<|content|>No",
        "<|content_text|>No<|end_message|>",
        "<|START_TEXT|>No<|END_TEXT|>",
        " to=user<|message|>No<|eot|>",
        "No<|close|>response<|sep|><|close|>message<|sep|>",
        "No<|assistant_end|>",
        "Noresponsemessage",
        "thought\nNo",
    ],
)
def test_an_answer_of_a_model_that_did_not_think_is_read(text: str) -> None:
    reading = PLAIN_READER.read(text)
    assert (reading.answer, reading.thought, reading.finished) == ("No", "", True)


@pytest.mark.parametrize(
    "text",
    [
        "A cat on a sofa.",
        "A <b>cat</b> sits. I think it sleeps.",
        "The sign reads <think>.",
        'The sign says "</think>" in red.',
        "The board shows <think> and </think> tags.",
        "A sign with </think> on it.",
        "A form with <answer> and </answer> fields.",
        "<output>A cat.</output>",
        "Code with <output>1</output> on a screen.",
        "<reflection> is written on a mirror.",
        "I think: a cat, and <think:er> is a joke.",
        "The screen shows [BEGIN FINAL RESPONSE] in green.",
        "A label to=user on a parcel.",
        "The screen shows: the chain thinkresponse app.",
        "The word <answer> is on the poster.",
        "A whiteboard with `</think>` and `<answer>yes</answer>` on it.",
        "The analysis of the image: a cat.",
        "analysis of a picture",
        "The formula is a \\boxed number.",
        '{"answer": "yes"}',
        '{"object": "dog", "answer": "yes"}',
        '{"answer": null, "thought": "I can not tell"}',
        '{"caption": {"text": "a dog and a cat"}}',
        "A sign reads {answer: yes}",
        "The answer: {",
        "[THINK is written on the wall",
        "Here is my response: a cat.",
        "The slide lists tags:\n- <think>\n- <answer>\nand a logo.",
        "The neon sign above the door reads: <think>",
        'A robot holds a "<think> hard" poster.',
        "A screenshot of gpt-oss with <|channel|>analysis<|message|> in its log.",
        "x < y and y > z [1]",
        "Thinking... a cat.",
        "Analysis: a cat.",
        '{"object": "dog", "colour": "dark brown and white"}',
        "{'object': 'dog', 'answer': 'yes'}",
        '{"answer": "yes"} is what the screen shows.',
        "",
    ],
)
def test_a_text_that_only_cites_marks_loses_nothing(text: str) -> None:
    assert divided(text) == Said(text)


@pytest.mark.parametrize(
    ("text", "answer", "thought"),
    [
        ("<think></think>\n\nA cat.", "A cat.", ""),
        ("<think>a<think>b</think>c</think>d", "d", "a<think>b\nc"),
        ("Sure. <think>hm</think> Yes", "Sure.\nYes", "hm"),
        ("<think>a</think>A cat.\n<think>b</think>A dog.", "A cat.\nA dog.", "a\nb"),
        ("<analysis>easy</analysis><think>a</think><answer>Yes</answer>", "Yes", "easy\na"),
        ("a</think>b</think>Yes", "Yes", "a b"),
        ("not there</think>Yes", "Yes", "not there"),
        ("not there </think> Yes", "Yes", "not there"),
        ("</think>Yes", "Yes", ""),
        ("  </think> yes ", "yes", ""),
        ("<think>no end <answer>Yes</answer>", "Yes", "no end"),
        ("<think>hm</think><answer>A cat", "A cat", "hm"),
        (
            "So <answer>no</answer>, or <answer>yes</answer>.",
            "yes",
            "So <answer>no</answer>, or\n.",
        ),
        ("The order is \\boxed{A}, \\boxed{C} and \\boxed{B}.", "A, C, B", "The order is\n."),
        ("First \\boxed{A}. Then again: \\boxed{\\text{B {x}}}", "\\text{B {x}}", "First"),
        ("analysisWe need it.assistantfinalYes", "Yes", "We need it."),
        ("<|start|>assistant<|channel|>final<|message|>Yes<|return|>", "Yes", ""),
        ("<THINK>hm</THINK>Yes", "Yes", "hm"),
        ("thinkA dog?thinkresponseYesresponsemessage", "Yes", "A dog?"),
        ('{"reasoning": "There is no cat.", "answer": "Yes"}', "Yes", "There is no cat."),
        ('```json\n{"Final Answer": true, "Why": "I see it"}\n```', "yes", "I see it"),
        ('I count the dogs:\n```json\n{"answer": 3}\n```', "3", "I count the dogs:"),
        ('{"steps": ["Is it A?", "No."], "answer": "B"}', "B", "Is it A?\nNo."),
        ('{"why": "I count four", "box": {"x": 1}, "answer": "{4}"}', "{4}", "I count four"),
        ('Seen in {braces}: {"answer": "yes"}', "yes", "Seen in {braces}:"),
        ('<think>hm</think>{"why": "it is red", "answer": "B"}', "B", "hm\nit is red"),
        ('{"explanation": "Yes, I see a dog", "label": "no"}', "no", "Yes, I see a dog"),
        ('{"rationale": "Yes, I see a dog", "confidence": 0.9, "final": "no"}', "no", "Yes,"),
        ("{'reasoning': 'Yes, I see a dog', 'answer': 'no'}", "no", "Yes, I see a dog"),
        ('```json\n{"thought": "I see a dog", "answer": "B"}\n```\nAsk me more!', "B", "I see"),
        ('I set $\\frac{1}{2}$ and {a}, {b}, {c}, {d}, {e}, {f}:\n{"answer": "B"}', "B", "I set"),
        ("I see no dog. \\boxed{\\textsf{Yes}\\,}", "Yes", "I see no dog."),
        ("<think>no</think>\\boxed{\\{Yes\\}}", "Yes", "no"),
        ("\\boxed {\\operatorname{Yes}}", "Yes", ""),
        ("<think>no</think>It is \\boxed{\\text{Yes", "Yes", "no\nIt is"),
        ("\ufeff<think>no</think>Yes", "Yes", "no"),
        ("\u200b\u200b<think>no</think>Yes", "Yes", "no"),
        ("<thought_process>no</thought_process>Yes", "Yes", "no"),
        ('<think step="1">no</think><rethink>no</rethink>Yes', "Yes", "no\nno"),
        ("<think>no</think>\n<solution>Yes</solution>", "Yes", "no"),
        ("<think>no</think>Yes<think>no</think>", "Yes", "no\nno"),
        ("Thinking...\nIs there no dog?\n...done thinking.\n\nYes", "Yes", "Is there no dog?"),
        ("assistantfinalYes", "Yes", ""),
    ],
)
def test_odd_thoughts_are_divided(text: str, answer: str, thought: str) -> None:
    said = divided(text)
    assert said.answer == answer
    assert said.thought.startswith(thought)
    assert said.finished


@pytest.mark.parametrize(
    "text",
    [
        "<think>The answer is yes, there is",
        "<think>I could write \\boxed{A}, or rather",
        "<think>It wants <answer>yes</answer> tags, so I",
        "[THINK]yes",
        "analysisWe look: yes.",
        "assistantanalysisWe look: yes.",
        "<thought_process>yes",
        "<think:opensource>yes",
        "<|think|>yes",
        "<|content_thinking|>yes<|end_message|>",
        "to=self<|message|>yes<|eom|>",
        "<|channel|>analysis<|message|>Yes, there is",
        "<think>one</think><think>two",
    ],
)
def test_a_thought_without_an_end_is_no_answer(text: str) -> None:
    said = divided(text)
    assert not said.finished
    assert said.answer == ""
    assert said.form


@pytest.mark.parametrize("form", [form for form in MARKS if form.alone], ids=lambda form: form.name)
@pytest.mark.parametrize("answer", ["The answer is yes.", "Yes", "(B)\n\n", "是"])
def test_a_thought_after_the_answer_that_never_ends_is_left_out(form: Form, answer: str) -> None:
    said = divided(f"{answer}{form.opening}\nWait, no: I see no dog. No")
    assert said == Said(answer.strip(), "Wait, no: I see no dog. No", form.name)


@pytest.mark.parametrize(
    ("text", "answer", "thought"),
    [
        ("Yes. <think> Or no", "Yes.", "Or no"),
        ("Yes <think>\nOkay, no", "Yes", "Okay, no"),
        ("<think>a</think>Yes.\n<think>But no", "Yes.", "a\nBut no"),
        ("Yes. <think>a</think> A dog. <think>no", "Yes.\nA dog.", "a\nno"),
        ("<answer>Yes</answer>\n<think>no", "Yes", "no"),
        ("Yes. <think> They want <answer>no</answer>, but", "Yes.", "They want"),
        ("Yes. <think> It may be \\boxed{no}", "Yes.", "It may be"),
        ("I look. <think>Is it? <answer>Yes</answer>", "Yes", "I look."),
        ("Yes.\n\n<think>", "Yes.", ""),
        ("Yes. <think> no <think> no", "Yes.", "no <think> no"),
        ('<tool_call>{"A": 1, "label": "no"}</tool_call>Yes', "Yes", '{"A": 1'),
        ('I zoom in. <tool_call>{"label": "no"}', "I zoom in.", '{"label": "no"}'),
        ("<tool_call>a</tool_call><tool_response>no</tool_response>\nYes", "Yes", "a\nno"),
        ("Yes.<thinking_process>no", "Yes.", "no"),
        ("Yes<|end|><|start|>assistant<|channel|>analysis<|message|>no", "Yes", "no"),
        ("assistantfinalYesassistantanalysisNo, as I see none", "Yes", "No, as"),
        ("no<|end|><|start|>assistant<|channel|>final<|message|>Yes<|return|>", "Yes", "no"),
    ],
)
def test_an_answer_before_a_thought_counts(text: str, answer: str, thought: str) -> None:
    said = divided(text)
    assert (said.answer, said.finished) == (answer, True)
    assert said.thought.startswith(thought)


def test_a_box_stays_where_a_parser_has_a_rule_for_it() -> None:
    text = "I see no bikes. \\boxed{Yes}"
    assert divided(text).answer == "Yes"
    assert divided(text, kept=frozenset({BOXED})) == Said(text)
    said = divided(f"<think>hm</think>{text}", kept=frozenset({BOXED}))
    assert said.answer == text


def test_marks_of_a_user_come_first() -> None:
    forms = own_forms("{{ }}\n(( ))\n")
    assert divided("{{hm}} Yes", forms) == Said("Yes", "hm", "{{")
    assert divided("hm )) Yes", forms).answer == "Yes"
    with pytest.raises(ValueError, match="'only' is not an opening and a closing mark"):
        own_forms("only")


@given(thought=st.text(), answer=st.text() | st.none())
def test_a_thought_under_a_key_of_its_own_is_joined_and_divided(
    thought: str, answer: str | None
) -> None:
    text = with_thought(thought, answer, "reasoning_content")
    said = divided(text)
    assert said.form == "key reasoning_content"
    assert said.finished == (answer is not None)
    assert without_keyed_thought(text) == answer
    if answer is not None and not divided(answer).form:
        assert said.answer == answer.strip()


@given(st.text(alphabet="a<>/think[]{}\\boxed .\n◁▷|channel", max_size=200))
def test_any_text_is_divided_and_its_answer_stays(text: str) -> None:
    said = divided(text)
    assert said.form or said.answer == text
    assert said.finished or not said.answer


# What `lmms_eval.api.reasoning.strip_reasoning_tags` of lmms-eval 0.7.3 returned for the tags that
# its command line has by default.
LMMS_EVAL = {
    "<think>I see no car at first.</think>\nYes": "Yes",
    "<think>The answer is yes, there is": "<think>The answer is yes, there is",
    "Okay, no car at first.\n</think>\n\nYes": "Yes",
    "<think>one</think>A<think>two</think>B": "AB",
    "<analysis>no car?</analysis>Yes": "Yes",
    "<thinking>no car?</thinking>Yes": "<thinking>no car?</thinking>Yes",
    "<think>a<think>b</think>c</think>Yes": "Yes",
    "<THINK>no car?</THINK>Yes": "<THINK>no car?</THINK>Yes",
    "<think>\n\n</think>\n\nYes": "Yes",
    "<think>no car?</think>": "",
    "No </think> Yes <think> cut": "No </think> Yes <think> cut",
    "Sure. <think>no car?</think>Yes": "Sure. Yes",
    "a</think>b</think>Yes": "Yes",
    "<think>a</think>Yes<think>cut": "Yes<think>cut",
    "<analysis><think>a</think>b</analysis>Yes": "Yes",
    "<think>a</think><answer>Yes</answer>": "<answer>Yes</answer>",
    "The sign says </think> in the image.": "in the image.",
    "A <b>cat</b> on a sofa.": "A <b>cat</b> on a sofa.",
}


@pytest.mark.parametrize("begun", ["", "\n", "  "])
@pytest.mark.parametrize(
    ("text", "answer", "thought"),
    [
        ("analysisWe look.assistantfinalYes.", "Yes.", "We look."),
        ("assistantanalysisWe look.assistantfinalYes.", "Yes.", "We look."),
        ("thinkWe look.thinkresponseYes.", "Yes.", "We look."),
        ("thinkWe look.thinkresponseYesresponsemessage", "Yes", "We look."),
        ("We look.thinkresponseYes.", "Yes.", "We look."),
        ("user\nIs it?\nassistant\nYes.", "Yes.", ""),
        ("thought\nYes.", "Yes.", ""),
    ],
)
def test_what_tokenizers_leave_of_marks_is_no_plain_answer(
    begun: str, text: str, answer: str, thought: str
) -> None:
    read = PLAIN_READER.read(begun + text)
    assert (read.answer, read.thought) == (answer, thought)
    assert answer_of(begun + text) == answer
    assert not is_plain(begun + text)


@pytest.mark.parametrize("text", LMMS_EVAL)
def test_the_rule_of_lmms_eval_is_its_own(text: str) -> None:
    assert lmms_eval_division(text).answer == LMMS_EVAL[text]


def test_the_page_lists_every_mark_with_its_source() -> None:
    page = Path(__file__).resolve().parents[4] / "docs/how-to/models-that-think.md"
    row = re.compile(r"^\| `(.+)` … `(.+)` \| .+ \| .+ \|$", re.MULTILINE)
    listed = row.findall(page.read_text(encoding="utf-8"))
    marks = [(form.opening, form.closing) for form in (*MARKS, *ANSWER_MARKS)]
    with_own_rules = [
        ("<think:…>", "</think:…>"),
        ("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),
        (r"\boxed{", "}"),
    ]
    assert sorted(listed) == sorted([*marks, *with_own_rules])


def test_lmms_evals_rule_reads_the_answer_beside_a_thought_of_a_key_of_its_own() -> None:
    said = lmms_eval_division(with_thought("Two dogs.", "<think>Or one.</think>yes", "resps"))
    assert (said.answer, said.thought, said.form) == ("yes", "Two dogs.\nOr one.", "key resps")
    assert not lmms_eval_division(with_thought("Two dogs.", None, "resps")).finished

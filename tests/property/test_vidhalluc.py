"""VidHalluc: the engine against plain loops over the rules of the released scripts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import vidhalluc as oracle
from support.sizes import examples

from hallujudge.sdk import Client, InputOptions, RunReport

# Each example is a whole run, and the machine may be busy: a slow one is not a failure.
patient = settings(deadline=None, max_examples=examples(60))

marks = st.sampled_from([" ", ". ", ", ", "\n", " -> ", "; ", ""])


def texts(*words: str) -> st.SearchStrategy[str]:
    """Return texts of some words with any marks between them."""
    parts = st.lists(st.tuples(st.sampled_from(words), marks), max_size=7)
    return parts.map(lambda found: "".join(word + mark for word, mark in found))


clips = st.sampled_from(["c1", "c2", "c3"])
said = texts("Yes", "no", "NO", "yes", "The", "**Yes**", '"No"', "answer", "é")
labels = st.dictionaries(clips, st.sampled_from(["Yes", "No"]), min_size=1)
asked = st.dictionaries(
    st.sampled_from(["0", "1", "2"]),
    st.lists(st.fixed_dictionaries({"q": st.just("Is it?"), "a": labels}), max_size=3),
)
answered = st.dictionaries(
    st.sampled_from(["0", "1", "2", "other"]),
    st.lists(
        st.fixed_dictionaries(
            {"q": st.just("Is it?")}, optional={"a": st.dictionaries(clips, said)}
        ),
        max_size=4,
    ),
)


def run(metric: str, responses: Any, **more: Any) -> RunReport:
    with Client.embedded() as client:
        return client.score(metric, responses=responses, **more)


def assert_equal(report: RunReport, wanted: dict[str, float]) -> None:
    assert report.totals["accuracy_right"] == wanted["correct"]
    assert report.totals["accuracy_groups"] == wanted["questions"]


@patient
@given(asked, answered)
def test_binary_questions_are_right_as_released(truth: Any, answers: Any) -> None:
    wanted = oracle.binary(truth, answers)
    lists = [question for listed in answers.values() for question in listed]
    if not wanted["questions"] or not any("a" in question for question in lists):
        return
    assert_equal(run("vidhalluc-bqa", answers, references=truth), wanted)


choice_texts = ("running", "running on a track", "a man is swimming", "skiing", "b")
choice_answers = texts(*"ABCDabE", *choice_texts, "option_A", "BD", "(C)", "not", "A-B", "and")
questions = st.fixed_dictionaries(
    {
        "Question": st.just("What is shown?"),
        "Choices": st.permutations("ABCD").flatmap(
            lambda letters: st.tuples(*[st.sampled_from(choice_texts)] * 4).map(
                lambda found: dict(zip(letters, found, strict=True))
            )
        ),
        "Correct Answer": st.sampled_from(["A", "B", "AC", "A, C", "B, D", "None"]),
        "Model Answer": choice_answers,
    }
)


@patient
@given(
    st.dictionaries(
        st.sampled_from("012"), st.dictionaries(clips, questions, min_size=1), min_size=1
    )
)
def test_letters_are_chosen_as_released(archive: Any) -> None:
    assert_equal(run("vidhalluc-mcq", archive), oracle.choices(archive))


ordered = texts(
    *("Action A", "Action B", "action a", "action b", "A)", "B)", "a.", "B", "AB", "ba"),
    *(
        "happens",
        "occurs",
        "is",
        "before",
        "after",
        "then",
        "strengthens",
        "not clear",
        "thereafter",
    ),
    *("(pouring tea)", "x", "qu", "b"),
)


@patient
@given(st.lists(st.tuples(st.sampled_from(["AB", "BA"]), ordered), min_size=1, max_size=20))
def test_orders_are_read_as_released(pairs: list[tuple[str, str]]) -> None:
    archive = {
        str(number): {"video": "v", "Question": "?", "Correct Answer": label, "Model Answer": text}
        for number, (label, text) in enumerate(pairs)
    }
    assert_equal(run("vidhalluc-tsh", archive), oracle.orders(archive))


def shuffled(answers: Any) -> Any:
    return dict(reversed(answers.items()))


def test_the_order_of_records_changes_nothing() -> None:
    truth = {str(n): [{"q": "?", "a": {"x": "Yes", "y": "No"}}] for n in range(4)}
    answers = {key: [{"q": "?", "a": {"x": "Yes.", "y": "no" * int(key)}}] for key in truth}
    there = run("vidhalluc-bqa", answers, references=truth)
    back = run("vidhalluc-bqa", shuffled(answers), references=shuffled(truth))
    assert back["accuracy"].value == there["accuracy"].value == pytest.approx(0.25)
    assert back.signature == there.signature


PLACES = ("a hall", "a road to town", "St. Ives", "a kitchen")
located = st.tuples(*[st.sampled_from(PLACES)] * 2, st.sampled_from(["From", "from"])).map(
    lambda found: f"{found[2]} {found[0]} to {found[1]}."
)
truths = st.one_of(
    located.map(lambda text: {"Scene change": "Yes", "Locations": text}),
    st.just({"Scene change": "no", "Locations": "None"}),
)
stated = st.tuples(
    st.sampled_from(
        ["Scene change: Yes", "Scene change: no", "Yes", "No.", "There is: yes, x", ""]
    ),
    st.sampled_from([", Locations: ", ",Locations: ", "; ", ". "]),
    st.one_of(located, st.sampled_from(["", "None", "it goes from a hall to a kitchen."])),
).map("".join)
videos = st.sampled_from(["v1", "v2", "v3", "v4"])


@patient
@given(
    st.dictionaries(videos, truths, min_size=1),
    st.dictionaries(st.sampled_from(["v1", "v2", "v3", "v4", "v5"]), stated, min_size=1),
    st.randoms(use_true_random=False),
)
def test_scene_changes_are_scored_as_released(truth: Any, answers: Any, rng: Any) -> None:
    if truth.keys().isdisjoint(answers):
        return
    parts = {*PLACES, "a road", "St", *(f"town to {place}" for place in (*PLACES, "St"))}
    pairs = [(one, other) for one in sorted(parts) for other in sorted(parts)]
    table = [
        {"model": a, "truth": b, "similarity": rng.random() if a != b else 1.0} for a, b in pairs
    ]
    wanted = oracle.scene_changes(truth, answers, table)
    report = run(
        "vidhalluc-sth", answers, references=truth, inputs=InputOptions(own={"similarities": table})
    )
    for name in ("mcc", "classification_score", "description_score", "overall_score"):
        assert report[name].value == pytest.approx(wanted[name], abs=1e-12), name
    assert [report.totals[name] for name in ("tp", "fn", "fp", "tn", "unknown_places")] == [
        *(wanted[name] for name in ("tp", "fn", "fp", "tn")),
        0,
    ]

"""How EventHallusion's answers and judgements are parsed and counted."""

from __future__ import annotations

import pytest
from support.messages import expected_message

from hallujudge.metrics import Answer, AnswersItem
from hallujudge.metrics.event_hallusion import BENCHMARK, DESCRIPTION, EventHallusionMetric


@pytest.mark.parametrize(
    ("text", "published", "corrected"),
    [
        ("No.", "no", "no"),
        ("YES, it is not far.", "yes", "yes"),
        ("Not sure", "no", None),
        ("Nothing happens.", "no", None),
        ("Yesterday", "yes", None),
        (" No.", None, "no"),
        ("**Yes**", None, "yes"),
        ("So the answer is no.", None, "no"),
        ("Perhaps", None, None),
        ("", None, None),
        (None, None, None),
    ],
)
def test_answers(text: str | None, published: str | None, corrected: str | None) -> None:
    answer = Answer(response=text, label="no", name="1")
    values = [variant.parse(answer).value for variant in BENCHMARK.variants]
    assert values == [published, corrected]


@pytest.mark.parametrize(
    ("text", "published", "corrected"),
    [
        ("**Yes**. It is.", "yes", "yes"),
        ("Nothing fits.", "no", None),
        ("\nNo.", None, "no"),
        ("The description is right, yes.", None, None),
        ("", None, None),
    ],
)
def test_judgements(text: str, published: str | None, corrected: str | None) -> None:
    answer = Answer(response="A dog.", name=DESCRIPTION, fields={"judgement": text})
    values = [variant.parse(answer).value for variant in BENCHMARK.variants]
    assert values == [published, corrected]


def video(*said: str | None, judgement: str | None) -> AnswersItem:
    answers = [
        Answer(name=str(number), label="no", response=text) for number, text in enumerate(said, 1)
    ]
    if judgement is not None:
        fields = {"judgement": judgement}
        answers.append(Answer(name=DESCRIPTION, label="yes", response="A dog.", fields=fields))
    return AnswersItem(id="1", fields={"split": "entire"}, answers=tuple(answers))


def counts(variant: str, item: AnswersItem) -> dict[str, float]:
    metric = EventHallusionMetric(variant=variant)
    names = [column.name for column in metric.columns]
    row = dict(zip(names, metric.score_judged(item.answers).statistics, strict=True))
    # What another variant parses is tested with all benchmarks.
    others = ("responses", "read_elsewhere", "above_elsewhere", "below_elsewhere")
    return {name: n for name, n in row.items() if "@" not in name and name not in others}


def test_what_cannot_be_parsed_is_wrong_or_left_out() -> None:
    item = video("No.", "Perhaps", None, judgement="")
    both = {
        **{"asked": 3, "right": 1, "unparsed": 2, "judged": 1, "approved": 0, "undecided": 1},
        "without_probability": 0,
    }
    assert counts("published", item) == {
        **both,
        "answered": 3,
        "decided": 1,
        "open": 0,
        "missing_answers": 1,
    }
    assert counts("corrected", item) == {
        **both,
        "answered": 1,
        "decided": 0,
        "open": 3,
        "missing_answers": 0,
    }


def test_a_description_without_a_judgement_counts_in_neither_variant() -> None:
    for variant in EventHallusionMetric.variant_names():
        assert counts(variant, video("No.", judgement=None))["judged"] == 0


def test_soft_descriptions_count_by_their_probability() -> None:
    asked = {"variant": "published", "judgements": "llm", "judge": "j"}
    metric = EventHallusionMetric(**asked, soft="yes")
    names = [column.name for column in metric.columns]
    found = {}
    for probability in (0.4, None):
        made = metric.score_judged(video("No.", judgement="yes").answers, probability)
        row = dict(zip(names, made.statistics, strict=True))
        found[probability] = row["approved"], row["without_probability"]
        assert made.scores["description_accuracy"] == row["approved"]
    assert found == {0.4: (0.4, 0), None: (1, 1)}
    assert "|judgements:llm|soft:yes|judge:j" in str(metric.signature)
    [note] = metric.notes_on(row)
    assert (
        expected_message("metrics.framework.metric:of-descriptions-have-no-probability-and-count")
        in note
    )
    nothing = dict.fromkeys(names, 0.0)
    assert metric.notes_on(nothing) == ()

    hard = EventHallusionMetric(**asked)
    made = hard.score_judged(video("No.", judgement="yes").answers, 0.4)
    assert made.scores["description_accuracy"] == 1
    assert "soft" not in str(hard.signature)
    assert hard.notes_on(row) == ()

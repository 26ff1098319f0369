"""What a declaration adds to its answers, to its notes, and to the formulas of a variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from msgspec import structs

from hallujudge.metrics.answers.answer_scores import (
    Bundle,
    ReadAnswer,
    combined,
    count,
    is_right,
    named,
    share,
)
from hallujudge.metrics.answers.answers_metric import AnswersMetric
from hallujudge.metrics.answers.closed_questions import (
    Answer,
    AnswersEvidence,
    AnswerVariant,
    ClosedQuestions,
    Keys,
    compared_by,
    one_answer,
)
from hallujudge.metrics.answers.declared_metrics import metric_of
from hallujudge.metrics.answers.yes_no import YES_NO_PARSERS
from hallujudge.metrics.framework.results import ScoredItem

ALL = count("answered", "answers", named(""))
RIGHT = count("right", "right answers", named("", is_right))
PLACES = count("places", "places that are named", named("place"))
ACCURACY = share("accuracy", "right / all", RIGHT, ALL)


def place_of(answer: Answer, read: ReadAnswer) -> Sequence[ReadAnswer]:
    _, found, place = (answer.response or "").partition(" in ")
    if not found or read.value != "yes":
        return ()
    known = place != "a fog"
    return [ReadAnswer("place", place, "", True, "words", "" if known else "unscored", known)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places(AnswersMetric):
    """A metric of answers and, in one variant, of the place that each names."""

    def score_answers(self, answers: Sequence[Answer]) -> ScoredItem[AnswersEvidence]:
        first = self.read(answers[0])
        places = place_of(answers[0], first) if self.variant == "with-places" else ()
        return self.scored_once((first, *places))

    def counts_bundle(self, bundle: Bundle) -> bool:
        return bundle[0].counted


DECLARED = ClosedQuestions(
    name="toy",
    title="A toy: a toy.",
    unit="questions",
    keys=Keys(response=("response",), label=("label",)),
    variants=(
        AnswerVariant(
            name="with-places",
            meaning="Places too.",
            parse=compared_by(YES_NO_PARSERS["first-word"], "first-word"),
            unparsed="unscored",
            notes=lambda totals: [f"{totals['places']:.0f} places"] if totals["places"] else [],
        ),
        AnswerVariant(
            name="shifted",
            meaning="Answers alone, with half an answer more.",
            parse=compared_by(YES_NO_PARSERS["strict"], "strict"),
            scores=(
                combined("accuracy", "right / more", lambda r, n: r / (n + 0.5), (RIGHT, ALL)),
                combined("both", "places + answers", np.add, (PLACES, ALL), n=ALL),
            ),
        ),
    ),
    scores=(ACCURACY, combined("both", "places + answers", np.add, (PLACES, ALL), n=ALL)),
    ranked_by=("accuracy",),
    base=_Places,
    trial=one_answer(id="1", response="Yes.", label="yes"),
)


def scored(response: str, variant: str = "with-places") -> tuple[dict[str, float], bool, list[str]]:
    made = metric_of(DECLARED)(variant=variant).score(
        one_answer(id="1", response=response, label="yes")
    )
    names = [each.name for each in metric_of(DECLARED).columns]
    row = dict(zip(names, made.statistics, strict=True))
    return row, made.readable, [str(each.answer) for each in made.evidence.answers]


@pytest.mark.parametrize(
    ("response", "places", "readable", "shown"),
    [
        ("Yes, in a hall", 1, True, ["yes", "a hall"]),
        ("Yes, in a fog", 0, True, ["yes", "a fog"]),
        ("Yes.", 0, True, ["yes"]),
        ("No, in a hall", 0, True, ["no"]),
        ("Perhaps in a hall", 0, False, ["None"]),
    ],
)
def test_what_an_answer_adds_counts_if_the_answer_does(
    response: str, places: int, readable: bool, shown: list[str]
) -> None:
    for _ in range(2):
        row, counts, found = scored(response)
        assert (row["places"], counts, found) == (places, readable, shown)
        assert row["answered"] == readable


def test_a_variant_without_them_scores_the_answer_alone() -> None:
    row, _, shown = scored("Yes, in a hall", "shifted")
    assert (row["places"], shown) == (0, ["yes"])


def test_a_variant_has_its_own_formulas_under_the_same_names() -> None:
    sums = {name: np.array([number]) for name, number in (("right", 3.0), ("answered", 4.0))}
    values = {}
    for variant in ("with-places", "shifted"):
        metric = metric_of(DECLARED)(variant=variant)
        assert [each.name for each in metric.scores] == ["accuracy", "both"]
        values[variant] = float(metric.scores[0].value(sums)[0])
    assert values == {"with-places": 0.75, "shifted": 3 / 4.5}


def test_notes_of_the_declaration_are_in_the_report() -> None:
    metric = metric_of(DECLARED)()
    totals = dict.fromkeys((each.name for each in metric.columns), 0.0)
    assert not [note for note in metric.notes_on(totals) if "places" in note]
    assert "2 places" in metric.notes_on({**totals, "places": 2.0})


def test_a_score_of_counts_has_the_named_count_or_all_items_as_n() -> None:
    def count_of(n: object) -> str:
        return combined("x", "x", np.add, (PLACES, ALL), n=n).definition.count  # type: ignore[arg-type]  # all kinds

    assert (count_of(ALL), count_of(""), count_of(None)) == ("answered", "", "")
    assert combined("x", "x", np.negative, (ACCURACY,)).definition.count == "answered"


def test_a_score_of_rounded_ones_has_their_smooth_formulas() -> None:
    plain = ACCURACY.definition
    known = replace(plain, value=lambda sums: plain.value(sums).round(1), smooth=plain.value)
    rounded = structs.replace(ACCURACY, definition=known)
    twice = combined("x", "x", lambda value: 2 * value, (rounded,)).definition
    sums = {"right": np.array([1.0]), "answered": np.array([3.0])}
    assert twice.smooth is not None
    assert (twice.value(sums)[0], twice.smooth(sums)[0]) == (0.6, 2 / 3)
    assert combined("x", "x", np.negative, (ACCURACY,)).definition.smooth is None

"""EventHallusion: the engine against the plain oracle, for any answers and judgements."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from oracles import event_hallusion_published as oracle
from support.event_hallusion_samples import archive

from hallujudge.metrics import Report
from hallujudge.metrics.event_hallusion import EventHallusionMetric
from hallujudge.sdk import Client

words = ["Yes", "yes.", "NO", "No", "nothing", "**Yes**", " no", "the answer is no", "\n", ","]
texts = st.lists(st.sampled_from(words), max_size=3).map(" ".join) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=6
)
questions = st.lists(st.tuples(st.sampled_from(["Yes", "No"]), st.none() | texts), max_size=3)
videos = st.lists(st.tuples(questions, st.none() | texts), min_size=1, max_size=6)
archives = st.fixed_dictionaries({"entire": videos, "misleading": videos}).map(archive)


def scored(rows: object, variant: str) -> Report:
    with Client.embedded() as client:
        return client.score("event-hallusion", responses=rows, variant=variant)  # type: ignore[arg-type]  # an archive


def share(top: int, bottom: int) -> float | None:
    return top / bottom if bottom else None


@given(archives)
def test_published_is_the_plain_loop(rows: dict[str, dict[str, object]]) -> None:
    report = scored(rows, "published")
    for split, row in oracle.counts(rows).items():
        groups = {**report.groups.get("split", {}), "overall": report.scores}
        scores = {name: score.value for name, score in groups.get(split, {}).items()}
        if not row["asked"] and not row["judged"]:
            assert not any(scores.values())
            continue
        assert scores == {
            "question_accuracy": share(row["right"], row["asked"]),
            "description_accuracy": share(row["approved"], row["judged"]),
            "question_unparsed_rate": share(row["unparsed"], row["asked"]),
            "description_unparsed_rate": share(row["undecided"], row["judged"]),
        }


@given(archives, st.sampled_from(EventHallusionMetric.variant_names()))
def test_scores_lie_within_their_bounds(rows: object, variant: str) -> None:
    report = scored(rows, variant)
    for name, bound in report.coverage.bounds.items():
        value = report.scores[name].value
        assert bound.worst <= bound.best
        assert value is None or bound.worst - 1e-12 <= value <= bound.best + 1e-12

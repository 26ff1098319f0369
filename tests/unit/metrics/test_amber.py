"""Which objects the words of an AMBER description cover, in each variant."""

from __future__ import annotations

from typing import Any

from hallujudge.metrics.amber import AmberMetric
from hallujudge.metrics.amber.descriptions import AmberItem, AmberObject
from hallujudge.sdk import Client

OBJECTS = (
    AmberObject(word="person", associated=("man", "people")),
    AmberObject(word="man"),
    AmberObject(word="shoe"),
    AmberObject(word="tree", associated=("leaf",)),
    AmberObject(word="tree", associated=("leaf",)),
)
TARGETS = (AmberObject(word="dog", associated=("puppy",)), AmberObject(word="sun"))


def counts(variant: str, *nouns: str) -> dict[str, float]:
    metric: Any = AmberMetric(variant=variant)
    item = AmberItem(
        id="1",
        nouns=nouns,
        nouns_given=True,
        objects=OBJECTS,
        targets=TARGETS,
        safe_words=("shoe",),
    )
    names = [column.name for column in metric.columns]
    row = dict(zip(names, metric.score_description(item).statistics, strict=True))
    return {name: value for name, value in row.items() if value}


def test_a_word_covers_one_object_as_published_and_all_that_it_names_corrected() -> None:
    published, corrected = counts("published", "man"), counts("corrected", "man")
    assert published == {"descriptions": 1, "words": 1, "objects": 5, "covered": 1, "targets": 2}
    assert corrected == {"descriptions": 1, "words": 1, "objects": 4, "covered": 2, "targets": 2}


def test_an_object_that_is_annotated_twice_is_covered_once() -> None:
    assert counts("published", "tree", "leaf")["covered"] == 1
    assert counts("corrected", "tree", "leaf")["covered"] == 1


def test_safe_words_cover_an_object_only_corrected() -> None:
    assert "covered" not in counts("published", "shoe")
    assert counts("corrected", "shoe")["covered"] == 1
    for variant in ("published", "corrected"):
        assert "hallucinated" not in counts(variant, "shoe")


def test_every_hallucinated_mention_counts_and_a_target_once() -> None:
    for variant in ("published", "corrected"):
        row = counts(variant, "puppy", "dog", "cat")
        assert (row["words"], row["hallucinated"], row["targets_said"]) == (3, 3, 1)
        assert row["hallucinating"] == 1


def test_published_shares_without_a_denominator_are_zero() -> None:
    """The released script divides by the number of answers, or of labels, plus 0.001."""
    row = {"id": 1005, "type": "relation", "truth": "yes", "response": "Yes"}
    with Client.embedded() as client:
        published = client.score("amber", responses=[row])
        corrected = client.score("amber", responses=[row], variant="corrected")
    names = [f"{prefix}{name}" for prefix in ("", "relation_") for name in ("precision", "recall")]
    assert [published.scores[name].value for name in names] == [0, 0, 0, 0]
    assert [corrected.scores[name].value for name in names] == [None] * 4
    assert published.scores["state_recall"].value is None, "nothing was asked"

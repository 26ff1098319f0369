"""Values converted to messages per second, and messages to values.

One item and one result of each family, with evidence of a usual size. Conversion alone is timed:
protobuf's own serialisation is in C, and the same for every way to convert.

Run with: python benchmarks/bench_codec.py [--rounds 7] [--values 2000]
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import needs  # noqa: F401  # stops with a sentence where hallujudge is not installed
from arguments import Arguments

from hallujudge.judge_service.wire import convert
from hallujudge.metrics import (
    Answer,
    AnswersEvidence,
    AnswersItem,
    AnswerVerdict,
    ChairEvidence,
    ChairItem,
    Coverage,
    Item,
    ItemResult,
    MentionVerdict,
    Outcome,
    Report,
    Score,
    one_answer,
)
from hallujudge.metrics.framework.claims import ClaimVerdict, Part, Triplet, Verdict
from hallujudge.metrics.mementos import (
    KeywordEvidence,
    MatchedKeyword,
    MementosEvidence,
    MementosItem,
    NearKeyword,
)
from hallujudge.metrics.tri_he import TriHeEvidence, TriHeItem

TEXT = "A man in a red jacket rides a brown horse along the beach while two dogs run beside him."
GRAPH = tuple(Triplet(f"object {n}", "next to", f"object {n + 1}") for n in range(20))
WORDS = tuple(f"word {n}" for n in range(8))
FIELDS = {"model": "m", "category": "random"}
KEYWORDS = KeywordEvidence(
    reference=WORDS,
    predicted=WORDS,
    matched=tuple(MatchedKeyword(word, word) for word in WORDS[:5]),
    hallucinated=WORDS[5:],
    missed=WORDS[5:],
    near=(NearKeyword(WORDS[5], WORDS[6], "spelling"),),
    reference_spans=tuple((n, n + 4) for n in range(8)),
    predicted_spans=tuple((n, n + 4) for n in range(8)),
)
CLAIM = ClaimVerdict(
    triplet=GRAPH[0],
    verdict=Verdict.NOT_SUPPORTED,
    part=Part.RELATION,
    score=0.4,
    margin=0.1,
    judge="matcher",
    references=GRAPH[:3],
    span=(3, 20),
    within_words=7,
)

ITEMS: dict[str, Item] = {
    "chair": ChairItem(id="1", fields=FIELDS, response=TEXT, reference_objects=WORDS),
    "answers": one_answer(id="1", fields=FIELDS, response="Yes.", question=TEXT, label="yes"),
    "infact": AnswersItem(
        id="1",
        fields=FIELDS,
        answers=tuple(
            Answer(
                response="A",
                label="A",
                name=f"operator {n}",
                options={"A": "yes", "B": "no"},
                fields={"confidence": "0.5", "order_sensitive": "false"},
            )
            for n in range(6)
        ),
    ),
    "mementos": MementosItem(
        id="1", fields=FIELDS, response=TEXT, reference=TEXT, reference_objects=WORDS
    ),
    "tri-he": TriHeItem(
        id="1", fields=FIELDS, response=TEXT, reference_triplets=GRAPH, reference_objects=WORDS
    ),
}
EVIDENCE: dict[str, Any] = {
    "chair": ChairEvidence(
        mentions=tuple(MentionVerdict("dog", "dog", n, n + 3, False) for n in range(6)),
        missed=WORDS[:2],
    ),
    "answer": AnswersEvidence(
        answers=(AnswerVerdict("", "yes", "yes", correct=True, how="published"),)
    ),
    "infact": AnswersEvidence(
        answers=tuple(
            AnswerVerdict(f"operator {n}", "A", "A", correct=True, how="letter") for n in range(6)
        )
    ),
    "mementos": MementosEvidence(episode_length=4, objects=KEYWORDS, behaviors=KEYWORDS),
    "tri-he": TriHeEvidence(claims=(CLAIM,) * 8, extractor="rules"),
}
SCORES = {name: Score(name=name, value=0.5, ci_low=0.4, ci_high=0.6, n=100) for name in WORDS[:5]}
REPORT = Report(
    metric="chair",
    variant="published",
    signature="signature",
    scores=SCORES,
    coverage=Coverage(items=100, scored=90, unscored=10, reasons={"RESPONSE_MISSING": 10}),
    groups={"category": {f"value {n}": SCORES for n in range(20)}},
    totals=dict.fromkeys(WORDS, 1.0),
)


def result(evidence: Any) -> ItemResult:
    """Return a scored result."""
    return ItemResult(
        id="1",
        group_id="1",
        outcome=Outcome.SCORED,
        statistics=(1.0, 2.0, 3.0, 4.0),
        scores={"first": 0.5, "second": None},
        evidence=evidence,
        fields=FIELDS,
    )


def fastest(convert_one: Callable[[Any], Any], value: Any, values: int, rounds: int) -> float:
    """Return the values a second of the fastest round, in processor time."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(values):
            convert_one(value)
        best = min(best, time.process_time() - start)
    return values / best


def main() -> None:
    """Run the benchmark."""
    parser = Arguments(__doc__)
    parser.size("--rounds", 7, smoke=1)
    parser.size("--values", 2000, smoke=20)
    given = parser.given()
    pairs: list[tuple[str, Any, Callable[[Any], Any], Callable[[Any], Any]]] = [
        *(
            (f"item {name}", item, convert.item_to_proto, convert.item_from_proto)
            for name, item in ITEMS.items()
        ),
        *(
            (f"result {name}", result(part), convert.result_to_proto, convert.result_from_proto)
            for name, part in EVIDENCE.items()
        ),
        ("report", REPORT, convert.report_to_proto, convert.report_from_proto),
    ]
    print(f"{'':18}{'to messages/s':>15}{'to values/s':>15}")
    for name, value, write, read in pairs:
        message = write(value)
        there = fastest(write, value, given.values, given.rounds)
        back = fastest(read, message, given.values, given.rounds)
        print(f"{name:18}{there:15,.0f}{back:15,.0f}")


if __name__ == "__main__":
    main()

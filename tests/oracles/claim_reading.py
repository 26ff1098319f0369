"""The claims of extractors against 120 labelled sentences.

The table is in docs/explanation/rule-extractor-quality.md.
``PYTHONPATH=tests python -m oracles.claim_reading [PIPELINE]`` prints the table, with a spaCy
pipeline where one is named, and every claim that was not read yet. A reader then adds it to
``tests/data/claims/sentences.jsonl``: ``read`` maps a claim to the places of the obvious claims
that it says, or to null if it is wrong.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from hallujudge.judge_service.extractors import ExtractedTriplet
from hallujudge.judge_service.extractors.library_extractors import (
    SpacyTripletExtractor,
    shared_extractor,
)
from hallujudge.judge_service.extractors.rules.rule_extractors import RuleTripletExtractor

HALVES = ("dev", "held_out")
_FILE = Path(__file__).resolve().parents[1] / "data/claims/sentences.jsonl"
_RESAMPLES = 4_000
_Extract = Callable[[str, str], Sequence[ExtractedTriplet]]


class Reading(NamedTuple):
    """What a reader found in the claims of one sentence."""

    claims: int
    right: int
    obvious: int
    missed: int
    unread: tuple[str, ...]


def labelled(half: str) -> list[dict[str, Any]]:
    """Return the sentences of a half."""
    rows = map(json.loads, _FILE.read_text(encoding="utf-8").splitlines())
    return [row for row in rows if row["half"] == half]


def read(row: dict[str, Any], extract: _Extract) -> Reading:
    """Return the reading of the claims whose object begins in the sentence."""
    text = f"{row['before']} {row['sentence']}".strip()
    start = len(text) - len(row["sentence"])
    found = extract(text, row["question"])
    claims = {" | ".join(each.parts) for each in found if each.object_span.start >= start}
    right = [row["read"][claim] for claim in claims if row["read"].get(claim) is not None]
    said = {place for places in right for place in places}
    obvious = len(row["obvious"])
    unread = tuple(sorted(claims - row["read"].keys()))
    return Reading(len(claims), len(right), obvious, obvious - len(said), unread)


def interval(readings: Sequence[Reading], share: Callable[[Sequence[Reading]], float]) -> str:
    """Return a share in percent, with its 95 % bootstrap interval over sentences."""
    chance = random.Random(0)
    drawn = sorted(share(chance.choices(readings, k=len(readings))) for _ in range(_RESAMPLES))
    low, high = drawn[_RESAMPLES // 40], drawn[-_RESAMPLES // 40 - 1]
    return f"{share(readings):.1%} [{100 * low:.1f}, {100 * high:.1f}]"


def right_share(readings: Sequence[Reading]) -> float:
    """Return the share of right claims among the claims that were read."""
    given = sum(each.claims - len(each.unread) for each in readings)
    return sum(each.right for each in readings) / given


def missed_share(readings: Sequence[Reading]) -> float:
    """Return the share of obvious claims that no claim says."""
    return sum(each.missed for each in readings) / sum(each.obvious for each in readings)


def extractors() -> Iterator[tuple[str, _Extract]]:
    """Yield the extractors with their labels."""
    rules = RuleTripletExtractor()
    yield rules.label, rules.extract
    for name in sys.argv[1:]:
        parser = shared_extractor(name)
        yield parser.label, partial(_without_question, parser)


def _without_question(
    parser: SpacyTripletExtractor,
    text: str,
    question: str,  # spaCy reads none
) -> Sequence[ExtractedTriplet]:
    return parser.extract(text)


def main() -> None:
    """Print the table, and the claims to read."""
    print(
        "| sentences | extractor | claims | right | obvious claims missed |\n|---|---|---|---|---|"
    )
    unread: list[str] = []
    for label, extract in extractors():
        for half in HALVES:
            rows = labelled(half)
            readings = [read(row, extract) for row in rows]
            print(
                f"| {half}, {len(rows)} | `{label}` | {sum(each.claims for each in readings)} | "
                f"{interval(readings, right_share)} | {interval(readings, missed_share)} |"
            )
            pairs = zip(rows, readings, strict=True)
            unread += [f"{row['id']}: {claim}" for row, each in pairs for claim in each.unread]
    print(f"{len(unread)} claims to read", *unread, sep="\n")


if __name__ == "__main__":
    main()

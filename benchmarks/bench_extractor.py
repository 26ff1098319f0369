"""Tokens per second of the rule extractors, whole and stage by stage.

Run: ``python benchmarks/bench_extractor.py [TEXTFILE]``. Without a file, texts come from the
annotated descriptions of tests/data; one text per line otherwise. Stages are timed on the same
texts one after the other, so their sum may differ a little from the whole.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import needs  # noqa: F401  # stops with a sentence where hallujudge is not installed
from arguments import Arguments

from hallujudge.judge_service.extractors.rules.rule_extractors import (
    KeywordRules,
    RuleKeywordExtractor,
    RuleTripletExtractor,
    shared_analyser,
)
from hallujudge.judge_service.extractors.rules.triplet_rules import TripletRules
from hallujudge.judge_service.extractors.rules.words import sentences


def texts(given: Path | None, copies: int) -> list[str]:
    """Return the lines of a file, or so many copies of the tests' descriptions."""
    if given is not None:
        return given.read_text(encoding="utf-8", errors="replace").splitlines()
    path = Path(__file__).resolve().parents[1] / "tests/data/keywords/descriptions.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    return [str(json.loads(line)["text"]) for line in lines] * copies


def fastest(rounds: int, work: Callable[[], object]) -> float:
    """Return the CPU seconds of the fastest round, which other programs disturb least."""
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def main() -> None:
    """Measure, and print a table."""
    parser = Arguments(__doc__)
    parser.add_argument("texts", type=Path, nargs="?", help="file with a text in each line")
    parser.size("--copies", 10, smoke=1, help="of the tests' descriptions")
    parser.size("--rounds", 5, smoke=1)
    options = parser.given()
    best = partial(fastest, options.rounds)
    start = time.process_time()
    analyser = shared_analyser()
    print(f"lexicon read in {time.process_time() - start:.3f} s")
    given = texts(options.texts, options.copies)
    tokens = [sentence for text in given for sentence in sentences(text)]
    count = sum(map(len, tokens))
    words = [[analyser.book.word(token.text) for token in sentence] for sentence in tokens]
    tags = [analyser.tagger.tag(row) for row in words]
    rows = list(zip(tokens, words, tags, strict=True))
    triplets, keywords = RuleTripletExtractor(), RuleKeywordExtractor()

    def read(rules: type[TripletRules] | type[KeywordRules]) -> None:
        # Rules change the measured phrases, so chunks are built again; the time of that stage is
        # subtracted.
        for row in rows:
            rules(analyser.lexicon).sentence(analyser.chunker.chunk(*row))

    chunking = best(lambda: [analyser.chunker.chunk(*row) for row in rows])
    stages = {
        "tokens and sentences": best(lambda: [list(sentences(text)) for text in given]),
        "word look-up": best(
            lambda: [[analyser.book.word(token.text) for token in row] for row in tokens]
        ),
        "tags": best(lambda: [analyser.tagger.tag(row) for row in words]),
        "chunks": chunking,
        "triplet rules": best(lambda: read(TripletRules)) - chunking,
        "keyword rules": best(lambda: read(KeywordRules)) - chunking,
    }
    whole = {
        "triplets": best(lambda: [triplets.extract(text) for text in given]),
        "keywords": best(lambda: [keywords.extract(text) for text in given]),
    }
    print(f"{len(given):,} texts, {len(tokens):,} sentences, {count:,} tokens")
    for name, seconds in whole.items():
        print(f"{name:22} {count / seconds:12,.0f} tokens/s  {len(given) / seconds:10,.0f} texts/s")
    for name, seconds in stages.items():
        share = seconds / whole["keywords" if name.startswith("key") else "triplets"]
        print(f"  {name:20} {count / seconds:12,.0f} tokens/s  {share:6.1%}")


if __name__ == "__main__":
    main()

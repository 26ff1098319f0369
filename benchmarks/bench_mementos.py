"""Speed of Mementos: rules, matching and the whole run, and matching compared with the plain loop.

    python benchmarks/bench_mementos.py [--pairs 10000] [--rounds 5]

All in one run and by processor time. Matching is timed in rounds, in each of which every way comes
once, and medians are compared, so that what else the machine does weighs little.
The human descriptions of the golden data are paired with those of other sequences of their domain;
without them, descriptions are generated.
"""

from __future__ import annotations

import asyncio
import csv
import gc
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import needs
from arguments import Arguments

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from oracles import mementos_published as oracle  # noqa: E402

from hallujudge.judge_service.engine import Engine, ScoreSpec  # noqa: E402
from hallujudge.judge_service.extractors.rules.rule_extractors import RuleKeywordExtractor  # noqa: E402
from hallujudge.metrics.mementos import MementosItem  # noqa: E402
from hallujudge.synonym_graphs import (  # noqa: E402
    KeywordMatch,
    KeywordMatcher,
    KeywordVariant,
    SynonymGraph,
    load_graph,
)

GOLDENS = needs.goldens_or_none("mementos")
DOMAINS = ("daily_life", "robotics", "comics")
Lists = tuple[tuple[str, ...], tuple[str, ...]]
VARIANTS: tuple[KeywordVariant, ...] = ("published", "corrected")
MEMORIES = ("cold", "warm")
"""Whether a matcher meets lists for the first time. Descriptions are drawn, so that even the first
pass meets most lists more than once."""
BATCH = 256
"""How many pairs are handed over at once."""


def descriptions() -> dict[str, list[str]]:
    """Return the human descriptions by domain."""
    if GOLDENS is None:
        draw = random.Random(1)
        words = ("man", "dog", "ball", "picks", "up", "runs", "opens", "drawer", "robot", "cup")
        return {
            domain: [" ".join(draw.choices(words, k=60)) + "." for _ in range(200)]
            for domain in DOMAINS
        }
    found = {}
    for domain in DOMAINS:
        with (GOLDENS / f"{domain}.descriptions.csv").open(encoding="latin-1", newline="") as file:
            found[domain] = [row[1] for row in list(csv.reader(file))[1:]]
    return found


def drawn(texts: dict[str, list[str]], count: int) -> list[tuple[str, str, str]]:
    """Return (domain, human, predicted) rows; larger domains have more."""
    draw = random.Random(0)
    flat = [(domain, text) for domain, found in texts.items() for text in found]
    picked = (draw.choice(flat) for _ in range(count))
    return [(domain, text, draw.choice(texts[domain])) for domain, text in picked]


def plain_graph(domain: str, kind: str) -> tuple[oracle.ReleasedGraph, str]:
    """Return the released graph if it exists, else the shipped one in its layout."""
    path = GOLDENS / f"{domain}_{kind}_graph.json" if GOLDENS else None
    if path and path.is_file():
        return oracle.ReleasedGraph(json.loads(path.read_text())), str(path)
    name = f"{domain}_{kind}s"
    graph = load_graph(name)
    return oracle.ReleasedGraph({form: {"": list(roots)} for form, roots in graph.edges}), name


WAYS = ("counts", "evidence")
"""What is asked for: counts, as the plain loop gives, or all that the engine keeps of a pair."""
COLUMNS = (
    "plain",
    *(f"{variant} {way} {memory}" for variant in VARIANTS for way in WAYS for memory in MEMORIES),
)


def timed(work: Callable[[list[Lists]], object], lists: list[Lists]) -> float:
    """Return the CPU time of one pass over all lists, in batches as in the engine."""
    start = time.process_time()
    for first in range(0, len(lists), BATCH):
        work(lists[first : first + BATCH])
    return time.process_time() - start


def one_round(
    lists: list[Lists], plain: oracle.ReleasedGraph, graph: SynonymGraph, *, pairs: bool
) -> dict[str, float]:
    """Return seconds by column; the methods alternate, so that load affects all alike."""
    took = {
        "plain": timed(
            lambda batch: [oracle.counts(r, p, plain, pairs=pairs) for r, p in batch], lists
        )
    }
    for variant in VARIANTS:
        for way in WAYS:
            # A matcher of its own remembers nothing: the first pass is cold, the second warm.
            matcher = KeywordMatcher(graph, variant, pairs=pairs)
            work = matcher.counts_many if way == "counts" else evidence_of(matcher)
            for memory in MEMORIES:
                took[f"{variant} {way} {memory}"] = timed(work, lists)
    return took


def evidence_of(matcher: KeywordMatcher) -> Callable[[list[Lists]], list[KeywordMatch]]:
    """Process a batch as the engine does."""
    return lambda batch: [matcher.match(reference, predicted) for reference, predicted in batch]


def matching(pairs: dict[str, dict[str, list[Lists]]], rounds: int) -> None:
    """Measure the plain loop and the matcher on the same lists, by domain and kind."""
    totals = dict.fromkeys(COLUMNS, 0.0)
    for domain, kinds in pairs.items():
        for kind, lists in kinds.items():
            plain, name = plain_graph(domain, kind)
            graph = load_graph(name)
            gc.collect()
            gc.disable()  # as timeit does: when it runs is a matter of chance
            found = [
                one_round(lists, plain, graph, pairs=kind == "behavior") for _ in range(rounds)
            ]
            gc.enable()
            took = {column: median(one[column] for one in found) for column in COLUMNS}
            words = sum(len(words) for pair in lists for words in pair) / len(lists) / 2
            print(f"{domain} {kind}: {len(lists):,} pairs of lists of {words:.1f} words")
            shown(took, len(lists))
            for column, seconds in took.items():
                totals[column] += seconds
    count = sum(len(lists) for kinds in pairs.values() for lists in kinds.values())
    print(f"all: {count:,} pairs of lists, medians of {rounds} rounds")
    shown(totals, count)


def shown(took: dict[str, float], count: int) -> None:
    """Print microseconds a pair, and how many times as fast as the plain loop that is."""
    for column, seconds in took.items():
        print(f"  {column:<26}{seconds / count * 1e6:>9.2f} us{took['plain'] / seconds:>8.1f}x")


class Stage:
    """Return the total CPU time of a method's calls."""

    def __init__(self, owner: type, name: str) -> None:
        self.seconds = 0.0
        method = getattr(owner, name)

        def measured(*args: object, **kwargs: object) -> object:
            start = time.process_time()
            try:
                return method(*args, **kwargs)
            finally:
                self.seconds += time.process_time() - start

        setattr(owner, name, measured)


async def run(items: list[MementosItem]) -> None:
    """Measure a whole run, from descriptions to a report."""
    spec = ScoreSpec(metric="mementos", group_by=("domain",))
    session = await Engine().open(spec)
    for start in range(0, len(items), BATCH):
        await session.score(items[start : start + BATCH])
    session.report()


def main() -> None:
    """Measure, and print the results."""
    parser = Arguments(__doc__)
    parser.size("--pairs", 10_000, smoke=20)
    parser.size("--rounds", 5, smoke=1)
    arguments = parser.given()
    triples = drawn(descriptions(), arguments.pairs)
    extractor = RuleKeywordExtractor()
    texts = dict.fromkeys(text for _, human, model in triples for text in (human, model))
    found = {text: extractor.extract(text) for text in texts}
    words = {
        text: {
            "object": tuple(k.text for k in keywords.objects),
            "behavior": tuple(k.text for k in keywords.behaviors),
        }
        for text, keywords in found.items()
    }
    lists: dict[str, dict[str, list[Lists]]] = {}
    for domain, human, model in triples:
        for kind in ("object", "behavior"):
            pair = (words[human][kind], words[model][kind])
            lists.setdefault(domain, {}).setdefault(kind, []).append(pair)
    matching(lists, arguments.rounds)
    # Every description of its own, as a run over a model's answers has it: none is met twice.
    items = [
        MementosItem(id=str(i), domain=d, reference=f"{r} ({i})", response=f"{p} ({i}.)")
        for i, (d, r, p) in enumerate(triples)
    ]
    stages = {
        "rules": Stage(RuleKeywordExtractor, "extract"),
        "matching with evidence": Stage(KeywordMatcher, "match"),
    }
    start = time.process_time()
    asyncio.run(run(items))
    whole = time.process_time() - start
    print(f"whole run: {len(items):,} pairs in {whole:.1f} s, {len(items) / whole:,.0f} pairs/s")
    rest = whole - sum(stage.seconds for stage in stages.values())
    for name, seconds in (*((n, s.seconds) for n, s in stages.items()), ("everything else", rest)):
        print(f"  {name:<24}{seconds:>7.2f} s{seconds / whole:>7.1%}")


if __name__ == "__main__":
    main()

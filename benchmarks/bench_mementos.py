"""How fast Mementos is: rules, matching and the whole run, and matching against the plain loop.

    python benchmarks/bench_mementos.py [--pairs 10000] [--rounds 3]

All in one run, by processor time, so that the ratios do not depend on what else the machine does.
The human descriptions of the golden data are paired with those of other sequences of their domain;
without them, descriptions are made up.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import gc
import json
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from oracles import mementos_published as oracle  # noqa: E402

from hallujudge.judge_service.core import Engine, ScoreSpec  # noqa: E402
from hallujudge.judge_service.extractors import RuleKeywordExtractor  # noqa: E402
from hallujudge.metrics import IntervalSettings  # noqa: E402
from hallujudge.metrics.items import MementosItem  # noqa: E402
from hallujudge.synonym_graphs import KeywordMatcher, compile_keywords, load_graph  # noqa: E402

GOLDENS = Path(os.environ.get("HALLUJUDGE_GOLDENS") or ROOT.parent / "shared" / "goldens")
DOMAINS = ("daily_life", "robotics", "comics")
Lists = tuple[tuple[str, ...], tuple[str, ...]]


def descriptions() -> dict[str, list[str]]:
    """Domain -> human descriptions."""
    folder = GOLDENS / "mementos"
    if not folder.is_dir():
        draw = random.Random(1)
        words = ("man", "dog", "ball", "picks", "up", "runs", "opens", "drawer", "robot", "cup")
        return {
            domain: [" ".join(draw.choices(words, k=60)) + "." for _ in range(200)]
            for domain in DOMAINS
        }
    found = {}
    for domain in DOMAINS:
        with (folder / f"{domain}.descriptions.csv").open(encoding="latin-1", newline="") as file:
            found[domain] = [row[1] for row in list(csv.reader(file))[1:]]
    return found


def timed(work: Callable[[], object], rounds: int) -> float:
    """The best processor time of some rounds, in seconds."""
    best = float("inf")
    gc.collect()
    gc.disable()  # as timeit does: when it runs is a matter of chance
    for _ in range(rounds):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    gc.enable()
    return best


def drawn(texts: dict[str, list[str]], count: int) -> list[tuple[str, str, str]]:
    """(domain, human, predicted), domains by their size."""
    draw = random.Random(0)
    flat = [(domain, text) for domain, found in texts.items() for text in found]
    picked = (draw.choice(flat) for _ in range(count))
    return [(domain, text, draw.choice(texts[domain])) for domain, text in picked]


def plain_graph(domain: str, kind: str) -> tuple[oracle.ReleasedGraph, str]:
    """The released graph where it is there, else ours in its layout."""
    path = GOLDENS / "mementos" / f"{domain}_{kind}_graph.json"
    if path.is_file():
        return oracle.ReleasedGraph(json.loads(path.read_text())), str(path)
    name = f"{domain}_{kind}s"
    graph = load_graph(name)
    return oracle.ReleasedGraph({form: {"": list(roots)} for form, roots in graph.edges}), name


def matching(pairs: dict[str, dict[str, list[Lists]]], rounds: int) -> None:
    """The same lists through the plain loop and the matcher, by domain and kind."""
    totals = {"plain": 0.0, "published": 0.0, "corrected": 0.0}
    print(
        f"{'matching':<22}{'pairs':>7}{'plain':>10}{'published':>11}{'corrected':>11}{'ratio':>8}"
    )
    for domain, kinds in pairs.items():
        for kind, lists in kinds.items():
            slow, name = plain_graph(domain, kind)
            took = {
                "plain": timed(
                    lambda: [
                        oracle.counts(r, p, slow, pairs=kind == "behavior") for r, p in lists  # noqa: B023
                    ],
                    1,
                )
            }  # fmt: skip
            graph = load_graph(name)
            for reading in ("published", "corrected"):
                fast = compile_keywords(graph, reading=reading, pairs=kind == "behavior")
                took[reading] = timed(lambda: fast.counts_many(lists), rounds)  # noqa: B023
            shown = [f"{took[key] / len(lists) * 1e6:.2f} us" for key in took]
            ratio = took["plain"] / took["published"]
            print(f"{domain + ' ' + kind:<22}{len(lists):>7,}", end="")
            print(f"{shown[0]:>10}{shown[1]:>11}{shown[2]:>11}{ratio:>7.1f}x")
            for key, seconds in took.items():
                totals[key] += seconds
    for reading in ("published", "corrected"):
        ratio = totals["plain"] / totals[reading]
        print(f"all lists, {reading}: {ratio:.1f} times the plain loop")


class Stage:
    """Processor time that calls of a method take, added up."""

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
    """Everything from descriptions to a report."""
    spec = ScoreSpec(
        metric="mementos", group_by=("domain",), interval=IntervalSettings(replicates=1000)
    )
    session = await Engine().open(spec)
    for start in range(0, len(items), 256):
        await session.score(items[start : start + 256])
    session.report()


def main() -> None:
    """Runs everything once and prints it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
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

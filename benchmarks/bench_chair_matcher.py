"""Speed of the published variant, compared with the plain procedure and a bare word split.

    python benchmarks/bench_chair_matcher.py [--captions 8000] [--rounds 5]

Everything is measured in one run, so that the ratios do not depend on the machine. The captions are
the golden ones, or generated if those are missing.
"""

from __future__ import annotations

import json
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import compress, count
from pathlib import Path

import needs
from arguments import Arguments

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from oracles import chair_published as oracle  # noqa: E402

from hallujudge.synonym_graphs import ObjectMatcher, parse_graph  # noqa: E402

CHAIR = needs.goldens_or_none("chair")
SMALL_TABLE = "person, man, people\ndog, puppy\ntraffic light, stop light\nchair, seat\ntoilet\ncar"


def objects(text: str) -> Iterator[dict[str, str]]:
    """Yield concatenated JSON objects."""
    decoder, place, text = json.JSONDecoder(), 0, text.rstrip()
    while place < len(text):
        value, place = decoder.raw_decode(text, place)
        yield value
        while place < len(text) and text[place].isspace():
            place += 1


def load(count: int) -> tuple[str, list[str]]:
    """Return the table and the captions."""
    if CHAIR:
        captions: list[str] = []
        for path in sorted(CHAIR.glob("*.captions.json")):
            captions += [item["text"] for item in objects(path.read_text("utf-8"))]
        return (CHAIR / "coco_synonyms.txt").read_text("utf-8"), captions[:count]
    draw = random.Random(0)
    words = [
        "a", "the", "of", "on", "two", "people", "dogs", "puppy", "stop", "lights",
        "traffic", "light", "seat", "cars", "grass."
    ]  # fmt: skip
    made = [" ".join(draw.choices(words, k=draw.randint(8, 90))) + "." for _ in range(count)]
    return SMALL_TABLE, made


def timed(work: Callable[[], object]) -> float:
    """Return the CPU seconds of one call."""
    began = time.process_time()
    work()
    return time.process_time() - began


def _each(step: Callable[[str], object], captions: list[str]) -> None:
    for caption in captions:
        step(caption)


def stages(matcher: ObjectMatcher, captions: list[str], rounds: int) -> dict[str, float]:
    """Time the stages of the fast path, each including those before it."""
    assert matcher._runs is not None
    cache = matcher._runs.chunks

    def split(text: str) -> list[str]:
        low = text.lower().replace("\n", " ").replace("\t", " ").replace("\r", " ")
        return low.split(" ")

    def look(text: str) -> object:
        return list(compress(count(), map(cache.__getitem__, split(text))))

    steps: dict[str, Callable[[str], object]] = {
        "split": split,
        "look up": look,
        "all": matcher.find,
    }
    best: dict[str, float] = {}
    for name, step in steps.items():
        run = partial(_each, step, captions)
        best[name] = min(timed(run) for _ in range(rounds))
    return {
        "lower and split": best["split"],
        "look up chunks": best["look up"] - best["split"],
        "runs, places, mentions": best["all"] - best["look up"],
    }


def main() -> None:
    """Measure, and print the results."""
    parser = Arguments(__doc__)
    parser.size("--captions", 8000, smoke=10)
    parser.size("--rounds", 5, smoke=1)
    options = parser.given()
    table, captions = load(options.captions)
    graph = parse_graph(table, layout="table", name="bench")
    oracle.mentions("warm up the imports", table)
    cold = ObjectMatcher(graph, "published")
    cold_time = timed(lambda: [cold.find(caption) for caption in captions])
    warm = min(timed(lambda: [cold.find(c) for c in captions]) for _ in range(options.rounds))
    split = min(
        timed(lambda: [re.findall(r"\w+", c.lower()) for c in captions])
        for _ in range(options.rounds)
    )
    plain = timed(lambda: [oracle.mentions(caption, table) for caption in captions])
    same = all(
        [m[:2] for m in cold.find(caption)] == oracle.mentions(caption, table)
        for caption in captions[:: max(1, len(captions) // 500)]
    )
    print(f"{len(captions)} captions; same answers on a sample: {same}")
    print(f"plain procedure      {plain:8.3f} s     1.0x")
    print(f"fast, cold cache     {cold_time:8.3f} s  {plain / cold_time:6.1f}x")
    print(f"fast, warm cache     {warm:8.3f} s  {plain / warm:6.1f}x")
    print(f"bare \\w+ split       {split:8.3f} s  {plain / split:6.1f}x")
    for name, seconds in stages(cold, captions, options.rounds).items():
        print(f"  {name:24} {100 * seconds / warm:5.1f} % of warm")


if __name__ == "__main__":
    main()

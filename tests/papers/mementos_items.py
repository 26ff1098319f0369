"""Mementos' items."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from papers.paper_items import Items

from hallujudge.judge_service.extractors.llm_extractors import root_form
from hallujudge.judge_service.llm.prompt_templates import EXTRACT, paper_prompt, read_keyword_lists
from hallujudge.metrics.framework.papers import published_rows
from hallujudge.metrics.mementos import ASKING, MementosMetric, keyword_scores
from hallujudge.sdk.media.video_frames import Sampling
from hallujudge.studies.analysis.mementos import (
    BehaviorPairs,
    ScoredSequence,
    companions,
    hallucination_correlation,
    recall_by_length,
)
from hallujudge.synonym_graphs import compile_keywords, load_graph, parse_graph
from hallujudge.synonym_graphs.tools import suggest_roots

ITEMS = Items("Mementos")
SHIPPED = parse_graph('{"lift up": "pick up", "sofa": "couch"}', name="g")


@ITEMS.is_made(
    74,
    "2.2",
    "published and intended matching: cases that differ",
    "released",
    [300, 0],
    golden=True,
)
def _matching(goldens: Path) -> list[int]:
    folder = goldens / "mementos"
    cases = json.loads((folder / "matching_cases.json").read_text("utf-8"))
    graphs: dict[str, Any] = {}
    odd = 0
    for case in cases:
        name = f"{case['domain']}_{case['kind']}_graph.json"
        graph = graphs.setdefault(name, load_graph(folder / name))
        for variant, key in (("published", "as_published"), ("corrected", "intended")):
            matcher = compile_keywords(graph, variant=variant, pairs=case["kind"] == "behavior")
            counts = matcher.counts(case["reference"], case["predicted"])
            found = keyword_scores(counts, variant=variant)
            odd += any(abs(getattr(found, n) - v) > 1e-9 for n, v in case[key].items())
    return [len(cases), odd]


def matched(variant: Any, reference: list[str], predicted: list[str]) -> list[float | None]:
    matcher = compile_keywords(SHIPPED, variant=variant, pairs=False)
    found = keyword_scores(matcher.counts(reference, predicted), variant=variant)
    return [found.recall, found.precision]


@ITEMS.is_made(75, "2.2", "couch and sofa are one word in the default graphs", "own", True)
def _default_graphs(_: Path) -> bool:
    graph = load_graph("daily_life_objects")
    return graph.root_of("sofa") == graph.root_of("couch") is not None


@ITEMS.is_made(76, "C, T6", "actions in root form", "own", ["ride", "run"])
def _root_forms(_: Path) -> list[str]:
    return [root_form(word) for word in ("riding", "runs")]


@ITEMS.is_made(77, "C", "synonyms in four lists become one word", "printed", True)
def _transferred(_: Path) -> bool:
    text = paper_prompt("mementos-table6", "mementos", EXTRACT).text
    return "must transfer the synonyms in 4 lists into the same word" in text


@ITEMS.is_made(
    78, "C", "Table 6's own form of reply", "printed", [["dog", "toy", "house"], ["play"]]
)
def _lists(_: Path) -> list[list[str]]:
    reply = "Object list 1: [dog, toy, house]\nAction list 1: [bark]\n"
    found = read_keyword_lists(f"{reply}Object list 2: [dog]\nAction list 2: [play]")
    return [found["reference_objects"], found["predicted_behaviors"]]


@ITEMS.is_made(79, "2.2", "growing a graph: a root is suggested", "own", "couch")
def _grown(_: Path) -> str:
    found = suggest_roots(SHIPPED, ["couches"])["couches"]
    return found[0].root


def sequences() -> list[ScoredSequence]:
    rows = [
        (1, 1.0, 1.0, ("run",), ()),
        (2, 0.5, 0.0, ("run", "jump"), ("eat",)),
        (2, 0.0, 0.5, (), ()),
    ]
    return [
        ScoredSequence(
            domain="comics",
            scores={"object_recall": objects, "behavior_recall": behaviors},
            episode_length=length,
            true_behaviors=true,
            hallucinated_behaviors=wrong,
        )
        for length, objects, behaviors, true, wrong in rows
    ]


@ITEMS.is_made(80, "T3", "correlation of objects and behaviours", "own", 0.5)
def _correlation(_: Path) -> float | None:
    [found] = [each for each in hallucination_correlation(sequences()) if each.measure == "recall"]
    return found.value


@ITEMS.is_made(81, "F7, F3", "recall by episode length", "own", [[1, 1.0, 1], [2, 0.25, 2]])
def _lengths(_: Path) -> list[list[float | None]]:
    found = recall_by_length(sequences())
    return [[each.episode_length, each.object_recall, each.n] for each in found]


@ITEMS.is_made(82, "3.2", "co-occurrence; our definition, the paper has no figure", "own", 1.0)
def _companions(_: Path) -> float | None:
    pairs = BehaviorPairs((("run", "eat"), ("jump", "eat"), ("run", "jump")))
    [found] = companions(sequences(), pairs)
    return found.value


@ITEMS.is_made(83, "T5", "people's keywords are matched as a model's", "own", [0.5, 1.0])
def _people(_: Path) -> list[float | None]:
    return matched("corrected", ["couch", "dog"], ["sofa"])


@ITEMS.is_made(
    84, "2.1.2, T6", "questions and answers become a description", "printed", [True, True]
)
def _rewritten(_: Path) -> list[bool]:
    prompt = paper_prompt("mementos-table6-rewrite", "mementos", "answer")
    names = [each.name for each in ASKING["mementos"].protocols]
    return [prompt.protocol in names, "may not be included in the images" in prompt.text]


@ITEMS.is_made(
    85, "2.1.1, 3.1", "frame rules; c-input is one picture", "printed", [[0, 100, 200], 20, 10]
)
def _frames(_: Path) -> list[Any]:
    # The picture: tests/unit/asking/test_combined_pictures.py.
    robotics = Sampling("mementos-robotics")
    return [
        Sampling("every:100").chosen(range(250)),
        len(robotics.chosen(range(240))),
        len(robotics.chosen(range(50))),
    ]


@ITEMS.is_made(86, "T2", "published rows: cells", "printed", 216)
def _rows(_: Path) -> int:
    return sum(len(row.scores) for row in published_rows(MementosMetric))

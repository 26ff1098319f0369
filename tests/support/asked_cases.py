"""Files of questions of every benchmark, and what is expected of asking and scoring them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from support.example_archives import declared_examples, plain_records
from support.pictures import png

from hallujudge.metrics.answers.closed_questions import ClosedQuestions
from hallujudge.metrics.answers.declared_metrics import metric_of
from hallujudge.metrics.framework.asking import OwnAsking
from hallujudge.sdk import Client

__all__ = ["CASES", "HEARD", "MCQA", "PAIR", "Case", "written"]


@dataclass(frozen=True)
class Case:
    """A file of questions, and what is expected of asking and scoring it."""

    metric: str
    questions: Any
    files: tuple[str, ...]
    """Images and videos; videos stand as images here, since only names matter."""
    prompts: tuple[str, ...]
    """All different prompts, by their beginnings."""
    reply: str | Callable[[str], str] = "Yes."
    score: Mapping[str, float] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    again: bool = False
    """Whether scoring needs the questions too."""
    own: Mapping[str, Any] = field(default_factory=dict)
    shown: tuple[int, ...] = (1,)
    """How many images calls may have."""


PAIR = {
    name: {"video": "1.png", "question": f"Is there a {name}?", "answer": answer}
    for name, answer in (("basic", "yes"), ("hallucination", "no"))
}
FIGURE = {
    **{"category": "VS", "subcategory": "map", "set_id": "0", "question": "Is it red?"},
    **{"question_id": "0", "gt_answer": "1", "filename": "./hallusion_bench/VS/map/0_1.png"},
}
SHOWN = {"captions": {"1": "A man sits.", "2": "A man runs.", "3": "A man sings."}}
CHOICE = {"question_id": 1, "video": "v1", "question": "What?", "label": "B", "options": ["x", "y"]}


def prefers_caption_1(prompt: str) -> str:
    """Return the letter of the most faithful caption that a prompt shows."""
    lines = [line for line in prompt.splitlines() if line[1:3] == ". "]
    ranked = sorted(lines, key=lambda line: list(SHOWN["captions"].values()).index(line[3:]))
    return ranked[0][0] if "best?" in prompt else ", ".join(line[0] for line in ranked)


MCQA = Case(
    "vidhal-mcqa",
    [{"video": "count_1", "aspect": "attribute", **SHOWN}],
    ("count_1.png",),
    ("Which caption describes this video best?\nA. A man runs.\nB. A man sits.",),
    prefers_caption_1,
    {"accuracy": 1},
    again=True,
    own={"options": {"count_1": {"A": "2", "B": "1", "C": "3"}}},
)
_WRITTEN = {
    "pope": Case(
        "pope",
        [{"question_id": 1, "image": "a.png", "text": "Is there a cat?", "label": "yes"}],
        ("a.png",),
        ("Is there a cat?\nAnswer with yes or no.",),
        score={"accuracy": 1},
    ),
    "chair": Case(
        "chair",
        {"310196": ["cat"], "42": ["dog"]},
        ("val2014/COCO_val2014_000000310196.jpg", "val2014/COCO_val2014_000000000042.jpg"),
        ("Describe this image.",),
        "A cat.",
        {"chair_i": 0.5, "chair_s": 0.5},
        again=True,
    ),
    "mementos": Case(
        "mementos",
        [{"image_name": "seq_1.png", "gt_description": "A dog runs."}],
        ("seq_1/10.png", "seq_1/9.png", "seq_1/1.png"),
        ("This is a sequence of images",),
        "A dog runs.",
        {"object_f1": 1},
        again=True,
        shown=(3,),
    ),
    "mementos, rewritten": Case(
        "mementos",
        [{"image_name": "1.png", "qa": [{"question": "Who runs?", "answer": "A dog."}]}],
        ("1.png",),
        ("Below are questions",),
        "A dog runs.",
        more={"protocol": "rewritten"},
    ),
    "tri-he": Case(
        "tri-he",
        {"7": {"instance": [{"question": "Who?"}], "triplets": ["(man, has, hat)"], "object": []}},
        ("7.jpg",),
        ("Who?",),
        "The man has a hat.",
        {"hallu_q": 0},
        again=True,
    ),
    "vidhal-mcqa": MCQA,
    "vidhal-ordering, naive": replace(
        MCQA, metric="vidhal-ordering", prompts=("Order these captions",), score={"ndcg": 1}
    ),
    "vidhal-ordering, relative": replace(
        MCQA,
        metric="vidhal-ordering",
        prompts=(
            "Which caption describes this video best?\nA. A man runs.\nB. A man sits.\nAnswer",
            "Which caption describes this video best?\nB. A man sits.\nC. A man sings.\nAnswer",
            "Which caption describes this video best?\nA. A man runs.\nC. A man sings.\nAnswer",
        ),
        score={"ndcg": 1},
        more={"protocol": "relative"},
    ),
    "infact": Case(
        "infact",
        [{**CHOICE, "order_sensitive": True}, {**CHOICE, "question_id": 2, "question": "Who?"}],
        ("base/v1.png", "shuffle/v1.png", "compression/v1.png"),
        ("What?\nA. x\nB. y\nAnswer with the letter", "Who?"),
        "B",
        {"base_accuracy": 1, "rr_compression": 1, "tss_shuffle": 0},
    ),
    "hallusion-bench": Case(
        "hallusion-bench",
        [
            {**FIGURE, "visual_input": "1", "figure_id": "1"},
            {**FIGURE, "visual_input": "0", "figure_id": "0", "filename": None},
        ],
        ("VS/map/0_1.png",),
        ("Is it red?",),
        score={"question_accuracy": 1},
        shown=(0, 1),
    ),
    "event-hallusion": Case(
        "event-hallusion",
        [
            {
                "id": "entire_001",
                "split": "entire",
                "questions": [{"question": "Is it a dog?", "answer": "Yes."}],
            }
        ],
        ("entire_001.png",),
        ("Is it a dog?", "Describe what happens"),
        score={"question_accuracy": 1},
    ),
    "video-hallucer": Case(
        "video-hallucer",
        {"temporal": [PAIR]},
        ("1.png",),
        ("Is there a basic?", "Is there a hallucination?"),
        lambda prompt: "Yes." if "basic" in prompt else "No.",
        {"pair_accuracy": 1},
    ),
    "amber": Case(
        "amber",
        [{"id": 1005, "image": "AMBER_1.jpg", "query": "Is the sky sunny in this image?"}],
        ("AMBER_1.jpg",),
        ("Is the sky sunny in this image?\nAnswer with one word",),
        "Yes",
    ),
    "elv-halluc": Case(
        "elv-halluc",
        [
            {
                **{"video_id": "v", "aspect": "object", "caption_type": kind},
                **{"question": f"Is {kind} right?", "ref_answer": answer},
            }
            for kind, answer in (("ground_truth", "Yes"), ("in_video", "No"), ("out_video", "No"))
        ],
        ("v.png",),
        ("Is ground_truth right?", "Is in_video right?", "Is out_video right?"),
        lambda prompt: "Yes." if "ground" in prompt else "No.",
        {"in_video_accuracy": 1, "out_video_accuracy": 1},
    ),
    "mmhal": Case(
        "mmhal",
        [
            {
                **{"question_type": "attribute", "image_id": "ab12", "gt_answer": "It is red."},
                **{"image_src": "https://localhost/x.jpg", "question": "What color is it?"},
            }
        ],
        ("ab12.jpg",),
        ("What color is it?",),
        "Red.",
    ),
    "vidhalluc-bqa": Case(
        "vidhalluc-bqa",
        {"0": [{"q": "Is a man running?", "a": {"c1": "Yes", "c2": "No"}}]},
        ("c1.png", "c2.png"),
        ("Is a man running?\nAnswer with yes or no.",),
        score={"accuracy": 0},
    ),
    "vidhalluc-mcq": Case(
        "vidhalluc-mcq",
        {
            "0": {
                "c1": {
                    **{"Question": "What?", "Choices": {"A": "run", "B": "sit"}},
                    **{"Correct Answer": "AB"},
                }
            }
        },
        ("c1.png",),
        ("What?\nA. run\nB. sit\nAnswer with the letters",),
        "A, B",
        {"accuracy": 1},
    ),
    "vidhalluc-sth": Case(
        "vidhalluc-sth",
        {"v": {"Scene change": "No", "Locations": "None"}},
        ("v.png",),
        ("Does the scene change in this video?",),
        "Scene change: No, Locations: None.",
        again=True,
    ),
    "openchair": Case(
        "openchair",
        [{"image_id": 42, "gt_caption": "A dog sleeps."}],
        ("000000000042.jpg",),
        ("Describe this image.",),
        "A dog.",
    ),
    "object-halbench": Case(
        "object-halbench",
        [{"image_id": 42, "question": "What is there?"}],
        ("000000000042.jpg",),
        ("What is there?",),
        "A cat.",
    ),
}


def made_cases() -> Iterator[Case]:
    """Yield the questions of each example of a benchmark that is not written here.

    Those with a sound are asked in tests/e2e/test_ask_sounds.py.
    """
    for declared, rows in made_questions():
        heard = with_sound(declared, rows)
        seen = [row for row in rows if row not in heard]
        yield from [made_case(declared, seen)] if seen else ()


def made_questions() -> Iterator[tuple[ClosedQuestions, list[dict[str, Any]]]]:
    """Yield each benchmark that is not written here, with the records of its example."""
    written_here = {case.metric for case in _WRITTEN.values()}
    for declared in declared_examples():
        if declared.name not in written_here:
            yield declared, plain_records(declared)


def with_sound(declared: ClosedQuestions, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records with which a sound is sent."""
    return [row for row in rows if metric_of(declared).shown(row).sound]


def made_case(declared: ClosedQuestions, rows: Sequence[dict[str, Any]]) -> Case:
    """Return the questions of records, and the scores of a model with their answers.

    A model that is asked the same question about two images gives its first answer again.
    """
    shown, keys, how = metric_of(declared).shown, declared.keys, declared.asking
    protocols = how.protocols if isinstance(how, OwnAsking) else how
    steps = [step for protocol in protocols[:1] for step in protocol.steps]
    after = "".join(re.findall(r"{{question}}([^{]*)", steps[0].prompt)) if steps else ""
    files: list[str] = []
    said: dict[str, str] = {}
    for row in rows:
        slots = {"question": _first(row, keys.question), **shown(row).slots}
        prompt = slots["question"] + after
        row[keys.response[0]] = said.setdefault(prompt, row[keys.response[0]])
        key = next(key for key in (*(shown(row).media or ()), *keys.media) if row.get(key))
        # Videos stand as images here.
        row[key] = row[key].replace(".mp4", ".png")
        files.append(row[key] if Path(row[key]).suffix else f"{row[key]}.png")
    with Client.embedded() as client:
        scores = {} if declared.judged else client.score(declared.name, responses=rows).scores
    return Case(
        declared.name,
        [{key: held for key, held in row.items() if key not in keys.response} for row in rows],
        tuple(dict.fromkeys(files)),
        tuple(said),
        lambda prompt: next(text for start, text in said.items() if prompt.startswith(start)),
        {name: score.value for name, score in scores.items() if score.value is not None},
    )


def _first(row: Mapping[str, Any], keys: Iterable[str]) -> Any:
    return next((row[key] for key in keys if key in row), "")


CASES = _WRITTEN | {case.metric: case for case in made_cases()}
"""Name -> case. That of a benchmark that is not written here is made from its example."""
HEARD = {declared.name: with_sound(declared, rows) for declared, rows in made_questions()}
"""Benchmark -> the records of its example with which a sound is sent; of most there are none."""


def written(case: Case, folder: Path) -> dict[str, Path]:
    """Write a case's files; return the file of questions, and that of options if it has one."""
    for seed, name in enumerate(case.files):
        (folder / "images" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "images" / name).write_bytes(png(seed))
    files = {"questions": case.questions, **case.own}
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return {name: folder / f"{name}.json" for name in files}

"""A small run of every metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from support.amber_samples import RUN as AMBER
from support.event_hallusion_samples import VIDEOS as EVENT_VIDEOS
from support.example_archives import declared_examples, unanswered_run
from support.qa_samples import infact_lines, infact_questions

from hallujudge.sdk import InputOptions

__all__ = ["RUNS", "SCENE"]

SCENE = [["man", "riding", "horse"], ["horse", "is", "brown"]]
SOFA = ["A dog lies on a couch.", "A dog sleeps on a sofa."]
WORDS = ["dog", "sofa", "wall"]
LETTERS = {"A": 2, "B": 1, "C": 3}
VIDEOS = [{"video": "v1", "captions": {"1": "a", "2": "b", "3": "c"}, "aspect": "action"}]
VIDHAL = InputOptions(own={"options": dict.fromkeys(("v1", "v2", "v3"), LETTERS)})
ARGUS_LINES = [
    [1, "He takes a small key out.", "he takes a key out", "dynamic-action", "", "entailment"],
    [2, "A man opens a box.", "A man opens a box.", "dynamic-action", "", "entailment"],
    [3, "He sings a song.", "", "dynamic-action", "", "contradiction"],
]

_WRITTEN: Mapping[str, Callable[[], dict[str, Any]]] = {
    "chair": lambda: {
        "responses": {"1": "A dog on a sofa.", "2": None, "3": "A view."},
        "references": {"1": ["couch"], "2": ["cat"], "3": []},
    },
    "object-halbench": lambda: {
        "responses": [
            {
                "image_id": 1,
                "question": "?",
                "answer": "Assistant: A dog on a sofa.",
                "objs": WORDS,
            },
            {"image_id": 2, "question": "?", "answer": "A view.", "objs": []},
            {"image_id": 3, "question": "?", "answer": None, "objs": None},
        ],
        "references": {"1": ["couch"], "2": ["cat"], "3": []},
    },
    "open-objects": lambda: {
        "responses": [
            {"image_id": 1, "caption": "Two dogs on a sofa near a piano.", "references": SOFA},
            {"image_id": 2, "caption": None, "references": SOFA},
        ],
    },
    "seen-claims": lambda: {
        "responses": [
            {
                "image": "1.jpg",
                "response": "Three brown dogs are on a sofa. It smells.",
                "claims": [
                    {"claim": ["dogs", "on", "sofa"], "verdict": "supported"},
                    {"claim": ["dogs", "is", "brown"], "verdict": "not_supported"},
                    {"claim": ["dogs", "is", "three"], "verdict": "supported"},
                    {"claim": ["dogs", "is", "present"], "verdict": "supported"},
                    {"claim": "It smells.", "verdict": "cannot_be_seen"},
                ],
            },
            {"image": "2.jpg", "response": "A view.", "claims": []},
            {"image": "3.jpg", "response": None},
        ],
    },
    "pope": lambda: {
        "responses": [
            {"question_id": n, "text": text, "model": "m"}
            for n, text in enumerate(["Yes", "no", "Not sure"])
        ],
        "references": [
            {"question_id": n, "image": "1.jpg", "text": "Is there a dog?", "label": "yes"}
            for n in range(3)
        ],
        "variant": "strict",
        "group_by": ["model"],
    },
    "vidhal-mcqa": lambda: {
        "responses": {"v1": "B", "v2": "who knows", "v3": None},
        "references": [{**VIDEOS[0], "video": f"v{n}"} for n in (1, 2, 3)],
        "variant": "corrected",
        "inputs": VIDHAL,
    },
    "vidhal-ordering": lambda: {
        "responses": {"v1": "B, A, C", "v2": "B, B", "v3": None},
        "references": [{**VIDEOS[0], "video": f"v{n}"} for n in (1, 2, 3)],
        "inputs": VIDHAL,
    },
    "infact": lambda: {"responses": infact_lines(infact_questions(12))},
    "hallusion-bench": lambda: {
        "responses": [
            {
                "category": "VS",
                "subcategory": "chart",
                "set_id": "0",
                "figure_id": str(figure),
                "question_id": "0",
                "visual_input": str(figure),
                "question": "Is it so?",
                "gt_answer": "1",
                "model_prediction": text,
            }
            for figure, text in enumerate(["It is unclear.", "No.", None])
        ],
    },
    "amber": lambda: {**AMBER, "variant": "corrected"},
    "mmhal": lambda: {
        "responses": [
            {
                "question_type": "attribute",
                "image_id": str(number),
                "image_content": ["Cap"],
                "question": "What color is the cap?",
                "gt_answer": "It is yellow.",
                "model_answer": text,
                "review": review,
            }
            for number, (text, review) in enumerate(
                [("Yellow.", "Rating: 6"), ("Red.", "Rating: 1"), (None, None)]
            )
        ],
        "variant": "corrected",
    },
    "openchair": lambda: {
        "responses": [
            {
                "image_id": str(number),
                "gt_caption": "A dog sleeps on a sofa.",
                "generated_caption": f"A {' and a '.join(things)}.",
                "generated_objs": things,
                "judge_texts": texts,
            }
            for number, (things, texts) in enumerate(
                [
                    (["dog", "cat"], ["yes", "No."]),
                    (["wall", "photo", "sea"], ["unsure", "no", "?"]),
                    ([], []),
                    (["dog"], None),
                ]
            )
        ],
    },
    "vidhalluc-bqa": lambda: {
        "responses": {"0": [{"q": "Is it running?", "a": {"c1": "Yes."}}]},
        "references": {
            "0": [
                {"q": "Is it running?", "a": {"c1": "Yes", "c2": "No"}},
                {"q": "Is it sitting?", "a": {"c1": "No", "c2": "Yes"}},
            ]
        },
    },
    "vidhalluc-mcq": lambda: {
        "responses": {
            "0": {
                clip: {
                    "Question": "What is shown?",
                    "Choices": {"A": "running", "B": "sitting"},
                    "Correct Answer": "AB",
                    "Model Answer": text,
                }
                for clip, text in (("c1", "AB"), ("c2", "A, B"), ("c3", None))
            }
        },
    },
    "vidhalluc-sth": lambda: {
        "responses": {"v1": "Scene change: Yes, Locations: from a hall to a road.", "v2": "No."},
        "references": {
            **{"v1": {"Scene change": "yes", "Locations": "From a hall to a garden."}},
            **{name: {"Scene change": "no", "Locations": "None"} for name in ("v2", "v3")},
        },
        "inputs": InputOptions(
            own={"similarities": [{"model": "a road", "truth": "a garden", "similarity": 0.75}]}
        ),
    },
    "argus": lambda: {
        "responses": [
            {
                "clip": f"clip {number}",
                "mode": mode,
                "human_caption": "A man opens a box. Then he takes a small key out.",
                "response": "A man takes a small key out. He opens a box. He sings a song.",
                "lines": lines,
            }
            for number, lines in enumerate([ARGUS_LINES, [], None])
            for mode in ("hallucination", "omission")
        ],
        "variant": "corrected",
    },
    "event-hallusion": lambda: {"responses": EVENT_VIDEOS, "variant": "corrected"},
    "video-hallucer": lambda: {
        "responses": {
            "temporal": [
                {
                    "basic": {"video": "v.mp4", "question": "?", "answer": "yes", "predict": text},
                    "hallucination": {"video": "v.mp4", "answer": "no", "predict": "No."},
                    "type": "temporal_absolute",
                }
                for text in ("Yes.", "Perhaps.", None)
            ]
        },
        "variant": "corrected",
    },
    "mementos": lambda: {
        "responses": [
            {"image": "a.png", "description": "A man throws a ball to a unicorn."},
            {"image": "b.png", "description": None},
        ],
        "references": [
            {"image": "a.png", "description": "A boy throws a ball to a dog."},
            {"image": "b.png", "description": "A cat sleeps."},
        ],
    },
    "tri-he": lambda: {
        "responses": [
            {"image_id": 1, "response": "A man rides a brown horse near a dog.", "human_score": 3},
            {"image_id": 2, "response": "Well."},
        ],
        "references": {"1": SCENE, "2": SCENE},
    },
}
RUNS: Mapping[str, Callable[[], dict[str, Any]]] = {
    **_WRITTEN,
    **{
        declared.name: partial(unanswered_run, declared)
        for declared in declared_examples()
        if declared.name not in _WRITTEN
    },
}
"""Metric -> makes its run. One that is not written here is made from the metric's example."""

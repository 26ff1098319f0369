"""A small run of every metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from support.amber_samples import RUN as AMBER
from support.event_hallusion_samples import VIDEOS as EVENT_VIDEOS
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

RUNS: Mapping[str, Callable[[], dict[str, Any]]] = {
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
    "vqa": lambda: {
        "responses": [
            {"question_id": str(number), "image_id": "1", "response": text, "judgement": said}
            for number, (text, said) in enumerate(
                [("A kitty.", "cat"), ("A bus.", "<NAN>"), ("A cat.", "Yes."), (None, "cat")]
            )
        ],
        "references": [
            {
                "question_id": str(number),
                "question": "What is on the sofa?",
                "direct_answers": ["cat"] * 7 + ["kitten"] * 3,
            }
            for number in range(4)
        ],
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
    "vidhalluc-tsh": lambda: {
        "responses": {
            str(number): {
                "video": "v",
                "Question": "Which comes first?",
                "Correct Answer": "AB",
                "Model Answer": text,
            }
            for number, text in enumerate(["AB", "Action B, then action A.", "Neither.", None])
        },
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
    "dash-b": lambda: {
        "responses": [
            {"img_id": f"{n}.jpg", "object_name": "cup", "gt": label, "response": text}
            for n, (label, text) in enumerate([("yes", "Yes."), ("no", "Perhaps."), ("no", None)])
        ],
    },
    "elv-halluc": lambda: {
        "responses": [
            {
                "video_id": "v1",
                "aspect": "object",
                "caption_type": caption,
                "ref_answer": "Yes" if caption == "ground_truth" else "No",
                "model_response": text,
            }
            for text in ("Yes.", "No.", None)
            for caption in ("ground_truth", "in_video", "out_video")
        ],
    },
    "cmm": lambda: {
        "responses": [
            {
                "video_path": f"{number}.mp4",
                "audio_path": None,
                "sub_category": "visual-language",
                "granularity": "object-level",
                "question": "Is a dog there?",
                "answer": ("yes", "no")[number % 2],
                "pred": text,
            }
            for number, text in enumerate(["Yes.", "Perhaps.", "No.", None])
        ],
        "variant": "corrected",
    },
    "avhbench": lambda: {
        "responses": [
            {
                "video_id": str(number),
                "task": "AV Captioning" if label == "A dog barks." else "AV Matching",
                "text": "Do they match?",
                "label": label,
                "prediction": text,
            }
            for number, (label, text) in enumerate(
                [("Yes", "Yes."), ("No", "Perhaps."), ("No", None), ("A dog barks.", "No dog.")]
            )
        ],
        "variant": "corrected",
    },
    "charthal": lambda: {
        "responses": [
            {
                "id": f"{number}_0",
                "figure_path": f"images/{number}.jpg",
                "q_type": "desc",
                "q_relation": "irrel",
                "question": "What is the value of the red line?",
                "ref_answer": "The chart has no red line.",
                "response": text,
                "eval_resp": said,
                "score": mark,
            }
            for number, (text, said, mark) in enumerate(
                [("There is none.", "Score: 1", 1), ("About 5.", "7", 7), (None, "Score: 0", 0)]
            )
        ],
    },
    "haven": lambda: {
        "responses": [
            {
                **{"Index": number, "Question": "Is the man sewing?", "Answer": "No"},
                **{"Causes": "Conflict with prior", "Aspects": "Event", "Form": "Binary-choice"},
                **{"Video Path": f"Coin000{number}", "Group_id": "Coin_group0001"},
                **{"Model Answer": text, "Correctness": grade},
            }
            for number, (text, grade) in enumerate([("No.", "1"), ("Yes.", "F"), (None, None)])
        ],
        "variant": "corrected",
    },
    "humblebench": lambda: {
        "responses": [
            {
                **{"question_id": n, "type": "Object", "image": f"{n}.jpg", "label": label},
                **{"question": "What is it?\nA. a cup\nE. None of the above", "prediction": text},
            }
            for n, (label, text) in enumerate([("A", "A."), ("E", "A cup or a jug."), ("E", None)])
        ],
        "variant": "corrected",
    },
    "vlms-are-biased": lambda: {
        "responses": [
            {
                **{
                    "ID": f"q{n}",
                    "topic": "Logos",
                    "prompt": "How many stripes?",
                    "response": text,
                },
                **{"ground_truth": "4", "expected_bias": "3", "image_path": f"{n}.png"},
            }
            for n, text in enumerate(["{4}", "3 or 4", "{3}", None])
        ],
        "variant": "corrected",
    },
    "naturalbench": lambda: {
        "responses": [
            {
                **{"Index": n // 4, "combination": f"q{n // 2 % 2}_i{n % 2}", "response": text},
                **{"Question_Type": "yes_no", "answer": "Yes" if n % 4 in (0, 3) else "No"},
            }
            for n, text in enumerate(
                [*("Yes.", "No.", "No.", "Yes."), *("Yes.", "Well.", "No.", "Yes."), *[None] * 4]
            )
        ],
        "variant": "corrected",
    },
    "crpe": lambda: {
        "responses": [
            {
                **{"question_id": n, "image": f"{n // 4}.jpg", "category": "object"},
                **{"question": f"What?\nA. {'abcd'[n % 4 :]}", "correct_option": "A"},
                "response": text,
            }
            for n, text in enumerate(["A", "A.", "(A)", "A", "Well.", None])
        ],
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

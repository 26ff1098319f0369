"""A small archive of every family and layout, with the keys that its records may have."""

from __future__ import annotations

from typing import Any

from support.example_archives import declared_examples, one_item

from hallujudge.sdk.archives.inputs import InputOptions

QUESTION = {"question_id": 1, "image": "1.jpg", "text": "Is there a dog?", "label": "yes"}
ANSWERED = {"question_id": 1, "response": "Yes."}
PAIR = {
    "basic": {"video": "1.mp4", "answer": "yes", "predict": "Yes."},
    "hallucination": {"video": "1.mp4", "answer": "no", "predict": "No."},
}
ASKED = {"question_id": 1, "video": "1.mp4", "question": "Is there a dog?", "label": "yes"}
ORDERED = {**ASKED, "order_sensitive": True}
RUN = {"question_id": 1, "operator": "base", "response": "Yes."}
NOT_SHOWN = {"id": 3, "type": "discriminative-hallucination", "truth": "no"}
OBJECTS = {"id": 3, "type": "generative", "truth": ["dog"], "hallu": ["cat"]}
SHOWN = {"video": "v_1", "captions": ["A man sits.", "A man runs."]}
ANSWER = {"image_id": 1, "question": "What is it?", "response": "A dog runs."}
SEEN = {"response": "Yes."}
SCENE = {"image_id": 1, "triplets": [["dog", "on", "grass"]]}
OWN_SCENE = {
    "id": 1,
    "instance": [{"question": "What is it?", "answer": "A dog runs."}],
    "triplets": [["dog", "on", "grass"]],
}
VIDEO = {
    "id": "1",
    "split": "entire",
    "qa": [{"question": "Is there a dog?", "answer": "Yes.", "prediction": "Yes."}],
    "desc": "A dog runs.",
    "judgement": "Yes.",
}
PLACE = {
    **{"category": "VD", "subcategory": "map", "set_id": "0"},
    **{"figure_id": "0", "question_id": "0"},
}
FIGURE = {**PLACE, "visual_input": "1", "gt_answer": "1"}
RATED = {
    "question_type": "attribute",
    "image_id": "1",
    "question": "What color is the cap?",
    "gt_answer": "It is yellow.",
    "model_answer": "Yellow.",
    "review": "Rating: 4",
}
PEOPLE = {
    "question_id": 1,
    "image": "5.jpg",
    "question": "What?",
    "direct_answers": ["cat", "kitten"],
}
CLIP = {"id": "0", "clip": "c1", "response": "Yes.", "label": "Yes", "video": "0"}
CHOICE = {
    **{"id": "0", "video": "0", "Question": "What is shown?", "Choices": ["running", "sitting"]},
    **{"Correct Answer": "A", "Model Answer": "A"},
}
CAPTION = {
    "id": "1",
    "mode": "hallucination",
    "human_caption": "A man opens a box.",
    "model_caption": "A man opens a box. He sings.",
    "result_tuple": [[1, "He sings a song.", "", "dynamic-action", "", "contradiction"]],
}
_WRITTEN: dict[str, tuple[str, Any, Any]] = {
    "pope, joined": ("pope", [ANSWERED], [QUESTION]),
    "pope, alone": (
        "pope",
        [{"question_id": 1, "image": "1.jpg", "response": "Yes.", "label": "yes"}],
        None,
    ),
    "video-hallucer": ("video-hallucer", {"temporal": [PAIR]}, None),
    "vidhal-mcqa": ("vidhal-mcqa", [{"video": "v_1", "response": "A"}], [SHOWN]),
    "vidhal-ordering": ("vidhal-ordering", [{"video": "v_1", "response": "A, B"}], [SHOWN]),
    "infact": ("infact", [{**ASKED, **RUN}], None),
    "infact, joined": ("infact", [RUN], [ASKED]),
    "infact, order": ("infact", [RUN, {**RUN, "operator": "shuffle"}], [ORDERED]),
    "amber, joined": ("amber", [{"id": 3, "response": "No"}], [NOT_SHOWN]),
    "amber, alone": ("amber", [{**NOT_SHOWN, "response": "No"}], None),
    "amber, described": ("amber", [{"id": 3, "response": "A dog."}], [OBJECTS]),
    "video-hallucer, by set": ("video-hallucer", [{"set": "temporal", **PAIR}], None),
    "video-hallucer, flat": (
        "video-hallucer",
        [{"set": "temporal", "pair_id": 7, "role": role, **PAIR[role]} for role in PAIR],
        None,
    ),
    "chair, joined": (
        "chair",
        [{"image_id": 1, "caption": "A dog."}],
        [{"image_id": 1, "objects": ["dog"]}],
    ),
    "chair, alone": ("chair", [{"image_id": 1, "caption": "A dog.", "objects": ["dog"]}], None),
    "object-halbench, joined": (
        "object-halbench",
        [{"image_id": 1, "question": "?", "response": "A dog.", "objs": ["dog"]}],
        [{"image_id": 1, "objects": ["dog"]}],
    ),
    "object-halbench, alone": (
        "object-halbench",
        [{"image_id": 1, "prompt": "?", "caption": "A dog.", "objects": ["dog"]}],
        None,
    ),
    "open-objects, joined": (
        "open-objects",
        [{"image_id": 1, "caption": "A dog."}],
        [{"image_id": 1, "references": ["A dog runs."]}],
    ),
    "open-objects, alone": (
        "open-objects",
        [{"image_id": 1, "caption": "A dog.", "references": ["A dog runs."]}],
        None,
    ),
    "tri-he, joined": ("tri-he", [ANSWER], [SCENE]),
    "tri-he, alone": ("tri-he", [{**ANSWER, **SCENE}], None),
    "tri-he, own": ("tri-he", [OWN_SCENE], None),
    "seen-claims": (
        "seen-claims",
        [
            {
                "image_id": "1",
                "claims": [{"claim": ["dog", "on", "sofa"], "verdict": "supported"}],
            }
        ],
        None,
    ),
    "mementos": (
        "mementos",
        [{"image_name": "1.png", "description": "A dog runs."}],
        [{"image_name": "1.png", "description": "A dog jumps."}],
    ),
    "mementos, keywords": (
        "mementos",
        [
            {
                "image_name": "1.png",
                "reference_objects": ["dog"],
                "reference_behaviors": ["run"],
                "predicted_objects": ["dog"],
                "predicted_behaviors": ["run"],
            }
        ],
        None,
    ),
    "event-hallusion": ("event-hallusion", [VIDEO], None),
    "hallusion-bench": ("hallusion-bench", [{**FIGURE, "response": "Yes."}], None),
    "hallusion-bench, joined": ("hallusion-bench", [{**PLACE, "response": "Yes."}], [FIGURE]),
    "hallusion-bench, judged": (
        "hallusion-bench",
        [{**PLACE, "visual_input": "1", "response": "Yes.", "correctness": "1"}],
        None,
    ),
    "mmhal": ("mmhal", [RATED], None),
    "vqa": ("vqa", [{"question_id": 1, "response": "A cat."}], [PEOPLE]),
    "openchair": (
        "openchair",
        [
            {
                "id": "1",
                "gt_caption": "A dog.",
                "generated_caption": "A dog and a cat.",
                "generated_objs": ["dog", "cat"],
                "judge_texts": ["yes", "no"],
            }
        ],
        None,
    ),
    "vidhalluc-bqa": ("vidhalluc-bqa", [CLIP], None),
    "vidhalluc-bqa, joined": (
        "vidhalluc-bqa",
        [{key: CLIP[key] for key in ("id", "clip", "response")}],
        [{key: CLIP[key] for key in ("id", "clip", "label", "video")}],
    ),
    "vidhalluc-mcq": ("vidhalluc-mcq", [CHOICE], None),
    "vidhalluc-sth": (
        "vidhalluc-sth",
        [{"id": "v", "response": "No."}],
        [{"id": "v", "Scene change": "No", "Locations": "None"}],
    ),
    "vidhalluc-tsh": (
        "vidhalluc-tsh",
        [{"id": "0", "video": "v", "Correct Answer": "AB", "Model Answer": "AB"}],
        None,
    ),
    "argus": ("argus", [CAPTION], None),
}
_METRICS = {metric for metric, *_ in _WRITTEN.values()}
MADE = {each.name: each for each in declared_examples() if each.name not in _METRICS}
"""Benchmarks whose archives are made from their examples, by the name of the first one."""
ARCHIVES = _WRITTEN | {name: held for each in MADE.values() for name, held in one_item(each)}
LETTERS = {"A": 2, "B": 1}
OPTIONS = {
    "vidhal-": InputOptions(own={"options": {"v_1": LETTERS, "other v_1": LETTERS}}),
    "amber, described": InputOptions(
        own={"associations": {"dog": [], "cat": []}, "safe_words": ("sky",)}
    ),
}


def options_of(name: str) -> InputOptions | None:
    """Return the options that an archive is read with."""
    return next((options for key, options in OPTIONS.items() if name.startswith(key)), None)


def renamed(value: Any, key: str) -> Any:
    """Return an archive with another name for a key."""
    if isinstance(value, list):
        return [renamed(each, key) for each in value]
    if not isinstance(value, dict):
        return value
    return {f"my_{k}" if k == key else k: renamed(each, key) for k, each in value.items()}


def doubled(archive: Any, *more: str) -> Any:
    """Return an archive whose records are there twice, with other ids."""
    if isinstance(archive, dict):
        return {key: doubled(held, *more) for key, held in archive.items()}
    names = {"image_id", "image_name", "img_id", "video_id", "audio_path"}
    ids = {"question_id", "id", "ID", "Index", *names, *more}
    return [*archive, *({k: other_id(v) if k in ids else v for k, v in r.items()} for r in archive)]


def other_id(value: Any) -> Any:
    """Return another id of the same type."""
    return value + 1 if isinstance(value, int) else f"other {value}"

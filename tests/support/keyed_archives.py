"""A small archive of every family and layout, with the keys that its records may have."""

from __future__ import annotations

from typing import Any

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
TRIPLET = [
    {
        "video": "1.mp4",
        "aspect": "object",
        "caption_type": caption,
        "ref_answer": "Yes" if caption == "ground_truth" else "No",
        "model_response": "Yes.",
    }
    for caption in ("ground_truth", "in_video", "out_video")
]
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
HEARD = {
    **{"sub_category": "audio-language", "granularity": "event-level", "audio_path": "1.wav"},
    **{"question": "Does a dog bark?", "answer": "yes", "pred": "Yes."},
}
MATCHED = {"video_id": "1", "task": "AV Matching", "text": "Do they match?"}
MARKED = {
    **{"id": "3_0", "figure_path": "images/3.jpg", "q_type": "open", "q_relation": "contra"},
    **{"question": "What is it?", "ref_answer": "Nothing.", "response": "Nothing.", "score": 1},
}
GRADED = {
    **{"Index": 1, "Question": "Is it?", "Answer": "No", "Causes": "Conflict with prior"},
    **{"Aspects": "Event", "Form": "Binary-choice", "Video Path": "Coin0001"},
    **{"Model Answer": "No.", "Correctness": "1"},
}
ARCHIVES: dict[str, tuple[str, Any, Any]] = {
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
    "humblebench": (
        "humblebench",
        [
            {
                **{"question_id": 1, "type": "Object", "image": "1.jpg", "label": "A"},
                **{"question": "What is it?", "prediction": "A"},
            }
        ],
        None,
    ),
    "vlms-are-biased": (
        "vlms-are-biased",
        [
            {
                **{"id": "q1", "topic": "Logos", "ground_truth": "4", "expected_bias": "3"},
                **{"image": "1.png", "response": "{4}"},
            }
        ],
        None,
    ),
    "naturalbench": (
        "naturalbench",
        [
            {
                **{"Index": 0, "combination": f"q{n // 2}_i{n % 2}", "Question_Type": "yes_no"},
                **{"response": "Yes.", "answer": "Yes" if n in (0, 3) else "No"},
            }
            for n in range(4)
        ],
        None,
    ),
    "crpe": (
        "crpe",
        [
            {
                **{"question_id": 1, "image": "1.jpg", "category": "object"},
                **{"correct_option": "A", "response": "A"},
            }
        ],
        None,
    ),
    "dash-b": (
        "dash-b",
        [{"img_id": "88.jpg", "object_name": "cup", "gt": "yes", "response": "Yes."}],
        None,
    ),
    "dash-b, parsed": (
        "dash-b",
        [{**SEEN, "img_id": "88.jpg", "object_name": "cup", "gt": "no", "answer": "yes"}],
        None,
    ),
    "dash-b, data set": (
        "dash-b",
        [{**SEEN, "question_id": "88.jpg", "object": "cup", "answer": "no"}],
        None,
    ),
    "elv-halluc": ("elv-halluc", TRIPLET, None),
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
    "cmm": ("cmm", [HEARD], None),
    "charthal": ("charthal", [MARKED], None),
    "haven": ("haven", [GRADED], None),
    "avhbench": ("avhbench", [{**MATCHED, "label": "Yes", "prediction": "Yes."}], None),
    "avhbench, joined": (
        "avhbench",
        [{**MATCHED, "prediction": "Yes."}],
        [{**MATCHED, "label": "Yes"}],
    ),
}
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
    ids = {"question_id", "id", "Index", *names, *more}
    return [*archive, *({k: other_id(v) if k in ids else v for k, v in r.items()} for r in archive)]


def other_id(value: Any) -> Any:
    """Return another id of the same type."""
    return value + 1 if isinstance(value, int) else f"other {value}"

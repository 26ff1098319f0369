"""A key that an archive lacks is an error, never an answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hallujudge.sdk.archives import read_items
from hallujudge.sdk.archives.inputs import InputOptions
from hallujudge.sdk.errors import ArchiveError, InvalidInputError

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
}
LETTERS = {"A": 2, "B": 1}
OPTIONS = {
    "vidhal-": InputOptions(own={"options": {"v_1": LETTERS, "other v_1": LETTERS}}),
    "amber, described": InputOptions(
        own={"associations": {"dog": [], "cat": []}, "safe_words": ("sky",)}
    ),
}


def options_of(name: str) -> InputOptions | None:
    return next((options for key, options in OPTIONS.items() if name.startswith(key)), None)


# What an archive may lack: intervals then treat an item as an image of its own. Descriptions and
# judgements count apart from answers. Objects may come from the answer's words.
OPTIONAL = {
    *("image", "video", "text", "question", "Question", "prompt"),
    *("desc", "judgement", "review", "objs"),
    *("gt_caption", "generated_caption", "judge_texts"),
}


def renamed(value: Any, key: str) -> Any:
    """Return an archive with another name for a key."""
    if isinstance(value, list):
        return [renamed(each, key) for each in value]
    if not isinstance(value, dict):
        return value
    return {f"my_{k}" if k == key else k: renamed(each, key) for k, each in value.items()}


def keys_of(value: Any) -> Iterator[str]:
    """Yield the keys of an archive, those of its sets apart."""
    for each in value if isinstance(value, list) else value.values() if value else ():
        if isinstance(each, dict):
            yield from each
            yield from keys_of(each)
        elif isinstance(each, list):
            yield from keys_of(each)


def cases() -> Iterator[tuple[str, str, int]]:
    for name, (_, *archives) in ARCHIVES.items():
        for place, archive in enumerate(archives):
            ids = {"video"} if "vidhal-" in name else set()
            for key in sorted(set(keys_of(archive)) - OPTIONAL | ids):
                # The id of answers that carry their labels joins nothing.
                # What the released scorer read in an answer is not read.
                if (name, key) not in (
                    ("pope, alone", "question_id"),
                    ("openchair", "id"),
                    ("dash-b, parsed", "answer"),
                ):
                    yield name, key, place


@pytest.mark.parametrize(("name", "key", "place"), list(cases()))
def test_a_renamed_key_is_an_error_with_the_tried_and_the_found_keys(
    name: str, key: str, place: int
) -> None:
    metric, *archives = ARCHIVES[name]
    options = options_of(name)
    assert len(read_items(metric, archives[0], archives[1], options=options)) == 1
    archives[place] = renamed(archives[place], key)
    with pytest.raises(ArchiveError) as caught:
        read_items(metric, archives[0], archives[1], options=options)
    message = str(caught.value)
    assert f"my_{key}" in message, "the found keys"
    assert key in message.replace(f"my_{key}", ""), "the tried keys"


@pytest.mark.parametrize(
    ("name", "common", "key", "place"),
    [
        ("pope, joined", "response", "response", 0),
        ("pope, alone", "label", "label", 0),
        ("video-hallucer", "response", "predict", 0),
        ("video-hallucer", "label", "answer", 0),
        ("video-hallucer", "image", "video", 0),
        ("video-hallucer, by set", "set", "set", 0),
        ("video-hallucer, flat", "pair", "pair_id", 0),
        ("video-hallucer, flat", "role", "role", 0),
        ("video-hallucer, flat", "label", "answer", 0),
        ("pope, joined", "id", "question_id", 1),
        ("pope, joined", "label", "label", 1),
        ("pope, joined", "image", "image", 1),
        ("chair, joined", "id", "image_id", 1),
        ("chair, joined", "reference_objects", "objects", 1),
        ("object-halbench, joined", "objs", "objs", 0),
        ("object-halbench, joined", "question", "question", 0),
        ("object-halbench, joined", "response", "response", 0),
        ("object-halbench, joined", "reference_objects", "objects", 1),
        ("object-halbench, alone", "reference_objects", "objects", 0),
        ("open-objects, joined", "references", "references", 1),
        ("open-objects, alone", "references", "references", 0),
        ("open-objects, alone", "response", "caption", 0),
        ("tri-he, joined", "triplets", "triplets", 1),
        ("mementos", "reference", "description", 1),
        ("vidhal-mcqa", "id", "video", 1),
        ("vidhal-mcqa", "captions", "captions", 1),
        ("pope, alone", "image", "image", 0),
        ("chair, joined", "id", "image_id", 0),
        ("chair, joined", "response", "caption", 0),
        ("chair, alone", "reference_objects", "objects", 0),
        ("tri-he, joined", "id", "image_id", 0),
        ("tri-he, joined", "response", "response", 0),
        ("tri-he, joined", "question", "question", 0),
        ("tri-he, alone", "triplets", "triplets", 0),
        ("mementos", "id", "image_name", 0),
        ("mementos", "response", "description", 0),
        ("dash-b", "response", "response", 0),
        ("dash-b", "label", "gt", 0),
        ("dash-b", "object", "object_name", 0),
        ("dash-b", "file", "img_id", 0),
        ("elv-halluc", "response", "model_response", 0),
        ("elv-halluc", "label", "ref_answer", 0),
        ("elv-halluc", "caption_type", "caption_type", 0),
        ("elv-halluc", "aspect", "aspect", 0),
        ("elv-halluc", "image", "video", 0),
        ("event-hallusion", "response", "prediction", 0),
        ("event-hallusion", "label", "answer", 0),
        ("event-hallusion", "id", "id", 0),
        ("event-hallusion", "split", "split", 0),
        ("event-hallusion", "qa", "qa", 0),
        ("event-hallusion", "description", "desc", 0),
        ("event-hallusion", "judgement", "judgement", 0),
        ("openchair", "generated_objs", "generated_objs", 0),
        ("openchair", "judge_texts", "judge_texts", 0),
        ("openchair", "reference", "gt_caption", 0),
        ("openchair", "id", "id", 0),
        ("vidhalluc-bqa", "clip", "clip", 0),
        ("vidhalluc-bqa", "id", "id", 0),
        ("vidhalluc-bqa", "response", "response", 0),
        ("vidhalluc-bqa, joined", "label", "label", 1),
        ("vidhalluc-mcq", "response", "Model Answer", 0),
        ("vidhalluc-mcq", "label", "Correct Answer", 0),
        ("vidhalluc-mcq", "Choices", "Choices", 0),
        ("vidhalluc-tsh", "video", "video", 0),
        ("mmhal", "response", "model_answer", 0),
        ("mmhal", "reference", "gt_answer", 0),
        ("mmhal", "type", "question_type", 0),
        ("mmhal", "review", "review", 0),
        ("mmhal", "id", "image_id", 0),
        ("vqa", "response", "response", 0),
        ("vqa", "accepted", "direct_answers", 1),
        ("argus", "id", "id", 0),
        ("argus", "mode", "mode", 0),
        ("argus", "response", "model_caption", 0),
        ("argus", "human_caption", "human_caption", 0),
        ("argus", "lines", "result_tuple", 0),
        ("hallusion-bench", "response", "response", 0),
        ("hallusion-bench", "label", "gt_answer", 0),
        ("hallusion-bench", "category", "category", 0),
        ("hallusion-bench", "set_id", "set_id", 0),
        ("hallusion-bench", "visual_input", "visual_input", 0),
        ("hallusion-bench, judged", "correctness", "correctness", 0),
    ],
)
def test_a_mapped_key_is_found(name: str, common: str, key: str, place: int) -> None:
    metric, *archives = ARCHIVES[name]
    options = options_of(name) or InputOptions()
    wanted = list(read_items(metric, archives[0], archives[1], options=options))
    archives[place] = renamed(archives[place], key)
    options = replace(options, key_map={common: f"my_{key}"})
    assert list(read_items(metric, archives[0], archives[1], options=options)) == wanted


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("video-hallucer", InputOptions(allow_missing=True)),
        ("video-hallucer", InputOptions(id_key="question_id")),
        ("video-hallucer", InputOptions(key_map={"prompt": "question"})),
        ("video-hallucer", InputOptions(key_map={"category": "set"})),
        ("vidhal-mcqa", InputOptions(key_map={"label": "video"}, own=OPTIONS["vidhal-"].own)),
        ("pope, alone", InputOptions(key_map={"options": "image"})),
        ("event-hallusion", InputOptions(allow_duplicates=True)),
        ("pope, alone", InputOptions(own={"claims_only": True})),
        ("chair", InputOptions(allow_missing=True)),
        ("chair", InputOptions(own={"nouns": "nouns.json"})),
        ("tri-he", InputOptions(join="order")),
        ("mementos", InputOptions(own={"model_key": "gpt"})),
        ("amber", InputOptions(join="order")),
        ("amber", InputOptions(own={"id_map": "ids.json"})),
    ],
)
def test_an_option_that_changes_nothing_is_refused(name: str, options: InputOptions) -> None:
    other = (name, [{"id": 1, "response": "A dog."}], None)
    metric, responses, references = ARCHIVES.get(name, other)
    with pytest.raises(InvalidInputError, match=metric):
        read_items(metric, responses, references, options=options)


def doubled(archive: Any, *more: str) -> Any:
    """Return an archive whose records are there twice, with other ids."""
    if isinstance(archive, dict):
        return {key: doubled(held, *more) for key, held in archive.items()}
    ids = {"question_id", "image_id", "image_name", "img_id", "id", *more}
    return [*archive, *({k: other_id(v) if k in ids else v for k, v in r.items()} for r in archive)]


def other_id(value: Any) -> Any:
    return value + 1 if isinstance(value, int) else f"other {value}"


# A record without a response is unscored, and named in the report.
UNSCORED = {
    *("response", "predict", "caption", "description"),
    *("model_answer", "model_response", "Model Answer"),
}


@pytest.mark.parametrize(
    ("name", "key", "place"),
    [(name, key, place) for name, key, place in cases() if key not in UNSCORED],
)
def test_a_key_that_one_record_lacks_is_an_error(name: str, key: str, place: int) -> None:
    metric, *given = ARCHIVES[name]
    options, ids = options_of(name), ["video" if "vidhal-" in name else "pair_id"]
    archives = [each and doubled(each, *ids) for each in given]
    assert len(read_items(metric, archives[0], archives[1], options=options)) == 2
    archives[place] = with_last_renamed(archives[place], key)
    with pytest.raises(ArchiveError):
        read_items(metric, archives[0], archives[1], options=options)


def with_last_renamed(archive: Any, key: str) -> Any:
    if isinstance(archive, dict):
        return {name: with_last_renamed(held, key) for name, held in archive.items()}
    return [*archive[:-1], renamed(archive[-1], key)]


@pytest.mark.parametrize(
    ("name", "key", "place"),
    [("pope, joined", "image", 1), ("pope, alone", "image", 0), ("video-hallucer", "video", 0)],
)
def test_intervals_never_silently_lose_the_images(name: str, key: str, place: int) -> None:
    metric, *given = ARCHIVES[name]
    archives = [each and doubled(each) for each in given]
    whole = archives[place]
    assert not any(f"my_{key}" in note for note in read_items(metric, *archives).notes)
    archives[place] = renamed(whole, key)
    [note] = read_items(metric, *archives).notes
    assert f"my_{key}" in note, "the found keys"
    archives[place] = with_last_renamed(whole, key)
    with pytest.raises(ArchiveError, match=f"my_{key}"):
        read_items(metric, *archives)


@pytest.mark.parametrize(
    "metric",
    [
        "pope",
        "dash-b",
        "elv-halluc",
        "video-hallucer",
        "event-hallusion",
        "hallusion-bench",
        "chair",
        "tri-he",
        "mementos",
    ],
)
def test_a_mapped_name_that_the_reader_never_reads_is_an_error(metric: str) -> None:
    responses, references = next(rest for name, *rest in ARCHIVES.values() if name == metric)
    with pytest.raises(InvalidInputError, match="foo") as caught:
        read_items(metric, responses, references, options=InputOptions(key_map={"foo": "image"}))
    assert "response" in str(caught.value), "the names that it reads"


def test_a_record_without_the_named_id_lists_its_keys() -> None:
    records = [{"qid": 1, "response": "Yes.", "label": "yes"}, {"response": "No.", "label": "no"}]
    with pytest.raises(ArchiveError) as caught:
        read_items("pope", records, None, options=InputOptions(id_key="qid"))
    assert all(key in str(caught.value) for key in ("qid", "label", "response"))


LABELS = {
    "pope": ("yes", "no"),
    "infact": ("A", "B"),
    "hallusion-bench": ("1", "0"),
    "vidhal-mcqa": ("B", "B"),
}


@pytest.mark.parametrize("metric", list(LABELS))
def test_labels_under_a_key_of_responses_are_not_scored(metric: str) -> None:
    """Tables of some tools hold the label under "answer", and responses under another key."""
    rows = labelled(metric)
    right = {"1": "Yes", "0": "No"}
    others = [{**row, "answer": right.get(label, label)} for row, label in rows]
    responses = ["no", "Yes."] if metric in ("pope", "hallusion-bench") else ["A", "B."]
    given = [{**row, "told": text} for row, text in zip(others, responses, strict=True)]
    with pytest.raises(ArchiveError, match="text_key") as caught:
        read_of(metric, given)
    assert "answer" in str(caught.value)
    assert "told" in str(caught.value)
    for key in ("answer", "told"):
        assert len(read_of(metric, given, text_key=key)) == 2
    assert len(read_of(metric, others)) == 2, "a perfect model"


def labelled(metric: str) -> list[tuple[dict[str, Any], str]]:
    """Return two records without responses, each with its label."""
    _, [first], _ = ARCHIVES[
        {"pope": "pope, alone", "infact": "infact", "hallusion-bench": "hallusion-bench"}.get(
            metric, metric
        )
    ]
    key = {"hallusion-bench": "gt_answer", "vidhal-mcqa": ""}.get(metric, "label")
    rows = doubled([first], "video")
    out = []
    for row, label in zip(rows, LABELS[metric], strict=True):
        rest = {name: held for name, held in row.items() if name != "response"}
        out.append(({**rest, key: label} if key else rest, label))
    return out


def read_of(metric: str, rows: list[dict[str, Any]], **more: Any) -> Any:
    shown = doubled([SHOWN], "video") if "vidhal" in metric else None
    options = replace(options_of(metric) or InputOptions(), **more)
    return read_items(metric, rows, shown, options=options)


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("pope, joined", "Is there a dog? Please answer yes or no."),
        ("pope, alone", "Is there a dog?\nAnswer the question using a single word."),
        ("dash-b", "Can you see a cup in this image? Please answer only with yes or no."),
        ("hallusion-bench", "Is the dog larger than the cat?"),
        ("infact", "Which of them? A. a dog, B. a cat"),
    ],
)
def test_questions_in_place_of_responses_are_not_scored(name: str, question: str) -> None:
    metric, [first], references = ARCHIVES[name]
    rest = {key: held for key, held in first.items() if key not in ("response", "question")}
    with pytest.raises(ArchiveError, match="questions"):
        read_items(metric, [{**rest, "text": question, "told": "Yes"}], references)


@pytest.mark.parametrize("value", [None, ""])
def test_an_empty_order_sensitive_is_an_error(value: str | None) -> None:
    rows = [{**ORDERED, **RUN, "operator": name} for name in ("base", "shuffle", "reverse")]
    assert len(read_items("infact", rows, None)) == 1
    with pytest.raises(ArchiveError, match="order_sensitive"):
        read_items("infact", [{**row, "order_sensitive": value} for row in rows], None)


def test_a_question_of_a_video_that_is_twice_in_a_file_is_an_error() -> None:
    asked = {"question": "Is there a dog?", "answer": "Yes.", "prediction": "Yes."}
    first = {"id": "1", "split": "entire", **asked}
    rows = [first, {**first, "question": "Is there a cat?"}]
    assert len(read_items("event-hallusion", rows, None)) == 1
    with pytest.raises(ArchiveError, match=r"more than once.*Is there a dog"):
        read_items("event-hallusion", [*rows, first], None)


@pytest.mark.parametrize("label", [1, True, "yes", "N/A", "A. running", "a", "AE"])
def test_labels_of_choices_are_letters(label: object) -> None:
    for known in ("A", "AC", "A, C", "B and D", " A,B,C,D ", "None"):
        assert len(read_items("vidhalluc-mcq", [{**CHOICE, "Correct Answer": known}], None)) == 1
    with pytest.raises(ArchiveError, match="labels are not letters A to D"):
        read_items("vidhalluc-mcq", [{**CHOICE, "Correct Answer": label}], None)


@pytest.mark.parametrize("texts", [{}, {"1": "yes", "2": "no"}, ["yes"], "yes", 1])
def test_judge_texts_are_a_list_as_objects_are(texts: object) -> None:
    [row] = ARCHIVES["openchair"][1]
    with pytest.raises(ArchiveError, match="judge_texts of"):
        read_items("openchair", [{**row, "judge_texts": texts}], None)


def test_labels_that_some_judged_answers_lack_are_noted() -> None:
    [first] = ARCHIVES["hallusion-bench, judged"][1]
    rows = [{**first, "gt_answer": "1"}, {**first, "question_id": "1"}]
    [note] = read_items("hallusion-bench", rows, None).notes
    assert note.startswith("1 of 2 answers have no gt_answer: tried gt_answer; found category")


# Keys of the ids that the records of ``results`` are under.
IDS = {"question_id", "video", "image_id", "image_name", "id"}


@pytest.mark.parametrize("name", list(ARCHIVES))
@pytest.mark.parametrize("in_file", [True, False], ids=["a file", "a value"])
def test_results_by_id_beside_the_models_name_are_read(
    name: str, in_file: bool, tmp_path: Path
) -> None:
    metric, rows, references = ARCHIVES[name]
    options = options_of(name)
    wanted = list(read_items(metric, rows, references, options=options))
    # Several answers of one video or question, and images of several objects, are under other ids.
    own = len(rows) > 1 or metric in ("hallusion-bench", "dash-b")
    ids = set() if own else IDS
    held = rows if isinstance(rows, dict) else dict(by_id(*row, ids) for row in enumerate(rows))
    given: Any = {"model": "m", "results": held}
    if in_file:
        given = tmp_path / "answers.json"
        given.write_text(json.dumps({"model": "m", "results": held}))
    assert list(read_items(metric, given, references, options=options)) == wanted


@pytest.mark.parametrize("name", [k for k, held in ARCHIVES.items() if isinstance(held[1], list)])
def test_a_list_of_records_beside_the_models_name_is_read(name: str, tmp_path: Path) -> None:
    metric, rows, references = ARCHIVES[name]
    options, path = options_of(name), tmp_path / "answers.json"
    path.write_text(json.dumps({"model": "m", "results": rows, "config": {"seed": 1}}))
    wanted = list(read_items(metric, rows, references, options=options))
    assert list(read_items(metric, path, references, options=options)) == wanted


@pytest.mark.parametrize(
    ("name", "key", "cell", "joined"),
    [
        ("vqa", "direct_answers", '["cat", "kitten"]', True),
        ("vqa", "direct_answers", "['cat', 'kitten']", False),
        ("mmhal", "image_content", '["Cap"]', False),
    ],
)
def test_lists_in_cells_of_tables_are_lists(name: str, key: str, cell: str, joined: bool) -> None:
    metric, [row], references = ARCHIVES[name]
    [asked] = references or [{}]

    def read(value: object) -> list[Any]:
        held = {**asked, key: value}
        responses, questions = ([row], [held]) if joined else ([{**row, **held}], None)
        return list(read_items(metric, responses, questions))

    assert read(cell) == read(json.loads(cell.replace("'", '"')))


def by_id(position: int, row: dict[str, Any], ids: set[str]) -> tuple[str, dict[str, Any]]:
    key = next(filter(ids.__contains__, row), "")
    rest = {name: value for name, value in row.items() if name != key}
    return str(row.get(key, f"temporal_{position}")), rest


@pytest.mark.parametrize("key", ["desc", "judgement"])
def test_what_descriptions_lack_is_noted_with_the_tried_and_the_found_keys(key: str) -> None:
    assert not read_items("event-hallusion", [VIDEO], None).notes
    [note] = read_items("event-hallusion", renamed([VIDEO], key), None).notes
    assert f"my_{key}" in note, "the found keys"
    assert key in note.replace(f"my_{key}", ""), "the tried keys"


def test_sets_beside_the_models_name_are_read() -> None:
    content = {"model": "m", "results": {"temporal": [PAIR]}}
    assert len(read_items("video-hallucer", content, None)) == 1


FLAT = ARCHIVES["video-hallucer, flat"][1]


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_flat_questions_of_pairs_score_like_nested_ones(suffix: str, tmp_path: Path) -> None:
    [nested] = read_items("video-hallucer", {"temporal": [PAIR]}, None)
    rows = [{key: v for key, v in row.items() if key != "set"} for row in reversed(FLAT)]
    lines = [json.dumps(row) for row in rows]
    if suffix == "csv":
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    (tmp_path / f"temporal.{suffix}").write_text("\n".join(lines))
    [flat] = read_items("video-hallucer", tmp_path / f"temporal.{suffix}", None)
    assert (flat.answers, flat.fields, flat.group_id) == (  # type: ignore[attr-defined]  # answers
        nested.answers,  # type: ignore[attr-defined]  # answers
        nested.fields,
        nested.group_id,
    )


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (FLAT[:1], ["pairs have no hallucination answer", "temporal/7"]),
        ([*FLAT, FLAT[0]], ["answered more than once", "temporal/7 (basic)"]),
        ([FLAT[0], {**FLAT[1], "role": "third"}], ["temporal/7 ('third')", "hallucination"]),
        ([{k: v for k, v in FLAT[0].items() if k != "pair_id"}], ["pair_id", "basic", "role"]),
    ],
    ids=["half", "twice", "unknown", "no pair"],
)
def test_flat_questions_without_their_pair_are_refused(rows: list[Any], said: list[str]) -> None:
    with pytest.raises(ArchiveError) as caught:
        read_items("video-hallucer", rows, None)
    assert [part for part in said if part not in str(caught.value)] == []


def test_the_named_id_is_looked_up_in_both_files() -> None:
    answers, questions = ({**row, "question_id": None, "qid": 5} for row in (ANSWERED, QUESTION))
    archives = [[{k: v for k, v in row.items() if v is not None}] for row in (answers, questions)]
    for given in (archives[1], [QUESTION | {"question_id": 5}]):
        [item] = read_items("pope", archives[0], given, options=InputOptions(id_key="qid"))
        assert (item.id, item.group_id) == ("5", "1.jpg")


def test_a_named_value_that_neither_file_has_is_an_error_with_the_keys_of_both() -> None:
    options = InputOptions(key_map={"label": "gold"})
    with pytest.raises(ArchiveError, match="gold") as caught:
        read_items("pope", [ANSWERED], [QUESTION], options=options)
    assert all(key in str(caught.value) for key in ("response", "image"))


def test_descriptions_without_any_reference_list_their_keys() -> None:
    records = [{"image_name": "1.png", "description": "A dog runs.", "gt": "A dog jumps."}]
    with pytest.raises(ArchiveError, match="gt") as caught:
        read_items("mementos", records, None)
    assert "reference" in str(caught.value)
    options = InputOptions(allow_unknown=True)
    assert len(read_items("mementos", records, None, options=options)) == 1


def test_different_questions_of_one_image_are_not_called_duplicates_to_remove() -> None:
    records = [{"id": "1.jpg", "response": text, "label": "yes"} for text in ("Yes.", "No.")]
    with pytest.raises(ArchiveError, match="different questions") as caught:
        read_items("pope", records, None)
    assert "id_key" in str(caught.value)


def test_places_of_tables_are_whole_numbers_too() -> None:
    words = {**FIGURE, "response": "Yes."}
    places = ("set_id", "figure_id", "question_id", "visual_input", "gt_answer")
    numbers = {**words, **{key: float(words[key]) for key in places}}
    assert list(read_items("hallusion-bench", [numbers], None)) == list(
        read_items("hallusion-bench", [words], None)
    )

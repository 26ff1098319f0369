"""Files of closed questions: DASH-B, ELV-Halluc, VideoHallucer, VQA, and VidHalluc's four tasks."""

from __future__ import annotations

from collections.abc import Mapping

from .archive_reader import ArchiveReader


def _lists_dash_b(values: Mapping[str, object]) -> bool:
    """Return whether an object maps datasets to objects with lists of image files."""
    held = [value for key, value in values.items() if key != "id"]
    return bool(held) and all(isinstance(each, Mapping) and _maps_to_files(each) for each in held)


def _maps_to_files(objects: Mapping[str, object]) -> bool:
    return bool(objects) and all(
        isinstance(files, list)
        and bool(files)
        and all(isinstance(file, str) and "." in file for file in files)
        for files in objects.values()
    )


_ANSWERED = frozenset({"Correct Answer", "Model Answer"})
_CHOICES = "Choices"


def _is_binary(values: Mapping[str, object]) -> bool:
    """Return whether an object maps ids to questions with clips."""
    questions = [each for held in values.values() if isinstance(held, list) for each in held]
    lists = all(isinstance(held, list) for key, held in values.items() if key != "id")
    return (
        bool(questions)
        and lists
        and all(
            isinstance(each, Mapping) and {"q"} <= each.keys() <= {"q", "a"} for each in questions
        )
    )


def _is_choice(values: Mapping[str, object]) -> bool:
    """Return whether a record is a clip with choices, or maps clips to such records."""
    clips = [each for key, each in values.items() if key != "id" and isinstance(each, Mapping)]
    if values.keys() >= _ANSWERED:
        return _CHOICES in values
    return bool(clips) and all(each.keys() >= {_CHOICES, *_ANSWERED} for each in clips)


def _is_order(values: Mapping[str, object]) -> bool:
    return values.keys() >= _ANSWERED and _CHOICES not in values


def _states_change(values: Mapping[str, object]) -> bool:
    text = values.get("text") or values.get("response")
    return isinstance(text, str) and text.casefold().startswith("scene change:")


READERS = (
    ArchiveReader(
        name="DASH-B's answers",
        keys=("img_id", "object_name", "gt", "response"),
        metrics=("dash-b",),
        fields={"id": "", "response": "response", "label": "gt"},
    ),
    ArchiveReader(
        name="DASH-B's list of images",
        keys=(),
        metrics=("dash-b",),
        fields={"id": ""},
        role="references",
        matches=_lists_dash_b,
        shape="lists of image files by dataset and object",
    ),
    ArchiveReader(
        name="ELV-Halluc's answers",
        keys=("caption_type", "aspect", "ref_answer", "model_response"),
        metrics=("elv-halluc",),
        fields={"id": "", "response": "model_response", "label": "ref_answer"},
    ),
    ArchiveReader(
        name="VideoHallucer's questions, one a record",
        keys=("pair_id", "role", "answer", "predict"),
        metrics=("video-hallucer",),
        fields={"id": "", "response": "predict", "label": "answer"},
    ),
    ArchiveReader(
        name="answers with those of people, and judgements",
        keys=("question_id", "direct_answers", "response", "judgement"),
        metrics=("vqa",),
        fields={"id": "question_id", "response": "response"},
    ),
    ArchiveReader(
        name="VidHalluc's binary questions",
        keys=(),
        matches=_is_binary,
        shape="questions with q and a for each id",
        metrics=("vidhalluc-bqa",),
        fields={"id": "", "response": ""},
        arguments="-R binary_qa.json",
        also_references=True,
    ),
    ArchiveReader(
        name="VidHalluc's multiple choices",
        keys=(),
        matches=_is_choice,
        shape="Choices, Correct Answer and Model Answer for each clip",
        metrics=("vidhalluc-mcq",),
        fields={"id": "id"},
    ),
    ArchiveReader(
        name="VidHalluc's orders of actions",
        keys=tuple(sorted(_ANSWERED)),
        matches=_is_order,
        metrics=("vidhalluc-tsh",),
        fields={"id": "id", "response": "Model Answer"},
    ),
    ArchiveReader(
        name="VidHalluc's changes of the scene",
        keys=("Scene change", "Locations"),
        metrics=("vidhalluc-sth",),
        role="references",
        fields={"id": "id"},
    ),
    ArchiveReader(
        name="answers about changes of the scene",
        keys=(),
        matches=_states_change,
        shape="a text that begins with Scene change",
        metrics=("vidhalluc-sth",),
        any_metric=True,
        fields={"id": "id"},
        arguments="-R scene_changes.json --similarities similarities.json",
    ),
    ArchiveReader(
        name="similarities of places",
        keys=("model", "truth", "similarity"),
        role="companion",
        remedy="give it with InputOptions(own=dict(similarities=…)), beside VidHalluc's answers",
    ),
)

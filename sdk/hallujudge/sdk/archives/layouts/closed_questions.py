"""Files of closed questions whose layouts say more than the keys of their declarations.

What harnesses write of one of these benchmarks alone is here too, so that it is in one place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..record_values import structured
from ..records import LISTED_TEXT
from .archive_reader import ArchiveReader, converting, mapping_at
from .harnesses import lmms_sample, response_of_output
from .toolkits import vlmevalkit_predictions, vlmevalkit_values


def _lists_dash_b(values: Mapping[str, object]) -> bool:
    """Return whether an object maps datasets to objects with lists of image files."""
    # The reader of records gives each entry of an object its key as an id.
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


def _is_event_hallusion(values: Mapping[str, object]) -> bool:
    """Return whether an object maps splits to videos with questions."""
    if not values or not values.keys() <= {"id", "entire", "interleave", "misleading"}:
        return False
    videos = [mapping_at(values, split) for split in values if split != "id"]
    found = [isinstance(each, Mapping) and "qa" in each for of in videos for each in of.values()]
    return bool(videos) and all(found)


def _is_event_video(values: Mapping[str, object]) -> bool:
    """Return whether the questions of a record are those of a video, with their answers."""
    asked = structured(values.get("qa"))
    return (
        isinstance(asked, list)
        and bool(asked)
        and all(
            isinstance(each, Mapping) and {"question", "answer"} <= each.keys() for each in asked
        )
    )


def _is_video_hallucer(values: Mapping[str, object]) -> bool:
    """Return whether an object maps sets to pairs of questions."""
    sets = [value for key, value in values.items() if key != "id"]
    # The first pair shows the form of all.
    pairs = [pair for held in sets if isinstance(held, list) for pair in held[:1]]
    return (
        bool(sets)
        and len(pairs) == len(sets)
        and all(
            isinstance(pair, Mapping) and {"basic", "hallucination"} <= pair.keys()
            for pair in pairs
        )
    )


def _chat_answer(values: Mapping[str, object]) -> Mapping[str, object]:
    """Return the text of a chat completion that the record holds whole."""
    return {"response": response_of_output(mapping_at(values, "api_response"))}


def _letter_prediction(values: Mapping[str, object]) -> Mapping[str, object]:
    # The answer may be the option with its text, of which the letter is the label.
    letter = str(values.get("answer")).strip("( ")[:1]
    return {**vlmevalkit_values(values), "label": letter}


# Keys of responses, which files of questions lack.
_RESPONSES = frozenset(
    {"response", "prediction", "model_answer", "model_prediction", "output", "text"}
)


def _questions(name: str, metric: str, id_key: str, keys: str) -> ArchiveReader:
    """Return the reader of a benchmark's questions: records with its keys, and no response."""
    needed = tuple(keys.split())
    return ArchiveReader(
        name=name,
        keys=needed,
        metrics=(metric,),
        role="references",
        # CRPE's questions are under text, a usual key of responses.
        matches=_RESPONSES.difference(needed).isdisjoint,
        fields={"id": id_key},
    )


_FOUR_OPTIONS = re.compile(r"^A\. .*\nB\. .*\nC\. .*\nD\. ", re.MULTILINE)
# An article is no letter: files of other benchmarks are lists of texts too.
_SHORT_ANSWER = re.compile(r"\W*(?:(?:yes|no)\b|[ab](?=\W*$|[.:)]))", re.IGNORECASE)
_TYPE = re.compile("yes_no|multiple_choice")
_CATEGORY = re.compile("exist|subject|predicate|object")
_ASKED = "-R questions.json"
LMMS_EVAL_READERS = (
    lmms_sample("NaturalBench", "naturalbench_G_ACC", "naturalbench", arguments=_ASKED),
    lmms_sample(
        "VLMs are Biased",
        "accuracy_by_topic",
        "vlms-are-biased",
        arguments=_ASKED,
        variant="lmms-eval",
    ),
)
VLMEVALKIT_READERS = (
    *vlmevalkit_predictions("of NaturalBench", "naturalbench", "type", _TYPE.fullmatch),
    *vlmevalkit_predictions("of CRPE", "crpe", "category", _CATEGORY.fullmatch, _letter_prediction),
)
READERS = (
    ArchiveReader(
        name="LLaVA's answers to questions with four options",
        keys=("question_id", "prompt", "text"),
        matches=lambda values: _FOUR_OPTIONS.search(str(values["prompt"])) is not None,
        shape="a prompt with the options A to D",
        metrics=("crpe",),
        any_metric=True,
        fields={"id": "question_id", "response": "text"},
        arguments="-R crpe_relation.jsonl",
        model_key="model_id",
    ),
    _questions(
        "CRPE's questions", "crpe", "question_id", "question_id text category correct_option"
    ),
    ArchiveReader(
        name="VLMs are Biased's results, with chat completions",
        keys=("ground_truth", "expected_bias", "topic", "api_response"),
        metrics=("vlms-are-biased",),
        convert=converting(_chat_answer),
        fields={"id": "ID"},
        model_key="api_response.model",
    ),
    _questions(
        "VLMs are Biased's questions", "vlms-are-biased", "ID", "ground_truth expected_bias topic"
    ),
    ArchiveReader(
        name="NaturalBench's answers, a list of texts",
        keys=(LISTED_TEXT,),
        matches=lambda values: _SHORT_ANSWER.match(str(values[LISTED_TEXT])) is not None,
        shape="a text that begins with yes, no, A or B",
        metrics=("naturalbench",),
        fields={"id": "", "response": LISTED_TEXT},
        arguments=_ASKED,
    ),
    _questions(
        "NaturalBench's groups",
        "naturalbench",
        "Index",
        "Index Question_0 Question_1 Question_Type",
    ),
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
    _questions(
        "questions with the answers of people", "vqa", "question_id", "question_id direct_answers"
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
        table="similarities",
    ),
    ArchiveReader(
        name="a HallusionBench file",
        keys=("model_prediction", "set_id", "figure_id", "gt_answer"),
        metrics=("hallusion-bench",),
        also_references=True,
        fields={"id": "", "response": "model_prediction", "label": "gt_answer"},
    ),
    _questions("HallusionBench's questions", "hallusion-bench", "", "set_id figure_id gt_answer"),
    ArchiveReader(
        name="a HallusionBench file without labels",
        keys=("model_prediction", "set_id", "figure_id"),
        metrics=("hallusion-bench",),
        fields={"id": "", "response": "model_prediction"},
        arguments="-R HallusionBench.json",
    ),
    ArchiveReader(
        name="a file of VideoHallucer's answers",
        keys=("basic", "hallucination"),
        metrics=("video-hallucer",),
        fields={"id": ""},
    ),
    ArchiveReader(
        name="a file of VideoHallucer's answers",
        keys=(),
        matches=_is_video_hallucer,
        shape="sets of pairs of questions",
        metrics=("video-hallucer",),
        fields={"id": ""},
    ),
    ArchiveReader(
        name="EventHallusion's predictions",
        keys=("qa",),
        matches=_is_event_video,
        metrics=("event-hallusion",),
    ),
    ArchiveReader(
        name="EventHallusion's predictions",
        keys=(),
        matches=_is_event_hallusion,
        shape="splits of videos with qa",
        metrics=("event-hallusion",),
        fields={"id": ""},
    ),
)

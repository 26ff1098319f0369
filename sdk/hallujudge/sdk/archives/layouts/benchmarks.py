"""Files of benchmarks and of their released scripts, such as outputs of the CHAIR scripts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from ..records import have_digits
from .archive_reader import ArchiveReader, converting, yes_or_no

_OBJECTS = "-R objects.json"


def _responses(
    name: str, keys: str, *metrics: str, fields: str = "", **more: object
) -> ArchiveReader:
    """Return a reader of responses; ``fields`` are common keys with the layout's, ``id=video``."""
    return ArchiveReader(
        name=name,
        keys=tuple(keys.split()),
        metrics=metrics,
        fields=dict(pair.split("=", 1) for pair in fields.split()),
        **more,  # type: ignore[arg-type]  # fields of the reader
    )


def _references(name: str, keys: str, *metrics: str, **more: Any) -> ArchiveReader:
    return _responses(name, keys, *metrics, role="references", **more)


def _unread(name: str, keys: str, remedy: str, **more: object) -> ArchiveReader:
    return _responses(name, keys, fields="", remedy=remedy, role="companion", **more)


_YES_NO_QUESTIONS = ("is ", "are ", "does ", "do ", "can ", "was ", "were ", "has ", "have ")


def _asks_yes_or_no(values: Mapping[str, object]) -> bool:
    """Return whether a prompt is a yes/no question, or the whole answer is yes or no."""
    prompt = str(values.get("prompt", "")).lstrip().casefold()
    return prompt.startswith(_YES_NO_QUESTIONS) or yes_or_no(str(values.get("text")).rstrip(". "))


def _has_answer(values: Mapping[str, object]) -> bool:
    """Return whether a record has an answer apart from its text, which then is the question."""
    return not {"response", "output", "prediction", "answer"}.isdisjoint(values)


def _is_question(values: Mapping[str, object]) -> bool:
    """Return whether a record is a question, under its text, without an answer."""
    if _has_answer(values):
        return False
    text = str(values.get("text"))
    return "?" in text or text.lstrip().casefold().startswith(_YES_NO_QUESTIONS)


def _letters(value: object) -> list[str]:
    """Return the letters of an order, such as ``A, B, C`` or a list; empty if it is another."""
    parts = value if isinstance(value, list) else str(value).split(",")
    letters = [part.strip() for part in parts if isinstance(part, str)]
    return letters if all(len(letter) == 1 and letter.isalpha() for letter in letters) else []


def _all_letters(values: Mapping[str, object], *, least: int, most: int) -> bool:
    """Return whether an object maps videos, named with a number, to one or more letters."""
    # Thousands of texts have few distinct ones.
    texts = {value for value in values.values() if isinstance(value, str)}
    if not values or not all(least <= len(_letters(text)) <= most for text in texts):
        return False
    others = [value for value in values.values() if not isinstance(value, str)]
    return all(least <= len(_letters(value)) <= most for value in others) and have_digits(values)


def _is_display(values: Mapping[str, object]) -> bool:
    """Return whether an object maps each video to letters with ranks."""
    return bool(values) and all(
        isinstance(shown, Mapping)
        and bool(shown)
        and all(len(letter) == 1 and str(rank).isdecimal() for letter, rank in shown.items())
        for shown in values.values()
    )


def _maps_to_words(values: Mapping[str, object], *, with_digits: bool) -> bool:
    return bool(values) and all(
        isinstance(words, list)
        and all(isinstance(word, str) for word in words)
        and any(c.isdigit() for c in key) is with_digits
        for key, words in values.items()
    )


def _are_scene_graphs(values: Mapping[str, object]) -> bool:
    """Return whether an object maps each image to a list of three texts for each triplet."""
    # An image without triplets tells nothing of the layout.
    graphs = [graph for graph in values.values() if graph != []]
    return bool(graphs) and all(
        isinstance(graph, list)
        and all(
            isinstance(triplet, list)
            and len(triplet) == _PARTS_OF_A_TRIPLET
            and all(isinstance(part, str) for part in triplet)
            for triplet in graph
        )
        for graph in graphs
    )


def _have_verdicts(values: Mapping[str, object]) -> bool:
    """Return whether the claims of a record came with verdicts."""
    claims = values.get("claims")
    return isinstance(claims, list) and all(
        isinstance(each, Mapping) and {"claim", "verdict"} <= each.keys() for each in claims
    )


def _vidhal(what: str, metric: str, shape: str, *, least: int, most: int) -> ArchiveReader:
    """Return a reader of letters by video, with some number of letters each."""
    return _responses(
        f"VidHal's {what} by video",
        "",
        metric,
        fields="id= response=",
        matches=lambda values: _all_letters(values, least=least, most=most),
        shape=f"{shape} for each video",
        any_metric=True,
        arguments="-R annotations.json --options options.json",
    )


def _aloha_caption(values: Mapping[str, object]) -> Mapping[str, object]:
    """Return a caption, whose image is named by its file."""
    path = values.get("image_path")
    image = PurePosixPath(path).name if isinstance(path, str) else path
    return {"id": image, "image_id": image, "response": values.get("caption")}


_REFCHECKER = frozenset(
    ["id", "question", "response", "reference", "context", "claims", "Y", "ys", "model"]
)
# Keys of a response that is stored with the turns that led to it.
_ANSWERS = frozenset(["response", "output", "prediction", "answer", "text", "caption", "input"])
_POPE_ANSWER = frozenset(["question_id", "image", "question", "answer"])
_IN_OTHERS = {"question", "claims", "label", "reference_objects", "objects", "gt_objects"}
_PARTS_OF_A_TRIPLET = 3
_GIVE_RESPONSES = "give the responses that it was made from"


def _conversation(turns: str, text: str) -> ArchiveReader:
    """Return a reader that names conversations, whose turns may be references or responses."""
    return ArchiveReader(
        name="a list of conversations",
        keys=(turns,),
        matches=lambda values: isinstance(values[turns], list) and not _ANSWERS & values.keys(),
        any_metric=True,
        remedy="name the turn that is the response with InputOptions(key_map=…), such as the last "
        f"one: response={turns}.-1.{text}",
    )


READERS = (
    _conversation("conversations", "value"),
    _conversation("messages", "content"),
    _unread(
        "an items.jsonl that hallujudge score wrote",
        "outcome scores evidence group_id",
        _GIVE_RESPONSES,
    ),
    _unread(
        "a manifest.json that hallujudge score wrote",
        "format release signature inputs settings run",
        _GIVE_RESPONSES,
    ),
    _unread(
        "a report that hallujudge wrote",
        "metric variant signature scores",
        _GIVE_RESPONSES,
    ),
    _unread(
        "a review of two LLaVA answers by a judge",
        "question_id answer1_id answer2_id",
        "give the answers",
    ),
    _references("a COCO annotation file", "images annotations", "chair"),
    _references("VidHal's annotations", "video captions", "vidhal-mcqa", "vidhal-ordering"),
    _references(
        "a POPE question file",
        "image text label",
        "pope",
        fields="id=question_id label=label",
        matches=_is_question,
    ),
    _responses(
        "a file of POPE's answers with their labels",
        "image text label",
        "pope",
        fields="id=question_id response=text label=label",
        matches=lambda values: yes_or_no(values.get("label")) and not _has_answer(values),
    ),
    _references(
        "a LLaVA question file, which has no labels",
        "question_id image text category",
        "pope",
        fields="id=question_id",
        matches=_is_question,
        arguments="-R coco_pope_random.json",
    ),
    _responses(
        "ARGUS' judged caption of a clip",
        "human_caption model_caption result_tuple",
        "argus",
        fields="id= response=model_caption",
    ),
    _responses(
        "MMHal-Bench's answers with their reviews",
        "question_type gt_answer model_answer review",
        "mmhal",
        fields="id=image_id response=model_answer",
    ),
    _responses(
        "MMHal-Bench's answers",
        "question_type gt_answer model_answer",
        "mmhal",
        fields="id=image_id response=model_answer",
        arguments="--reviews reviews.json",
    ),
    _unread(
        "a judge's chat completions, such as MMHal-Bench's reviews",
        "choices object model",
        "give it with InputOptions(own=dict(reviews=…)), beside MMHal-Bench's answers",
        table="reviews",
    ),
    _responses("OpenCHAIR's captions with their objects", "generated_objs", "openchair"),
    _references("AMBER's annotation file", "id type truth hallu", "amber", fields="id=id"),
    _responses(
        "Tri-HE's own file",
        "instance triplets",
        "tri-he",
        arguments="--model-key MODEL",
        also_references=True,
    ),
    _responses(
        "a LLaVA answer file of yes/no questions",
        "question_id prompt text",
        "pope",
        fields="id=question_id response=text",
        matches=_asks_yes_or_no,
        any_metric=True,
        arguments="-R questions.jsonl",
        model_key="model_id",
    ),
    _responses(
        "a LLaVA answer file",
        "question_id prompt text",
        "chair",
        "tri-he",
        fields="id=question_id response=text",
        any_metric=True,
        arguments=f"{_OBJECTS} --id-map image_ids.json",
        model_key="model_id",
    ),
    _responses("a file of INFACT's answers", "question_id operator", "infact", fields="id="),
    *(
        _responses(
            "a file of Mementos descriptions",
            f"{key} description",
            "mementos",
            fields=f"id={key} response=description",
            arguments="-R gt_description.csv",
            also_references=True,
        )
        for key in ("image_name", "image")
    ),
    _references(
        "a file of Mementos' human descriptions",
        "image_name gt_description",
        "mementos",
        fields="id=image_name",
    ),
    _vidhal("chosen letters", "vidhal-mcqa", "one letter", least=1, most=1),
    _vidhal("orders of letters", "vidhal-ordering", "an order of letters", least=2, most=26),
    _unread(
        "VidHal's display order",
        "",
        "give it with InputOptions(own=dict(options=…)), beside VidHal's answers",
        table="options",
        matches=_is_display,
        shape="letters with ranks for each video",
    ),
    _unread(
        "AMBER's nouns of descriptions",
        "id nouns",
        "give it with InputOptions(own=dict(nouns=…)), beside answers",
        table="nouns",
    ),
    _unread(
        "AMBER's questions",
        "id image query",
        "give it with InputOptions(own=dict(questions=…)), beside answers",
        table="questions",
    ),
    _responses(
        "claims with verdicts of a judge that sees",
        "claims",
        "seen-claims",
        matches=_have_verdicts,
    ),
    _responses(
        "claims of answers, for Tri-HE",
        "image_id claims",
        "tri-he",
        fields="id=",
        any_metric=True,
        arguments="-R scene_graphs.json",
    ),
    _references(
        "scene graphs of images",
        "",
        "tri-he",
        fields="id= response=",
        matches=_are_scene_graphs,
        shape="a list of triplets for each image",
    ),
    _references(
        "objects of images",
        "",
        "chair",
        "object-halbench",
        fields="id= response=",
        matches=lambda values: _maps_to_words(values, with_digits=True),
        shape="a list of names for each image",
    ),
    _unread(
        "a table of words with lists of words, such as AMBER's relation.json",
        "",
        "give it beside AMBER's answers, with InputOptions(own=dict(associations=…))",
        table="associations",
        matches=lambda values: _maps_to_words(values, with_digits=False),
        shape="a list of words for each word",
    ),
    _unread(
        "a THRONE response file",
        "responses",
        "no metric reads THRONE yet",
        matches=lambda values: "metric" not in values,
    ),
    _unread(
        "a FaithScore annotation file",
        "id answer stage",
        "no metric reads FaithScore yet",
    ),
    _unread(
        "a RefChecker file",
        "response question reference",
        "no metric compares responses with a text of reference yet",
        matches=lambda values: values.keys() <= _REFCHECKER,
    ),
    _responses(
        "a file of ALOHa's captions",
        "caption references image_path",
        "chair",
        fields="id=image_path response=caption",
        any_metric=True,
        arguments=_OBJECTS,
        convert=converting(_aloha_caption),
    ),
    _responses(
        "a file of answers to POPE's questions",
        "image question answer",
        "pope",
        fields="id= response=answer",
        matches=lambda values: values.keys() <= _POPE_ANSWER and _asks(values),
        arguments="-R questions.json",
    ),
    _responses(
        "POPE's answer file, whose answers are in the order of the questions",
        "question answer",
        "pope",
        fields="response=answer",
        matches=lambda values: values.keys() == {"question", "answer"} and _asks(values),
        arguments="-R questions.json --join order",
    ),
    _responses(
        "Object HalBench's answers with their objects",
        "image_id answer objs",
        "object-halbench",
        fields="id=image_id response=answer",
        arguments=_OBJECTS,
    ),
    _responses(
        "captions with reference captions",
        "image_id caption references",
        "open-objects",
        fields="id=image_id response=caption",
        any_metric=True,
    ),
    _references(
        "reference captions of images",
        "image_id references",
        "open-objects",
        fields="id=image_id",
        matches=_ANSWERS.isdisjoint,
    ),
    _responses(
        "captions by image",
        "image_id caption",
        "chair",
        fields="id=image_id response=caption",
        # Captions with the objects of their images are plain records.
        matches=lambda values: _IN_OTHERS.isdisjoint(values),
        any_metric=True,
        arguments=_OBJECTS,
    ),
    _responses(
        "AMBER's answers",
        "id response",
        "amber",
        fields="id=id response=response",
        matches=lambda values: values.keys() <= {"id", "response", "nouns"},
        any_metric=True,
        arguments="-R annotations.json",
    ),
)


def _asks(values: Mapping[str, object]) -> bool:
    return _asks_yes_or_no({"text": values.get("answer"), "prompt": values.get("question")})


def _script_sentence(values: Mapping[str, object]) -> Mapping[str, object]:
    """Return a caption of a script's output, with the objects that it was compared with."""
    return {
        "id": values.get("image_id"),
        "image_id": values.get("image_id"),
        "response": values.get("caption"),
        "reference_objects": values.get("mscoco_gt_words"),
        # Object HalBench's script writes the objects that it counted here.
        "objs": values.get("words"),
    }


def _has_caption_scores(values: Mapping[str, object]) -> bool:
    return bool({"CIDEr", "METEOR", "SPICE", "ROUGE_L", "Bleu_1"} & values.keys())


CHAIR_SCRIPT_READERS = (
    _responses(
        "an output of a CHAIR script, with captions and reference objects",
        "image_id caption mscoco_gt_words",
        "chair",
        any_metric=True,
        convert=converting(_script_sentence),
    ),
    _responses(
        "an output of a CHAIR script, with captions but without reference objects",
        "image_id caption mscoco_hallucinated_words",
        "chair",
        convert=converting(_script_sentence),
        arguments=_OBJECTS,
    ),
    _responses(
        "captions with scores of a caption metric (imgToEval)",
        "image_id caption",
        "chair",
        fields="id=image_id response=caption",
        matches=_has_caption_scores,
        arguments=_OBJECTS,
    ),
)

"""A key that an archive lacks is an error, never an answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from support.keyed_archives import ARCHIVES, MADE, OPTIONS, doubled, options_of, renamed

from hallujudge.metrics.families import metric_names
from hallujudge.sdk.archives import read_items
from hallujudge.sdk.archives.inputs import InputOptions
from hallujudge.sdk.errors import ArchiveError, InvalidInputError

# What an archive may lack: intervals then treat an item as an image of its own. Descriptions and
# judgements count apart from answers. Objects may come from the answer's words.
OPTIONAL = {
    *("image", "video", "text", "question", "Question", "prompt"),
    *("desc", "judgement", "review", "objs"),
    *("gt_caption", "generated_caption", "judge_texts"),
    *("figure_path", "Video Path", "score", "Correctness"),
}


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
                if (name, key) not in (
                    ("pope, alone", "question_id"),
                    ("openchair", "id"),
                ):
                    yield name, key, place


def test_every_registered_metric_has_an_archive_whose_keys_are_renamed() -> None:
    assert {metric for metric, *_ in ARCHIVES.values()} == set(metric_names())
    assert {ARCHIVES[name][0] for name, _, _ in cases()} == set(metric_names())


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


# Not those that read further keys of a record too, whatever their names.
READ_BY_KEYS = {name: declared.keys for name, declared in MADE.items() if not declared.complete}


def made_keys() -> Iterator[tuple[str, str, str, int]]:
    """Yield the keys of archives that are made from examples, each with its common name."""
    for name, keys in READ_BY_KEYS.items():
        _, [first, *_], _ = ARCHIVES[name]
        commons = {"response": keys.response, "label": keys.label, **keys.fields}
        for common, tried in commons.items():
            yield from ((name, common, key, 0) for key in tried if key in first)


@pytest.mark.parametrize(
    ("name", "common", "key", "place"),
    [
        *made_keys(),
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
        ("video-hallucer", InputOptions(key_map={"instruction": "question"})),
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


# A record without a response is unscored, and named in the report.
UNSCORED = {
    *("response", "predict", "caption", "description"),
    *("model_answer", "model_response", "Model Answer", "pred", "prediction"),
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


@pytest.mark.parametrize("metric", sorted({metric for metric, *_ in ARCHIVES.values()}))
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


# Archive -> key of the response, another usual one, and what another answer would be.
OTHER_ANSWERS = {
    "pope, joined": ("response", "answer", "No."),
    "pope, alone": ("response", "output", "No."),
    **{
        name: (*keys.response[:2], "No.")
        for name, keys in READ_BY_KEYS.items()
        if keys.response[1] not in keys.asked
    },
    "event-hallusion": ("prediction", "response", "No."),
    "hallusion-bench": ("response", "text", "No."),
    "video-hallucer": ("predict", "response", "No."),
    "video-hallucer, flat": ("predict", "prediction", "No."),
    "infact": ("response", "prediction", "No."),
    "amber, joined": ("response", "text", "Yes"),
    "vidhal-mcqa": ("response", "answer", "B"),
    "vidhal-ordering": ("response", "text", "B, A"),
    "vidhalluc-bqa": ("response", "prediction", "No."),
    "vidhalluc-mcq": ("Model Answer", "response", "B"),
    "vidhalluc-tsh": ("Model Answer", "prediction", "BA"),
    "vidhalluc-sth": ("response", "answer", "Yes."),
    "vqa": ("response", "output", "A dog."),
    "mmhal": ("model_answer", "response", "Red."),
    "chair, joined": ("caption", "response", "A cat."),
    "object-halbench, joined": ("response", "caption", "A cat."),
    "open-objects, alone": ("caption", "text", "A cat."),
    "tri-he, alone": ("response", "answer", "A cat."),
    "mementos": ("description", "response", "A cat."),
    "argus": ("model_caption", "response", "A cat."),
}


def with_other(value: Any, key: str, other: str, text: str | None, *, first: bool) -> Any:
    """Return an archive with another value next to those of a key; None for an equal one."""
    if isinstance(value, list):
        return [with_other(each, key, other, text, first=first) for each in value]
    if not isinstance(value, dict):
        return value
    held = {k: with_other(each, key, other, text, first=first) for k, each in value.items()}
    if key not in held or isinstance(held[key], (dict, list)):
        return held
    more = {other: held[key] if text is None else text}
    return {**more, **held} if first else {**held, **more}


@pytest.mark.parametrize("name", list(OTHER_ANSWERS))
@pytest.mark.parametrize("first", [True, False])
def test_other_answers_under_another_usual_key_are_an_error_with_both(
    name: str, first: bool
) -> None:
    metric, responses, references = ARCHIVES[name]
    key, other, text = OTHER_ANSWERS[name]
    options = options_of(name) or InputOptions()
    wanted = list(read_items(metric, responses, references, options=options))
    both = with_other(responses, key, other, text, first=first)
    with pytest.raises(ArchiveError) as caught:
        read_items(metric, both, references, options=options)
    assert all(f"response={each}" in str(caught.value) for each in (key, other))
    mapped = replace(options, key_map={"response": key})
    assert list(read_items(metric, both, references, options=mapped)) == wanted
    equal = with_other(responses, key, other, None, first=first)
    assert list(read_items(metric, equal, references, options=options)) == wanted


@pytest.mark.parametrize(
    ("name", "key", "other", "label"),
    [
        ("pope, alone", "label", "gt", "no"),
        *((n, *keys.label[:2], "no") for n, keys in READ_BY_KEYS.items() if len(keys.label) > 1),
        ("vidhalluc-bqa", "label", "truth", "No"),
        ("vidhalluc-mcq", "Correct Answer", "label", "B"),
        ("vidhalluc-tsh", "Correct Answer", "answer", "BA"),
    ],
)
def test_other_labels_under_another_usual_key_are_an_error_with_both(
    name: str, key: str, other: str, label: str
) -> None:
    metric, responses, references = ARCHIVES[name]
    both = with_other(responses, key, other, label, first=True)
    with pytest.raises(ArchiveError) as caught:
        read_items(metric, both, references)
    assert all(f"label={each}" in str(caught.value) for each in (key, other))
    options = InputOptions(key_map={"label": key})
    wanted = list(read_items(metric, responses, references))
    assert list(read_items(metric, both, references, options=options)) == wanted

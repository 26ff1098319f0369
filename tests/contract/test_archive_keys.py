"""A key that an archive of closed questions lacks is an error, never an answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hallujudge.sdk.archives import read_items
from hallujudge.sdk.archives.inputs import InputOptions
from hallujudge.sdk.errors import ArchiveError, InvalidInputError

QUESTION = {"question_id": 1, "image": "1.jpg", "text": "Is there a dog?", "label": "yes"}
PAIR = {
    "basic": {"video": "1.mp4", "answer": "yes", "predict": "Yes."},
    "hallucination": {"video": "1.mp4", "answer": "no", "predict": "No."},
}
SHOWN = {"video": "v_1", "captions": ["A man sits.", "A man runs."]}
ARCHIVES: dict[str, tuple[str, Any, Any]] = {
    "pope, joined": ("pope", [{"question_id": 1, "response": "Yes."}], [QUESTION]),
    "pope, alone": ("pope", [{"question_id": 1, "response": "Yes.", "label": "yes"}], None),
    "video-hallucer": ("video-hallucer", {"temporal": [PAIR]}, None),
    "vidhal-mcqa": ("vidhal-mcqa", [{"video": "v_1", "response": "A"}], [SHOWN]),
    "vidhal-ordering": ("vidhal-ordering", [{"video": "v_1", "response": "A, B"}], [SHOWN]),
}
VIDHAL = InputOptions(own={"options": {"v_1": {"A": 2, "B": 1}}})
# What an archive may lack: intervals then treat an item as an image of its own.
OPTIONAL = {"image", "video", "text"}


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
            ids = {"video"} if "vidhal" in name else set()
            for key in sorted(set(keys_of(archive)) - OPTIONAL | ids):
                # The id of answers that carry their labels joins nothing.
                if (name, key) != ("pope, alone", "question_id"):
                    yield name, key, place


@pytest.mark.parametrize(("name", "key", "place"), list(cases()))
def test_a_renamed_key_is_an_error_with_the_tried_and_the_found_keys(
    name: str, key: str, place: int
) -> None:
    metric, *archives = ARCHIVES[name]
    options = VIDHAL if "vidhal" in name else None
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
    ],
)
def test_a_mapped_key_is_found(name: str, common: str, key: str, place: int) -> None:
    metric, *archives = ARCHIVES[name]
    wanted = list(read_items(metric, archives[0], archives[1]))
    archives[place] = renamed(archives[place], key)
    options = InputOptions(key_map={common: f"my_{key}"})
    assert list(read_items(metric, archives[0], archives[1], options=options)) == wanted


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("video-hallucer", InputOptions(allow_missing=True)),
        ("video-hallucer", InputOptions(id_key="question_id")),
        ("pope, alone", InputOptions(own={"claims_only": True})),
        ("chair", InputOptions(allow_missing=True)),
        ("chair", InputOptions(own={"nouns": "nouns.json"})),
        ("tri-he", InputOptions(join="order")),
        ("mementos", InputOptions(own={"model_key": "gpt"})),
        ("amber", InputOptions(allow_duplicates=True)),
        ("amber", InputOptions(own={"id_map": "ids.json"})),
    ],
)
def test_an_option_that_changes_nothing_is_refused(name: str, options: InputOptions) -> None:
    other = (name, [{"id": 1, "response": "A dog."}], None)
    metric, responses, references = ARCHIVES.get(name, other)
    with pytest.raises(InvalidInputError, match=metric):
        read_items(metric, responses, references, options=options)

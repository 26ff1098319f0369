"""Keys to report groups by: unknown ones are refused, gaps are noted, paths lead into objects."""

from __future__ import annotations

from typing import Any

import pytest

from hallujudge.sdk import Client, read_items
from hallujudge.sdk.cli.output import in_flags
from hallujudge.sdk.errors import ArchiveError, InvalidInputError

ROWS: list[dict[str, Any]] = [
    {"image_id": 1, "caption": "A dog.", "model": "a", "doc": {"category": "indoor"}},
    {"image_id": 2, "caption": "A cat.", "model": "b", "doc": {"category": "outdoor"}},
    {"image_id": 3, "caption": "A cat.", "model": "a", "doc": {}},
]
OBJECTS = {"1": ["dog"], "2": ["dog"], "3": ["cat"]}


def test_a_key_that_no_item_has_is_refused_with_the_keys_that_exist() -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_items("chair", ROWS, OBJECTS, group_by=("modle",))
    assert str(caught.value) == (
        "no item has the key 'modle' to report groups by; the keys are caption, doc.category, "
        "image_id, model"
    )


def test_a_path_leads_into_objects_and_gaps_are_a_group_with_a_note() -> None:
    items = read_items("chair", ROWS, OBJECTS, group_by=("doc.category",))
    assert items.notes == ("1 of 3 items have no 'doc.category'; they are in the group (none)",)
    with Client.embedded() as client:
        report = client.score(
            "chair", responses=ROWS, references=OBJECTS, group_by=["doc.category"]
        )
    groups = report.groups["doc.category"]
    assert list(groups) == ["", "indoor", "outdoor"]
    assert [scores["chair_i"].value for scores in groups.values()] == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("value", [{"category": "x"}, [{"category": "x"}], [["x"]]])
def test_an_object_is_not_a_group(value: object) -> None:
    rows = [{**row, "doc": value} for row in ROWS]
    with pytest.raises(
        InvalidInputError, match=r"the key .doc. to report groups by holds .*, such as"
    ):
        read_items("chair", rows, OBJECTS, group_by=("doc",))


def test_keys_of_the_metric_itself_may_be_absent() -> None:
    row = {"question_id": 1, "answer": "yes", "label": "yes"}
    with Client.embedded() as client:
        assert client.score("pope", responses=[row]).groups == {}


def test_a_text_in_place_of_a_list_is_named() -> None:
    with Client.embedded() as client, pytest.raises(InvalidInputError, match="group_by is the tex"):
        client.score("chair", responses=ROWS, references=OBJECTS, group_by="model")


def test_errors_name_arguments_in_python_and_options_on_the_command_line() -> None:
    with pytest.raises(ArchiveError) as caught:
        read_items("chair", [{"id": 1, "words": "A dog."}], OBJECTS)
    assert str(caught.value).endswith("Name it with InputOptions(text_key=…)")
    assert in_flags(str(caught.value)).endswith("Name it with --text-key")


@pytest.mark.parametrize(
    ("message", "flags"),
    [
        ("pass InputOptions(allow_unknown=True) to", "pass --allow-unknown to"),
        ("say so with InputOptions(join='order')", "say so with --join order"),
        ("(InputOptions(join='text'));", "(--join text);"),
        ("see InputOptions(human_keys=…)", "see --human-key"),
        ("with InputOptions(claims_only=True)", "with --claims"),
        ("give a file with references=…", "give a file with --references"),
    ],
)
def test_every_form_of_an_argument_has_an_option(message: str, flags: str) -> None:
    assert in_flags(message) == flags

"""Bad records of every family: all are named at once, and may be left unscored."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.keyed_archives import ARCHIVES, options_of

from hallujudge.sdk.archives import read_items
from hallujudge.sdk.archives.inputs import InputOptions
from hallujudge.sdk.errors import ArchiveError

LISTED = {name: found for name, found in ARCHIVES.items() if isinstance(found[1], list)}


@pytest.mark.parametrize("name", LISTED)
def test_a_cut_line_is_named_and_may_be_skipped(name: str, tmp_path: Path) -> None:
    metric, records, references = LISTED[name]
    path = tmp_path / "answers.jsonl"
    lines = [*map(json.dumps, records), "[1]", '{"id": 9, "response": "A d']
    path.write_text("\n".join(lines))
    options = options_of(name) or InputOptions()
    with pytest.raises(ArchiveError, match="2 records can't be used") as caught:
        read_items(metric, path, references, options=options)
    assert f"{path} line {len(lines)}: the file ends" in str(caught.value)
    assert f"{path} line {len(lines) - 1}: expected a JSON object" in str(caught.value)
    assert "InputOptions(skip_bad=True)" in str(caught.value)
    whole = read_items(metric, records, references, options=options)
    skipping = replace(options, skip_bad=True)
    found = list(read_items(metric, path, references, options=skipping))
    more = found[len(whole) :]
    assert found[: len(whole)] == list(whole)
    assert all(item.id.startswith(f"{path} line ") and nothing_to_score(item) for item in more)


def nothing_to_score(item: Any) -> bool:
    answers = getattr(item, "answers", ())
    return not getattr(item, "response", None) and not any(each.response for each in answers)


@pytest.mark.parametrize("name", LISTED)
def test_a_record_of_something_else_may_be_skipped(name: str) -> None:
    metric, records, references = LISTED[name]
    options = options_of(name) or InputOptions()
    whole = list(read_items(metric, records, references, options=options))
    more = [*records, {"remark": "of the run"}]
    read = list(read_items(metric, more, references, options=replace(options, skip_bad=True)))
    assert read[: len(whole)] == whole

"""Runs that are scored again by another variant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fsspec
import pytest
from support.messages import expected_message

from hallujudge.sdk import Client
from hallujudge.sdk.comparison.overview import score_all
from hallujudge.sdk.derived_runs import rescore_run
from hallujudge.sdk.errors import ArchiveError


def test_a_run_behind_a_url_is_scored_by_another_variant(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    files = fsspec.filesystem("memory")
    request.addfinalizer(lambda: files.store.clear())
    captions = b'{"image_id": 1, "caption": "A dog and no cat."}\n'
    objects = tmp_path / "objects.json"
    objects.write_text('{"1": ["dog"]}')
    files.pipe("/again/m/captions.jsonl", captions)
    known = {"chair": objects}
    with Client.embedded() as client:
        (run,) = score_all("memory://again", tmp_path / "all", client=client, references=known).runs
        given = "memory:///again/m/captions.jsonl"
        files_of: dict[str, Any] = {"responses": given, "references": objects}
        direct = client.score("chair", **files_of, folder=tmp_path / "direct")
        other = client.score("chair", **files_of, variant="corrected")
    assert direct.scores == run.report.scores != other.scores
    for folder in (run.folder, tmp_path / "direct"):
        again = rescore_run(folder, tmp_path / "other", variant="corrected")
        assert again.scores == other.scores
        manifest = json.loads((tmp_path / "other" / "manifest.json").read_text())
        assert manifest["inputs"]["responses"]["path"] == given
        assert manifest["run"]["responses"] == [given]
    files.pipe("/again/m/captions.jsonl", captions + captions.replace(b"1", b"2"))
    with pytest.raises(
        ArchiveError,
        match=expected_message("sdk.derived_runs:the-responses-have-changed-since-the-run"),
    ):
        rescore_run(run.folder, tmp_path / "other", variant="corrected")
    files.store.clear()
    with pytest.raises(
        ArchiveError,
        match=expected_message("sdk.archives.found_files:reading-failed-no-such-file", given),
    ):
        rescore_run(run.folder, tmp_path / "other", variant="corrected")

"""Runs that are made of runs: merged ones, with the same bytes, and those of other variants."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import fsspec
import pytest
from support.messages import expected_message

from hallujudge.sdk import Client, merge_runs, read_run
from hallujudge.sdk.comparison.overview import score_all
from hallujudge.sdk.derived_runs import rescore_run
from hallujudge.sdk.errors import ArchiveError, InvalidInputError

COUNT = 700
CUTS = (0, 10, 330, COUNT)
FILES = ("items.jsonl", "report.json", "report.html")


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client.embedded() as client:
        yield client


def scored(client: Client, folder: Path, start: int, end: int, **more: Any) -> Path:
    texts = ("A dog on a sofa.", "A cat.", None, "Two people and a dog near a table.")
    run: dict[str, Any] = {
        "responses": [
            {"image_id": n, "caption": texts[n % 4], "model": "ab"[n % 2]}
            for n in range(start, end)
        ],
        "references": {str(n): ["dog"] for n in range(start, end)},
        "group_by": ["model"],
        "folder": folder,
        "html": True,
    }
    client.score("chair", **{**run, **more})
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


@pytest.fixture(scope="module")
def shards(client: Client, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("shards")
    pairs = enumerate(pairwise(CUTS))
    return [scored(client, folder / str(n), *ends) for n, ends in pairs]


def test_consecutive_shards_give_the_bytes_of_one_run(
    client: Client, shards: list[Path], tmp_path: Path
) -> None:
    whole = scored(client, tmp_path / "whole", 0, COUNT)
    report = merge_runs(shards, tmp_path / "merged", html=True)
    assert contents(tmp_path / "merged") == contents(whole)
    assert report == read_run(whole).report
    # Merged runs can be merged in their turn.
    first = tmp_path / "first"
    merge_runs(shards[:2], first)
    merge_runs([first, shards[2]], tmp_path / "again", html=True)
    assert contents(tmp_path / "again") == contents(whole)


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_shards_with_and_without_thoughts_are_merged(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    texts = {"a": "<think>A cat.</think>A dog.", "b": "A dog."}
    with Client.embedded() as client:
        for key, text in texts.items():
            client.score(
                "chair", responses={key: text}, references={key: ["dog"]}, folder=tmp_path / key
            )
        whole = client.score(
            "chair",
            responses={key: texts[key] for key in order},
            references={key: ["dog"] for key in order},
        )
    merged = merge_runs([tmp_path / key for key in order], tmp_path / "merged")
    assert merged.signature == whole.signature


def test_the_page_is_rendered_from_the_folder(shards: list[Path]) -> None:
    for shard in shards:
        assert read_run(shard).page().encode() == (shard / "report.html").read_bytes()


def test_a_folder_is_read(shards: list[Path]) -> None:
    run = read_run(shards[1])
    assert len(run) == 320
    assert run.manifest is not None
    assert run.manifest.metric == "chair"
    results = list(run.results())
    assert [result.id for result in results] == [str(n) for n in range(10, 330)]
    assert results[0].statistics == ()
    assert results[1].statistics[0] == 3
    assert run.tally(["model"]).finish(run.interval, version=run.release).groups == (
        run.report.groups
    )


def test_the_same_item_twice_is_refused(shards: list[Path], tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInputError,
        match=expected_message("sdk.derived_runs:items-are-in-several-of-the-runs"),
    ):
        merge_runs([shards[0], shards[1], shards[0]], tmp_path)


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"variant": "corrected"}, "variant: published → corrected"),
        ({"confidence": 0.9}, "interval: jackknife-wilson-0.95 → jackknife-wilson-0.9"),
        ({"keep_text": False}, "keep_text: true → false"),
        ({"group_by": []}, 'group_by: \\["model"\\] → \\[\\]'),
    ],
)
def test_different_settings_are_refused(
    client: Client, shards: list[Path], tmp_path: Path, change: dict[str, Any], difference: str
) -> None:
    other = scored(client, tmp_path / "other", COUNT, COUNT + 5, **change)
    with pytest.raises(
        InvalidInputError,
        match=expected_message("sdk.derived_runs:cant-be-merged-they-differ-in", difference),
    ):
        merge_runs([shards[0], other], tmp_path / "merged")


def test_a_shard_is_never_overwritten(shards: list[Path]) -> None:
    before = contents(shards[0])
    with pytest.raises(
        InvalidInputError, match=expected_message("sdk.runs.folder:is-read-by-this-run-and-would")
    ):
        merge_runs(shards, shards[0])
    assert contents(shards[0]) == before


@pytest.mark.parametrize("name", ["journal.bin", "items.jsonl"])
def test_damage_is_reported(client: Client, tmp_path: Path, name: str) -> None:
    folder = scored(client, tmp_path / "run", 0, 300)
    path = folder / name
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ArchiveError, match=str(path)):
        merge_runs([folder], tmp_path / "merged")


def test_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInputError, match=expected_message("sdk.derived_runs:no-run-is-given")
    ):
        merge_runs([], tmp_path)


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

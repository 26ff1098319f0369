"""A run that stopped is resumed: the bytes of an undisturbed run, and nothing scored twice."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from support.messages import expected_message
from support.metric_runs import RUNS

from hallujudge.sdk import BatchResult, Client, RunReport
from hallujudge.sdk.errors import InvalidInputError, OutputError, VersionMismatchError
from hallujudge.sdk.runs import RunFolder
from hallujudge.sdk.runs.manifest import FORMAT, Manifest
from hallujudge.sdk.runs.run_inputs import PreparedRun

# Three batches and some items.
COUNT = 3 * 512 + 164
FILES = ("items.jsonl", "report.json", "report.html", "manifest.json")


class StoppedError(Exception):
    """Stands for anything that ends a run."""


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client.embedded() as client:
        yield client


def captions(count: int = COUNT) -> dict[str, Any]:
    texts = ("A dog on a sofa.", "A cat.", None, "Two people and a dog near a table.")
    ids = [str(number) for number in range(count)]
    return {
        "responses": {key: texts[n % len(texts)] for n, key in enumerate(ids)},
        "references": {key: ["dog"] for key in ids},
    }


def scored(client: Client, folder: Path, **more: Any) -> RunReport:
    return client.score("chair", **{**captions(), "folder": folder, "html": True, **more})


def stop_after(batches: int) -> Callable[[BatchResult], None]:
    """Return a callback that ends a run when a batch more than these was scored."""
    left = batches

    def on_batch(_batch: BatchResult) -> None:
        nonlocal left
        if not left:
            raise StoppedError
        left -= 1

    return on_batch


def stopped(client: Client, folder: Path, *, after: int, **more: Any) -> None:
    with pytest.raises(StoppedError):
        scored(client, folder, on_batch=stop_after(after), **more)


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


@pytest.fixture(scope="module")
def complete(client: Client, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("complete")
    scored(client, folder)
    return folder


@pytest.fixture(scope="module")
def whole(complete: Path) -> dict[str, bytes]:
    return contents(complete)


@pytest.fixture
def complete_run(complete: Path, tmp_path: Path) -> Path:
    """A copy of a complete run."""
    return copytree(complete, tmp_path / "complete")


@pytest.fixture(scope="module")
def interrupted(client: Client, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("interrupted")
    stopped(client, folder, after=3)
    return folder


@pytest.fixture
def stopped_run(interrupted: Path, tmp_path: Path) -> Path:
    """A copy of a run that stopped after three batches."""
    return copytree(interrupted, tmp_path / "stopped")


def test_a_folder_has_what_a_saved_report_has(
    client: Client, whole: dict[str, bytes], tmp_path: Path
) -> None:
    client.score("chair", **captions()).save(tmp_path, html=True)
    saved = contents(tmp_path)
    for name in ("items.jsonl", "report.json", "report.html"):
        assert saved[name] == whole[name]


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_resumed_run_writes_the_same_bytes(
    client: Client, whole: dict[str, bytes], tmp_path: Path, after: int
) -> None:
    stopped(client, tmp_path, after=after)
    assert not (tmp_path / "report.json").exists()
    again: list[str] = []
    report = scored(
        client,
        tmp_path,
        resume=True,
        on_batch=lambda batch: again.extend(item.id for item in batch.items),
    )
    assert contents(tmp_path) == whole
    assert report.coverage.items == COUNT
    assert len(again) == COUNT - 512 * after
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*FILES, "journal.bin"])


@pytest.mark.parametrize("metric", RUNS)
def test_every_metric_can_be_resumed(client: Client, tmp_path: Path, metric: str) -> None:
    def run(folder: str, **more: Any) -> None:
        client.score(
            metric, **{**RUNS[metric](), "folder": tmp_path / folder, "html": True, **more}
        )

    run("whole")
    with pytest.raises(StoppedError):
        run("parts", on_batch=stop_after(0))
    run("parts", resume=True)
    run("parts", resume=True)
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
    client.score(metric, **RUNS[metric]()).save(tmp_path / "saved", html=True)
    for name in ("items.jsonl", "report.json", "report.html"):
        assert (tmp_path / "saved" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize("name", ["journal.partial.bin", "items.partial.jsonl"])
@pytest.mark.parametrize("cut", [1, 11, 400, 5_000, 10_000_000])
def test_a_torn_end_is_cut_off_and_reported(
    client: Client, whole: dict[str, bytes], stopped_run: Path, name: str, cut: int
) -> None:
    data = (stopped_run / name).read_bytes()
    (stopped_run / name).write_bytes(data[: max(0, len(data) - cut)])
    notes = started(client, stopped_run)
    assert contents(stopped_run) == whole
    if 0 < cut < len(data):
        assert expected_message("sdk.runs.folder:bytes-of-the-journal-are-incomplete-or") in notes
        assert expected_message("sdk.runs.folder:of-items-were-scored-before", COUNT) in notes


@pytest.mark.parametrize("name", ["journal.partial.bin", "items.partial.jsonl"])
def test_damage_before_the_end_costs_what_follows(
    client: Client, whole: dict[str, bytes], stopped_run: Path, name: str
) -> None:
    """After a power loss a file may have its length and zeros for content."""
    data = bytearray((stopped_run / name).read_bytes())
    middle = len(data) // 2
    data[middle : middle + 50] = bytes(50)
    (stopped_run / name).write_bytes(data)
    assert "incomplete or damaged" in started(client, stopped_run)
    assert contents(stopped_run) == whole


def started(client: Client, folder: Path) -> str:
    """Resume a run, and return the notes that it begins with."""
    notes: list[str] = []

    class Watch:
        def started(self, started: Any) -> None:
            notes.extend(started.notes)

        def judged(self, shares: Any, *, kept: bool) -> None:
            pass

        def scored(self, part: Any) -> None:
            pass

        def waits(self, progress: Any) -> None:
            pass

    from hallujudge.sdk import ScoreRun

    run = ScoreRun("chair", **captions(), folder=folder, html=True, resume=True)
    with RunFolder(folder) as output:
        client.score_into(output, PreparedRun.of(run), Watch())
    return "; ".join(notes)


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"variant": "corrected"}, "variant: published → corrected"),
        ({"options": {"count": "objects"}}, "option.count: mentions → objects"),
        ({"keep_text": False}, "keep_text: true → false"),
        ({"confidence": 0.9}, "interval: jackknife-wilson-0.95 → jackknife-wilson-0.9"),
        ({"graph": "coco"}, "graph.objects: absent → coco"),
        (captions(COUNT + 1), f"items: {COUNT} → {COUNT + 1}"),
        ({"references": {str(n): ["cat"] for n in range(COUNT)}}, "items.sha256: "),
    ],
)
def test_another_input_or_setting_is_refused(
    client: Client,
    whole: dict[str, bytes],
    stopped_run: Path,
    change: dict[str, Any],
    difference: str,
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        scored(client, stopped_run, resume=True, **change)
    assert difference in str(caught.value)
    assert str(stopped_run) in str(caught.value)
    assert "signature" not in str(caught.value), "the settings say it in plain words"
    assert re.search("[0-9a-f]{13}", str(caught.value).replace(str(stopped_run), "")) is None
    scored(client, stopped_run, resume=True)
    assert contents(stopped_run) == whole
    with pytest.raises(InvalidInputError) as caught:
        scored(client, stopped_run, resume=True, **change)
    assert difference in str(caught.value)
    assert contents(stopped_run) == whole


def test_files_are_compared_by_content(client: Client, tmp_path: Path) -> None:
    source, moved = tmp_path / "captions.jsonl", tmp_path / "moved.jsonl"
    lines = [f'{{"image_id": {n}, "caption": "A dog."}}\n' for n in range(600)]
    source.write_text("".join(lines))
    run: dict[str, Any] = {
        "references": {str(n): ["dog"] for n in range(600)},
        "folder": tmp_path / "out",
    }
    with pytest.raises(StoppedError):
        client.score("chair", responses=source, on_batch=stop_after(1), **run)
    source.rename(moved)
    moved.write_text("".join(lines).replace("dog", "cat", 1))
    with pytest.raises(InvalidInputError, match=r"responses\.sha256: "):
        client.score("chair", responses=moved, resume=True, **run)
    moved.write_text("".join(lines))
    assert client.score("chair", responses=moved, resume=True, **run).coverage.items == 600


def test_a_manifest_of_a_newer_release_is_refused(client: Client, stopped_run: Path) -> None:
    path = stopped_run / "manifest.partial.json"
    newer = path.read_text().replace(f'"format": {FORMAT}', f'"format": {FORMAT + 1}')
    path.write_text(newer.replace('"release": "', '"release": "9'))
    with pytest.raises(
        VersionMismatchError,
        match=expected_message("sdk.runs.manifest:written-by-hallujudge-update-hallujudge"),
    ):
        scored(client, stopped_run, resume=True)


def test_a_release_is_a_difference(client: Client, complete_run: Path) -> None:
    path = complete_run / "manifest.json"
    path.write_text(path.read_text().replace('"release": "', '"release": "0.0.'))
    with pytest.raises(InvalidInputError, match=r"release: 0\.0\."):
        scored(client, complete_run, resume=True)


def test_without_resume_a_run_starts_anew_and_says_what_it_costs(
    client: Client, whole: dict[str, bytes], stopped_run: Path
) -> None:
    with RunFolder(stopped_run) as folder:
        notes = folder.start(Manifest.read(stopped_run / "manifest.partial.json")).notes
    assert notes == (expected_message("sdk.runs.folder:the-run-starts-from-the-beginning-items"),)
    scored(client, stopped_run)
    assert contents(stopped_run) == whole


def test_there_may_be_nothing_to_resume(
    client: Client, whole: dict[str, bytes], tmp_path: Path
) -> None:
    assert started(client, tmp_path) == expected_message(
        "sdk.runs.folder:there-is-no-run-to-resume-it"
    )
    assert contents(tmp_path) == whole
    assert started(client, tmp_path) == expected_message(
        "sdk.runs.folder:the-run-was-complete-nothing-is-scored"
    )


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Returns the content of all files of a folder, and when they were written."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def test_a_complete_run_is_not_written_again(client: Client, tmp_path: Path) -> None:
    first = scored(client, tmp_path)
    before = state(tmp_path)
    again = scored(client, tmp_path, on_batch=stop_after(0))
    assert (again.scores, again.signature) == (first.scores, first.signature)
    assert state(tmp_path) == before
    with RunFolder(tmp_path) as folder:
        now = folder.start(Manifest.read(tmp_path / "manifest.json"))
    assert now.complete
    assert now.notes == (
        expected_message("sdk.runs.folder:the-run-was-complete-nothing-is-scored"),
    )
    with pytest.raises(StoppedError):
        scored(client, tmp_path, on_batch=stop_after(0), overwrite=True)


@pytest.mark.parametrize(
    "change", [{"variant": "corrected"}, captions(COUNT + 1), {"confidence": 0.9}]
)
def test_a_complete_run_is_replaced_only_if_that_is_asked_for(
    client: Client, complete_run: Path, change: dict[str, Any]
) -> None:
    before = state(complete_run)
    with pytest.raises(InvalidInputError) as caught:
        scored(client, complete_run, **change)
    assert caught.value.reason == "RUN_DIFFERS"
    for way in ("ScoreRun(overwrite=True)", "ScoreRun(resume=True)"):
        assert way in str(caught.value)
    assert state(complete_run) == before
    report = scored(client, complete_run, overwrite=True, **change)
    assert (complete_run / "report.json").read_bytes() == report.to_text().encode()


@pytest.mark.parametrize(
    ("lost", "message"),
    [
        ("manifest.json", expected_message("sdk.runs.folder:holds-a-report-without-a-manifest")),
        ("journal.bin", expected_message("sdk.runs.folder:holds-some-items-of-its-run", COUNT)),
    ],
)
def test_results_of_which_a_part_is_lost_are_replaced_only_if_that_is_asked_for(
    client: Client, whole: dict[str, bytes], complete_run: Path, lost: str, message: str
) -> None:
    (complete_run / lost).unlink()
    before = state(complete_run)
    with pytest.raises(InvalidInputError) as caught:
        scored(client, complete_run)
    assert message in str(caught.value)
    assert state(complete_run) == before
    scored(client, complete_run, overwrite=True)
    assert contents(complete_run) == whole


def test_a_run_is_resumed_or_replaced(client: Client, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError) as caught:
        scored(client, tmp_path, resume=True, overwrite=True)
    assert expected_message("sdk.runs.folder:overwrite-and-resume-are-both-given") in str(
        caught.value
    )


def test_another_file_of_an_option_is_named_by_its_hash(complete_run: Path) -> None:
    manifest = Manifest.read(complete_run / "manifest.json")
    one, other = (
        replace(manifest, settings={"option.card": json.dumps({"judge": "m", "rows": [n] * 99})})
        for n in (1, 2)
    )
    said = one.differences(other)
    assert re.fullmatch(r"option\.card: [0-9a-f]{12} → [0-9a-f]{12}", said)


def test_a_report_is_saved_over_another_only_if_that_is_asked_for(
    client: Client, tmp_path: Path
) -> None:
    first = client.score("chair", **captions())
    first.save(tmp_path)
    before = state(tmp_path)
    first.save(tmp_path)
    assert state(tmp_path) == before
    # As many items and the same scores, of other values in memory.
    others = captions()
    others["responses"]["0"] = "A dog on the sofa."
    second = client.score("chair", **others)
    assert second.scores == first.scores
    with pytest.raises(InvalidInputError) as caught:
        second.save(tmp_path)
    assert caught.value.reason == "RUN_DIFFERS"
    assert state(tmp_path) == before
    second.save(tmp_path, overwrite=True)
    assert state(tmp_path) != before


def test_a_run_that_is_resumed_leaves_earlier_results_until_it_is_complete(
    client: Client, whole: dict[str, bytes], tmp_path: Path
) -> None:
    scored(client, tmp_path, variant="corrected")
    before = contents(tmp_path)
    stopped(client, tmp_path, after=3, overwrite=True)
    assert contents(tmp_path) == before
    scored(client, tmp_path, resume=True)
    assert contents(tmp_path) == whole


@pytest.mark.parametrize(
    ("name", "kept"), [("items.partial.jsonl", 0), (".items.jsonl.part", COUNT)]
)
def test_a_full_disk_loses_nothing(
    client: Client,
    whole: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    kept: int,
) -> None:
    with pytest.raises(
        OutputError,
        match=expected_message("sdk.runs.folder:no-space-left-items-are-kept-make", kept),
    ):
        with_full_disk(client, tmp_path, name, monkeypatch)
    assert not (tmp_path / "report.json").exists()
    scored(client, tmp_path, resume=True)
    assert contents(tmp_path) == whole


def test_a_folder_that_turns_read_only_loses_nothing(
    client: Client, whole: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swapped = Path.replace

    def replace(path: Path, target: Path) -> Path:
        if Path(target).name == "items.jsonl":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return swapped(path, target)

    told = f"Read-only file system; {COUNT} items are kept. Make the folder writable and go on"
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", replace)
        with pytest.raises(OutputError, match=told):
            scored(client, tmp_path)
    assert not (tmp_path / "report.json").exists()
    scored(client, tmp_path, resume=True)
    assert contents(tmp_path) == whole


def with_full_disk(
    client: Client, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Path.open

    def open_(path: Path, *arguments: Any, **more: Any) -> Any:
        full = path.name == name and "b" in arguments[0]
        return opened(Path("/dev/full") if full else path, *arguments, **more)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", open_)
        scored(client, folder)


def test_a_folder_that_can_not_be_made_is_no_lost_one(client: Client) -> None:
    with pytest.raises(OutputError, match=r"can.t make /proc/nowhere/o: .*; give another folder"):
        scored(client, Path("/proc/nowhere/o"))


def test_what_a_run_left_that_was_stopped_after_its_report_is_removed(
    client: Client, tmp_path: Path
) -> None:
    scored(client, tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    for name in ("manifest.json", "items.jsonl"):
        stem, _, suffix = name.partition(".")
        (tmp_path / f"{stem}.partial.{suffix}").write_bytes((tmp_path / name).read_bytes())
    scored(client, tmp_path, resume=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == before

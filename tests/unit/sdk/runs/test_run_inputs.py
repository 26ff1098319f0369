"""How a run's archives are read, and that a resumed run does not check them a second time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hallujudge.sdk import BatchResult, Client, InputOptions, ScoreRun
from hallujudge.sdk.archives import chair as captions
from hallujudge.sdk.archives.archive_keys import LOOKED_AT
from hallujudge.sdk.archives.records import Record, read_records
from hallujudge.sdk.errors import ArchiveError
from hallujudge.sdk.runs.run_inputs import PreparedRun, checked_archive

COUNT = 1300


class StoppedError(Exception):
    """Stands for anything that ends a run."""


def stop_at(items: int, folder: Path, **more: Any) -> ScoreRun:
    """Return a run that stopped after about so many items."""
    path = folder / "captions.jsonl"
    rows = ({"image_id": n, "caption": f"A dog and {n} cats."} for n in range(COUNT))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    references = folder / "objects.json"
    references.write_text(json.dumps({str(n): ["dog"] for n in range(COUNT)}))
    run = ScoreRun("chair", responses=path, references=references, folder=folder / "out")
    run = replace(run, **more)
    left = items

    def on_batch(batch: BatchResult) -> None:
        nonlocal left
        left -= len(batch.items)
        if left <= 0:
            raise StoppedError

    with Client.embedded() as client, pytest.raises(StoppedError):
        client.score(**{**arguments(run), "on_batch": on_batch})
    return replace(run, resume=True)


def arguments(run: ScoreRun) -> dict[str, Any]:
    names = ("metric", "responses", "references", "folder", "resume", "inputs", "group_by")
    return {name: getattr(run, name) for name in names}


def test_only_what_is_left_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stop_at(1200, tmp_path)
    whole = PreparedRun.of(replace(run, resume=False)).items
    source = PreparedRun.of(run).items
    assert len(source) == COUNT
    assert list(source) == list(whole)
    assert list(source.start_at(1152)) == list(whole)[1152:]
    read: list[int] = []

    def noting(*given: Any, **more: Any) -> Iterator[Record]:
        for record in read_records(*given, **more):
            # A row that was decoded has its id alone, which is its position here.
            read.append(record.position if isinstance(record, Record) else int(record.id))
            yield record

    monkeypatch.setattr(captions, "read_records", noting)
    PreparedRun.of(replace(run, resume=False))
    assert read[LOOKED_AT:] == list(range(COUNT))
    read.clear()
    resumed = PreparedRun.of(run).items
    assert read == []
    # A mark stands before every 512th caption.
    assert len(list(resumed.start_at(1152))) == COUNT - 1152
    # Before them the first records, which have the keys.
    assert read == [*range(LOOKED_AT), *range(1024, COUNT)]


def test_the_bytes_are_those_of_an_undisturbed_run(tmp_path: Path) -> None:
    run = stop_at(900, tmp_path)
    with Client.embedded() as client:
        client.score(**arguments(run))
        client.score(**arguments(replace(run, folder=tmp_path / "whole", resume=False)))
    names = sorted(path.name for path in (tmp_path / "whole").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "out").iterdir())
    for name in ("items.jsonl", "report.json", "manifest.json", "journal.bin"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_what_differs_is_checked_again(tmp_path: Path) -> None:
    run = stop_at(300, tmp_path)
    folder = tmp_path / "out"
    assert checked_archive(run, folder) is not None
    assert checked_archive(run, tmp_path) is None
    options = InputOptions(allow_unknown=True)
    assert checked_archive(replace(run, inputs=options), folder) is None
    assert checked_archive(replace(run, group_by=("image_id",)), folder) is None
    path = tmp_path / "captions.jsonl"
    path.write_text(path.read_text().replace("7 cats", "8 cats", 1))
    assert checked_archive(run, folder) is None


@pytest.mark.parametrize("damage", [b"", b"x" * 80])
def test_damaged_marks_are_no_obstacle(tmp_path: Path, damage: bytes) -> None:
    run = stop_at(300, tmp_path)
    (tmp_path / "out" / "marks.partial.bin").write_bytes(damage)
    assert checked_archive(run, tmp_path / "out") is None
    assert len(PreparedRun.of(run).items) == COUNT


def test_a_variant_that_leaves_unknown_questions_out_does_so_and_others_refuse_them() -> None:
    questions = [{"question_id": n, "image": "a.jpg", "text": f"Is there a {n}?"} for n in range(4)]
    given: dict[str, Any] = {
        "responses": [{**each, "response": "Yes."} for each in questions],
        "references": [{**each, "label": "yes"} for each in questions[:3]],
    }
    with Client.embedded() as client:
        with pytest.raises(ArchiveError, match=r"the references lack: 3 \(1 in all\)"):
            client.score("pope", **given)
        assert client.score("pope", variant="repope", **given).coverage.items == 3

"""Items of a complete run that a passing reason left unscored, and what resuming does to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from hallujudge.metrics.framework.results import UnscoredReason
from hallujudge.sdk import BatchResult, Client
from hallujudge.sdk.runs import RunFolder
from hallujudge.sdk.runs.journal import EarlierRun, passing_reasons
from hallujudge.sdk.runs.manifest import Manifest
from hallujudge.sdk.runs.parts import Part, UnscoredCounts

BATCH = 512
COUNT = 6 * BATCH + 16
FILES = ("items.jsonl", "report.json", "report.html", "manifest.json", "journal.bin")


class StoppedError(Exception):
    """Stands for anything that ends a run."""


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client.embedded() as client:
        yield client


def scored(client: Client, folder: Path, **more: Any) -> list[str]:
    """Score into a folder, and return the ids of the items that are scored."""
    texts = ("A dog on a sofa.", "A cat.", 'A sign says "reason":"PROCESS_DIED".')
    asked: list[str] = []
    client.score(
        "chair",
        responses={str(n): texts[n % len(texts)] for n in range(COUNT)},
        references={str(n): ["dog"] for n in range(COUNT)},
        folder=folder,
        html=True,
        **{
            "on_batch": lambda batch: asked.extend(item.id for item in batch.items),
            **more,
        },
    )
    return asked


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


@pytest.fixture(scope="module")
def complete(client: Client, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("complete") / "run"
    scored(client, folder)
    return folder


@pytest.fixture
def whole(complete: Path, tmp_path: Path) -> dict[str, bytes]:
    """The files of a complete run, of which the test has a copy to change."""
    copytree(complete, tmp_path / "run")
    return contents(complete)


def lose(folder: Path, *numbers: int, reason: str = "PROCESS_DIED") -> None:
    """Make some items of a complete run look as if a process had died for them."""
    path = folder / "items.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    for number in numbers:
        said = b'"outcome":"unscored","reason":"%b"' % reason.encode()
        lines[number] = lines[number].replace(b'"outcome":"scored"', said)
    path.write_bytes(b"".join(lines))


def ids(*batches: int) -> list[str]:
    """Return the ids of the items of some batches."""
    return [
        str(n) for batch in batches for n in range(batch * BATCH, min((batch + 1) * BATCH, COUNT))
    ]


@pytest.mark.parametrize(
    ("lost", "batches"),
    [([0], [0]), ([560, 1_040, 2_400], [1, 2, 4]), ([COUNT - 1], [6]), ([0, COUNT - 1], [0, 6])],
)
def test_the_batches_of_lost_items_alone_are_scored_again(
    client: Client, tmp_path: Path, whole: dict[str, bytes], lost: list[int], batches: list[int]
) -> None:
    folder = tmp_path / "run"
    lose(folder, *lost)
    assert scored(client, folder, resume=True) == ids(*batches)
    assert contents(folder) == whole
    assert scored(client, folder, resume=True) == []


def test_a_run_that_is_not_resumed_stays_and_says_how_to_complete_it(
    client: Client, tmp_path: Path, whole: dict[str, bytes]
) -> None:
    folder = tmp_path / "run"
    lose(folder, 560, 561)
    before = contents(folder)
    assert scored(client, folder) == []
    assert contents(folder) == before
    with RunFolder(folder) as opened:
        started = opened.start(Manifest.read(folder / "manifest.json"), completes=True)
    assert (started.complete, started.earlier) == (True, None)
    assert "(PROCESS_DIED: 2); ScoreRun(resume=True) scores them again" in started.notes[1]
    assert scored(client, folder, resume=True) == ids(1)
    assert contents(folder) == whole


@pytest.mark.parametrize("batches", [0, 1])
def test_scoring_again_may_be_stopped_and_resumed(
    client: Client, tmp_path: Path, whole: dict[str, bytes], batches: int
) -> None:
    folder = tmp_path / "run"
    lose(folder, 560, 2_400)
    before = contents(folder)
    left = [None] * batches

    def stop(_batch: BatchResult) -> None:
        if not left:
            raise StoppedError
        left.pop()

    with pytest.raises(StoppedError):
        scored(client, folder, resume=True, on_batch=stop)
    assert contents(folder) == before
    assert scored(client, folder, resume=True) == ids(*[1, 4][batches:])
    assert contents(folder) == whole


def test_another_run_is_not_taken_for_an_earlier_one(
    client: Client, tmp_path: Path, whole: dict[str, bytes]
) -> None:
    folder = tmp_path / "run"
    lose(folder, 560)

    def stop(_batch: BatchResult) -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        scored(client, folder, variant="corrected", overwrite=True, on_batch=stop)
    every = ids(*range(7))
    assert scored(client, folder, variant="corrected", resume=True) == every
    assert contents(folder) != whole


def test_workers_score_again_in_processes_of_their_own(
    client: Client, tmp_path: Path, whole: dict[str, bytes]
) -> None:
    folder = tmp_path / "run"
    lose(folder, 560, 2_400)
    scored(client, folder, resume=True, workers=2, on_batch=None)
    assert contents(folder) == whole


@pytest.mark.parametrize("first", [0, 512, 560, 720, 1_024, 2_400, COUNT - 1, COUNT])
def test_pieces_are_all_items_from_the_first_on(
    client: Client, tmp_path: Path, whole: dict[str, bytes], first: int
) -> None:
    assert whole
    lose(tmp_path / "run", 520, 1_040, COUNT - 1)
    earlier = EarlierRun.of(tmp_path / "run")
    assert earlier is not None
    assert earlier.reasons == {"PROCESS_DIED": 3}
    at = first
    for piece in earlier.pieces(first):
        if isinstance(piece, range):
            assert piece.start == at
            at = piece.stop
        else:
            entry, part = piece
            assert isinstance(part, Part)
            assert (part.lines_crc, part.tally) == (entry.lines_crc, entry.tally)
            at += part.items
    assert at == COUNT


@pytest.mark.parametrize(
    ("reason", "passes"),
    [
        (UnscoredReason.JUDGE_BUDGET_EXHAUSTED, True),
        (UnscoredReason.JUDGE_UNREACHABLE, True),
        (UnscoredReason.JUDGE_TIMEOUT, True),
        (UnscoredReason.PROCESS_DIED, True),
        (UnscoredReason.RESPONSE_EMPTY, False),
        (UnscoredReason.REPLY_NOT_JSON, False),
        (UnscoredReason.JUDGE_REFUSED, False),
    ],
)
def test_reasons_that_say_nothing_about_an_item_pass(
    client: Client,
    tmp_path: Path,
    whole: dict[str, bytes],
    reason: UnscoredReason,
    passes: bool,
) -> None:
    assert whole
    folder = tmp_path / "run"
    lose(folder, 560, reason=reason)
    assert scored(client, folder, resume=True) == (ids(1) if passes else [])
    for add in (_of_items, _of_claims):
        counts = UnscoredCounts()
        add(counts)(reason, "1", "")
        assert passing_reasons(counts) == ([reason] if passes else [])


def _of_items(counts: UnscoredCounts) -> Callable[[str, str, str], None]:
    return counts.items.add


def _of_claims(counts: UnscoredCounts) -> Callable[[str, str, str], None]:
    return counts.claims.add

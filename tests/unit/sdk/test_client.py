"""The clients as their users meet them."""

from __future__ import annotations

import asyncio
import copy
import doctest
import gc
import pickle
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.messages import expected_message
from support.threads import PATIENCE, busy_switching, eventually, run_in_threads

from hallujudge.judge_service.engine.session import ScoringSession
from hallujudge.metrics import Item, ItemResult
from hallujudge.sdk import AsyncClient, Client, EmbeddedBackend, Outcome, ScoreRun, async_client
from hallujudge.sdk import client as sync_client
from hallujudge.sdk.archives import inspect_archives, read_items
from hallujudge.sdk.backends import BatchResult
from hallujudge.sdk.backends.channel import check_versions
from hallujudge.sdk.errors import (
    ArchiveError,
    CancelledError,
    InvalidInputError,
    NotFoundError,
    VersionMismatchError,
)

RESPONSES = {"1": "A dog on a couch.", "2": None, "3": "Two cats."}
REFERENCES = {"1": ["dog"], "2": ["dog"], "3": ["cat"]}


@pytest.mark.parametrize("module", [async_client, sync_client])
def test_examples(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]  # modules, both
    assert result.attempted > 0
    assert result.failed == 0


def test_results_come_in_order_with_their_items() -> None:
    seen: list[BatchResult] = []
    with Client.embedded() as embedded:
        report = embedded.score(
            "chair", responses=RESPONSES, references=REFERENCES, on_batch=seen.append
        )
    assert report.chair_i == 1 / 3
    pairs = [pair for b in seen for pair in zip(b.items, b.results, strict=True)]
    assert [(item.id, result.id) for item, result in pairs] == [(i, i) for i in "123"]
    assert [result.outcome for _, result in pairs] == [
        Outcome.SCORED,
        Outcome.UNSCORED,
        Outcome.SCORED,
    ]


async def test_the_synchronous_client_works_inside_a_running_loop() -> None:
    with Client.embedded() as embedded:
        report = embedded.score("chair", responses=RESPONSES, references=REFERENCES)
    assert report.coverage.scored == 2


async def test_many_runs_at_once() -> None:
    async with AsyncClient.embedded() as embedded:
        reports = await asyncio.gather(
            *(
                embedded.score("chair", responses=RESPONSES, references=REFERENCES)
                for _ in range(20)
            )
        )
    assert len({report.to_text() for report in reports}) == 1


def test_a_closed_client_opens_again() -> None:
    embedded = Client.embedded()
    for _ in range(2):
        assert embedded.normalize(["puppy", "xyzzy"]) == {"puppy": ("dog",), "xyzzy": ()}
        embedded.close()
    embedded.close()


def test_a_client_takes_a_backend_that_was_constructed() -> None:
    with Client(EmbeddedBackend()) as client:
        report = client.score("chair", responses=RESPONSES, references=REFERENCES)
    assert report.coverage.scored == 2


def test_a_wrong_argument_is_named() -> None:
    with Client.embedded() as client:
        # Python 3.12 and later say "keyword-only argument" here.
        missing = r"score\(\): missing a required .*argument: 'responses'"
        with pytest.raises(TypeError, match=missing):
            client.score("chair", references=REFERENCES)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"judge\(\): got an unexpected keyword .*'refs'"):
            client.judge("chair", responses=RESPONSES, refs=REFERENCES)  # type: ignore[call-arg]


def test_options_may_be_numbers_and_truth_values() -> None:
    options = {"support_above": 0.4, "count_empty": True, "judge": "matcher"}
    spec = ScoreRun("tri-he", responses={}, options=options).spec()
    assert spec.options == {"support_above": "0.4", "count_empty": "true", "judge": "matcher"}


def test_errors_name_what_to_do() -> None:
    with Client.embedded() as embedded:
        with pytest.raises(
            NotFoundError,
            match=expected_message(
                "judge_service.engine.judge_options:metric-bleu-does-not-exist-choose-one"
            ),
        ):
            embedded.score("bleu", responses={}, references={})
        with pytest.raises(NotFoundError, match="neither a shipped graph"):
            embedded.score("chair", responses=RESPONSES, references=REFERENCES, graph="no-such")
        with pytest.raises(InvalidInputError, match="confidence"):
            embedded.score("chair", responses=RESPONSES, references=REFERENCES, confidence=0)


@pytest.mark.parametrize(
    "texts", [["A dog.", "A cat."], ("yes",), "A dog and/or a cat.", "A dog on a couch", ["dog"]]
)
def test_texts_in_place_of_files_are_told_from_paths(texts: Any) -> None:
    said = r"is no file; give texts in a mapping from id to text, such as dict\(zip\(ids, texts\)\)"
    with Client.embedded() as embedded:
        with pytest.raises(ArchiveError, match=f"responses: '.*' {said}"):
            embedded.score("chair", responses=texts, references=REFERENCES)
        with pytest.raises(ArchiveError, match=f"references: '.*' {said}"):
            embedded.score("chair", responses=RESPONSES, references=texts)
        with pytest.raises(ArchiveError, match=r"captions\.jsonl: No such file or directory"):
            embedded.score("chair", responses="captions.jsonl", references=REFERENCES)
        with pytest.raises(ArchiveError, match="responses: None; give a file, a mapping"):
            embedded.score("chair", responses=None, references=REFERENCES)  # type: ignore[arg-type]  # a mistake


@pytest.mark.parametrize("text", ["A long caption " * 400, "x" * 400, "\ud800", "a\0b"])
def test_a_text_that_no_system_takes_for_a_path_is_told(text: str) -> None:
    with Client.embedded() as embedded:
        for given in (text, [text], [text, "captions.jsonl"]):
            with pytest.raises(ArchiveError, match="in a mapping from id to text"):
                embedded.score("chair", responses=given, references=REFERENCES)
            with pytest.raises(ArchiveError, match="in a mapping from id to text"):
                embedded.score("chair", responses=RESPONSES, references=given)
    with pytest.raises(ArchiveError, match="can't be the name of a file; give the path of one"):
        read_items("chair", [text], REFERENCES)
    [summary] = inspect_archives([text])
    assert "can't be the name of a file" in summary.problem


def test_an_error_in_a_callback_reaches_the_caller() -> None:
    def broken(_: BatchResult) -> None:
        raise KeyError("mine")

    with Client.embedded() as embedded, pytest.raises(KeyError, match="mine"):
        embedded.score("chair", responses=RESPONSES, references=REFERENCES, on_batch=broken)


@pytest.mark.parametrize(
    ("mine", "theirs", "fits"),
    [
        ("0.1.0", "0.1.9", True),
        ("0.1.0", "0.2.0", False),
        ("1.4.0", "1.9.2", True),
        ("1.4.0", "2.0.0", False),
        ("0.1.0", "", False),
    ],
)
def test_releases_that_go_together(mine: str, theirs: str, fits: bool) -> None:
    if fits:
        check_versions(mine, theirs, "t")
        return
    with pytest.raises(VersionMismatchError, match="same release"):
        check_versions(mine, theirs, "t")


@pytest.mark.parametrize("make", [Client, AsyncClient])
@pytest.mark.parametrize(
    ("target", "said"), [("", "empty"), ("  ", "empty"), ("http://localhost:50051", "HOST:PORT")]
)
def test_an_invalid_address_is_not_taken_for_embedded(
    make: type[Client] | type[AsyncClient], target: str, said: str
) -> None:
    with pytest.raises(InvalidInputError, match=said):
        make(target)


@pytest.mark.parametrize("make", [Client, AsyncClient])
@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_client_is_never_copied_and_says_what_is(
    make: Callable[[str], object], copied: Callable[[object], object]
) -> None:
    with pytest.raises(TypeError, match="open a client there, or hand over a Scorer or a Reward"):
        copied(make("localhost:50051"))


def test_a_report_can_be_copied_pickled_and_iterated() -> None:
    with Client.embedded() as embedded:
        report = embedded.score("chair", responses=RESPONSES, references=REFERENCES)
    assert pickle.loads(pickle.dumps(report)) == copy.deepcopy(report) == copy.copy(report)
    assert "chair_i" in report
    assert "accuracy" not in report
    assert list(report) == ["chair_i", "chair_s", "recall", "mean_words"]
    assert not hasattr(report, "accuracy")


MANY_RESPONSES = {str(n): "A dog and a cat." for n in range(300)}
MANY_REFERENCES = {str(n): ["dog"] for n in range(300)}
ROUNDS = 8


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def loop_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "hallujudge-client"}


def test_one_client_in_many_threads_starts_one_thread() -> None:
    before = loop_threads()

    def score() -> float | None:
        report = client.score("chair", responses=MANY_RESPONSES, references=MANY_REFERENCES)
        return report.chair_i

    with busy_switching(), Client.embedded() as client:
        assert run_in_threads(score, ROUNDS) == [0.5] * ROUNDS
        (own,) = loop_threads() - before
    assert not own.is_alive()


def test_clients_that_are_not_closed_end_when_they_are_dropped() -> None:
    before, files = loop_threads(), open_files()
    for _ in range(ROUNDS):
        assert Client.embedded().server_info().version

    def ended() -> bool:
        gc.collect()
        return not loop_threads() - before and open_files() <= files

    assert eventually(ended)


def test_closing_ends_what_another_thread_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()

    async def forever(_: ScoringSession, items: Sequence[Item]) -> list[ItemResult]:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError(f"{len(items)} items were scored")

    monkeypatch.setattr(ScoringSession, "evaluate", forever)
    client = Client.embedded()
    caught: list[BaseException] = []

    def slow() -> None:
        try:
            client.score("chair", responses=MANY_RESPONSES, references=MANY_REFERENCES)
        except CancelledError as err:
            caught.append(err)

    thread = threading.Thread(target=slow, daemon=True)
    thread.start()
    assert begun.wait(PATIENCE)
    client.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert "closed" in str(caught[0])

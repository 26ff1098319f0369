"""Which items of a job are blamed for deaths of its server."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from random import Random

import pytest
from support.sizes import sized

from hallujudge.judge_service.jobs import Answer, Death, Job, JobState, NewItem, NewJob
from hallujudge.judge_service.jobs.database import Database
from hallujudge.judge_service.jobs.job_progress import JobProgress, JobSuspicions
from hallujudge.judge_service.jobs.job_store import JobStore
from hallujudge.judge_service.settings.server_settings import JobSettings

AT_ONCE = 16
"""Items in flight at once while nothing is suspected."""


@pytest.fixture
def database(jobs_address: str) -> Iterator[Database]:
    with closing(Database(jobs_address)) as opened:
        yield opened


class Lives:
    """A server that scores one job, and dies when a test says so."""

    def __init__(self, database: Database, items: int) -> None:
        store = JobStore(database, JobSettings())
        new = NewJob(owner="ann", caller="{}", request_id="r", spec=b"spec")
        contents = [NewItem(str(n), b"item %d" % n) for n in range(items)]
        self.job: Job = store.create(new, b"header", contents, more=False, now=1.0)
        self.progress = JobProgress(database)
        self.suspicions = JobSuspicions(database)
        self.blamed: list[int] = []
        self.deaths = 0
        self._store = store

    @property
    def state(self) -> JobState:
        return self._store.get("ann", self.job.id).job.state

    def run(self, dies: Callable[[Collection[int]], bool], lives: int = 500) -> None:
        """Score everything; a life ends where ``dies`` is true of what is in flight."""
        for _ in range(lives):
            self.progress.begin(self.job.number)
            self.suspicions.land(self.job.number)
            if self._live(dies):
                return
            self.deaths += 1
            self.suspicions.recover([])
        raise AssertionError(f"the job does not end after {lives} lives")

    def _live(self, dies: Callable[[Collection[int]], bool]) -> bool:
        number = self.job.number
        while (trial := self.suspicions.next_trial(number)) is not None:
            positions = [position for position, _ in trial.items]
            if trial.is_blamed:
                self.blamed += positions
            elif not self._flown(positions, dies):
                return False
            elif len(positions) == 1:
                self.suspicions.survived(number, positions[0])
            self._answer(positions)
        while chunk := self.progress.chunk(
            number, -1, answered=False, count=AT_ONCE, max_bytes=1 << 20
        ):
            positions = [position for position, _ in chunk]
            if not self._flown(positions, dies):
                return False
            self._answer(positions)
        return True

    def _flown(self, positions: list[int], dies: Callable[[Collection[int]], bool]) -> bool:
        self.suspicions.fly(self.job.number, set(positions), set())
        if dies(positions):
            return False
        self.suspicions.fly(self.job.number, set(), set(positions))
        return True

    def _answer(self, positions: list[int]) -> None:
        answers = [Answer(position=at, scored=True, reason="", result=b"r") for at in positions]
        self.progress.store(self.job.number, answers)


def test_only_what_was_in_flight_is_suspect(database: Database) -> None:
    lives = Lives(database, 100)
    number, suspicions = lives.job.number, lives.suspicions
    lives.progress.begin(number)
    suspicions.fly(number, set(range(20)), set())
    suspicions.fly(number, {30}, set(range(3, 20)))
    lives.progress.store(number, [Answer(position=1, scored=True, reason="", result=b"r")])
    assert suspicions.next_trial(number) is None
    assert suspicions.recover([number]) == [], "this server runs it"
    assert suspicions.recover([]) == [Death(lives.job.id, 3)]
    assert lives.state is JobState.QUEUED
    trial = suspicions.next_trial(number)
    assert trial is not None
    assert (trial.items, trial.left) == ([(0, b"item 0"), (2, b"item 2")], 3)
    assert not trial.is_blamed
    assert suspicions.recover([]) == [], "it did not run"


def test_a_kill_costs_two_groups_of_what_was_in_flight(database: Database) -> None:
    lives, kills = Lives(database, 100), [False, False, True]
    sizes: list[int] = []

    def dies(positions: Collection[int]) -> bool:
        sizes.append(len(positions))
        return bool(kills) and kills.pop(0)

    lives.run(dies)
    assert sizes == [16, 16, 16, 8, 8, 16, 16, 16, 4]
    assert lives.blamed == []


def test_an_item_that_ends_the_server_is_found_by_halves(database: Database) -> None:
    lives = Lives(database, 100)
    lives.run(lambda positions: 37 in positions)
    assert lives.blamed == [37]
    # With 16, 8, 4 and 2; then twice alone.
    assert lives.deaths == 6


def test_the_only_item_of_a_job_is_blamed_after_more_deaths(database: Database) -> None:
    lives = Lives(database, 1)
    lives.run(lambda _positions: True)
    assert (lives.blamed, lives.deaths) == ([0], 6)


def test_two_items_that_end_the_server_are_found(database: Database) -> None:
    lives = Lives(database, 60)
    lives.run(lambda positions: bool({3, 41} & set(positions)))
    assert sorted(lives.blamed) == [3, 41]


def test_a_server_that_never_lives_for_an_item_blames_none(database: Database) -> None:
    lives, deaths = Lives(database, 40), [0]

    def dies(_positions: Collection[int]) -> bool:
        deaths[0] += 1
        return deaths[0] <= 30

    lives.run(dies)
    assert lives.blamed == []


@pytest.mark.parametrize("seed", range(sized(1, 4)))
def test_random_kills_blame_no_item(database: Database, seed: int) -> None:
    random, lives = Random(seed), Lives(database, 600)
    lives.run(lambda _positions: random.random() < 0.1)
    assert lives.blamed == []
    assert lives.deaths > 0

"""What happens in a fault schedule: the work of callers, and the faults around a server.

A seed always makes the same schedule. :func:`shrunk` takes steps away while it still fails.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from random import Random

__all__ = ["CALLERS", "EVERYBODY", "Fault", "Schedule", "Work", "schedule_of", "shrunk"]

EVERYBODY = "all"
"""The owner of claims that several callers ask about."""
CALLERS = ("ana", "ben", "cy")
"""``ana`` has no budget of her own, ``ben`` one of calls, ``cy`` one of money."""

_WORK = ("unary", "stream", "job", "slow", "vanish", "cancel")
_WITHOUT_JUDGE = ("unary", "stream", "job")
# What the judge's server does, as :mod:`support.fault_judge` names it.
_JUDGE = (
    *("401", "403", "404", "429", "500", "reset", "cut", "garbage", "model", "hang", "slow"),
    *("refusal", "quota", "later"),
)
_POISON = ("403", "500", "reset", "cut", "garbage", "later")
_FAULTS = (
    *("kill", "kill", "kill", "stop", "lock", "lock", "judge", "judge", "judge", "poison"),
    *("full", "broken", "jump", "log"),
)
# Drawn by themselves, so that what was found by a seed before them stays in its schedule.
_LATER_FAULTS = ("empty", "revoke", "limit", "delete")
_LATER_SHARE = 0.2
_DATABASES = ("jobs", "verdicts", "spending")
_STATE = ("jobs", "spending")
_HOURS = (-48, -3, 1, 5, 30)
_LASTS = (0.02, 0.05, 0.1, 0.2, 0.4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one caller wants."""

    caller: str
    """Who calls."""
    kind: str
    """How, such as ``stream``; ``run`` writes to a folder."""
    metric: str
    """``tri-he``, which asks the judge, or ``chair``."""
    claims: tuple[str, ...]
    """What is claimed in each item; one caller may claim the same as another."""
    begins: float
    """When, in seconds."""
    leaves: float
    """How long after that a caller that vanishes does so."""

    def __str__(self) -> str:
        """Return the work as a failing schedule prints it."""
        claimed = ", ".join(self.claims)
        return f"{self.caller} {self.kind} {self.metric} at {self.begins:.2f}: {claimed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong."""

    kind: str
    """``kill``, ``stop``, ``lock``, ``full``, ``broken``, ``judge``, ``poison``, ``jump``, ``log``,
    ``empty``, ``revoke``, ``limit``, ``delete``."""
    what: str = ""
    """Which database, which caller, which claim, or what the judge does."""
    after: int = 0
    """How many further calls the judge gets before."""
    lasts: float = 0.0
    """How long, in seconds; a life has many seconds in each."""

    def __str__(self) -> str:
        """Return the fault as a failing schedule prints it."""
        return f"after {self.after} calls: {self.kind} {self.what} for {self.lasts:.2f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The steps of one run."""

    seed: int
    """What it is made from."""
    work: tuple[Work, ...]
    """What callers want, all at once."""
    faults: tuple[Fault, ...]
    """What goes wrong, in this order."""

    def __str__(self) -> str:
        """Return the seed and the steps, one a line."""
        steps = [*map(str, self.work), *map(str, self.faults)]
        return "\n  ".join([f"seed {self.seed}:", *steps])


def schedule_of(seed: int, *, later: bool = True) -> Schedule:
    """Return the schedule of a seed.

    Args:
        seed: The seed.
        later: Whether kinds of faults happen that were added later.
    """
    random = Random(seed)
    callers = random.sample(CALLERS, random.choice((2, 2, 3)))
    work = [_work(random, caller) for caller in callers for _ in range(random.randint(1, 3))]
    faults = [_fault(random, callers) for _ in range(random.choice((0, 1, 2, 2, 3, 3, 4)))]
    if later:
        further = _later_faults(Random(f"further {seed}"), work)
        faults += further
        if any(fault.kind == "delete" for fault in further):
            work = [_as_run(one) for one in work]
    return Schedule(seed=seed, work=tuple(work), faults=tuple(faults))


def _work(random: Random, caller: str) -> Work:
    asks = random.random() < 0.8
    claims = [
        f"hat {random.randrange(24)} of {random.choice((EVERYBODY, EVERYBODY, caller))}"
        for _ in range(random.choice((1, 4, 8, 16)))
    ]
    return Work(
        caller=caller,
        kind=random.choice(_WORK if asks else _WITHOUT_JUDGE),
        metric="tri-he" if asks else "chair",
        claims=tuple(claims),
        begins=random.choice((0.0, 0.0, 0.03, 0.1, 0.2)),
        leaves=random.choice((0.003, 0.006, 0.01, 0.02, 0.05)),
    )


def _as_run(work: Work) -> Work:
    """Return a stream as one whose results are written to a folder."""
    is_stream = work.kind in ("stream", "slow") and work.metric == "tri-he"
    return replace(work, kind="run") if is_stream else work


def _fault(random: Random, callers: list[str]) -> Fault:
    kind = random.choice(_FAULTS)
    choices = {"lock": _DATABASES, "judge": _JUDGE, "kill": ("", "calls under way")}
    what = random.choice(choices.get(kind, ("",)))
    if kind == "poison":
        what = f"{random.choice(callers)} {random.choice(_POISON)}"
    if kind == "jump":
        what = str(3600 * random.choice(_HOURS))
    return Fault(
        kind=kind, what=what, after=random.choice((0, 1, 3, 8)), lasts=random.choice(_LASTS)
    )


def _later_faults(random: Random, work: list[Work]) -> list[Fault]:
    found = []
    for kind in _LATER_FAULTS:
        if random.random() < _LATER_SHARE:
            one = random.choice(work)
            choices = {
                "empty": _STATE,
                "revoke": (one.caller,),
                "limit": one.claims,
                "delete": ("output",),
            }
            found.append(
                Fault(
                    kind=kind,
                    what=random.choice(choices[kind]),
                    after=random.choice((0, 1, 3, 8)),
                    lasts=random.choice(_LASTS),
                )
            )
    return found


async def shrunk(
    schedule: Schedule, fails: Callable[[Schedule], Awaitable[bool]], tries: int = 40
) -> Schedule:
    """Return a failing schedule without the steps that it fails without.

    Args:
        schedule: A schedule that fails.
        fails: Runs a schedule, and returns whether it fails.
        tries: Most runs.
    """
    for step in (*schedule.faults, *schedule.work):
        less = replace(
            schedule,
            faults=tuple(one for one in schedule.faults if one is not step),
            work=tuple(one for one in schedule.work if one is not step),
        )
        tries -= 1
        if tries >= 0 and await fails(less):
            schedule = less
    return schedule

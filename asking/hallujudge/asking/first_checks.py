"""What is checked before the first call: labels, and whether the model's server can be reached."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from hallujudge.judge_service.llm.call_policy import RetryPolicy
from hallujudge.sdk.archives.question_files import LABELS_INVALID
from hallujudge.sdk.archives.readers import read_items
from hallujudge.sdk.archives.records import KEY_MISSING, LABEL
from hallujudge.sdk.errors import ArchiveError, InvalidInputError, UnavailableError

from .asked_benchmarks import Benchmark
from .inquiries import Inquiries


def notes_on_labels(benchmark: Benchmark, inquiries: Inquiries) -> tuple[str, ...]:
    """Read the archive as scoring will, so that labels are checked before a call is paid for.

    Other problems are left to scoring, whose options settle some of them.

    Raises:
        ArchiveError: Labels are not the benchmark's.
    """
    if benchmark.declared is None:
        return ()
    filled = [each for each in inquiries.asked if each.response not in each.into]
    for each in filled:
        # Scoring refuses a record without the key; null is the response until the answer comes.
        each.into[each.response] = None
    try:
        read_items(benchmark.name, inquiries.records, None)
    except (ArchiveError, InvalidInputError) as err:
        if err.reason == LABELS_INVALID:
            raise ArchiveError(
                f"{err.metadata['found']}. Correct these labels in the file of questions, or ask "
                "these questions too with AskRun(bad_labels=True) and leave them unscored later",
                reason=err.reason,
            ) from err
        if (err.reason, err.metadata.get("value")) == (KEY_MISSING, LABEL):
            return ("the questions have no labels; scoring needs them, in a file of references",)
    finally:
        for each in filled:
            del each.into[each.response]
    return ()


@contextmanager
def waits_if_asked() -> Iterator[None]:
    """Say how to wait for a server that can't be reached yet."""
    try:
        yield
    except UnavailableError as err:
        if err.reason != "JUDGE_UNREACHABLE":
            raise
        raise UnavailableError(
            f"{err}; AskRun(wait=…) waits for a server that is starting",
            reason=err.reason,
            metadata=err.metadata,
        ) from err


def waiting(retry: RetryPolicy, seconds: float) -> RetryPolicy:
    """Return a policy that waits so long, and no longer, for a server's first answer."""
    return replace(
        retry,
        start_seconds=seconds,
        outage_seconds=max(retry.outage_seconds, seconds),
        give_up_after=max(retry.give_up_after, seconds),
    )

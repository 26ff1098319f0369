"""Jobs as messages, and the bytes that the job database stores."""

from __future__ import annotations

from collections.abc import Sequence

from hallujudge.judge.v1 import jobs_pb2, scoring_pb2
from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.metrics import Item, ItemResult, Report

from ..engine.spec import ScoreSpec
from ..errors import InvalidInputError
from ..jobs import Job, JobDetails, ResultPage
from .convert import (
    item_from_proto,
    report_from_proto,
    report_to_proto,
    result_from_proto,
    result_to_proto,
    spec_from_proto,
    without_graphs,
)

_PREFIX = "JOB_STATE_"
# The fields that a job and its message have alike.
_SAME = (
    *("id", "owner", "request_id", "items", "scored", "unscored"),
    *("created_at", "finished_at", "verdicts"),
)


class WireCodec:
    """Encodes what the job database stores as messages; see :class:`JobCodec`."""

    def spec(self, content: bytes) -> ScoreSpec:
        """Return a spec."""
        return spec_from_proto(scoring_pb2.ScoreSpec.FromString(content))

    def items(self, contents: Sequence[bytes]) -> list[Item]:
        """Return items."""
        return [item_from_proto(pb.Item.FromString(content)) for content in contents]

    def result(self, content: bytes) -> ItemResult:
        """Return a result."""
        return result_from_proto(pb.ItemResult.FromString(content))

    def result_bytes(self, result: ItemResult) -> bytes:
        """Return a result as bytes."""
        # The stored item has the scene graph.
        (kept,) = without_graphs([result])
        return result_to_proto(kept).SerializeToString()

    def report(self, content: bytes) -> Report:
        """Return a report."""
        return report_from_proto(scoring_pb2.Report.FromString(content))

    def report_bytes(self, report: Report) -> bytes:
        """Return a report as bytes."""
        return report_to_proto(report).SerializeToString()


def job_to_proto(job: Job) -> jobs_pb2.Job:
    """Return a job as a message, with its spec if it was loaded."""
    message = jobs_pb2.Job(
        **{name: getattr(job, name) for name in _SAME},
        state=jobs_pb2.JobState.Value(f"{_PREFIX}{job.state.name}"),
        problem=job.problem.reason,
        problem_detail=job.problem.detail,
    )
    if job.spec:
        message.spec.ParseFromString(job.spec)
    return message


def details_to_proto(details: JobDetails) -> jobs_pb2.GetJobResponse:
    """Return a job with everything that is stored with it, except its items."""
    return jobs_pb2.GetJobResponse(
        job=job_to_proto(details.job),
        header=scoring_pb2.Report.FromString(details.header),
        note=details.note,
    )


def page_to_proto(page: ResultPage) -> jobs_pb2.ListJobResultsResponse:
    """Return a page of results."""
    return jobs_pb2.ListJobResultsResponse(
        results=[
            jobs_pb2.JobResult(
                result=pb.ItemResult.FromString(row.result),
                item=None if row.item is None else pb.Item.FromString(row.item),
            )
            for row in page.results
        ],
        next_position=page.next_position,
        last=page.last,
    )


def token_of(job: Job) -> str:
    """Return the token of the page after a job."""
    return str(job.number)


def number_of_token(token: str) -> int | None:
    """Return the number of the job before a page; None for the first page.

    Raises:
        InvalidInputError: The token is not one that the server sent.
    """
    if not token:
        return None
    # 18 digits fit the integers of the database.
    if not (token.isascii() and token.isdigit() and len(token) < 19):
        raise InvalidInputError(
            f"page_token {token[:40]!r} is not one of this server; send next_page_token of the "
            "page before, or nothing"
        )
    return int(token)

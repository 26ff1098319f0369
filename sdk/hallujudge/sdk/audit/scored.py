"""An archive's records beside our results of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from hallujudge.metrics import ItemResult, Report

from ..archives import InputOptions
from ..archives.opening import open_responses
from ..archives.records import Record, read_records
from ..backends.base import BatchResult
from ..client import Client
from .values import AuditOptions

__all__ = ["Scored", "score_archive", "statistics_of"]


@dataclass(slots=True)
class Scored:
    """Records of an archive, with the items and results that scoring makes of them."""

    records: list[Record] = field(default_factory=list)
    """The records."""
    responses: list[str | None] = field(default_factory=list)
    """What the model wrote, by record."""
    labels: list[str] = field(default_factory=list)
    """Labels by record; empty texts where items have none."""
    results: list[ItemResult] = field(default_factory=list)
    """Our results, by record."""
    report: Report | None = None
    """Our report."""

    def repeated(self) -> Iterator[bool]:
        """Yield for each record whether one before it has the same id."""
        # Scoring names the second "42" "42#2".
        counts: dict[str, int] = {}
        for result in self.results:
            base, _, number = result.id.rpartition("#")
            again = counts.get(base, 0) + 1
            is_repeated = base in counts and number == str(again)
            counts[base if is_repeated else result.id] = again if is_repeated else 1
            yield is_repeated


def score_archive(metric: str, path: str, options: AuditOptions) -> Scored:
    """Score an archive in this process; every record is scored, duplicates included.

    Raises:
        ArchiveError: The archive can't be read or joined with its references.
    """
    inputs = InputOptions(
        allow_duplicates=True, allow_missing=True, allow_unknown=True, join=options.join
    )
    scored = Scored()

    def keep(batch: BatchResult) -> None:
        for item, result in zip(batch.items, batch.results, strict=True):
            scored.responses.append(getattr(item, "response", None))
            scored.labels.append(getattr(item, "label", ""))
            scored.results.append(result)

    references = list(options.references)
    with Client.embedded() as client:
        scored.report = client.score(
            metric,
            responses=path,
            references=references or None,
            variant=options.variant,
            inputs=inputs,
            keep_items=False,
            on_batch=keep,
        )
    source = open_responses(path, metric, inputs, lambda _path: False).source
    assert source is not None, "it was scored"
    scored.records = list(islice(read_records(source), len(scored.results)))
    # Questions without an answer come last; no tool counts them.
    for of in (scored.responses, scored.labels, scored.results):
        del of[len(scored.records) :]
    return scored


def statistics_of(result: ItemResult, names: Mapping[str, int]) -> dict[str, int]:
    """Return the wanted statistics of a result by column; empty if it is unscored."""
    statistics = result.statistics
    return {name: int(statistics[place]) for name, place in names.items()} if statistics else {}

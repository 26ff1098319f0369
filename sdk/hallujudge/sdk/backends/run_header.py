"""What is known of a run before its first item: its metric, and what its report begins with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, replace

from msgspec import Struct

from hallujudge.judge_service.engine.spec import known_metric, read_items
from hallujudge.metrics import IntervalSettings, Item, ItemResult, Metric, Report, Tally
from hallujudge.metrics.framework.signature import before_items, signature_field
from hallujudge.metrics.framework.thought_scores import with_thought_scores
from hallujudge.metrics.framework.trait_sums import SCORED
from hallujudge.metrics.responses.reader import MARKS, THOUGHTS


class RunHeader(Struct, frozen=True, kw_only=True):
    """What is known of a run before its first item."""

    metric: Metric
    """The metric; from a server it lacks the fields that only the signature has."""
    signature: str
    """The signature up to what depends on the items."""
    settings: Mapping[str, str]
    """The settings behind the signature, in full."""
    notes: tuple[str, ...]
    """What limits the use of the scores, whatever the items are."""
    release: str
    """The release that scores."""

    def read(self, items: Sequence[Item], results: Sequence[ItemResult]) -> Sequence[Item]:
        """Return scored items as they were read: with answers in place of responses."""
        return read_items(self.metric, self.settings, items, results)

    def report(self, tally: Tally, interval: IntervalSettings) -> Report:
        """Return the report over all items of a tally.

        Args:
            tally: The statistics of the items.
            interval: How intervals are made.
        """
        made = tally.finish(
            interval, version=self.release, settings=dict(self.settings), notes=self.notes
        )
        # A metric from a server lacks fields of the signature, so the header's signature replaces
        # that part; the fields that depend on the items follow it.
        own = str(self.metric.signature)
        return replace(made, signature=self.signature + made.signature.removeprefix(own))


def metric_of(name: str, variant: str, settings: Mapping[str, str]) -> Metric:
    """Return a metric as a run used it, without fields that only the signature has.

    Args:
        name: Its name.
        variant: Its variant.
        settings: The settings of the run's report.

    Raises:
        NotFoundError: The metric is unknown.
        MetricError: The variant or an option is unknown.
    """
    declared = known_metric(name)
    options = {
        option.name: settings[option.name] for option in declared.options if option.name in settings
    }
    options |= {name: settings[name] for name in (THOUGHTS, MARKS) if name in settings}
    # Fields that only the signature has are left empty: they change no score.
    labels = {
        entry.name: ""
        for entry in fields(declared)
        if entry.init and entry.default is MISSING and entry.default_factory is MISSING
    }
    metric = declared(**labels | options, variant=variant)
    return with_thought_scores(metric) if options.get(THOUGHTS) == SCORED else metric


def header_of(report: Report) -> RunHeader:
    """Return the header of the run that made a report of no items."""
    return RunHeader(
        metric=metric_of(report.metric, report.variant, report.settings),
        signature=before_items(report.signature),
        settings=report.settings,
        notes=report.notes,
        release=signature_field(report.signature, "v"),
    )

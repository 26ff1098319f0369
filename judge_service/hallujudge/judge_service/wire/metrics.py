"""A metric's declaration as a message."""

from __future__ import annotations

from hallujudge.judge.v1 import judge_service_pb2 as pb

from ..engine.registry import MetricEntry

__all__ = ["metric_info"]


def metric_info(entry: MetricEntry) -> pb.MetricInfo:
    """Return what a metric declares: papers, variants, options, statistics and scores."""
    metric = entry.metric
    return pb.MetricInfo(
        name=metric.name,
        summary=metric.summary,
        unit=metric.unit,
        papers=[
            pb.MetricPaper(
                title=paper.title,
                authors=paper.authors,
                year=paper.year,
                link=paper.link,
                where=paper.where,
            )
            for paper in metric.papers
        ],
        variants=[
            pb.MetricVariant(name=variant.name, meaning=variant.meaning)
            for variant in metric.variants
        ],
        options=[
            pb.MetricOption(
                name=option.name,
                default_value=option.default,
                choices=option.choices,
                meaning=option.sentence,
            )
            for option in entry.options
        ],
        statistics=[
            pb.MetricStatistic(name=column.name, meaning=column.meaning)
            for column in metric.columns
        ],
        scores=[
            pb.MetricScore(
                name=score.name,
                meaning=score.meaning,
                unit=score.unit,
                direction=score.direction,
            )
            for score in metric.score_definitions
        ],
    )

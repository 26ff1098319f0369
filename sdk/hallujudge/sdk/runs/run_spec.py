"""How the items of a run are scored: the spec of user input, and notes on its archive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from hallujudge.judge_service.engine.spec import GraphSource, ScoreSpec, known_metric
from hallujudge.judge_service.installation import is_whole
from hallujudge.metrics import IntervalSettings, Item
from hallujudge.metrics.families import DECLARATION, declaration_hash

from .. import runs
from ..archives.plain_values import plain
from ..errors import InvalidInputError

if TYPE_CHECKING:
    from .score_run import ScoreRun

# Enough to find a word that a metric's rules miss; larger archives are not read twice for it.
_FIRST_ITEMS = 1_000
# The role of a metric's only graph, and the first one of a metric with several.
_FIRST_ROLE = "objects"


def spec_of(run: ScoreRun) -> ScoreSpec:
    """Return how items are scored; see :meth:`ScoreRun.spec`."""
    options = {name: _text(value) for name, value in (run.options or {}).items()}
    if own := declaration_hash(run.metric):
        options[DECLARATION] = own
    return ScoreSpec(
        metric=run.metric,
        variant=run.variant,
        graphs=graph_sources(run.metric, run.graph),
        options=options,
        group_by=group_keys(run.metric, run.group_by),
        interval=interval_settings(run.confidence),
    )


def _text(value: object) -> str:
    """Return an option's value as messages and signatures hold it."""
    found = plain(value)
    return str(found).lower() if isinstance(found, bool) else str(value)


def graph_sources(
    metric: str, graph: str | Path | Mapping[str, str] | None
) -> dict[str, GraphSource]:
    """Return role -> graph.

    Args:
        metric: The metric's name.
        graph: A shipped name or a file, for the metric's first role; or role -> either.

    Raises:
        NotFoundError: The metric or a graph is unknown.
        InvalidInputError: A graph file can't be read.
    """
    known_metric(metric)
    if isinstance(graph, (str, Path)):
        graph = {_FIRST_ROLE: str(graph)}
    return {role: runs.graph_source(name) for role, name in (graph or {}).items()}


def group_keys(metric: str, group_by: Sequence[str]) -> tuple[str, ...]:
    """Return the keys to report groups by: the metric's own, then those that were given.

    Raises:
        NotFoundError: The metric is unknown.
    """
    if isinstance(group_by, str):
        raise InvalidInputError(f"group_by is the text {group_by!r}; give a list, [{group_by!r}]")
    return tuple(dict.fromkeys((*known_metric(metric).group_by, *group_by)))


def interval_settings(confidence: float) -> IntervalSettings:
    """Return how intervals are made.

    Raises:
        InvalidInputError: A number is out of range.
    """
    try:
        return IntervalSettings(confidence=confidence)
    except ValueError as err:
        raise InvalidInputError(str(err)) from err


def input_notes(spec: ScoreSpec, items: Iterable[Item]) -> tuple[str, ...]:
    """Return notes for the report on its archive, and on words of references and responses.

    Notes on words need the graph and the rules of the metric, which a client alone does not have.

    Args:
        spec: How the items are scored.
        items: The items; those of an archive know the words of its references.
    """
    about_archive: tuple[str, ...] = getattr(items, "about_scores", ())
    if not is_whole():
        return about_archive
    entry = runs.metric_entry(spec.metric)
    names: frozenset[str] = getattr(items, "reference_names", frozenset)()
    about_references = entry.reference_notes(spec, names) if names else ()
    about_responses = entry.response_notes(spec, islice(items, _FIRST_ITEMS))
    return (*about_archive, *about_references, *about_responses)

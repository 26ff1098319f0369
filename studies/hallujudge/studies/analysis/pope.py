"""POPE analyses: stability over prompts, samplings side by side, consistency with captions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any, TypeAlias

from hallujudge.judge_service.engine.pipelines import record_hash
from hallujudge.metrics.pope import caption_consistency, template_stability
from hallujudge.metrics.pope.question_builder import questions_about
from hallujudge.sdk.archives.chair_references import coco_number
from hallujudge.sdk.archives.records import Record
from hallujudge.sdk.comparison.label_scores import (
    SCORES,
    LabelScores,
    change_tables,
    filled,
    label_rows,
    label_table,
)
from hallujudge.sdk.report.analysis_tables import AnalysisTable
from hallujudge.sdk.report.charts import Chart
from hallujudge.sdk.report.table_pages import Cell
from hallujudge.synonym_graphs import load_graph

from .analyzed_run import (
    AnalyzedRun,
    FamilyAnalyses,
    Tables,
    cells_of,
    evidence_of,
    reading,
    runs_of,
    with_keys,
)
from .chair import chair_captions

_PROMPT, _SPLIT, _CATEGORY, _OBJECT = "prompt", "split", "category", "object"
# The order of Table 3.
_SAMPLINGS = ("random", "popular", "adversarial")

_Keys: TypeAlias = "tuple[tuple[str, str], ...]"


def _stability(runs: Sequence[AnalyzedRun], _options: Mapping[str, Any]) -> Tables:
    """Return how much each score varies over the runs of one model with several prompts."""
    # Table 4 shows CHAIR_I beside POPE's F1, since its point is that F1 varies less.
    named = [run for run in runs_of(runs, "pope", "chair") if _PROMPT in run.keys]
    if not named:
        several = len(runs_of(runs, "pope")) > 1
        hint = "no stability: name each run with its prompt, such as model=llava,prompt=1"
        return [], [hint] if several else []
    by_model: dict[tuple[str, _Keys], list[AnalyzedRun]] = {}
    for run in named:
        by_model.setdefault((run.metric, _without(run, _PROMPT)), []).append(run)
    rows = [row for (_, keys), own in by_model.items() for row in _stable_scores(dict(keys), own)]
    table = AnalysisTable(
        name="stability",
        source="Li et al. (POPE), Table 4: scores over prompt templates; std of the population",
        rows=tuple(filled(rows)),
        chart=Chart(
            kind="bars",
            x="score",
            y=("mean",),
            by=(*_names_in(keys for _, keys in by_model), "metric"),
            low="low",
            high="high",
        ),
    )
    return [table], []


def _names_in(models: Iterable[_Keys]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key for keys in models for key, _ in keys))


def _stable_scores(
    keys: Mapping[str, str], runs: Sequence[AnalyzedRun]
) -> Iterator[Mapping[str, Cell]]:
    # The length of captions would dwarf the rates in the chart, and is not a score of Table 4.
    rates = (each for each in runs[0].metric_object.score_definitions if each.unit == "fraction")
    for score in (rate.name for rate in rates):
        values = {
            run.keys[_PROMPT]: found.value
            for run in runs
            if (found := run.report.scores.get(score)) is not None and found.value is not None
        }
        if not values:
            continue
        # Table 4 prints the std of the population: its F1 of 68.65, 66.83, 66.67 and 67.58 have
        # 0.78, as printed; the std of a sample would be 0.90.
        found_over = template_stability(values)
        row: dict[str, Cell] = {
            "metric": runs[0].metric,
            "score": score,
            "mean": found_over.mean,
            "std": found_over.std,
            "low": found_over.lowest,
            "high": found_over.highest,
            "prompts": found_over.templates,
        }
        yield with_keys(keys, row, "stability")


def _without(run: AnalyzedRun, key: str) -> _Keys:
    return tuple((name, value) for name, value in run.keys.items() if name != key)


def _samplings(runs: Sequence[AnalyzedRun], _options: Mapping[str, Any]) -> Tables:
    """Return the scores of each sampling side by side, from groups or from runs of one each."""
    cells: dict[_Keys, dict[str, Mapping[str, Any]]] = {}
    for run in runs_of(runs, "pope"):
        # The name goes before groups: it says that the whole run is of one sampling.
        if _SPLIT in run.keys:
            model = cells.setdefault(_without(run, _SPLIT), {})
            model[run.keys[_SPLIT]] = run.report.scores
        elif groups := run.report.groups.get(_CATEGORY):
            cells.setdefault(tuple(run.keys.items()), {}).update(groups)
    if not cells:
        return [], [
            "no samplings: score with --group-by category, or name each run with its sampling, "
            "such as model=llava,split=popular"
        ]
    # The paper's order, then samplings that the paper does not have, as the runs have them.
    found = dict.fromkeys(name for model in cells.values() for name in model)
    order = [*(s for s in _SAMPLINGS if s in found), *(s for s in found if s not in _SAMPLINGS)]
    # A single model needs no columns that tell it from others.
    shown = cells if len(cells) > 1 else {(): next(iter(cells.values()))}
    rows: list[Mapping[str, Cell]] = [
        with_keys(
            with_keys(dict(keys), {"score": score}, "samplings"),
            {name: scores[score].value for name in order if (scores := model.get(name))},
            "samplings",
        )
        for keys, model in shown.items()
        for score in SCORES
    ]
    table = AnalysisTable(
        name="samplings",
        source="Li et al. (POPE), Table 3: samplings of absent objects side by side",
        rows=tuple(filled(rows)),
        chart=Chart(
            kind="bars",
            x="score",
            y=tuple(order),
            by=_names_in(shown),
        ),
    )
    return [table], []


def _consistency(runs: Sequence[AnalyzedRun], _options: Mapping[str, Any]) -> Tables:
    """Return the agreement of answers with captions of the same images.

    Raises:
        ArchiveError: A line of items.jsonl is not one that pope or chair writes.
    """
    captions = runs_of(runs, "chair")
    if not captions:
        return [], ["no consistency: give the run of chair over the same images too"]
    # Once for all runs of answers, since to read the captions takes longest.
    mentioned = [_mentioned(run) for run in captions]
    rows: list[Mapping[str, Cell]] = []
    notes: list[str] = []
    for run in runs_of(runs, "pope"):
        own = [place for place, other in enumerate(captions) if _same_model(run, other)]
        # A single run of captions needs no name in common: it is meant for all.
        own = list(range(len(captions))) if len(captions) == 1 else own
        polled = list(_polled(run))
        if not polled:
            notes.append(
                f"no consistency of {run.name}: its questions are not the paper's about COCO's "
                "objects; score with --group-by object"
            )
        for place in own if polled else ():
            pair = {"answers": run.name, "captions": captions[place].name}
            rows.append(_consistent(pair, polled, mentioned[place]))
        if not own:
            notes.append(
                f"no consistency of {run.name}: no run of chair has its name; name both, such as "
                "model=llava"
            )
    source = 'Li et al. (POPE), section 5.3, "Consistency": objects in answers and in captions'
    return [AnalysisTable(name="consistency", source=source, rows=tuple(rows))], notes


def _labels(runs: Sequence[AnalyzedRun], _options: Mapping[str, Any]) -> Tables:
    """Return the scores by several sets of labels, and what differs in these."""
    own = runs_of(runs, "pope")
    stored = [(run, LabelScores.stored(run.folder)) for run in own if run.folder is not None]
    found = [(run, held) for run, held in stored if held is not None]
    if not found:
        return [], []
    several = len(found) > 1
    rows = [
        {**(run.keys if several else {}), **row} for run, held in found for row in label_rows(held)
    ]
    # With one run there is nothing to rank. Which labels changed depends on the files of labels
    # alone, so that one run shows it for all.
    return [label_table(_ranked(rows) if several else rows), *change_tables(found[0][1])], []


def _ranked(rows: Sequence[dict[str, Cell]]) -> list[dict[str, Cell]]:
    """Return rows with their rank by F1 among the rows of the same labels and category."""

    def place(row: Mapping[str, Cell]) -> tuple[Cell, Cell]:
        return row["labels"], row[_CATEGORY]

    def f1(row: Mapping[str, Cell]) -> float:
        # An undefined F1 is ranked as the worst one.
        return float(row["f1"] or 0)

    return [
        {**row, "rank": 1 + sum(place(o) == place(row) and f1(o) > f1(row) for o in rows)}
        for row in rows
    ]


def _same_model(run: AnalyzedRun, other: AnalyzedRun) -> bool:
    """Return whether two runs have the same value of every key that both have."""
    both = run.keys.keys() & other.keys.keys()
    return bool(both) and all(run.keys[key] == other.keys[key] for key in both)


def _consistent(
    pair: Mapping[str, str],
    polled: Sequence[tuple[str, str, str | None]],
    mentioned: Mapping[str, frozenset[str]],
) -> Mapping[str, Cell]:
    found = caption_consistency(polled, mentioned)
    return {
        **pair,
        **asdict(found),
        **cells_of(found, "denial_rate", "affirmation_rate"),
        "images": len({image for image, _, _ in polled} & mentioned.keys()),
    }


def _mentioned(run: AnalyzedRun) -> dict[str, frozenset[str]]:
    """Return image -> the objects that its captions mention."""
    found: dict[str, frozenset[str]] = {}
    for caption in chair_captions(run):
        # Captions and answers may name one image by its file and by its number.
        image = coco_number(caption.image)
        found[image] = found.get(image, frozenset()) | set(caption.mentioned)
    return found


def _polled(run: AnalyzedRun) -> Iterator[tuple[str, str, str | None]]:
    """Yield image, object and parsed answer of each question whose object is known.

    It is under the key ``object``, or taken from the question.
    """
    asked = _asked_objects()
    for record in run.items():
        fields = record.values.get("fields")
        name = fields.get(_OBJECT) if isinstance(fields, Mapping) else None
        name = name or asked.get(str(record.values.get("question_hash")))
        if name and (answer := _answer(record)):
            yield coco_number(str(record.values.get("group_id"))), str(name), answer["answer"]


@cache
def _asked_objects() -> Mapping[str, str]:
    """Return hash of a question -> its object: a run keeps the hashes of its questions."""
    return {
        record_hash(question): root
        for form, (root, *_) in load_graph("coco").edges
        for question in questions_about(form)
    }


def _answer(record: Record) -> Mapping[str, Any] | None:
    """Return the evidence of an answer; None for an item without one.

    Raises:
        ArchiveError: The line is not one that a run of pope writes.
    """
    evidence: Any = evidence_of(record, "answers")
    with reading(record, "pope"):
        answers = evidence.get("answers", ())
        if not answers:
            return None
        found: Mapping[str, Any] = answers[0]
        if found["answer"] not in ("yes", "no", None) or found["label"] not in ("yes", "no"):
            raise ValueError(f"the answer is {found['answer']!r:.40} to {found['label']!r:.40}")
        return found


ANALYSES = (
    FamilyAnalyses(metrics=("pope",), make=_samplings),
    FamilyAnalyses(metrics=("pope", "chair"), make=_stability),
    FamilyAnalyses(metrics=("pope",), make=_consistency),
    FamilyAnalyses(metrics=("pope",), make=_labels),
)

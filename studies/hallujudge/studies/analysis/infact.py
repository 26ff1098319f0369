"""INFACT analyses: modes, taxonomy, reliability over models, overconfidence, people's audit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hallujudge.metrics import Score
from hallujudge.metrics.answers.answer_text import folded
from hallujudge.metrics.framework.agreement import human_agreement
from hallujudge.metrics.infact.operators import (
    INVARIANT,
    TAXONOMY,
    AuditedCase,
    Overconfidence,
    label_audit,
    level_of,
    taxonomy_means,
)
from hallujudge.sdk.archives.json_files import amount, named
from hallujudge.sdk.archives.record_values import id_under, optional_text
from hallujudge.sdk.archives.records import Record, read_records
from hallujudge.sdk.errors import ArchiveError, InvalidInputError
from hallujudge.sdk.report.analysis_tables import AnalysisTable
from hallujudge.sdk.report.charts import Chart
from hallujudge.sdk.report.table_pages import Cell

from ..analysis_options import OPTIONS
from .analyzed_run import (
    AnalyzedRun,
    FamilyAnalyses,
    Tables,
    cells_of,
    evidence_of,
    joined,
    reading,
    run_by_run,
    runs_of,
    with_keys,
)

_RELIABILITY = ("rr_visual_degradation", "rr_evidence_corruption", "tss", "average")
_SHOWN = ("base_accuracy", *_RELIABILITY)
_OF_WRONG = (
    *("hallucination_like", "knowledge_gap_like", "other", "unanalysable"),
    *("overconfident_share", "knowledge_gap_share"),
)
_OF_AUDIT = ("answerability", "label_preservation", "cases", "answerable", "no_majority")
_NO_TAXONOMY = "no taxonomy: the questions have no category; add the key category to the responses"
_ONE_MODEL = "no reliability over models: give the runs of several models"
_NO_CONFIDENCE = (
    "no overconfidence: no wrong answer to a clean video has a confidence or words of uncertainty; "
    "add the key confidence, from 0 to 1, to the responses"
)


def _tables(runs: Sequence[AnalyzedRun], options: Mapping[str, Any]) -> Tables:
    """Return the analyses of INFACT runs, and the reasons for missing ones.

    Raises:
        ArchiveError: A line of items.jsonl, or of people's audit, is damaged.
    """
    own = runs_of(runs, "infact")
    tables, notes = run_by_run(_of_run, "infact")(own, options)
    if len(own) > 1:
        tables += _reliability(own)
    else:
        notes.append(_ONE_MODEL)
    if options["audit"] is not None:
        tables.append(_audit(own[0], options["audit"]))
    return tables, notes


def _of_run(run: AnalyzedRun, _options: Mapping[str, Any]) -> Tables:
    return joined((([_modes(run)], []), _taxonomy(run), _overconfidence(run)))


def _modes(run: AnalyzedRun) -> AnalysisTable:
    groups = run.report.groups.get("dimension", {})
    named = {
        "all": run.report.scores,
        **{name: groups[name] for name in TAXONOMY if name in groups},
    }
    return AnalysisTable(
        name="modes",
        source="Yang et al., Tables 2 and 3 without operators: Resist Rate (RR) and Temporal "
        "Sensitivity Score (TSS)",
        rows=tuple(
            {"dimension": name, "text_only": scores["text_only"].value, **_mode_values(scores)}
            for name, scores in named.items()
        ),
    )


def _mode_values(scores: Mapping[str, Score]) -> dict[str, float | None]:
    """Return base accuracy, and the means of the modes over their operators."""
    return {name: scores[name].value for name in _SHOWN}


def _taxonomy(run: AnalyzedRun) -> Tables:
    groups = run.report.groups.get("category", {})
    given = {leaf: scores for leaf, scores in groups.items() if level_of(leaf)}
    unknown = sorted(leaf for leaf in groups if leaf and leaf not in given)
    strange = amount(len(unknown), "category is not a leaf", "categories are not leaves")
    notes = [f"taxonomy: {strange} of the paper: {named(unknown)}"] if unknown else []
    if not given:
        return [], notes or [_NO_TAXONOMY]
    leaves = {leaf: _mode_values(scores) for leaf, scores in given.items()}
    # Two categories may be spellings of one leaf, and neither mean is that of the leaf.
    try:
        nodes = {
            score: taxonomy_means({leaf: values[score] for leaf, values in leaves.items()})
            for score in _SHOWN
        }
    except ValueError as err:
        raise InvalidInputError(f"{run.source}: {err}") from err
    rows = [_node(path, nodes) for path in nodes["base_accuracy"]]
    # Names of all 32 nodes would overlap in one chart.
    chart = Chart(kind="bars", x="node", y=("base_accuracy", "average"))
    return [
        AnalysisTable(
            name=name,
            source=f"Yang et al., Figure 5: {meaning}",
            rows=tuple(
                row for row in rows if (row["node"] in (row["dimension"], row["level"])) is upper
            ),
            chart=chart,
        )
        for name, meaning, upper in (
            ("taxonomy", "leaves", False),
            ("taxonomy_levels", "levels are means of leaves, dimensions of levels", True),
        )
    ], notes


def _node(path: str, nodes: Mapping[str, Mapping[str, float | None]]) -> dict[str, Cell]:
    dimension, level, leaf = (*path.split("/"), "", "")[:3]
    row: dict[str, Cell] = {"dimension": dimension, "level": level, "node": leaf or level or path}
    return row | {score: nodes[score][path] for score in _SHOWN}


def _overconfidence(run: AnalyzedRun) -> Tables:
    found: dict[str, Overconfidence] = {}
    for record in run.scored():
        kind = _error_kind(record)
        fields = record.values.get("fields")
        dimension = str(fields.get("dimension", "")) if isinstance(fields, Mapping) else ""
        # Without duplicates, so that a dimension that is itself called "all" counts once.
        for name in dict.fromkeys(("all", dimension)):
            if kind and name:
                found[name] = found.get(name, Overconfidence()).plus(kind)
    if not any(counts.analysable for counts in found.values()):
        return [], [_NO_CONFIDENCE]
    return [
        AnalysisTable(
            name="overconfidence",
            source="Yang et al., appendix A.4: wrong base answers by the stated confidence",
            rows=tuple(
                {"dimension": name, **cells_of(found[name], *_OF_WRONG)}
                for name in ("all", *TAXONOMY)
                if name in found
            ),
        )
    ], []


def _error_kind(record: Record) -> str:
    """Return what a wrong base answer resembles; empty for a right one."""
    evidence_of(record, "answers")
    with reading(record, "infact"):
        counts: Any = record.values["statistics"]
        # Appendix A.4 is about wrong answers; one that could not be parsed chose nothing.
        if counts["right_base"] or not counts["read_base"]:
            return ""
        if not counts["split"]:
            return "unanalysable"
        kinds = {"hallucination_like": "overconfident", "knowledge_gap_like": "knowledge_gap"}
        return next((kind for kind, column in kinds.items() if counts[column]), "other")


def _reliability(runs: Sequence[AnalyzedRun]) -> Iterator[AnalysisTable]:
    values = [(run, _over_dimensions(run)) for run in runs]
    yield AnalysisTable(
        name="reliability",
        source="Yang et al., Figure 4: base accuracy and modes II to IV, mean of the dimensions",
        rows=tuple(with_keys(run.keys, scores, "reliability") for run, scores in values),
        chart=Chart(kind="points", x="base_accuracy", y=_RELIABILITY, by=tuple(runs[0].keys)),
    )
    rows: list[Mapping[str, Cell]] = []
    for name in _RELIABILITY:
        found = human_agreement(
            {run.name: scores["base_accuracy"] for run, scores in values},
            {run.name: scores[name] for run, scores in values},
        )
        row = {"score": name, **cells_of(found, "pearson", "spearman"), "models": found.n}
        rows.append(row)
    yield AnalysisTable(
        name="reliability_correlation",
        source="Yang et al., Figure 4: correlation with base accuracy over models",
        rows=tuple(rows),
    )


def _over_dimensions(run: AnalyzedRun) -> dict[str, float | None]:
    """Return the mean of both dimensions; None if one lacks a score. Without any, all questions."""
    groups = run.report.groups.get("dimension", {})
    known = [_mode_values(groups[name]) for name in TAXONOMY if name in groups]
    # Questions need not name their dimension; then there is one mean only.
    tables = known or [_mode_values(run.report.scores)]
    means: dict[str, float | None] = {}
    for name in _SHOWN:
        values = [value for table in tables if (value := table[name]) is not None]
        # Figure 4 averages faithfulness and factuality; one of them alone is not such a mean.
        means[name] = sum(values) / len(values) if len(values) == len(tables) else None
    return means


def _audit(run: AnalyzedRun, path: Path) -> AnalysisTable:
    # Unscored items too: people checked the question, whatever the model answered to it.
    labels = dict(_labels(run.items()))
    cases: dict[tuple[str, str], list[AuditedCase]] = {}
    seen: dict[tuple[str, ...], str] = {}
    for record in read_records(path):
        kind = _operator(record), optional_text(record, ("subtype",))
        question = id_under(record, "question_id")
        # The vote of a case needs all its choices, so that it must be one record.
        if first := seen.get((*kind, question)):
            raise ArchiveError(
                f"{record.place}: question {question!r:.60} under {kind[0]} appears twice (first "
                f"in {first}); give the choices of all people in one record"
            )
        seen[*kind, question] = record.place
        cases.setdefault(kind, []).append(_case(record, question, labels))
    rows: list[Mapping[str, Cell]] = []
    for key in sorted(cases, key=lambda key: (INVARIANT.index(key[0]), key[1])):
        audited = cells_of(label_audit(cases[key]), *_OF_AUDIT)
        rows.append({"operator": key[0], "subtype": key[1], **audited})
    return AnalysisTable(
        name="audit",
        source="Yang et al., Tables A3 and A4: answerability and label preservation, by majority",
        rows=tuple(rows),
    )


def _operator(record: Record) -> str:
    operator = optional_text(record, ("operator",))
    if operator in INVARIANT:
        return operator
    raise ArchiveError(
        f"{record.place}: the operator is {operator!r:.60}; give one that keeps the label: "
        f"{', '.join(INVARIANT)}"
    )


def _labels(items: Iterable[Record]) -> Iterator[tuple[str, str]]:
    for record in items:
        answers: Any = evidence_of(record, "answers").get("answers", ())
        with reading(record, "infact"):
            if answers:
                yield str(record.values["id"]), folded(str(answers[0]["label"]))


def _case(record: Record, question: str, labels: Mapping[str, str]) -> AuditedCase:
    """Return people's choices about a question under an operator.

    Raises:
        ArchiveError: The question is unknown, or the choices are written unlike the label.
    """
    if question not in labels:
        raise ArchiveError(
            f"{record.place}: the run has no question {question!r:.60}; first give the run of "
            "the audited questions"
        )
    choices, label = record.values.get("choices"), labels[question]
    if not isinstance(choices, list) or not choices:
        raise ArchiveError(
            f"{record.place}: choices is {choices!r:.60}; give a list with one choice for each "
            "person, null for a question that is not answerable"
        )
    for choice in choices:
        # A letter and the text of an option can't be compared.
        is_text = isinstance(choice, str) and folded(choice)
        if choice is not None and not (is_text and (len(folded(choice)) == 1) == (len(label) == 1)):
            raise ArchiveError(
                f"{record.place}: the choice {choice!r:.60} can't be compared with the label "
                f"{label!r:.60}; write choices as labels, and null for not answerable"
            )
    return AuditedCase(label, tuple(None if c is None else folded(c) for c in choices))


ANALYSES = (FamilyAnalyses(metrics=("infact",), make=_tables, options=OPTIONS["infact"]),)

"""Tri-HE analyses: trend, frequent pairs, prediction errors, agreement with annotators."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, get_args

from hallujudge.metrics.framework.agreement import Level, human_agreement, krippendorff_alpha
from hallujudge.metrics.framework.claims import (
    ClaimParts,
    ClaimVerdict,
    Part,
    Sentence,
    Triplet,
    Verdict,
)
from hallujudge.metrics.tri_he import TriHeMetric
from hallujudge.metrics.tri_he.claim_analyses import (
    ClaimTable,
    JudgedAnswer,
    Rates,
    frequent_pair_rates,
    trend,
)
from hallujudge.sdk.archives.record_values import human_scores
from hallujudge.sdk.archives.records import Record
from hallujudge.sdk.errors import ArchiveError, InvalidInputError, NotFoundError
from hallujudge.sdk.report.analysis_tables import AnalysisTable, Spread
from hallujudge.sdk.report.charts import Chart
from hallujudge.sdk.report.table_pages import Cell
from hallujudge.synonym_graphs import GraphError

from ..analysis_options import OPTIONS
from ..graph_tools.suggestions import find_wordnet, open_wordnet
from .agreement import SheetScores, correlations, judge_agreement_tables, key_of, read_sheets
from .analyzed_run import (
    AnalyzedRun,
    FamilyAnalyses,
    Tables,
    cells_of,
    cut_offs,
    joined,
    reading,
    run_by_run,
    runs_of,
)

_PARTS = ("", "object_", "relation_")
_COUNTS = ("questions", "images", "claims")
_VERDICTS_KEPT = "verdicts by answer"
# Points of the trend by default: every ten words, and at most thirty of them.
_STEP, _MOST_STEPS = 10, 30
_NO_PLACES = (
    "no trend: the claims have no position in the answers, since they were given or are worded "
    "differently"
)
_NO_HUMAN = (
    "no agreement with annotators: the answers have no human_score (see "
    "InputOptions(own=dict(human_keys=…))), and no sheet of hallujudge label scores is given"
)
_HUMAN_SCALES = {
    "more-is-better": "with less hallucination",
    "more-is-worse": "with more hallucination",
}
_NO_SECOND = "no Krippendorff's alpha: no answer has scores of two annotators"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    id: str
    is_scored: bool
    judged: JudgedAnswer
    human: tuple[float, ...]
    key: str | None


def _make(runs: Sequence[AnalyzedRun], options: Mapping[str, Any]) -> Tables:
    """Return the analyses of Tri-HE runs, with the scores of people's sheets if any are given.

    Raises:
        ArchiveError: See :func:`_tables`; also if a sheet can't be read.
    """
    sheets = read_sheets(options["sheet"]) if options["sheet"] else None
    known: set[str] = set()
    of_each = run_by_run(lambda run, own: _tables(run, own, sheets, known), "tri-he")
    found = of_each(runs, options)
    judged = [(run, run.kept[_VERDICTS_KEPT]) for run in runs_of(runs, "tri-he")]
    tables, notes = joined((found, judge_agreement_tables(judged)))
    return tables, [*notes, *(sheets.notes(known) if sheets is not None else ())]


def _tables(
    run: AnalyzedRun, options: Mapping[str, Any], sheets: SheetScores | None, known: set[str]
) -> Tables:
    """Return the analyses of a Tri-HE run, and the reasons for missing ones.

    Args:
        run: The run.
        options: The options.
        sheets: Scores that count in place of those of the archive.
        known: Gets the keys of the responses.

    Raises:
        ArchiveError: A line of items.jsonl is not one that a Tri-HE run writes.
    """
    soft = "yes" if "|soft:yes|" in run.signature else ""
    # The judge's name only enters signatures, and tables have the signature of the run.
    metric = TriHeMetric(variant=run.variant, judge="of the run", soft=soft)
    every = [_answer(record, sheets) for record in run.items()]
    known.update(answer.key for answer in every if answer.key is not None)
    # For the agreement of two runs, so that no items are read a second time.
    run.kept[_VERDICTS_KEPT] = {a.id: (a.judged.group_id, a.judged.verdicts) for a in every}
    answers = [answer for answer in every if answer.is_scored]
    judged = ClaimTable([answer.judged for answer in answers], metric)
    tables, notes = _trend_over_placed(judged, cut_offs("words", options["words"]))
    names = _synset_names(options["wordnet"])
    tables += [*_frequent(judged, options["share"], names), _errors(judged, answers, metric)]
    more_tables, more_notes = _people(every, answers, judged, options["human_scale"])
    return tables + more_tables, notes + more_notes


def _trend_over_placed(
    judged: ClaimTable, words: Sequence[int]
) -> tuple[list[AnalysisTable], list[str]]:
    """Return the trend over claims with a position, and a note on claims without one."""
    claims = len(judged.claims)
    known = sum(claim.within_words is not None for claim in judged.claims)
    if claims and not known:
        return [], [_NO_PLACES]
    table = _trend(judged, words or _steps(judged.claims))
    if known == claims:
        return [table], []
    left_out = f"{claims - known} of {claims} claims"
    return [table], [f"trend: {left_out} are left out, since they have no position in the answer"]


def _people(
    every: Sequence[_Answer], scored: Sequence[_Answer], judged: ClaimTable, scale: str
) -> tuple[list[AnalysisTable], list[str]]:
    """Return agreement with annotators over scored answers, and between annotators over all."""
    if scale not in _HUMAN_SCALES:
        known = " or ".join(_HUMAN_SCALES)
        raise InvalidInputError(f"the option human_scale is {scale!r:.60}; give {known}")
    rated = sum(bool(answer.human) for answer in every)
    if not rated:
        return [], [_NO_HUMAN]
    compared = sum(bool(answer.human) for answer in scored)
    notes = []
    if compared < rated:
        notes.append(
            f"agreement with annotators: {rated - compared} of {rated} answers with human scores "
            "are unscored and left out"
        )
    tables = [_agreement(scored, judged, scale)] if compared else []
    # Over all rated answers: whether annotators agree does not depend on the judge.
    alpha = _alpha(every)
    if not alpha.rows:
        return tables, [*notes, _NO_SECOND]
    return [*tables, alpha], notes


def _steps(claims: Iterable[ClaimVerdict]) -> tuple[int, ...]:
    last = max((claim.within_words or 0 for claim in claims), default=0)
    steps = math.ceil(last / _STEP)
    # The last step always covers all claims, so that the trend ends at the rates of whole answers.
    return tuple(_STEP * k for k in range(1, min(steps, _MOST_STEPS - 1) + 1)) + (
        (last,) if steps >= _MOST_STEPS else ()
    )


def _trend(judged: ClaimTable, words: Sequence[int]) -> AnalysisTable:
    return AnalysisTable(
        name="trend",
        source="Wu et al., Figure 3: claims within the first words of the answers",
        rows=tuple(
            {"words": k} | _joined([found[part] for part in _PARTS])
            for k, found in trend(judged, words)
        ),
        chart=Chart(
            kind="lines", x="words", y=("hallu_i", "hallu_q", "object_hallu_i", "relation_hallu_i")
        ),
    )


def _joined(parts: Sequence[Rates]) -> dict[str, Cell]:
    """Return the rates of all claims, of wrong objects and of wrong relations, and their counts."""
    row: dict[str, Cell] = {}
    for part, found in zip(_PARTS, parts, strict=True):
        row |= {f"{part}hallu_q": found.hallu_q, f"{part}hallu_i": found.hallu_i}
    return row | cells_of(parts[0], *_COUNTS)


def _frequent(
    judged: ClaimTable,
    share: float,
    names: Callable[[str], str] | None,
) -> Iterator[AnalysisTable]:
    if not 0 < share <= 1:
        raise InvalidInputError(f"the option share is {share}; give a number above 0 and at most 1")
    found = frequent_pair_rates(judged, share=share, canonical=names)
    rows: list[Mapping[str, Cell]] = []
    for name, of, pairs in (
        ("all", found.original, found.all_pairs),
        ("frequent", found.frequent, len(found.pairs)),
    ):
        row: dict[str, Cell] = {"claims_on": f"{name} pairs", "pairs": pairs}
        row |= {"relation_hallu_q": of.hallu_q, "relation_hallu_i": of.hallu_i}
        rows.append(row | cells_of(of, *_COUNTS))
    yield AnalysisTable(
        name="frequent_pairs",
        source=f"Wu et al., Table 4: relations on the most frequent {share:.0%} of object pairs",
        rows=tuple(rows),
        spread=_by_model(tuple(rows[0])[1:]),
    )
    yield AnalysisTable(
        name="pairs",
        source="the frequent pairs, the most frequent first",
        rows=tuple({"subject": one, "object": other} for one, other in found.pairs),
    )


def _synset_names(wordnet: str) -> Callable[[str], str] | None:
    """Return the function that names an object by its commonest WordNet synset, as Table 4 does.

    Args:
        wordnet: The folder of WordNet's files, ``auto`` for this machine's, or empty for the words
            themselves.

    Raises:
        InvalidInputError: The folder has no WordNet database.
        NotFoundError: This machine has none.
    """
    if not wordnet:
        return None
    try:
        found = find_wordnet() if wordnet == "auto" else open_wordnet(Path(wordnet))
    except GraphError as err:
        raise InvalidInputError(f"the option wordnet is {wordnet!r:.80}: {err}") from err
    if found is None:
        raise NotFoundError(
            "WordNet is not on this machine; install it (apt-get install wordnet-base, brew "
            "install wordnet, or python -m nltk.downloader wordnet), or give its folder"
        )

    # Objects repeat over claims, and each look-up searches the whole index.
    @cache
    def name(text: str) -> str:
        # WordNet's index is in small letters.
        words = " ".join(text.casefold().split())
        synset = next(iter(found.senses(words, "objects")), None)
        if synset is None:
            return words
        first = synset.words[0]
        # nltk's name of a synset, such as dog.n.01: first word, part of speech, sense number.
        return f"{first}.n.{found.rank(first, synset, 'objects') + 1:02d}"

    return name


def _errors(judged: ClaimTable, answers: Sequence[_Answer], metric: TriHeMetric) -> AnalysisTable:
    """Return how many claims are prediction errors, and the rates with and without them."""
    claims = judged.claims
    defined = ClaimTable(
        [answer.judged for answer in answers], replace(metric, variant="definition")
    )
    by_judge, by_definition = judged.rates()[""], defined.rates()[""]
    wrong = sum(claim.verdict is Verdict.NOT_SUPPORTED for claim in claims)
    errors = sum(claim.prediction_error for claim in claims)
    return AnalysisTable(
        name="prediction_errors",
        source="Wu et al., section 3.1: all parts are in the image, but not so paired. The paper "
        "separates them from hallucinations; definition_ leaves them out of the rates",
        rows=(
            {
                "claims": len(claims),
                "not_supported": wrong,
                "prediction_errors": errors,
                "share_of_not_supported": errors / wrong if wrong else None,
                "hallu_q": by_judge.hallu_q,
                "definition_hallu_q": by_definition.hallu_q,
                "hallu_i": by_judge.hallu_i,
                "definition_hallu_i": by_definition.hallu_i,
            },
        ),
    )


def _agreement(answers: Sequence[_Answer], judged: ClaimTable, scale: str) -> AnalysisTable:
    """Return correlations, positive where annotators and the judge agree, as in the paper.

    The paper's scale runs from 1 to 5 for no hallucination (appendix C, Table 8), against the
    rates of hallucination, and its correlations are positive.
    """
    # The mean of the annotators: Table 3 has one human score for each response.
    human = {a.id: math.fsum(a.human) / len(a.human) for a in answers if a.human}
    rows: list[Mapping[str, Cell]] = []
    for part, values in judged.rate_of_each().items():
        scores = {a.id: value for a, value in zip(answers, values, strict=True)}
        found = human_agreement(scores, human, opposite=scale == "more-is-better")
        rows.append({"score": f"{part}hallu_q", **correlations(found)})
    return AnalysisTable(
        name="human_agreement",
        source="Wu et al., Table 3 (Pearson): correlation with human scores, annotators averaged; "
        f"positive is agreement, on a scale that rises {_HUMAN_SCALES[scale]}",
        rows=tuple(rows),
        spread=_by_model(("pearson", "spearman", "kendall", "answers")),
    )


def _by_model(values: tuple[str, ...]) -> Spread:
    """Return the layout of the paper, where named runs of several models are side by side."""
    return Spread(column="model", values=values, headings=values, rows="value", mark="")


def _alpha(answers: Sequence[_Answer]) -> AnalysisTable:
    # Krippendorff's alpha leaves out units with one value, which can't be paired.
    units = [answer.human for answer in answers if len(answer.human) > 1]
    # Section 5.3 prints 0.66 without a level of measurement, so that each level has a row.
    levels: tuple[Level, ...] = get_args(Level) if units else ()
    return AnalysisTable(
        name="krippendorff_alpha",
        source="Krippendorff 2011: agreement of the annotators with each other",
        rows=tuple(
            {
                "level": level,
                "alpha": krippendorff_alpha(units, level),
                "answers": len(units),
                "scores": sum(map(len, units)),
            }
            for level in levels
        ),
    )


def _answer(record: Record, sheets: SheetScores | None) -> _Answer:
    evidence = record.values.get("evidence")
    claims = evidence.get("claims") if isinstance(evidence, Mapping) else None
    is_scored = record.values.get("outcome") == "scored"
    # Unscored answers may lack claims; their human scores still count for alpha.
    if not isinstance(evidence, Mapping) or (is_scored and not isinstance(claims, list)):
        raise ArchiveError(
            f"{record.place}: no claims in the evidence; give a run of the metric tri-he"
        )
    with reading(record, "tri-he"):
        key = key_of(record) if sheets is not None else None
        return _Answer(
            id=str(record.values["id"]),
            is_scored=is_scored,
            judged=JudgedAnswer(
                group_id=str(record.values["group_id"]), verdicts=tuple(map(_claim, claims or ()))
            ),
            human=human_scores(record._replace(values=evidence), ())
            if sheets is None
            else sheets.scores.get(key or "", ()),
            key=key,
        )


def _claim(entry: Mapping[str, object]) -> ClaimVerdict:
    part, words, score = entry["part"], entry.get("within_words"), entry.get("score")
    return ClaimVerdict(
        triplet=_parts(entry["triplet"]),
        verdict=_VERDICTS[entry["verdict"]],
        part=None if part is None else _PLACES[part],
        within_words=words if isinstance(words, int) else None,
        score=float(score) if isinstance(score, int | float) else None,
        judge=str(entry.get("judge", "")),
        prediction_error=entry.get("prediction_error") is True,
        reason=str(entry.get("reason", "")),
    )


def _parts(value: object) -> ClaimParts:
    if not isinstance(value, list) or {*map(type, value)} != {str}:
        raise TypeError(f"a triplet is {value!r:.60}")
    return Triplet(*value) if len(value) != 1 else Sentence(*value)


_VERDICTS: Mapping[object, Verdict] = {each.value: each for each in Verdict}
_PLACES: Mapping[object, Part] = {each.value: each for each in Part}


ANALYSES = (FamilyAnalyses(metrics=("tri-he",), make=_make, options=OPTIONS["tri-he"]),)

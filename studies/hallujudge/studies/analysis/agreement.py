"""Agreement of a run's verdicts with the judgements that came with its items, of judges, of people.

HallusionBench's archives carry correctness labels, EventHallusion's carry judgements of
descriptions, MMHal-Bench's carry reviews, and those of VQA the replies of a judge. On sheets people
score responses of Tri-HE from 1 to 5, as in appendix C of its paper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeAlias

from hallujudge.metrics.event_hallusion import DESCRIPTION
from hallujudge.metrics.framework.agreement import (
    HumanAgreement,
    JudgedTwice,
    cohen_kappa,
    human_agreement,
)
from hallujudge.metrics.framework.claims import ClaimVerdict, Sentence, Verdict
from hallujudge.metrics.framework.signature import judge_of
from hallujudge.metrics.hallusion_bench import verdict_of
from hallujudge.metrics.seen_claims.claim_words import KINDS, kind_of
from hallujudge.sdk.archives.formats import read_format
from hallujudge.sdk.archives.json_files import amount, named, shown
from hallujudge.sdk.archives.records import Record, read_records
from hallujudge.sdk.comparison.named_runs import RunSource
from hallujudge.sdk.errors import ArchiveError, InvalidInputError
from hallujudge.sdk.report.analysis_tables import AnalysisTable
from hallujudge.sdk.report.export_formats import csv_text
from hallujudge.sdk.report.table_pages import Cell

from .analyzed_run import (
    AnalyzedRun,
    FamilyAnalyses,
    Tables,
    analyzed_runs,
    cells_of,
    evidence_of,
    run_by_run,
)

_ALL = "all"


def _correctness(answer: Mapping[str, Any]) -> str | None:
    # Archives say right, wrong or unclear. Evidence may say so too, or have a parsed answer, which
    # needs its label.
    return verdict_of(answer["answer"], answer["label"])


def _plain_answer(answer: Mapping[str, Any]) -> str | None:
    return answer.get("answer")


def _compared(
    field: str, verdict: Callable[[Mapping[str, Any]], str | None], name: str
) -> Callable[[AnalyzedRun, Mapping[str, Any]], Tables]:
    """Return what compares the verdicts of a run; see :func:`_agreement_tables`."""
    return lambda run, _: _agreement_tables(run, field, verdict, name)


def _agreement_tables(
    run: AnalyzedRun,
    field: str,
    verdict: Callable[[Mapping[str, Any]], str | None],
    judged: str,
) -> Tables:
    """Return kappa with its interval, over all items and for each group, and its counts.

    Args:
        run: The run.
        field: The field whose groups are shown; empty for none.
        verdict: Returns the judge's verdict on an answer; None if it could not be parsed.
        judged: Name of the answers that are judged; empty for any.

    Raises:
        ArchiveError: A line of items.jsonl is not one that the metric writes.
    """
    pairs: dict[str, list[JudgedTwice]] = {_ALL: []}
    items = 0
    for record in run.scored():
        items += 1
        # The evidence of an item that counts in no score is empty.
        evidence: Any = evidence_of(record, "answers")
        answers = [a for a in evidence.get("answers", ()) if not judged or a.get("name") == judged]
        given, own = evidence.get("given"), verdict(answers[0]) if answers else None
        if given is None or own is None:
            continue
        # Questions about one image hang together, so that the interval is over groups.
        pair = JudgedTwice(str(record.values.get("group_id")), given, own)
        for name in (_ALL, _field(record, field)) if field else (_ALL,):
            pairs.setdefault(name, []).append(pair)
    compared = len(pairs[_ALL])
    if not compared:
        return [], ["no agreement: no item has both a verdict of this run and a given judgement"]
    left_out = (
        f"{items - compared} of {items} scored items lack one of the verdicts and are left out"
    )
    notes = [f"agreement with given judgements: {left_out}"] if compared < items else []
    groups = {name: pairs[name] for name in (_ALL, *sorted(pairs.keys() - {_ALL}))}
    shown = field or "items_of"
    return [_kappas(shown, groups), _counts(shown, groups)], notes


def _kappas(field: str, groups: Mapping[str, list[JudgedTwice]]) -> AnalysisTable:
    rows: list[Mapping[str, Cell]] = []
    for name, pairs in groups.items():
        found = cohen_kappa(pairs)
        measures = cells_of(found, "agreement", "kappa", "ci_low", "ci_high")
        rows.append({field: name, "items": found.n, **measures})
    return AnalysisTable(
        name="given_judgements",
        source="Cohen 1960: this run's verdicts with the archive's; 95 % interval by cluster",
        rows=tuple(rows),
    )


def _counts(field: str, groups: Mapping[str, Iterable[JudgedTwice]]) -> AnalysisTable:
    rows: list[Mapping[str, Cell]] = [
        {field: name, "given": given, "judge": judge, "items": count}
        for name, pairs in groups.items()
        for (given, judge), count in sorted(Counter((p.one, p.other) for p in pairs).items())
    ]
    return AnalysisTable(
        name="given_judgement_counts",
        source="counts of each pair of verdicts",
        rows=tuple(rows),
    )


def _field(record: Record, field: str) -> str:
    fields = record.values.get("fields")
    return str(fields.get(field, "")) if isinstance(fields, Mapping) else ""


ANALYSES = tuple(
    FamilyAnalyses(metrics=(metric,), make=run_by_run(_compared(field, verdict, name), metric))
    for metric, field, verdict, name in (
        ("hallusion-bench", "category", _correctness, ""),
        # Only descriptions are judged; EventHallusion's yes/no questions are parsed by rules.
        ("event-hallusion", "split", _plain_answer, DESCRIPTION),
        ("mmhal", "type", _plain_answer, ""),
        ("vqa", "", _plain_answer, ""),
    )
)


# Two judges ---------------------------------------------------------------------------------------


JudgedAnswers: TypeAlias = "Mapping[str, tuple[str, Sequence[ClaimVerdict]]]"
"""Id of an answer -> its image, and the verdicts on its claims in order."""

_SENTENCE = "sentence"


class _Pair(NamedTuple):
    """What two judges say of one claim."""

    answer: str
    image: str
    kind: str
    one: Verdict
    other: Verdict

    @property
    def is_decided(self) -> bool:
        """Whether both have a verdict."""
        return Verdict.UNSCORED not in (self.one, self.other)


def judge_agreement_tables(
    runs: Sequence[tuple[AnalyzedRun, JudgedAnswers]],
) -> tuple[list[AnalysisTable], list[str]]:
    """Return the agreement of each two runs that judge the same claims by different judges.

    Args:
        runs: Runs of one metric, with their verdicts.
    """
    counts: list[Mapping[str, Cell]] = []
    rates: list[Mapping[str, Cell]] = []
    notes: list[str] = []
    for (one, mine), (other, theirs) in combinations(runs, 2):
        # One judge twice shows how it repeats itself, which `judge card --flips` measures.
        if judge_of(one.signature) == judge_of(other.signature):
            continue
        names: dict[str, Cell] = {"judge": one.name, "other_judge": other.name}
        common = mine.keys() & theirs.keys()
        # Verdicts are paired by their place, which requires the same claims in the same order.
        if not common or any(_claims(mine[each]) != _claims(theirs[each]) for each in common):
            notes.append(
                f"no agreement of {one.name} and {other.name}: their judges differ, and so do "
                "their claims; score the same answers with the same extractor"
            )
            continue
        pairs = [pair for each in mine if each in common for pair in _pairs(each, mine, theirs)]
        for kind, some in _by_kind(pairs):
            counts.append({**names, "claims_on": kind, **_agreement(some)})
            rates.append({**names, "claims_on": kind, **_correlation(some)})
    tables = (
        AnalysisTable(
            name="judge_agreement",
            source="ours: claims that two judges decide alike, and Cohen's kappa over images",
            rows=tuple(counts),
        ),
        AnalysisTable(
            name="judge_correlation",
            source="in the form of Wu et al., Table 3: an answer's share of claims that are not "
            "supported, by one judge and by the other",
            rows=tuple(rates),
        ),
    )
    # Most analyses are of one run or of one judge, which needs no empty tables.
    return [table for table in tables if table.rows], notes


def _claims(answer: tuple[str, Sequence[ClaimVerdict]]) -> list[tuple[str, ...]]:
    return [tuple(claim.triplet) for claim in answer[1]]


def _pairs(answer: str, mine: JudgedAnswers, theirs: JudgedAnswers) -> Iterator[_Pair]:
    image, claims = mine[answer]
    for one, other in zip(claims, theirs[answer][1], strict=True):
        is_sentence = isinstance(one.triplet, Sentence)
        kind = _SENTENCE if is_sentence else kind_of(one.triplet)
        yield _Pair(answer, image, kind, one.verdict, other.verdict)


def _by_kind(pairs: Sequence[_Pair]) -> Iterator[tuple[str, Sequence[_Pair]]]:
    """Yield all claims, then those of each kind that there is."""
    yield _ALL, pairs
    found = {pair.kind for pair in pairs}
    for kind in (*KINDS, _SENTENCE):
        # Of one kind alone, the first row says it all.
        if kind in found and len(found) > 1:
            yield kind, [pair for pair in pairs if pair.kind == kind]


def _agreement(pairs: Sequence[_Pair]) -> dict[str, Cell]:
    decided = [pair for pair in pairs if pair.is_decided]
    cells = Counter((pair.one, pair.other) for pair in decided)
    yes, no = Verdict.SUPPORTED, Verdict.NOT_SUPPORTED
    found = cohen_kappa([JudgedTwice(p.image, p.one.value, p.other.value) for p in decided])
    return {
        "claims": len(decided),
        "both_support": cells[yes, yes],
        "judge_only": cells[yes, no],
        "other_only": cells[no, yes],
        "neither": cells[no, no],
        "without_verdict": len(pairs) - len(decided),
        "agreement": found.agreement,
        "kappa": found.kappa,
        "kappa_low": found.ci_low,
        "kappa_high": found.ci_high,
    }


def _correlation(pairs: Sequence[_Pair]) -> dict[str, Cell]:
    decided: dict[str, list[_Pair]] = {}
    for pair in pairs:
        if pair.is_decided:
            decided.setdefault(pair.answer, []).append(pair)
    # By answer, as Table 3 of the Tri-HE paper correlates scores of answers and not of claims.
    one = {answer: _share([pair.one for pair in some]) for answer, some in decided.items()}
    other = {answer: _share([pair.other for pair in some]) for answer, some in decided.items()}
    return correlations(human_agreement(one, other))


def correlations(found: HumanAgreement) -> dict[str, Cell]:
    """Return the cells of a correlation over answers."""
    return {**cells_of(found, "pearson", "spearman", "kendall"), "answers": found.n}


def _share(verdicts: Sequence[Verdict]) -> float:
    return verdicts.count(Verdict.NOT_SUPPORTED) / len(verdicts)


GUIDELINE = """\
Look at the image, and score each response from 1 to 5:

5  Nothing in the response is hallucinated.
4  Most of its sentences are free of hallucination.
3  About half of its sentences are hallucinated.
2  Nearly all is hallucinated; one or two sentences fit the image and the question.
1  All is hallucinated or beside the point, or the response can hardly be understood.

A conclusion that defies common sense is hallucinated. So is one that may be true, but does not
follow from the image. Leave the score empty if you can't tell.
"""
"""The guideline for annotators: the paper's scale (Table 8) in our own words."""

# Table 8 of the paper.
_SCALE = range(1, 6)
_COLUMNS = ("key", "image", "item", "response", "score", "annotator")
# 48 bits: among 10,000 responses, two share a key in one of 5.6 million sheets.
_KEY_BYTES = 6


def score_sheet(*runs: RunSource, images: int, seed: int = 0) -> str:
    """Return a CSV sheet with the responses of runs to randomly drawn images.

    The responses of all runs are mixed, without the names of their models. Responses with the same
    item and text are one row.

    Args:
        runs: Folders of ``tri-he``.
        images: How many images to draw; the paper has 20.
        seed: Seed of the random numbers.

    Raises:
        InvalidInputError: The number is wrong, or a run is of another metric or keeps no responses.
        ArchiveError: A folder does not hold a complete run.
    """
    if images < 1:
        raise InvalidInputError(f"the number of images is {images}; give at least 1")
    rows: dict[str, tuple[str, str, str]] = {}
    # Numbers as names, since a sheet does not show which run a response is of.
    for run in analyzed_runs(runs, [str(number) for number in range(len(runs))]):
        rows |= _responses(run)
    # Sorted, so that the draw depends on the seed and not on the order of the runs.
    known = sorted({image for image, _, _ in rows.values()})
    rng = Random(seed)  # noqa: S311 - a seeded draw, no secret
    drawn = set(rng.sample(known, min(images, len(known))))
    # All responses to the drawn images, as in section 5.3 of the paper.
    chosen = sorted(key for key, (image, _, _) in rows.items() if image in drawn)
    # Mixed, since neighbours in the order of the runs would show which model wrote them.
    rng.shuffle(chosen)
    return csv_text(_COLUMNS, ((key, *rows[key], "", "") for key in chosen))


def _responses(run: AnalyzedRun) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Yield the key of each response, with its image, its item and its text."""
    if run.metric != "tri-he":
        raise InvalidInputError(f"{run.source}: a run of {run.metric}; give runs of tri-he")
    found = False
    for record in run.items():
        if (key := key_of(record)) is not None:
            found = True
            values = record.values
            yield key, (str(values["group_id"]), str(values["id"]), str(values["response"]))
    if not found:
        raise InvalidInputError(f"{run.source}: no responses; score without --no-text")


def key_of(record: Record) -> str | None:
    """Return what identifies a response in sheets; None without one.

    It begins with a letter, so that no spreadsheet takes it for a number.
    """
    response = record.values.get("response")
    if not isinstance(response, str) or not response.strip():
        return None
    # JSON may hold half of a surrogate pair, which UTF-8 refuses without the handler.
    text = f"{record.values['id']}\n{response}".encode("utf-8", "surrogatepass")
    return f"r{blake2b(text, digest_size=_KEY_BYTES).hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetScores:
    """The scores of filled sheets."""

    scores: Mapping[str, tuple[float, ...]]
    """Key of a response -> the scores of its annotators."""
    blank: int
    """Rows without a score."""

    def notes(self, known: Iterable[str]) -> Iterator[str]:
        """Yield what was left out.

        Args:
            known: The keys of the runs' responses.
        """
        if self.blank:
            blank = amount(self.blank, "row of the sheets has", "rows of the sheets have")
            yield f"{blank} no score yet"
        if unknown := sorted(self.scores.keys() - set(known)):
            others = amount(
                len(unknown), "response of the sheets is", "responses of the sheets are"
            )
            yield f"{others} in none of the runs: {named(unknown)}"


def read_sheets(paths: Sequence[str | Path]) -> SheetScores:
    """Return the scores of filled sheets, one for each annotator of a response.

    Raises:
        ArchiveError: A file is not such a sheet, a score is not on the scale, or an annotator has
            scored a response twice.
    """
    scores: dict[str, dict[str, float]] = {}
    blank = 0
    for path in paths:
        for record in read_records(read_format(Path(path)).source):
            key, annotator, score = _row(record, str(path))
            if score is None:
                blank += 1
                continue
            # Two scores of one person would count as agreement of two people.
            if annotator in scores.setdefault(key, {}):
                raise ArchiveError(
                    f"{record.place}: {annotator} has scored the response {key} before; name "
                    "several people in the column annotator"
                )
            scores[key][annotator] = score
    found = {key: tuple(of.values()) for key, of in scores.items()}
    return SheetScores(scores=found, blank=blank)


def _row(record: Record, file: str) -> tuple[str, str, float | None]:
    """Return the key, the annotator (the file, if none is named) and the score of a row."""
    values = record.values
    if missing := [name for name in ("key", "score") if name not in values]:
        raise ArchiveError(
            f"{record.place}: no column {missing[0]!r}; found {named(sorted(values))}. Give a "
            "sheet of hallujudge label scores"
        )
    key, annotator = str(values["key"]), str(values.get("annotator") or file)
    # A column of numbers with an empty cell becomes one of floats in many tools.
    given = str("" if values["score"] is None else values["score"]).strip().removesuffix(".0")
    if not given:
        return key, annotator, None
    if given not in map(str, _SCALE):
        raise ArchiveError(
            f"{record.place}: the score is {shown(values['score'])}; give a whole number from 1 "
            "to 5, or none"
        )
    return key, annotator, float(given)

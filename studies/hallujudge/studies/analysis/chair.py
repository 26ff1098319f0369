"""CHAIR analyses: hit ratios, frequent and co-occurring objects, position, length, instructions."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from hallujudge.metrics import Report
from hallujudge.metrics.pope import (
    accumulated_proportions,
    companions,
    hit_ratio_by_company,
    hit_ratio_by_frequency,
)
from hallujudge.metrics.pope.question_builder import ObjectCounts, count_objects
from hallujudge.sdk.archives.chair_references import read_objects
from hallujudge.sdk.archives.records import Record
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.report.analysis_tables import AnalysisTable, Spread
from hallujudge.sdk.report.charts import Chart
from hallujudge.sdk.report.table_pages import Cell
from hallujudge.synonym_graphs import SynonymGraph, load_graph, shipped_graphs

from ..analysis_options import OPTIONS, PROBE
from .analyzed_run import (
    AnalyzedRun,
    FamilyAnalyses,
    Tables,
    cut_offs,
    evidence_of,
    joined,
    reading,
    run_by_run,
    runs_of,
    with_keys,
)

_CAPTIONS = "captions"
# The columns of Table 8, up to all 80 objects of COCO.
_STEPS = tuple(range(10, 81, 10))
_TENTHS = 10
_WORD = re.compile(r"\S+")
# The paper's Figure 2 orders objects by their frequency, whether or not they are hallucinated.
_BY_RANK = Chart(kind="bars", x="object", y=("hallucinated",), order="rank")
# Lengths are shown by ten words; longer captions than these share the last row.
_WORDS_OF_A_ROW, _MOST_ROWS = 10, 30


# Not seen by the garbage collector: a run has many captions, and none is part of a cycle.
class ChairCaption(Struct, frozen=True, kw_only=True, gc=False):
    """A caption with its mentions, as a run of chair stored them."""

    id: str
    """The item's id."""
    image: str
    """The image's id."""
    text: str | None
    """The caption; None if the run did not keep it."""
    mentioned: tuple[str, ...]
    """The object of each mention."""
    starts: tuple[int, ...]
    """The position of the first character of each mention."""
    hallucinated: tuple[str, ...]
    """The object of each hallucinated mention."""
    shown: frozenset[str]
    """The objects of the image."""
    words: int
    """The number of words, as the run's ``mean_words`` counts them."""


def chair_captions(run: AnalyzedRun, *, keep: bool = False) -> list[ChairCaption]:
    """Return the scored captions of a run of chair.

    Args:
        run: The run.
        keep: Whether the run keeps them for the next call, which takes them out.

    Raises:
        ArchiveError: A line of items.jsonl is not one that a run of chair writes.
    """
    # Taken out, so that the captions of a large run are freed after the last analysis of them.
    kept: list[ChairCaption] | None = run.kept.pop(_CAPTIONS, None)
    captions = [_caption(record) for record in run.scored()] if kept is None else kept
    if keep:
        run.kept[_CAPTIONS] = captions
    return captions


def _caption(record: Record) -> ChairCaption:
    evidence: Any = evidence_of(record, "mentioned")
    values: Mapping[str, Any] = record.values
    with reading(record, "chair"):
        mentioned = [name for _, name in evidence["mentioned"]]
        hallucinated = [name for _, name in evidence["hallucinated"]]
        starts = [start for start, _ in evidence["mentioned_spans"]]
        missed, text = evidence["missed"], values.get("response")
        # Checked here, where the line can still be named.
        if {*map(type, mentioned), *map(type, hallucinated), *map(type, missed)} - {str}:
            raise TypeError("an object is not a text")
        if len(starts) != len(mentioned) or {*map(type, starts)} - {int}:
            raise ValueError(f"{len(starts)} spans of {len(mentioned)} mentions")
        return ChairCaption(
            id=str(values["id"]),
            image=str(values["group_id"]),
            text=text if isinstance(text, str) else None,
            mentioned=tuple(mentioned),
            starts=tuple(starts),
            hallucinated=tuple(hallucinated),
            # The evidence has no list of the image's objects: they are the missed and the rightly
            # mentioned ones.
            shown=frozenset(missed) | (set(mentioned) - set(hallucinated)),
            words=int(values["statistics"]["words"]),
        )


def _tables(run: AnalyzedRun, options: Mapping[str, Any], *, keep: bool) -> Tables:
    """Return the analyses of a CHAIR run, and the reasons for missing ones.

    Args:
        run: The run.
        options: The options.
        keep: Whether the run keeps its captions for another analysis.

    Raises:
        ArchiveError: A line of items.jsonl is not one that a CHAIR run writes, or the file of
            objects can't be read.
        InvalidInputError: The probe is not an object, or a value of k is wrong.
    """
    ks = cut_offs("ks", options["ks"])
    captions = chair_captions(run, keep=keep)
    root = _roots(run)
    counts = _counts(captions, options["counts"], root)
    # Objects of runs are roots, and a user may name any form, such as sofa for couch.
    probe = root(str(options["probe"]))
    notes = []
    if probe not in counts.images:
        # The default may be absent from other data; only a probe that was asked for is an error.
        if options["probe"] != PROBE:
            raise InvalidInputError(_unknown(str(options["probe"]), counts))
        notes = [f"no co-occurrence: no image shows a {PROBE}; name an object with the option "
                 "probe"]  # fmt: skip
    # Formula 4 is over the images that show the probe, whether or not a caption names it.
    with_probe = [caption for caption in captions if probe in caption.shown]
    tables = [
        _hit_ratios(captions, counts, probe, ks),
        _accumulated(captions, with_probe, counts, probe),
        AnalysisTable(
            name="frequent_objects",
            source="Li et al. (POPE), Figure 2: hallucination times of objects; rank: by frequency",
            rows=_objects(captions, counts.by_frequency(), counts.images),
            chart=_BY_RANK,
        ),
        AnalysisTable(
            name="cooccurring_objects",
            source=f"Li et al. (POPE), Figure 2: hallucination times in images with {probe}; rank "
            f"and images: co-occurrence with {probe}",
            rows=_objects(with_probe, companions(probe, counts), counts.together.get(probe, {})),
            chart=_BY_RANK,
        ),
        *_by_position(captions),
        _by_length(captions),
    ]
    if captions and not any(caption.text for caption in captions):
        notes.append("no hallucination by position: the run has no captions; score with their text")
    return tables, notes


def _roots(run: AnalyzedRun) -> Callable[[str], str]:
    """Return the function that maps a name to its object in the run's graph."""
    name = run.report.settings.get("graph", "")
    # A run names its graph without holding it: of one that is not shipped, names stay as they are.
    graph: SynonymGraph | None = load_graph(name) if name in shipped_graphs() else None

    def root(name: str) -> str:
        return (graph.root_of(name) if graph else None) or name

    return root


def _counts(
    captions: Sequence[ChairCaption], path: Path | None, root: Callable[[str], str]
) -> ObjectCounts:
    """Return how often images show objects, counted in the order of their numbers.

    The order decides between objects that occur equally often with another.
    """
    # The paper counts in MSCOCO and does not print its list. The images of the run are what every
    # user has; docs/explanation/pope-hit-ratios.md shows what that changes.
    objects: Mapping[str, Iterable[str]] = (
        {caption.image: caption.shown for caption in captions}
        if path is None
        else {image: map(root, names) for image, names in read_objects(path).items()}
    )
    return count_objects({image: objects[image] for image in sorted(objects, key=_by_number)})


def _by_number(image: str) -> tuple[int, str]:
    # Ids of digits have the order of their numbers, as those of COCO.
    digits = image.lstrip("0") if image.isdecimal() else ""
    return len(digits), digits or image


def _unknown(probe: str, counts: ObjectCounts) -> str:
    some = ", ".join(counts.by_frequency()[:5])
    return f"the option probe is {probe!r:.60}, which no image shows; known are {some}, …"


def _hit_ratios(
    captions: Sequence[ChairCaption], counts: ObjectCounts, probe: str, ks: Sequence[int]
) -> AnalysisTable:
    # By caption and not by image, so that several captions of one image all count.
    hallucinated = {caption.id: caption.hallucinated for caption in captions}
    shown = {caption.id: caption.shown for caption in captions}
    # Formula 3 divides by all images, of which those without a hallucination have no ratio.
    by_frequency = hit_ratio_by_frequency(hallucinated.values(), counts, ks)
    by_company = hit_ratio_by_company(hallucinated, shown, probe, counts, ks)
    return AnalysisTable(
        name="hit_ratio",
        source=f"Li et al. (POPE), Tables 2 and 10: HR_A@k, and HR_C@k({probe}); n: images with a "
        "hallucination",
        rows=tuple(
            {"k": a.k, "hr_a": a.value, "hr_a_n": a.n, "hr_c": c.value, "hr_c_n": c.n}
            for a, c in zip(by_frequency, by_company, strict=True)
        ),
        spread=Spread(column="k", values=("hr_a", "hr_c"), headings=("HR_A", f"HR_C({probe})")),
    )


def _accumulated(
    captions: Sequence[ChairCaption],
    with_probe: Sequence[ChairCaption],
    counts: ObjectCounts,
    probe: str,
) -> AnalysisTable:
    # Pooled over all mentions, as Tables 8 and 9 are, and not a mean over captions.
    appearing = accumulated_proportions(
        [caption.hallucinated for caption in captions], counts.by_frequency(), _STEPS
    )
    together = accumulated_proportions(
        [caption.hallucinated for caption in with_probe], companions(probe, counts), _STEPS
    )
    return AnalysisTable(
        name="accumulated",
        source="Li et al. (POPE), Tables 8 and 9: share of hallucinated mentions of the first k "
        f"objects, by frequency and by co-occurrence with {probe}",
        rows=tuple(
            {"k": k, "by_frequency": one, "by_cooccurrence": other}
            for k, one, other in zip(_STEPS, appearing, together, strict=True)
        ),
        chart=Chart(kind="lines", x="k", y=("by_frequency", "by_cooccurrence")),
        spread=Spread(
            column="k",
            values=("by_frequency", "by_cooccurrence"),
            headings=("appearance frequency", f"co-occurrence with {probe}"),
            rows="sorted_by",
        ),
    )


def _objects(
    captions: Sequence[ChairCaption], ranked: Sequence[str], images: Mapping[str, int]
) -> tuple[Mapping[str, Cell], ...]:
    """Return a row for each object, the most hallucinated first."""
    times = Counter(name for caption in captions for name in caption.hallucinated)
    # Counter.update adds: the zeros only give rows to objects that were never hallucinated.
    times.update(dict.fromkeys((name for name in ranked if images.get(name)), 0))
    mentions = Counter(name for caption in captions for name in caption.mentioned)
    where = Counter(name for caption in captions for name in set(caption.hallucinated))
    rank = {name: place for place, name in enumerate(ranked, 1)}
    every = times.total()
    return tuple(
        {
            "object": name,
            "hallucinated": count,
            "share": count / every if every else None,
            "captions": where[name],
            "mentions": mentions[name],
            "images": images.get(name, 0),
            "rank": rank.get(name),
        }
        # Ties by name, so that the order of the captions changes no row.
        for name, count in sorted(times.items(), key=lambda each: (-each[1], each[0]))
    )


def _by_position(captions: Sequence[ChairCaption]) -> list[AnalysisTable]:
    mentions, wrong = Counter[int](), Counter[int]()
    for caption in captions:
        # Not strict: a caption whose text the run did not keep has no tenths.
        for name, tenth in zip(caption.mentioned, _tenths(caption), strict=False):
            mentions[tenth] += 1
            wrong[tenth] += name not in caption.shown
    if not mentions:
        return []
    rows: list[Mapping[str, Cell]] = [
        {
            "tenth": tenth,
            "hallucinated_share": wrong[tenth] / mentions[tenth] if mentions[tenth] else None,
            "hallucinated": wrong[tenth],
            "mentions": mentions[tenth],
        }
        for tenth in range(1, _TENTHS + 1)
    ]
    chart = Chart(kind="lines", x="tenth", y=("hallucinated_share",))
    source = "ours: mentions by their position, in tenths of the caption's words"
    return [AnalysisTable(name="by_position", source=source, rows=tuple(rows), chart=chart)]


def _tenths(caption: ChairCaption) -> list[int]:
    """Return the tenth of the caption's words in which each mention begins, from 1."""
    words = [word.start() for word in _WORD.finditer(caption.text or "")]
    if not words:
        return []
    # A search in the words' places, since captions have many mentions.
    begun = (bisect_right(words, start) for start in caption.starts)
    return [max(number - 1, 0) * _TENTHS // len(words) + 1 for number in begun]


def _by_length(captions: Sequence[ChairCaption]) -> AnalysisTable:
    rows: dict[int, list[ChairCaption]] = {}
    for caption in captions:
        row = max(caption.words - 1, 0) // _WORDS_OF_A_ROW
        rows.setdefault(min(row, _MOST_ROWS - 1), []).append(caption)
    return AnalysisTable(
        name="by_length",
        source="ours: hallucination by the number of words in the caption",
        rows=tuple(_of_length(row, rows[row]) for row in sorted(rows)),
        chart=Chart(kind="lines", x="mean_words", y=("hallucinated_share", "chair_s")),
    )


def _of_length(row: int, captions: Sequence[ChairCaption]) -> Mapping[str, Cell]:
    lengths = [caption.words for caption in captions]
    mentions = sum(len(caption.mentioned) for caption in captions)
    wrong = sum(len(caption.hallucinated) for caption in captions)
    return {
        "words_from": row * _WORDS_OF_A_ROW + 1,
        # The last row has no limit of its own: it also holds all longer captions.
        "words_to": max(max(lengths), (row + 1) * _WORDS_OF_A_ROW),
        "mean_words": sum(lengths) / len(lengths),
        "hallucinated_share": wrong / mentions if mentions else None,
        "chair_s": sum(bool(caption.hallucinated) for caption in captions) / len(captions),
        "mentions": mentions,
        "n": len(captions),
    }


def _instructions(runs: Sequence[AnalyzedRun], _options: Mapping[str, Any]) -> Tables:
    """Return CHAIR of runs with several instructions, with the length of their captions."""
    own = runs_of(runs, "chair")
    if not all("instruction" in run.keys for run in own):
        # A single run has nothing beside it, and its user has asked for no such table.
        if len(own) < 2:
            return [], []
        return [], [
            "no table instructions: name each run with its instruction, such as "
            "model=llava,instruction=short"
        ]
    rows = tuple(with_keys(run.keys, _instructed(run.report), "instructions") for run in own)
    source = "Li et al. (POPE), Table 1: CHAIR_I, CHAIR_S and average length of captions"
    by = tuple(key for key in own[0].keys if key != "instruction")
    chart = Chart(kind="bars", x="instruction", y=("chair_i", "chair_s"), by=by)
    return [AnalysisTable(name="instructions", source=source, rows=rows, chart=chart)], []


def _instructed(report: Report) -> Mapping[str, Cell]:
    return {
        "chair_i": report["chair_i"].value,
        "chair_s": report["chair_s"].value,
        "length": report["mean_words"].value,
        "n": report.coverage.scored,
    }


def _make(runs: Sequence[AnalyzedRun], options: Mapping[str, Any]) -> Tables:
    # Answers about the same images are compared with the captions.
    keep = bool(runs_of(runs, "pope"))
    of_each = run_by_run(lambda run, own: _tables(run, own, keep=keep), "chair")
    return joined((_instructions(runs, options), of_each(runs, options)))


ANALYSES = (FamilyAnalyses(metrics=("chair",), make=_make, options=OPTIONS["chair"]),)

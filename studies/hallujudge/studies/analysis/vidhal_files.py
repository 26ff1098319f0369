"""VidHal analyses of files next to a run: answers about pairs, people's choices, judges' votes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hallujudge.metrics.answers.orders import PairAnswer, PairQuestion, ndcg_of, order_of_pairs
from hallujudge.metrics.framework.columns_and_scores import mean_of_known
from hallujudge.metrics.vidhal.order_analyses import (
    QualityVote,
    caption_quality,
    human_agreement,
    transitive_inconsistency,
)
from hallujudge.sdk.archives.record_values import id_under, optional_text
from hallujudge.sdk.archives.records import Record, read_records
from hallujudge.sdk.errors import ArchiveError, InvalidInputError
from hallujudge.sdk.report.analysis_tables import AnalysisTable
from hallujudge.sdk.report.charts import Chart
from hallujudge.sdk.report.table_pages import Cell

from .analyzed_run import AnalyzedRun, runs_of

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Video:
    """A video that a run scored."""

    aspect: str
    sub_aspect: str
    score: float
    letters: tuple[str, ...]
    """The letters of the label: the right one, or all in the right order."""
    chosen: tuple[str, ...]
    """The parsed letters."""
    ranks: tuple[int, ...] | None
    """Ranks of the parsed order; of a choice, 1 for the right one; None if unknown."""
    shown: str
    """Equal for equal questions with equal display orders."""


Videos = Mapping[str, Video]


def grouped(videos: Iterable[Video], key: Callable[[Video], _T]) -> dict[_T, list[Video]]:
    """Return videos by a key."""
    groups: dict[_T, list[Video]] = {}
    for video in videos:
        groups.setdefault(key(video), []).append(video)
    return groups


def pairs_tables(
    runs: Sequence[AnalyzedRun], read: Mapping[tuple[str, str], Videos], path: Path
) -> Iterator[AnalysisTable]:
    """Yield how often orders contradict answers about pairs, and the orders from the answers.

    Args:
        runs: The runs; one of them orders captions.
        read: Their videos.
        path: Answers about pairs: ``video``, ``pair`` and ``chosen``, or what hallujudge ask wrote.

    Raises:
        ArchiveError: A line can't be read, or is about no video of the run.
        InvalidInputError: There is not one run that orders captions.
    """
    own = runs_of(runs, "vidhal-ordering")
    if len(own) != 1:
        raise InvalidInputError(
            f"the option pairs is {str(path)!r:.80} for {len(own)} runs of vidhal-ordering; give "
            "the run that the answers about pairs belong to, alone"
        )
    videos = read[own[0].label]
    answers: dict[str, list[PairAnswer]] = {}
    for record in read_records(path):
        video = _known(record, videos)
        answers.setdefault(video, []).extend(_answers(record, videos[video].letters))
    # An invalid order contradicts nothing, and still counts in N of formula 7.
    orders = {name: video.chosen if video.ranks else () for name, video in videos.items()}
    # Formula 7 asks about the ends of an order. With more than three captions, other pairs can
    # contradict it as well.
    for ends in (True, False):
        found = transitive_inconsistency(orders, answers, ends_only=ends)
        kind = "first with last caption" if ends else "every pair"
        yield AnalysisTable(
            name="transitive_inconsistency" if ends else "pair_inconsistency",
            source=f"Choong et al., formula 7 and Table 3: orders against answers, {kind}; of all "
            "videos, as the formula has it, and of those asked about it",
            rows=(
                {
                    "p_ti": found.rate,
                    "inconsistent": len(found.videos),
                    "videos": found.videos_of_run,
                    "p_ti_of_asked": found.rate_of_asked,
                    "asked": found.n,
                },
            ),
        )
    yield _pair_orders(videos, answers)


def _pair_orders(videos: Videos, answers: Mapping[str, Sequence[PairAnswer]]) -> AnalysisTable:
    scores, same = [], 0
    for name, given in answers.items():
        # Sorted: the letters of the label are in the right order, which must not break ties.
        order = order_of_pairs(sorted(videos[name].letters), given)
        if order is not None:
            scores.append(ndcg_of(tuple(videos[name].letters.index(x) + 1 for x in order)))
            same += order == videos[name].chosen
    found: dict[str, Cell] = {"ndcg": mean_of_known(scores), "orders": len(scores)}
    return AnalysisTable(
        name="pair_orders",
        source="Choong et al., section 9.2 and Figure 34: orders from the answers about pairs",
        rows=({**found, "videos": len(answers), "same_as_run": same},),
    )


def _known(record: Record, videos: Videos) -> str:
    video = id_under(record, "video")
    if video in videos:
        return video
    raise ArchiveError(
        f"{record.place}: the run has no scored video {video!r:.60}; give the run of these videos"
    )


def _answers(record: Record, letters: Sequence[str]) -> Iterator[PairAnswer]:
    """Yield the answers of a record: one of its own, or all that hallujudge ask got of a video."""
    steps = record.values.get("steps")
    if "pair" in record.values or not isinstance(steps, list):
        yield _pair(record, letters)
        return
    for step in steps:
        name = str(step.get("step", "")) if isinstance(step, Mapping) else ""
        # A step whose reply named neither caption chose none, and contradicts no order.
        if isinstance(step, Mapping) and step.get("chosen") is not None:
            given = {"pair": name.split(" or "), "chosen": step["chosen"]}
            yield _pair(record._replace(values=given), letters)


def _pair(record: Record, letters: Sequence[str]) -> PairAnswer:
    pair, chosen = record.values.get("pair"), record.values.get("chosen")
    named = set(map(str, pair)) if isinstance(pair, list) and len(pair) == 2 else set()
    if not (isinstance(pair, list) and len(named) == 2 and named <= set(letters)):
        raise ArchiveError(
            f"{record.place}: pair is {pair!r:.60}; give two of the letters {', '.join(letters)}"
        )
    if chosen not in pair:
        raise ArchiveError(f"{record.place}: chosen is {chosen!r:.60}; give a letter of the pair")
    return PairAnswer(question=PairQuestion(*map(str, pair)), chosen=str(chosen))


def people_tables(videos: Videos, path: Path) -> Iterator[AnalysisTable]:
    """Yield how far people agree with the annotated order."""
    choices: dict[str, list[bool]] = {}
    for record in read_records(path):
        video, given = _known(record, videos), record.values.get("choices")
        if not isinstance(given, list) or not given or {type(each) for each in given} != {bool}:
            raise ArchiveError(
                f"{record.place}: choices is {given!r:.60}; give true or false for each person: "
                "whether the annotated order was chosen"
            )
        choices.setdefault(video, []).extend(given)
    found = human_agreement(choices, {video: videos[video].aspect for video in choices})
    sizes = grouped((videos[video] for video in choices), lambda video: video.aspect)
    rows: list[Mapping[str, Cell]] = [
        {"aspect": aspect, "agreement": value, "videos": len(sizes[aspect])}
        for aspect, value in found.groups.items()
    ]
    rows.append({"aspect": "all", "agreement": found.mean, "videos": len(choices)})
    yield AnalysisTable(
        name="order_agreement",
        source="Choong et al., Figure 3: people who choose the annotated order, mean over videos",
        rows=tuple(rows),
        chart=Chart(kind="bars", x="aspect", y=("agreement",)),
    )
    # Rounded first: as floating point numbers, some tenths are below themselves.
    # A share of 1 belongs to the last tenth.
    tenths = Counter(min(int(round(value * 10, 6)), 9) for value in found.videos.values())
    yield AnalysisTable(
        name="agreement_distribution",
        source="Choong et al., Figure 3: videos by the share of people who choose the annotated "
        "order",
        rows=tuple(
            {"agreement": f"{tenth / 10:.1f} to {(tenth + 1) / 10:.1f}", "videos": tenths[tenth]}
            for tenth in range(10)
        ),
        chart=Chart(kind="bars", x="agreement", y=("videos",)),
    )
    yield AnalysisTable(
        # Half is not a majority: Table 4 lists order_60 with 0.500.
        name="misaligned_videos",
        source="Choong et al., Table 4: videos without a majority for the annotated order",
        rows=tuple(
            {"video": video, "agreement": found.videos[video], "people": len(choices[video])}
            for video in found.misaligned
        ),
    )


def votes_table(path: Path) -> AnalysisTable:
    """Return the quality of captions by judges' votes, the best video first."""
    found = quality_of(path)
    return AnalysisTable(
        name="caption_quality",
        source="Choong et al., section 7.2: share of yes by criterion; total from 0 to 3",
        rows=tuple({"video": video, **scores} for video, scores in found.items()),
    )


def quality_of(*paths: Path) -> dict[str, dict[str, float | None]]:
    """Return the quality of videos' captions by the votes of files, the best video first.

    Raises:
        ArchiveError: A line can't be read.
        InvalidInputError: A criterion is unknown.
    """
    try:
        return caption_quality(_vote(record) for path in paths for record in read_records(path))
    except ValueError as err:
        # Votes of all files are counted together, so that the first one is named for all.
        raise InvalidInputError(f"{paths[0]}: {err}") from err


def annotations_of(path: Path, videos: Container[str]) -> list[dict[str, object]]:
    """Return the annotations of some videos, in the order of their file.

    Raises:
        ArchiveError: An annotation can't be read.
    """
    return [dict(each.values) for each in read_records(path) if id_under(each, "video") in videos]


def _vote(record: Record) -> QualityVote:
    answer = record.values.get("answer")
    if answer not in ("yes", "no", None):
        raise ArchiveError(f"{record.place}: the answer is {answer!r:.60}; give yes, no or null")
    return QualityVote(
        video=id_under(record, "video"),
        judge=optional_text(record, ("judge",)),
        criterion=optional_text(record, ("criterion",)),
        prompt=optional_text(record, ("prompt",)),
        answer=None if answer is None else str(answer),
    )

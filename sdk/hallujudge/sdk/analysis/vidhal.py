"""VidHal analyses: input order, consistency, reliance on a frame, consensus, people's answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from hallujudge.metrics.answers.answer_scores import ReadAnswer
from hallujudge.metrics.answers.orders import (
    PairAnswer,
    PairQuestion,
    ndcg_of,
    order_of_pairs,
    ranks_in,
)
from hallujudge.metrics.framework.columns_and_scores import mean_of_known
from hallujudge.metrics.vidhal.order_analyses import (
    QualityVote,
    caption_quality,
    frame_reliance,
    human_agreement,
    input_order_sensitivity,
    model_consensus,
    transitive_inconsistency,
)

from ..archives.records import Record, id_under, optional_text, read_records
from ..errors import ArchiveError, InvalidInputError
from ..report.charts import Chart
from ..report.table_pages import Cell
from .analysis_tables import AnalysisTable
from .analyzed_run import (
    AnalysisOption,
    AnalyzedRun,
    FamilyAnalyses,
    Tables,
    run_by_run,
    runs_of,
)
from .given_judgements import evidence_of

_METRICS = {"vidhal-mcqa": "accuracy", "vidhal-ordering": "ndcg"}
_MISALIGNED = ("hm_2_1", "hm_3_1", "hm_3_2")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Video:
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


_Videos = Mapping[str, _Video]


def _tables(runs: Sequence[AnalyzedRun], options: Mapping[str, Any]) -> Tables:
    """Return the analyses of VidHal runs, and the reasons for missing ones.

    Raises:
        ArchiveError: A line of items.jsonl, or of a given file, is damaged.
        InvalidInputError: A file was given that does not fit the runs.
    """
    own = runs_of(runs, *_METRICS)
    read = {run.label: dict(_videos(run)) for run in own}
    tables, notes = run_by_run(lambda run, _: _of_run(run, read[run.label]), *_METRICS)(
        own, options
    )
    for found in (_input_order(own, read), _frames(own, read), _consensus(own, read)):
        tables += found[0]
        notes += found[1]
    if options["pairs"] is not None:
        tables += _pairs(own, read, options["pairs"])
    elif runs_of(own, "vidhal-ordering"):
        notes.append("no transitive inconsistency: give the answers about pairs with --pairs FILE")
    if options["people"] is not None:
        tables += _people(read[own[0].label], options["people"])
    if options["votes"] is not None:
        tables.append(_quality(options["votes"]))
    return tables, notes


def _videos(run: AnalyzedRun) -> Iterator[tuple[str, _Video]]:
    for record in run.scored():
        answers: Any = evidence_of(record, "answers").get("answers")
        with ArchiveError.of_content(
            f"{record.place}: not a line that a run of {run.metric} writes", "score again"
        ):
            fields: Any = record.values.get("fields") or {}
            scores: Any = record.values["scores"]
            yield (
                str(record.values["id"]),
                _Video(
                    aspect=str(fields.get("aspect", "")),
                    sub_aspect=str(fields.get("subaspect", "")),
                    score=float(scores[_METRICS[run.metric]]),
                    letters=tuple(str(answers[0]["label"]).split(", ")),
                    chosen=tuple(str(answers[0]["answer"] or "").split(", ")),
                    ranks=_ranks(answers[0]),
                    shown=f"{record.values.get('question_hash')} {record.values['reference_hash']}",
                ),
            )


def _ranks(entry: Mapping[str, Any]) -> tuple[int, ...] | None:
    label, value, right = str(entry["label"]), entry["answer"], entry["correct"] is True
    if ", " not in label:
        return (1,) if right else None
    return ranks_in(ReadAnswer("", value and str(value), label, right, str(entry["how"])))


def _of_run(run: AnalyzedRun, videos: _Videos) -> Tables:
    tables = [_by_display(run.metric, videos)]
    notes = []
    if any(video.sub_aspect for video in videos.values()):
        tables.append(_sub_aspects(run.metric, videos))
    else:
        notes.append("no sub-aspects: score the run with --group-by subaspect")
    if run.metric == "vidhal-ordering":
        tables.append(_misalignment(run))
    return tables, notes


def _by_display(metric: str, videos: _Videos) -> AnalysisTable:
    groups = _grouped(videos.values(), lambda video: ", ".join(video.letters))
    return AnalysisTable(
        name="display_order",
        source="ours, after Choong et al., section 10.1: score by the letters of the label",
        rows=tuple(
            {"metric": metric, "label": label, **_scored(groups[label])} for label in sorted(groups)
        ),
        chart=Chart(kind="bars", x="label", y=("score",), by=("metric",)),
    )


def _sub_aspects(metric: str, videos: _Videos) -> AnalysisTable:
    every = _grouped(videos.values(), lambda video: (video.aspect, ""))
    own = _grouped(
        (video for video in videos.values() if video.sub_aspect),
        lambda video: (video.aspect, video.sub_aspect),
    )
    groups = every | own
    return AnalysisTable(
        name="sub_aspects",
        source="Choong et al., Figures 5 and 6: mean score of aspects and their sub-aspects",
        rows=tuple(
            {
                **{"metric": metric, "aspect": aspect, "sub_aspect": part},
                **{"group": part or aspect, **_scored(groups[aspect, part])},
            }
            for aspect, part in sorted(groups)
        ),
        chart=Chart(kind="bars", x="group", y=("score",), by=("metric",)),
    )


def _grouped(videos: Iterable[_Video], key: Callable[[_Video], _T]) -> dict[_T, list[_Video]]:
    groups: dict[_T, list[_Video]] = {}
    for video in videos:
        groups.setdefault(key(video), []).append(video)
    return groups


def _scored(videos: Sequence[_Video]) -> dict[str, Cell]:
    return {"score": mean_of_known([video.score for video in videos]), "videos": len(videos)}


def _misalignment(run: AnalyzedRun) -> AnalysisTable:
    return AnalysisTable(
        name="misalignment",
        source="Choong et al., formula 8 and Figure 9: HM, caption j before the better caption k",
        rows=tuple(
            {
                "score": name,
                "hm": run.report.scores[name].value,
                "videos": run.report.scores[name].n,
            }
            for name in _MISALIGNED
            if name in run.report.scores
        ),
        chart=Chart(kind="bars", x="score", y=("hm",)),
    )


def _crossed(
    runs: Iterable[AnalyzedRun], key: str
) -> dict[tuple[str, str], dict[str, AnalyzedRun]]:
    """Return runs by metric and the other keys of their names, and by one key within these."""
    found: dict[tuple[str, str], dict[str, AnalyzedRun]] = {}
    for run in runs:
        if key in run.keys:
            others = "/".join(value for name, value in run.keys.items() if name != key)
            found.setdefault((run.metric, others), {})[run.keys[key]] = run
    return found


def _shared(
    runs: Mapping[str, AnalyzedRun], read: Mapping[tuple[str, str], _Videos], where: str
) -> tuple[dict[str, _Videos], list[str]]:
    """Return the videos that all runs have scored, and a note on the others."""
    tables = {name: read[run.label] for name, run in runs.items()}
    every = dict.fromkeys(video for table in tables.values() for video in table)
    kept = [video for video in every if all(video in table for table in tables.values())]
    if not kept:
        raise InvalidInputError(
            f"{where}: {', '.join(run.source for run in runs.values())} have no scored video in "
            "common; give runs over the same videos"
        )
    left_out = f"{where}: {len(every) - len(kept)} of {len(every)} videos are left out, since not "
    notes = [f"{left_out}all runs have scored them"] if len(kept) < len(every) else []
    return {name: {video: table[video] for video in kept} for name, table in tables.items()}, notes


def _input_order(runs: Sequence[AnalyzedRun], read: Mapping[tuple[str, str], _Videos]) -> Tables:
    rows: list[Mapping[str, Cell]] = []
    summary: list[Mapping[str, Cell]] = []
    notes: list[str] = []
    for (metric, others), by_order in _crossed(runs, "order").items():
        if len(by_order) < 2:
            continue
        videos, left_out = _shared(by_order, read, "input order")
        notes += left_out
        found = input_order_sensitivity(
            {order: {v: each.score for v, each in of.items()} for order, of in videos.items()},
            {order: {v: each.ranks or () for v, each in of.items()} for order, of in videos.items()}
            if metric == "vidhal-ordering"
            else None,
        )
        keys: dict[str, Cell] = {"model": others, "metric": metric}
        rows += [{**keys, "order": order, "score": score} for order, score in found.scores.items()]
        own: dict[str, Cell] = {"orders": len(videos), "mean": found.mean, "std": found.std}
        summary.append({**keys, **own, "spread": found.spread, "same_answer": found.same_answer})
    if not rows:
        return [], ["no input-order bias: name runs --name model=…,order=ABC, one for each order"]
    source = "Choong et al., section 10.1 and Figure 35"
    chart = Chart(kind="bars", x="order", y=("score",), by=("model", "metric"))
    return [
        AnalysisTable(
            name="input_order", source=f"{source}: score by order", rows=tuple(rows), chart=chart
        ),
        AnalysisTable(
            name="input_order_sensitivity",
            source=f"{source}: variation over display orders",
            rows=tuple(summary),
        ),
    ], notes


def _frames(runs: Sequence[AnalyzedRun], read: Mapping[tuple[str, str], _Videos]) -> Tables:
    rows: list[Mapping[str, Cell]] = []
    notes: list[str] = []
    for (metric, others), by_input in _crossed(runs, "input").items():
        if not {"video", "frame"} <= by_input.keys():
            continue
        pair = {name: by_input[name] for name in ("video", "frame")}
        videos, left_out = _shared(pair, read, "frame reliance")
        notes += left_out
        _check_display(metric, videos, pair)
        found = frame_reliance(*(_answers(metric, of) for of in videos.values()))
        rows.append({"model": others, "metric": metric, **asdict(found)})
    if not rows:
        return [], ["no frame reliance: name two runs of a model input=video and input=frame"]
    return [
        AnalysisTable(
            name="frame_reliance",
            source="Choong et al., Figure 7: equal answers for the video and its salient frame",
            rows=tuple(rows),
            chart=Chart(kind="bars", x="model", y=("overall", "correct", "incorrect")),
        )
    ], notes


def _check_display(
    metric: str, videos: Mapping[str, _Videos], runs: Mapping[str, AnalyzedRun]
) -> None:
    """Check that letters mean the same captions in both runs of choices.

    Raises:
        InvalidInputError: A video has another display order.
    """
    one, other = videos.values()
    odd = [video for video in one if one[video].shown != other[video].shown]
    if metric == "vidhal-mcqa" and odd:
        raise InvalidInputError(
            f"{' and '.join(run.source for run in runs.values())} show captions in different "
            f"orders, first of {odd[0]!r:.60}; score both with the same --options"
        )


def _answers(metric: str, videos: _Videos) -> dict[str, tuple[int, ...]]:
    """Return ranks; of a wrong choice a number for its letter, of an invalid order none."""
    if metric == "vidhal-ordering":
        return {name: video.ranks or () for name, video in videos.items()}
    return {
        name: video.ranks or tuple(2 + ord(letter) for letter in "".join(video.chosen))
        for name, video in videos.items()
    }


def _consensus(runs: Sequence[AnalyzedRun], read: Mapping[tuple[str, str], _Videos]) -> Tables:
    scores: list[Mapping[str, Cell]] = []
    pairs: list[Mapping[str, Cell]] = []
    notes: list[str] = []
    for (_, others), by_model in _crossed(runs_of(runs, "vidhal-mcqa"), "model").items():
        if len(by_model) < 2:
            continue
        videos, left_out = _shared(by_model, read, "consensus")
        notes += left_out
        found = model_consensus(
            {
                model: {v: each.ranks == (1,) for v, each in of.items()}
                for model, of in videos.items()
            }
        )
        scores += [
            {"among": others, "model": model, "consensus": value}
            for model, value in found.models.items()
        ]
        pairs += [
            {"among": others, "model": one, "other": other, "consensus": value}
            for (one, other), value in found.pairs.items()
        ]
    if not scores:
        return [], ["no consensus: give runs of vidhal-mcqa of several models"]
    source = "Choong et al., section 10.2 and Figure 36"
    chart = Chart(kind="bars", x="model", y=("consensus",), by=("among",))
    return [
        AnalysisTable(
            name="consensus", source=f"{source}: mean over pairs", rows=tuple(scores), chart=chart
        ),
        AnalysisTable(
            name="consensus_pairs",
            source=f"{source}: videos that both answer correctly / that at least one does",
            rows=tuple(pairs),
        ),
    ], notes


def _pairs(
    runs: Sequence[AnalyzedRun], read: Mapping[tuple[str, str], _Videos], path: Path
) -> Iterator[AnalysisTable]:
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
        answers.setdefault(video, []).append(_pair(record, videos[video].letters))
    orders = {name: video.chosen for name, video in videos.items() if video.ranks}
    for ends in (True, False):
        found = transitive_inconsistency(orders, answers, ends_only=ends)
        kind = "first with last caption" if ends else "every pair"
        yield AnalysisTable(
            name="transitive_inconsistency" if ends else "pair_inconsistency",
            source=f"Choong et al., formula 7 and Table 3: orders against answers, {kind}",
            rows=({"p_ti": found.rate, "inconsistent": len(found.videos), "videos": found.n},),
        )
    yield _pair_orders(videos, answers)


def _pair_orders(videos: _Videos, answers: Mapping[str, Sequence[PairAnswer]]) -> AnalysisTable:
    scores, same = [], 0
    for name, given in answers.items():
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


def _known(record: Record, videos: _Videos) -> str:
    video = id_under(record, "video")
    if video in videos:
        return video
    raise ArchiveError(
        f"{record.place}: the run has no scored video {video!r:.60}; give the run of these videos"
    )


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


def _people(videos: _Videos, path: Path) -> Iterator[AnalysisTable]:
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
    sizes = _grouped((videos[video] for video in choices), lambda video: video.aspect)
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
        name="misaligned_videos",
        source="Choong et al., Table 4: videos without a majority for the annotated order",
        rows=tuple(
            {"video": video, "agreement": found.videos[video], "people": len(choices[video])}
            for video in found.misaligned
        ),
    )


def _quality(path: Path) -> AnalysisTable:
    try:
        found = caption_quality(map(_vote, read_records(path)))
    except ValueError as err:
        raise InvalidInputError(f"{path}: {err}") from err
    return AnalysisTable(
        name="caption_quality",
        source="Choong et al., section 7.2: share of yes by criterion; total from 0 to 3",
        rows=tuple({"video": video, **scores} for video, scores in found.items()),
    )


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


ANALYSES = (
    FamilyAnalyses(
        metrics=tuple(_METRICS),
        make=_tables,
        options=(
            AnalysisOption(
                name="pairs", meaning="vidhal: answers about pairs of captions", kind="file"
            ),
            AnalysisOption(
                name="people", meaning="vidhal: people's choices of the order", kind="file"
            ),
            AnalysisOption(name="votes", meaning="vidhal: judges' votes on captions", kind="file"),
        ),
    ),
)

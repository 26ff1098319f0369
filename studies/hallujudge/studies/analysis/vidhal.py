"""VidHal analyses: input order, consistency, reliance on a frame, consensus, people's answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from hallujudge.metrics.answers.answer_scores import ReadAnswer
from hallujudge.metrics.answers.orders import ranks_in
from hallujudge.metrics.framework.columns_and_scores import mean_of_known
from hallujudge.metrics.vidhal.order_analyses import (
    frame_reliance,
    input_order_sensitivity,
    model_consensus,
)
from hallujudge.sdk.errors import InvalidInputError
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
)
from .vidhal_files import Video, Videos, grouped, pairs_tables, people_tables, votes_table

_METRICS = {"vidhal-mcqa": "accuracy", "vidhal-ordering": "ndcg"}
# The three cases of section 5.4: of captions 1 (right) to 3 (worst), the worse one comes first.
_MISALIGNED = ("hm_2_1", "hm_3_1", "hm_3_2")


def _tables(runs: Sequence[AnalyzedRun], options: Mapping[str, Any]) -> Tables:
    """Return the analyses of VidHal runs, and the reasons for missing ones.

    Raises:
        ArchiveError: A line of items.jsonl, or of a given file, is damaged.
        InvalidInputError: A file was given that does not fit the runs.
    """
    own = runs_of(runs, *_METRICS)
    read = {run.label: dict(_videos(run)) for run in own}
    of_each = run_by_run(lambda run, _: _of_run(run, read[run.label]), *_METRICS)
    over_runs = (over(own, read) for over in (_input_order, _frames, _consensus))
    tables, notes = joined((of_each(own, options), *over_runs))
    if options["pairs"] is not None:
        tables += pairs_tables(own, read, options["pairs"])
    elif runs_of(own, "vidhal-ordering"):
        notes.append("no transitive inconsistency: give the answers about pairs with --pairs FILE")
    if options["people"] is not None:
        tables += people_tables(read[own[0].label], options["people"])
    if options["votes"] is not None:
        tables.append(votes_table(options["votes"]))
    return tables, notes


def _videos(run: AnalyzedRun) -> Iterator[tuple[str, Video]]:
    for record in run.scored():
        answers: Any = evidence_of(record, "answers").get("answers")
        with reading(record, run.metric):
            fields: Any = record.values.get("fields") or {}
            scores: Any = record.values["scores"]
            yield (
                str(record.values["id"]),
                Video(
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
    # A choice has one right letter: right is rank 1, and a wrong letter has no rank.
    if ", " not in label:
        return (1,) if right else None
    return ranks_in(ReadAnswer("", value and str(value), label, right, str(entry["how"])))


def _of_run(run: AnalyzedRun, videos: Videos) -> Tables:
    tables = [_by_display(run.metric, videos)]
    notes = []
    if any(video.sub_aspect for video in videos.values()):
        tables.append(_sub_aspects(run.metric, videos))
    else:
        notes.append("no sub-aspects: score the run with --group-by subaspect")
    if run.metric == "vidhal-ordering":
        tables += [_misalignment(run), _regurgitation(run, videos)]
    return tables, notes


def _by_display(metric: str, videos: Videos) -> AnalysisTable:
    groups = grouped(videos.values(), lambda video: ", ".join(video.letters))
    return AnalysisTable(
        # Section 10.1 needs a run for each display order. The display orders of one run differ from
        # video to video, so that a bias towards a letter shows in it too.
        name="display_order",
        source="ours, after Choong et al., section 10.1: score by the letters of the label",
        rows=tuple(
            {"metric": metric, "label": label, **_scored(groups[label])} for label in sorted(groups)
        ),
        chart=Chart(kind="bars", x="label", y=("score",), by=("metric",)),
    )


def _sub_aspects(metric: str, videos: Videos) -> AnalysisTable:
    every = grouped(videos.values(), lambda video: (video.aspect, ""))
    own = grouped(
        (video for video in videos.values() if video.sub_aspect),
        lambda video: (video.aspect, video.sub_aspect),
    )
    # An aspect as a whole is the row without a sub-aspect.
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


def _scored(videos: Sequence[Video]) -> dict[str, Cell]:
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


def _regurgitation(run: AnalyzedRun, videos: Videos) -> AnalysisTable:
    """Return the rate of the most frequent order, and that of the right orders themselves."""
    # A model that always answers the most frequent right order would repeat this share.
    right = Counter(video.letters for video in videos.values()).most_common(1)
    rows = [{"line": run.label[-1], "rate": run.report.scores["regurgitation_rate"].value}]
    rows += [{"line": "Dataset Statistic", "rate": count / len(videos)} for _, count in right]
    return AnalysisTable(
        name="regurgitation",
        source="Choong et al., section 5.4 and Figure 8 (bottom): share of the most frequent order",
        rows=tuple(rows),
        chart=Chart(kind="bars", x="line", y=("rate",)),
    )


def _crossed(
    runs: Iterable[AnalyzedRun], key: str, *values: str
) -> dict[tuple[str, str], dict[str, AnalyzedRun]]:
    """Return runs by metric and the other keys of their names, and by one key within these.

    Groups of one run are left out; with values, also those without a run for each, and all other
    runs.
    """
    found: dict[tuple[str, str], dict[str, AnalyzedRun]] = {}
    for run in runs:
        if key in run.keys:
            others = "/".join(value for name, value in run.keys.items() if name != key)
            found.setdefault((run.metric, others), {})[run.keys[key]] = run
    return {
        group: {value: by_key[value] for value in values or by_key}
        for group, by_key in found.items()
        if len(by_key) > 1 and by_key.keys() >= {*values}
    }


def _shared(
    runs: Mapping[str, AnalyzedRun], read: Mapping[tuple[str, str], Videos], where: str
) -> tuple[dict[str, Videos], list[str]]:
    """Return the videos that all runs have scored, and a note on the others."""
    tables = {name: read[run.label] for name, run in runs.items()}
    every = dict.fromkeys(video for table in tables.values() for video in table)
    # Videos of all runs alone, or a difference might be that of other videos.
    kept = [video for video in every if all(video in table for table in tables.values())]
    if not kept:
        raise InvalidInputError(
            f"{where}: {', '.join(run.source for run in runs.values())} have no scored video in "
            "common; give runs over the same videos"
        )
    left_out = f"{where}: {len(every) - len(kept)} of {len(every)} videos are left out, since not "
    notes = [f"{left_out}all runs have scored them"] if len(kept) < len(every) else []
    return {name: {video: table[video] for video in kept} for name, table in tables.items()}, notes


def _input_order(runs: Sequence[AnalyzedRun], read: Mapping[tuple[str, str], Videos]) -> Tables:
    rows: list[Mapping[str, Cell]] = []
    summary: list[Mapping[str, Cell]] = []
    notes: list[str] = []
    for (metric, others), by_order in _crossed(runs, "order").items():
        videos, left_out = _shared(by_order, read, "input order")
        notes += left_out
        # Same answers are counted among orders alone: a wrong choice has no rank, so that letters
        # of two displays can't be compared.
        found = input_order_sensitivity(
            {order: {v: each.score for v, each in of.items()} for order, of in videos.items()},
            {order: {v: each.ranks or () for v, each in of.items()} for order, of in videos.items()}
            if metric == "vidhal-ordering"
            else None,
        )
        keys: dict[str, Cell] = {"model": others, "metric": metric}
        rows += [{**keys, "order": order, "score": score} for order, score in found.scores.items()]
        over = cells_of(found, "mean", "std", "spread", "same_answer")
        summary.append({**keys, "orders": len(videos), **over})
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


def _frames(runs: Sequence[AnalyzedRun], read: Mapping[tuple[str, str], Videos]) -> Tables:
    rows: list[Mapping[str, Cell]] = []
    notes: list[str] = []
    for (metric, others), pair in _crossed(runs, "input", "video", "frame").items():
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
    metric: str, videos: Mapping[str, Videos], runs: Mapping[str, AnalyzedRun]
) -> None:
    """Check that letters mean the same captions in both runs of choices.

    Raises:
        InvalidInputError: A video has another display order.
    """
    one, other = videos.values()
    # Orders are ranks of captions, which no display order changes; letters are places.
    odd = [video for video in one if one[video].shown != other[video].shown]
    if metric == "vidhal-mcqa" and odd:
        raise InvalidInputError(
            f"{' and '.join(run.source for run in runs.values())} show captions in different "
            f"orders, first of {odd[0]!r:.60}; score both with the same --options"
        )


def _answers(metric: str, videos: Videos) -> dict[str, tuple[int, ...]]:
    """Return ranks; of a wrong choice a number for its letter, of an invalid order none."""
    if metric == "vidhal-ordering":
        return {name: video.ranks or () for name, video in videos.items()}
    return {
        # Above every rank, so that no wrong letter equals the right choice.
        name: video.ranks or tuple(2 + ord(letter) for letter in "".join(video.chosen))
        for name, video in videos.items()
    }


def _consensus(runs: Sequence[AnalyzedRun], read: Mapping[tuple[str, str], Videos]) -> Tables:
    scores: list[Mapping[str, Cell]] = []
    pairs: list[Mapping[str, Cell]] = []
    notes: list[str] = []
    # Section 10.2 measures consensus on the multiple-choice task alone.
    for (_, others), by_model in _crossed(runs_of(runs, "vidhal-mcqa"), "model").items():
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


ANALYSES = (FamilyAnalyses(metrics=tuple(_METRICS), make=_tables, options=OPTIONS["vidhal"]),)

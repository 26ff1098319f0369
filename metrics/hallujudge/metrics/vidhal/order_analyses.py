"""VidHal's analyses and the scores of section 5.4."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from ..answers.answer_items import AnswersItem
from ..answers.answer_scores import AnswerScore, Count, ReadAnswer, count, share
from ..answers.answers_metric import AnswersMetric
from ..answers.orders import PairAnswer, order_code, ranks_in
from ..errors import choose_from
from ..framework.arrays import FloatArray, np
from ..framework.columns_and_scores import ScoreDefinition, max_of, mean_of_known, ratio
from ..framework.results import UnscoredReason


def _misaligned(high: int, low: int) -> AnswerScore:
    def is_asked(answer: ReadAnswer) -> bool:
        # In `published`, an invalid order counts as asked and never as wrong, as in formula 8.
        size = answer.label.count(", ") + 1
        counts = ranks_in(answer) is not None or answer.how.startswith("published")
        return size >= high and counts

    def is_wrong(answer: ReadAnswer) -> bool:
        ranks = ranks_in(answer) if is_asked(answer) else None
        return ranks is not None and ranks.index(high) < ranks.index(low)

    return share(
        f"hm_{high}_{low}",
        f"orders with caption {high} before {low}, which is better / orders",
        count(f"hm_{high}_{low}", f"caption {high} comes before {low}, which is better", is_wrong),
        count(
            f"compared_{high}_{low}",
            f"orders where captions {high} and {low} are compared",
            is_asked,
        ),
        direction="lower",
    )


_PAIRS = ((2, 1), (3, 1), (3, 2))
# More than one: in a bootstrap sample another order may be the most frequent. Three captions have
# six orders, so that eight columns hold all of these.
_MOST_COMMON = tuple(f"commonest_order_{place}" for place in range(1, 9))
"""Columns for the eight most frequent orders of a table."""
_REPEATED = tuple(ratio(name, "videos") for name in _MOST_COMMON)
_REGURGITATED = AnswerScore(
    definition=ScoreDefinition(
        name="regurgitation_rate",
        meaning="videos with the most frequent order of letters / videos",
        direction="lower",
        columns=(*_MOST_COMMON, "videos"),
        value=max_of(*_REPEATED),
        bounded=False,
        largest_of=_REPEATED,
    ),
    counts=(
        Count(
            name="order",
            meaning="order of letters, as a number",
            of=lambda bundle: (
                order_code((bundle[0].value or "").split(", ")) if ranks_in(bundle[0]) else 0.0
            ),
            integral=False,
            label=True,
        ),
    ),
)
FURTHER_SCORES = (_REGURGITATED, *(_misaligned(high, low) for high, low in _PAIRS))
"""The scores of section 5.4, "Further Analysis"."""


# Labels are orders of a few letters.
@lru_cache(maxsize=1024)
def _fits(label: str, shown: Sequence[str]) -> bool:
    """Return whether a label is one of some letters, or all of them in an order."""
    letters = sorted(label.split(", "))
    fits = letters == list(shown) or (len(letters) == 1 and letters[0] in shown) or not shown
    return fits and len(set(letters)) == len(letters)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMetric(AnswersMetric):
    """A metric of letters, which say nothing without the order of the shown captions."""

    def problem(self, item: AnswersItem) -> tuple[UnscoredReason, str] | None:
        """Return why answers can't be scored with their letters, or None if they can."""
        for answer in item.answers:
            if not answer.label:
                return (
                    UnscoredReason.DISPLAY_MISSING,
                    "the order of the shown captions is needed; without it a letter says nothing",
                )
            if not _fits(answer.label, shown := tuple(sorted(answer.options))):
                return (
                    UnscoredReason.DISPLAY_INVALID,
                    f"the label {answer.label!r:.80} does not fit the letters {', '.join(shown)}; "
                    "are the options of another release?",
                )
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdersMetric(ShownMetric):
    """Counts the most frequent orders of a whole table."""

    def expand(self, items: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """Return columns that count items with one of the most frequent orders; code 0 is none."""
        codes, weights = items["order"], items[self.unit]
        # Items without a valid order have the code 0, and are in no order's count.
        orders, places = np.unique(codes[codes != 0], return_inverse=True)
        counts = np.bincount(places, weights=weights[codes != 0], minlength=len(orders))
        # Equally frequent orders by their code, so that the result is the same on every machine.
        commonest = orders[np.lexsort([orders, -counts])][: len(_MOST_COMMON)]
        # A table with fewer orders leaves the other columns at 0.
        columns = dict.fromkeys(_MOST_COMMON, np.zeros(len(codes)))
        for name, order in zip(_MOST_COMMON, commonest, strict=False):
            columns[name] = weights * (codes == order)
        return columns


class TransitiveInconsistency(NamedTuple):
    """Share of videos whose final order contradicts the answers about pairs."""

    rate: float | None
    """Contradicting videos / all videos (N of formula 7); None if none has enough answers."""
    videos: tuple[str, ...]
    """Videos with a contradiction."""
    n: int
    """Videos with enough answers."""
    videos_of_run: int
    """All videos, those with an invalid order included."""

    @property
    def rate_of_asked(self) -> float | None:
        """Contradicting videos / videos with enough answers."""
        return len(self.videos) / self.n if self.n else None


def transitive_inconsistency(
    orders: Mapping[str, Sequence[str]],
    answers: Mapping[str, Iterable[PairAnswer]],
    *,
    ends_only: bool = True,
) -> TransitiveInconsistency:
    """Return P_TI (formula 7): videos where the last caption was chosen over the first one.

    Args:
        orders: Video -> final order of letters; empty for an invalid one.
        answers: Video -> answers about pairs, including the pair of first and last caption.
        ends_only: Count only the pair of first and last caption, as formula 7 does for three
            captions. Otherwise every contradicted pair counts.
    """
    wrong, decided = [], 0
    for video, order in orders.items():
        place = {letter: index for index, letter in enumerate(order)}
        judged = [
            answer
            for answer in answers.get(video, ())
            if order
            and all(letter in place for letter in answer.question)
            and (not ends_only or set(answer.question) == {order[0], order[-1]})
        ]
        decided += bool(judged)
        if any(place[a.chosen] > min(place[letter] for letter in a.question) for a in judged):
            wrong.append(video)
    rate = len(wrong) / len(orders) if decided else None
    return TransitiveInconsistency(rate, tuple(wrong), decided, len(orders))


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderSensitivity:
    """Variation of a score with the order in which captions are shown."""

    scores: Mapping[str, float]
    """Display order -> mean score."""
    mean: float
    """Mean over the display orders."""
    std: float
    """Standard deviation over the display orders (of the population)."""
    spread: float
    """Difference between the highest and the lowest score."""
    same_answer: float | None
    """Share of videos with the same chosen captions under every display order."""


def input_order_sensitivity(
    scores: Mapping[str, Mapping[str, float]],
    answers: Mapping[str, Mapping[str, Sequence[int]]] | None = None,
) -> OrderSensitivity:
    """Compare a model's scores over all display orders (section 10.1, Figure 35).

    Args:
        scores: Display order (such as ``B, A, C``) -> video -> score.
        answers: Display order -> video -> the chosen ranks, in order; None if unknown.

    Raises:
        ValueError: No scores are given, or the videos of two display orders differ.
    """
    if not scores or not all(scores.values()):
        raise ValueError("give the scores of at least one display order, of at least one video")
    # A mean over other videos would differ by these, and not by the order.
    _same_videos(scores)
    means = {shown: math.fsum(rows.values()) / len(rows) for shown, rows in scores.items()}
    mean = math.fsum(means.values()) / len(means)
    variance = math.fsum((value - mean) ** 2 for value in means.values()) / len(means)
    same = None
    if answers:
        _same_videos(answers)
        first, *others = answers.values()
        kept = sum(all(rows[v] == ranks for rows in others) for v, ranks in first.items())
        same = kept / len(first) if first else None
    return OrderSensitivity(
        scores=means,
        mean=mean,
        std=math.sqrt(variance),
        spread=max(means.values()) - min(means.values()),
        same_answer=same,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Consensus:
    """Agreement of models on the videos that they answer correctly."""

    pairs: Mapping[tuple[str, str], float | None]
    """Two models -> videos that both answered correctly / videos that at least one did."""
    models: Mapping[str, float | None]
    """Model -> the mean over its pairs."""


def model_consensus(correct: Mapping[str, Mapping[str, bool]]) -> Consensus:
    """Return the consensus on multiple choice (section 10.2, Figure 36).

    The paper defines it as "shared correct predictions across correctly answered instances between
    model pairs". It is computed here as videos that both answered correctly / videos that at least
    one did.

    Args:
        correct: Model -> video -> whether it was right.

    Raises:
        ValueError: The videos of two models differ.
    """
    _same_videos(correct)
    right = {model: {v for v, yes in rows.items() if yes} for model, rows in correct.items()}
    pairs: dict[tuple[str, str], float | None] = {}
    for one, other in combinations(sorted(right), 2):
        either = right[one] | right[other]
        pairs[one, other] = len(right[one] & right[other]) / len(either) if either else None
    models = {
        model: mean_of_known([value for pair, value in pairs.items() if model in pair])
        for model in sorted(right)
    }
    return Consensus(pairs=pairs, models=models)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameReliance:
    """Share of videos where a single frame leads to the same answer as the video."""

    overall: float | None
    """Same answers / videos."""
    correct: float | None
    """Same answers among videos whose full-video answer is right."""
    incorrect: float | None
    """Same answers among the other videos."""
    n: int
    """Number of videos."""


def frame_reliance(
    video: Mapping[str, Sequence[int]],
    frame: Mapping[str, Sequence[int]],
) -> FrameReliance:
    """Return the overlap of answers from a video and from its most salient frame (Figure 7).

    Args:
        video: Video -> the chosen ranks from the whole video, in order (one for multiple choice).
        frame: The same from a single frame.

    Raises:
        ValueError: The videos of both differ.
    """
    _same_videos({"video": video, "frame": frame})
    same = {name: tuple(ranks) == tuple(frame[name]) for name, ranks in video.items()}
    # A choice is right if it is rank 1, and an order if its ranks ascend.
    right = {
        name: tuple(ranks) == tuple(sorted(ranks)) and 1 in ranks for name, ranks in video.items()
    }
    return FrameReliance(
        overall=_share(same.values()),
        correct=_share(same[name] for name in same if right[name]),
        incorrect=_share(same[name] for name in same if not right[name]),
        n=len(same),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityVote:
    """One judge's answer to one yes/no question about a video's captions."""

    video: str
    judge: str
    criterion: str
    """``realism``, ``ordering`` or ``relevance``."""
    prompt: str
    """The wording of the question and its caption."""
    answer: str | None
    """``yes``, ``no``, or None for an unparsed reply."""


_CRITERIA = ("realism", "ordering", "relevance")


def caption_quality(votes: Iterable[QualityVote]) -> dict[str, dict[str, float | None]]:
    """Return the quality of generated captions (section 7.2, "Caption Quality Scoring").

    A criterion's score is the share of yes over all judges and prompts. ``total`` is the sum over
    the three criteria, from 0 to 3; a video without answers about one of them has no total.
    An unparsed reply is not a yes and counts 0, as in the paper: "1 for positive responses, and 0
    otherwise". ``unread`` says how many there are.

    Returns:
        Video -> criterion (and ``total``, ``unread``) -> score; the best video first, then by name.

    Raises:
        ValueError: A criterion is unknown.
    """
    answers: dict[str, dict[str, list[str | None]]] = {}
    for vote in votes:
        if vote.criterion not in _CRITERIA:
            raise ValueError(
                f"criterion {vote.criterion!r} of {vote.video!r}: "
                + choose_from(vote.criterion, _CRITERIA)
            )
        rows = answers.setdefault(vote.video, {name: [] for name in _CRITERIA})
        rows[vote.criterion].append(vote.answer)
    table = {video: _quality(rows) for video, rows in answers.items()}
    return dict(
        sorted(
            table.items(),
            # A video without a total is listed after one whose total is 0.
            key=lambda row: (-(row[1]["total"] or 0), row[1]["total"] is None, row[0]),
        )
    )


def _quality(rows: Mapping[str, Sequence[str | None]]) -> dict[str, float | None]:
    scores = {name: _share(answer == "yes" for answer in answers) for name, answers in rows.items()}
    known = [value for value in scores.values() if value is not None]
    unread = sum(answer is None for answers in rows.values() for answer in answers)
    total = math.fsum(known) if len(known) == len(_CRITERIA) else None
    return {**scores, "total": total, "unread": float(unread)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Agreement of people with the annotated order."""

    videos: Mapping[str, float]
    """Video -> share of people who chose the annotated order."""
    mean: float | None
    """The mean over videos."""
    misaligned: tuple[str, ...]
    """The videos where at most half of the people did."""
    groups: Mapping[str, float | None]
    """Group, such as an aspect -> mean over its videos."""


def human_agreement(
    choices: Mapping[str, Sequence[bool]], groups: Mapping[str, str] | None = None
) -> Agreement:
    """Return people's agreement with the annotated order (section 3.4, Figure 3; 8.2, Table 4).

    A majority is more than half: the paper's table of misaligned videos includes one with 0.5.

    Args:
        choices: Video -> for each person, whether they chose the annotated order.
        groups: Video -> group.

    Raises:
        ValueError: A video has no answers.
    """
    empty = [video for video, people in choices.items() if not people]
    if empty:
        raise ValueError(f"no answers about {', '.join(empty[:5])}")
    videos = {video: sum(people) / len(people) for video, people in choices.items()}
    members: dict[str, list[float | None]] = {}
    for video, value in videos.items():
        members.setdefault((groups or {}).get(video, ""), []).append(value)
    return Agreement(
        videos=videos,
        mean=mean_of_known(list(videos.values())),
        misaligned=tuple(video for video, value in videos.items() if value <= 0.5),
        groups={name: mean_of_known(rows) for name, rows in sorted(members.items())},
    )


def _share(flags: Iterable[bool]) -> float | None:
    rows = list(flags)
    return sum(rows) / len(rows) if rows else None


def _same_videos(tables: Mapping[str, Mapping[str, object]]) -> None:
    names = list(tables)
    for name in names[1:]:
        odd = set(tables[names[0]]) ^ set(tables[name])
        if odd:
            raise ValueError(
                f"{names[0]!r} and {name!r} have different videos; "
                f"{', '.join(sorted(odd)[:5])} only in one of them"
            )

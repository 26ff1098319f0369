"""VidHal: which caption fits a video best, and in which order the captions fit it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from operator import itemgetter, methodcaller
from typing import TYPE_CHECKING, ClassVar, Literal

from ..answers.choices import read_choice
from ..answers.closed_questions import AnswerEvidence
from ..answers.orders import ParsedOrder, read_order, read_order_published
from ..framework.columns_and_scores import Column, ScoreDefinition, ratio, share
from ..framework.metric import Metric, Paper, VariantDefinition
from ..framework.results import CanonicalRecord, Item, JsonValue, ScoredItem

if TYPE_CHECKING:
    from ..framework.columns_and_scores import FloatArray, Sums


@dataclass(frozen=True, slots=True, kw_only=True)
class VidhalItem(Item):
    """A choice or an order over the captions of one video."""

    response: str | None
    """What the model wrote: a letter, a caption, or letters in order; None without a response."""
    captions: tuple[str, ...] = ()
    """The captions by rank, the most faithful first."""
    display: Mapping[str, int] = field(default_factory=dict)
    """Letter shown to the model -> rank of its caption (1 is the most faithful)."""

    def question_record(self) -> CanonicalRecord:
        """Return the captions without their order."""
        return sorted(self.captions)

    def reference_record(self) -> CanonicalRecord:
        """Return the captions by rank, and the rank of each letter."""
        return self.captions, sorted(self.display.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderEvidence:
    """Evidence of an order."""

    order: tuple[str, ...]
    """The parsed letters, in order."""
    ranks: tuple[int, ...]
    """The ranks of the letters; 0 for a letter that was not shown."""
    problem: str = ""
    """Why the order is invalid: ``empty``, ``partial``, ``repeated``, ``unknown``; or empty."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the order, its ranks and its problem."""
        return {
            "order": list(self.order),
            "ranks": list(self.ranks),
            "valid": not self.problem,
            "problem": self.problem,
        }


MOST_COMMON = tuple(f"commonest_order_{place}" for place in range(1, 9))
"""Columns for the eight most frequent orders of a table."""

_EXACT_LETTERS = 11  # 27 ** 11 < 2 ** 53, so that a float holds the code exactly.


def order_code(letters: Sequence[str]) -> float:
    """Return a number above 0: exact for up to eleven letters, otherwise a 48-bit hash."""
    if len(letters) <= _EXACT_LETTERS and all(len(x) == 1 and "A" <= x <= "Z" for x in letters):
        code = 0
        for letter in letters:
            code = code * 27 + ord(letter) - 64
        return float(code)
    text = "\0".join(letters).encode("utf-8", "surrogatepass")
    return float(int.from_bytes(blake2b(text, digest_size=6).digest()) + 1)


def expand_orders(codes: FloatArray) -> Mapping[str, FloatArray]:
    """Return a column of ones and zeros for each of the most frequent orders; code 0 means none."""
    import numpy as np

    orders, counts = np.unique(codes[codes != 0], return_counts=True)
    commonest = orders[np.lexsort([orders, -counts])][: len(MOST_COMMON)]
    columns = dict.fromkeys(MOST_COMMON, np.zeros(len(codes)))
    for name, order in zip(MOST_COMMON, commonest, strict=False):
        columns[name] = (codes == order).astype(np.float64)
    return columns


_TITLE = "VidHal: Benchmarking Temporal Hallucinations in Vision LLMs"


def _paper(where: str) -> Paper:
    return Paper(
        title=_TITLE, authors="Choong et al.", year=2024, link="arXiv:2411.16771", where=where
    )


@lru_cache(maxsize=1 << 14)
def ndcg_of(ranks: tuple[int, ...]) -> float:
    """Return the NDCG of an order of all captions (formulas 2 to 6 of the paper).

    Relevance is ``M + 1 - rank``. The discounted sum is scaled so that the right order has 1 and
    its reverse 0. Formula 6 prints ``M - j``, but the reverse order needs ``M + 1 - j``.

    Args:
        ranks: The rank of each caption, in the order that the model gave; a permutation of 1 … M,
            with M at least 2.
    """
    # The discounted sum alone is above 0 for every order, even for the reverse one.
    best = list(range(1, len(ranks) + 1))
    top, bottom = _dcg(best), _dcg(best[::-1])
    return (_dcg(ranks) - bottom) / (top - bottom)


def _dcg(ranks: Sequence[int]) -> float:
    """Return formula 3, with logarithms to base 2; the base cancels out in the quotient."""
    size = len(ranks)
    return sum((size + 1 - rank) / math.log2(place + 2) for place, rank in enumerate(ranks))


@dataclass(frozen=True, slots=True, kw_only=True)
class VidhalMcqaMetric(Metric):
    """VidHal's multiple choice (Choong et al., VidHal, 2024, formula 1).

    ``accuracy`` = videos whose most faithful caption was chosen / videos.

    ``published`` follows the released evaluation: the answer is right if it *is* the letter, or if
    it contains the right caption in lower case, without full stops at its ends. The script does not
    convert the answer to lower case, so a caption copied with its capital letter counts as wrong;
    so does ``(B)``. No answer is unparsed.
    ``corrected`` uses the shared parser of choices; unparsed answers are unscored.

    Attributes:
        variant: ``published`` or ``corrected``.
    """

    name: ClassVar[Literal["vidhal-mcqa"]] = "vidhal-mcqa"
    summary: ClassVar[str] = "Choosing the caption that fits a video best."
    papers: ClassVar[tuple[Paper, ...]] = (_paper("formula 1"),)
    variants: ClassVar[tuple[VariantDefinition, ...]] = (
        VariantDefinition(
            name="published",
            meaning="Reproduces the released script: the answer is the letter, or has the caption.",
        ),
        VariantDefinition(
            name="corrected",
            meaning="Parses letters and captions however they are written; others are unscored.",
        ),
    )
    unit: ClassVar[Literal["videos"]] = "videos"
    columns: ClassVar[tuple[Column, ...]] = (Column(name="right", meaning="right choices"),)
    score_definitions: ClassVar[tuple[ScoreDefinition, ...]] = (
        share(
            "accuracy",
            "videos whose most faithful caption was chosen / videos",
            "right",
            "videos",
            count="",
        ),
    )

    def score_answer(
        self, response: str, captions: Sequence[str], display: Mapping[str, int]
    ) -> ScoredItem[AnswerEvidence]:
        """Return the statistics of one answer.

        Args:
            response: What the model wrote.
            captions: By rank, the most faithful first; may be empty if answers are letters.
            display: Letter -> rank.
        """
        label = next(letter for letter, rank in display.items() if rank == 1)
        if self.variant == "published":
            right = response == label
            if not right and captions:
                right = captions[0].lower().strip(".") in response
            answer: str | None = label if right else response if response in display else None
            return _choice(answer, label, right=right, how="published")
        options = {
            letter: captions[rank - 1] if captions else ""
            for letter, rank in sorted(display.items())
        }
        reading = read_choice(response, options)
        return _choice(
            reading.choice,
            label,
            right=reading.choice == label,
            how=reading.how,
            readable=reading.choice is not None,
        )

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:  # noqa: ARG002
        """Return a right answer at best and a wrong one at worst."""
        return {"right": float(best)}


@lru_cache(maxsize=1 << 12)
def _choice(
    answer: str | None, label: str, *, right: bool, how: str, readable: bool = True
) -> ScoredItem[AnswerEvidence]:
    return ScoredItem(
        statistics=(int(right),),
        scores={"accuracy": float(right)} if readable else {},
        evidence=AnswerEvidence(answer=answer, label=label, correct=right, how=how),
        readable=readable,
    )


def _commonest(sums: Sums) -> FloatArray:
    import numpy as np

    most = np.max(np.stack([sums[name] for name in MOST_COMMON]), axis=0)
    out = np.full(most.shape, np.nan)
    np.divide(most, sums["videos"], out=out, where=sums["videos"] != 0)
    return out


_PAIRS = ((2, 1), (3, 1), (3, 2))


def _misaligned(high: int, low: int) -> ScoreDefinition:
    name, below = f"hm_{high}_{low}", f"compared_{high}_{low}"
    return share(
        name,
        f"orders with caption {high} before {low}, which is better / orders",
        name,
        below,
        direction="lower",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class VidhalOrderingMetric(Metric):
    """VidHal's caption ordering (sections 4.2 and 5.4 of the paper).

    * ``ndcg`` (formulas 2 to 6): the mean over videos; an order that is partial, repeats a letter
      or has a letter that was not shown scores 0
    * ``invalid_response_rate``: the share of such orders
    * ``regurgitation_rate``: the share of videos whose order of letters is the most frequent one,
      over all valid orders
    * ``hm_j_k`` (formula 8): the share of videos where caption j, which is worse, comes before k

    ``published`` parses letters as the released evaluation does. An invalid order counts in the
    denominator of ``hm_j_k``, as in formula 8, so that invalid orders look aligned.
    ``corrected`` parses orders however they are written; ``hm_j_k`` is over videos with a valid
    order.

    Differences from the released evaluation: without a display order it draws a random one; here
    that is an error. It scores orders that repeat a letter, and stops at letters that were not
    shown; here both are invalid.

    Attributes:
        variant: ``published`` or ``corrected``.
    """

    name: ClassVar[Literal["vidhal-ordering"]] = "vidhal-ordering"
    summary: ClassVar[str] = "Ordering captions of a video by faithfulness."
    papers: ClassVar[tuple[Paper, ...]] = (_paper("formulas 2 to 6 and 8, section 5.4"),)
    variants: ClassVar[tuple[VariantDefinition, ...]] = (
        VariantDefinition(
            name="published",
            meaning="Reproduces the released script: shown letters, separated by commas.",
        ),
        VariantDefinition(
            name="corrected",
            meaning="Parses orders however they are written; hm_j_k is over valid orders.",
        ),
    )
    unit: ClassVar[Literal["videos"]] = "videos"
    # Columns of the most frequent orders are made from whole tables, so rows must stay as they are.
    folds: ClassVar[bool] = False
    columns: ClassVar[tuple[Column, ...]] = (
        Column(name="ndcg", meaning="NDCG of the order", integral=False),
        Column(name="invalid", meaning="orders that do not name every caption once"),
        *(
            Column(name=f"{kind}_{high}_{low}", meaning=meaning.format(high, low))
            for high, low in _PAIRS
            for kind, meaning in (
                ("hm", "caption {} comes before {}, which is better"),
                ("compared", "orders where captions {} and {} are compared"),
            )
        ),
        Column(name="order", meaning="order of letters, as a number", integral=False, label=True),
    )
    score_definitions: ClassVar[tuple[ScoreDefinition, ...]] = (
        share(
            "ndcg",
            "NDCG of the order, mean over videos",
            "ndcg",
            "videos",
            count="",
        ),
        share(
            "invalid_response_rate",
            "orders that do not name every caption once / videos",
            "invalid",
            "videos",
            direction="lower",
            count="",
        ),
        ScoreDefinition(
            name="regurgitation_rate",
            meaning="videos with the most frequent order of letters / videos",
            direction="lower",
            columns=(*MOST_COMMON, "videos"),
            value=_commonest,
            bounded=False,
            largest_of=tuple(ratio(name, "videos") for name in MOST_COMMON),
        ),
        *(_misaligned(high, low) for high, low in _PAIRS),
    )

    def score_answer(
        self, response: str, captions: Sequence[str], display: Mapping[str, int]
    ) -> ScoredItem[OrderEvidence]:
        """Return the statistics of one order.

        Args:
            response: What the model wrote; a list is joined by ``, `` or line ends.
            captions: By rank, the most faithful first; may be empty if orders consist of letters.
            display: Letter -> rank, a permutation of 1 … M.
        """
        # Letters alone need no captions, so that their outcome is cached for all videos at once.
        if len(response) <= _SHORT:
            scored = _by_letters(response, tuple(display.items()), self.variant)
            if scored is not None:
                return scored
        # Sorted, so that the file's order does not decide between letters with equal captions.
        shown = tuple(sorted(display.items()))
        options = {letter: captions[rank - 1] if captions else "" for letter, rank in shown}
        return _ordered(_PARSERS[self.variant](response, options), shown, self.variant)

    def total(
        self, responses: Iterable[str], displays: Iterable[Mapping[str, int]]
    ) -> dict[str, float]:
        """Return the sums of the columns over many orders, without a result for each.

        Each distinct pair of answer and display order is scored once.

        Args:
            responses: What the model wrote.
            displays: Letter -> rank, one for each answer.

        Returns:
            ``videos`` and each summed column; ``commonest`` is the count of the most frequent
            order.
        """
        pairs = _counted(responses, list(displays))
        rows = [
            (number, self.score_answer(response, (), dict(display)).statistics)
            for (response, display), number in pairs.items()
        ]
        names = [column.name for column in self.columns if not column.label]
        totals = {
            name: math.fsum(number * row[place] for number, row in rows)
            for place, name in enumerate(names)
        }
        orders: Counter[float] = Counter()
        for number, row in rows:
            orders[row[-1]] += number
        orders.pop(0.0, None)
        commonest = max(orders.values(), default=0)
        return {"videos": float(pairs.total()), **totals, "commonest": float(commonest)}

    def expand(self, items: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """Return columns with ones for items with one of the most frequent orders."""
        return expand_orders(items["order"])

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:  # noqa: ARG002
        """Return the right order at best; at worst its reverse, or an invalid order."""
        bad = float(not best)
        pairs = {
            f"{kind}_{high}_{low}": bad if kind == "hm" else 1.0
            for high, low in _PAIRS
            for kind in ("hm", "compared")
        }
        return {
            "ndcg": float(best),
            "invalid": bad,
            "order": 0.0,
            **pairs,
            **dict.fromkeys(MOST_COMMON, 0.0),
        }


def _counted(
    responses: Iterable[str], shown: Sequence[Mapping[str, int]]
) -> Counter[tuple[str, tuple[tuple[str, int], ...]]]:
    """Return the count of each pair of answer and display order."""
    letters = sorted(shown[0]) if shown else []
    alike = len(letters) > 1 and set(map(len, shown)) == {len(letters)}
    try:
        # If all have the same letters, the ranks identify a display order.
        ranks = list(map(itemgetter(*letters), shown)) if alike else None
    except KeyError:
        ranks = None
    if ranks is None:
        return Counter(zip(responses, map(tuple, map(_ITEMS, shown)), strict=True))
    counts = Counter(zip(responses, ranks, strict=True))
    return Counter(
        {
            (response, tuple(zip(letters, row, strict=True))): number
            for (response, row), number in counts.items()
        }
    )


_ITEMS: Callable[[Mapping[str, int]], Iterable[tuple[str, int]]] = methodcaller("items")
_SHORT = 120
_PARSERS = {"published": read_order_published, "corrected": read_order}
_READ_BY_LETTERS = frozenset({"", "partial", "repeated"})


@lru_cache(maxsize=1 << 16)
def _by_letters(
    response: str, shown: tuple[tuple[str, int], ...], variant: str
) -> ScoredItem[OrderEvidence] | None:
    """Return the outcome of an answer of shown letters only; None if captions are needed."""
    reading = _PARSERS[variant](response, dict.fromkeys((letter for letter, _ in shown), ""))
    letters = response.replace(",", " ").split()
    if reading.valid or (
        reading.problem in _READ_BY_LETTERS and len(letters) == len(reading.letters)
    ):
        return _ordered(reading, shown, variant)
    return None


def _ordered(
    reading: ParsedOrder, shown: tuple[tuple[str, int], ...], variant: str
) -> ScoredItem[OrderEvidence]:
    display = dict(shown)
    ranks = tuple(display.get(letter, 0) for letter in reading.letters)
    value = ndcg_of(ranks) if reading.valid else 0.0
    pairs = _pairs(ranks if reading.valid else None, len(shown), variant)
    return ScoredItem(
        statistics=(
            value,
            int(not reading.valid),
            *(number for pair in pairs for number in pair),
            order_code(reading.letters) if reading.valid else 0.0,
        ),
        scores={"ndcg": value, "invalid_response_rate": float(not reading.valid)},
        evidence=OrderEvidence(order=reading.letters, ranks=ranks, problem=reading.problem),
    )


def _pairs(ranks: tuple[int, ...] | None, size: int, variant: str) -> list[tuple[int, int]]:
    """Return for each pair of ranks whether the worse one comes first, and whether it counts."""
    out = []
    for high, low in _PAIRS:
        # In ``published``, an invalid order counts as asked and never as wrong, as in formula 8.
        asked = size >= high and (ranks is not None or variant == "published")
        wrong = ranks is not None and size >= high and ranks.index(high) < ranks.index(low)
        out.append((int(wrong), int(asked)))
    return out

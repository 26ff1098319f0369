"""Orders of options, such as ``B, A, C``: parsers, ranks, NDCG, and questions about pairs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from .answer_scores import ReadAnswer
from .answer_text import (
    MAX_KEPT_CHARS,
    NEGATIONS,
    after_correction,
    folded,
    number_of,
    plain,
    says_it_is_unsure,
    words_of,
)
from .closed_questions import Answer, AnswerParser, Parsed


class ParsedOrder(NamedTuple):
    """The parsed order of an answer."""

    letters: tuple[str, ...]
    """The parsed options in order; only a part if the order is invalid."""
    problem: str
    """Why it is not an order of all options: ``empty``, ``partial``, ``repeated``, ``unknown``; or
    empty."""

    @property
    def valid(self) -> bool:
        """Return whether the order names every option once."""
        return not self.problem


def read_order_published(response: str, options: Mapping[str, str]) -> ParsedOrder:
    """Parse an order as VidHal's script does: shown letters, separated by commas.

    The released evaluation gives 0 to orders that are too short. It stops with an error at a part
    that is not a letter, and scores an order that repeats one as partly right. Here both are
    invalid, as in the paper's text. It also stops at captions in place of letters; here they are
    parsed.

    Args:
        response: What the model wrote; the items of a list joined by ``, `` or by line ends.
        options: Letter -> caption.
    """
    parts = [part.strip() for part in _parts(response, ",")]
    if not any(parts):
        return ParsedOrder((), "empty")
    if all(part in options for part in parts):
        return _judged(tuple(parts), options)
    by_text = _by_text(response, options)
    if by_text is not None:
        return _judged(by_text, options)
    # Of a sentence, such as "The order is B, A, C.", single letters are not what was meant.
    are_letters = all(len(part) < 2 for part in parts)
    return ParsedOrder(
        tuple(part for part in parts if part in options and are_letters),
        "partial" if len(parts) < len(options) else "unknown",
    )


def read_order(response: str, options: Mapping[str, str]) -> ParsedOrder:
    """Parse an order however it is written.

    Letters in either case, separated by anything (``B > A > C``, ``1. B 2. A 3. C``, ``BAC``), also
    after words such as ``the order is``; lists; captions in order.

    Args:
        response: What the model wrote.
        options: Letter -> caption.
    """
    frozen = tuple(options.items())
    if len(response) > MAX_KEPT_CHARS:
        return _read(response, frozen)
    return _kept(response, frozen)


_SEPARATED = re.compile(r"(?<![\w'])([A-Za-z])(?![\w'])")
_RUN_TOGETHER = re.compile(r"(?<![\w'])[A-Z]{2,26}(?![\w'])")
# A hostile text may have any number of them.
_MOST_DRAFTS = 8
_LEAD_IN = re.compile(r"\b(?:order|ranking|answer|sequence)\b[^:\n]*?(?::|\bis\b)", re.IGNORECASE)


def _read(response: str, options: tuple[tuple[str, str], ...]) -> ParsedOrder:
    table = dict(options)
    text = plain(response)
    if not text:
        return ParsedOrder((), "empty")
    # Captions first, and no lead-in, because their words may look like letters ("a").
    by_text = _judged(_by_text(response, table) or (), table)
    if by_text.valid or (ranked := _by_rank(text, table)).valid:
        return by_text if by_text.valid else ranked
    # "Actually" corrects an order as "wait" does.
    for after in (after_correction(text), text.rpartition("Actually")[2]):
        if after != text and (order := _order_in(after, table)).valid:
            return order
    # The last one that an order follows: drafts may come before it.
    begun = [found.end() for found in _LEAD_IN.finditer(text)]
    orders = [_order_in(text[at:], table) for at in (*begun[:1], *begun[1:][-_MOST_DRAFTS:])]
    orders = orders or [_order_in(text, table)]
    # Captions of some options may stand beside the letters of all.
    first = by_text if by_text.letters else orders[0]
    return next((order for order in reversed(orders) if order.valid), first)


# "A: 2, B: 1, C: 3" says the rank of each option; "A: 2 dogs" repeats a caption.
_RANKED = re.compile(
    r"(?<![\w'])([A-Z])\)?\s{0,5}(?:[:=→]|->|is)\s{0,5}(?:rank(?:ed)?\s{0,5}|#)?([1-9]\d?)"
    r"(?:st|nd|rd|th)?(?=\s{0,5}(?:[,;.)\n]|\Z))"
)


def _by_rank(text: str, options: Mapping[str, str]) -> ParsedOrder:
    """Return the order of a text that gives each option its rank; invalid if it does not."""
    ranks = [(int(rank), letter) for letter, rank in _RANKED.findall(text)]
    places = sorted(rank for rank, _ in ranks)
    if places != list(range(1, len(options) + 1)):
        return ParsedOrder((), "unknown")
    return _judged(tuple(letter for _, letter in sorted(ranks)), options)


# An explanation may follow an order, on the next line or in the next sentence.
_FIRST_PARTS = (re.compile(r"\s*[^\n]+"), re.compile(r"\s*[^.\n]+"))


def _order_in(text: str, options: Mapping[str, str]) -> ParsedOrder:
    """Return the order of a text, or of its first line or sentence if that names every option."""
    firsts = (found[0] for part in _FIRST_PARTS if (found := part.match(text)))
    whole = _judged(tuple(_letters(text, options)), options)
    if whole.valid:
        return whole
    orders = (_judged(tuple(_letters(first, options)), options) for first in firsts)
    return next((order for order in orders if order.valid), whole)


_kept = lru_cache(maxsize=1 << 15)(_read)


def _letters(text: str, options: Mapping[str, str]) -> list[str]:
    known = {letter.upper(): letter for letter in options}
    joined = _RUN_TOGETHER.findall(text)
    # "BAC" is an order, and "CNN" is a word in capitals.
    if len(joined) == 1 and set(joined[0]) <= set(known):
        return [known[letter] for letter in joined[0]]
    found = _SEPARATED.findall(text)
    if not _only_letters(text):
        # In running text a lower-case letter, or an "A" that isn't followed by a mark, is a word.
        found = [x for x in found if x.isupper() and (x != "I" or x in known)]
    return [known.get(letter.upper(), letter.upper()) for letter in found]


def _only_letters(text: str) -> bool:
    return all(len(word) == 1 or word.isdigit() for word in re.findall(r"\w+", text))


def _parts(response: str, mark: str) -> list[str]:
    text = response.strip()
    if text.startswith("["):
        try:
            loaded = json.loads(text)
        # A text of many brackets is nested too deep for the parser.
        except (ValueError, RecursionError):
            loaded = None
        if isinstance(loaded, list) and all(isinstance(part, str) for part in loaded):
            return loaded
    return response.split(mark)


def _by_text(response: str, options: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the order of the captions in the answer; None if it contains none."""
    texts = {folded(caption): letter for letter, caption in options.items() if folded(caption)}
    lines = _parts(response, "\n")
    named = [texts[line] for line in map(folded, lines) if line in texts]
    if len(named) > 1 and len(named) == sum(1 for line in lines if line.strip()):
        return tuple(named)
    padded = f" {folded(response)} "
    places = sorted(
        (padded.find(f" {text} "), letter)
        for text, letter in texts.items()
        if f" {text} " in padded
    )
    return tuple(letter for _, letter in places) or None


def _judged(letters: tuple[str, ...], options: Mapping[str, str]) -> ParsedOrder:
    if not letters:
        return ParsedOrder((), "unknown")
    if any(letter not in options for letter in letters):
        return ParsedOrder(letters, "unknown")
    if len(set(letters)) < len(letters):
        return ParsedOrder(letters, "repeated")
    if len(letters) < len(options):
        return ParsedOrder(letters, "partial")
    return ParsedOrder(letters, "")


def ordered_by(variant: str, read: Callable[[str, Mapping[str, str]], ParsedOrder]) -> AnswerParser:
    """Return the parser of answers that are right if they name all letters in the label's order.

    Args:
        variant: Name of the parser, before what is wrong with an order.
        read: Returns the order of a response.
    """

    @lru_cache(maxsize=1 << 16)
    def by_letters(response: str, letters: tuple[str, ...]) -> ParsedOrder:
        return read(response, dict.fromkeys(letters, ""))

    def parse(answer: Answer) -> Parsed:
        said = answer.response or ""
        # Sorted, so that the file's order does not decide between letters with equal captions.
        letters = tuple(sorted(answer.options or answer.label.split(", ")))
        # Most answers are letters alone, whose outcome is cached for all videos at once.
        reading = by_letters(said, letters) if len(said) <= _SHORT else None
        if reading is None or not (reading.valid or _is_of_letters(said, reading)):
            reading = read(said, {letter: answer.options.get(letter, "") for letter in letters})
        order = ", ".join(reading.letters)
        how = f"{variant}: {reading.problem}" if reading.problem else variant
        return Parsed(order or None, reading.valid and order == answer.label, how)

    return parse


# Orders of letters alone are shorter, however their letters are separated.
_SHORT = 120
_READ_BY_LETTERS = frozenset({"", "partial", "repeated"})


def _is_of_letters(response: str, reading: ParsedOrder) -> bool:
    """Return whether an invalid answer is shown letters alone, so that captions do not matter."""
    count = len(response.replace(",", " ").split())
    return reading.problem in _READ_BY_LETTERS and count == len(reading.letters)


_OF_TWO_NAMED = re.compile(r"\baction\s+([ab])\b")
_OF_TWO_LISTED = re.compile(r"(?<!\w)([ab])[.):](?!\w)")
# A letter before a verb, a word of order or the end of a clause is not the article.
_OF_TWO_BARE = re.compile(
    r"(?<!\w)([ab])(?=[,;.\"'\])]|$|\s+(?:happens|occurs|comes|takes|is|was|before|after|then|and|precedes|"
    r"follows)\b)"
)
# "A follows B" turns the order, and "A, then follows B" keeps it.
_TURNING = re.compile(r"\bafter\b|\bpreceded\b|(?<!then )\b(?:follows|succeeds)\b")
_KEEPING = re.compile(r"\bbefore\b|\bthen\b|\bprecedes\b|\bfollowed\b")


def order_of_two(text: str) -> str | None:
    """Return the order of two events, ``AB`` or ``BA``, however it is written.

    The first two different names count, such as ``action A``, ``B)`` or a letter alone, and the
    whole words between and before them, such as before, after and then.
    """
    text = plain(text)
    # The last one that an order follows: what comes before may discuss the actions.
    for found in reversed([*_LEAD_IN.finditer(text)][-_MOST_DRAFTS:]):
        if order := _order_of_two(text[found.end() :]):
            return order
    return _order_of_two(text)


# "BA" as a word in capitals, also beside letters of scripts without spaces.
_OF_TWO_JOINED = re.compile(r"(?<![A-Za-z])(AB|BA)(?![A-Za-z])")
_BRACKETS = re.compile(r"\((?!\s*(?:action\s+)?[ab]\s*\))[^)]*\)")
# In one clause with the name of an action; a colon begins what the action is.
_OF_TWO_PLACED = re.compile(r"[^.;:\n]*?\b(?:(first)|second|last|later)\b")


def _order_of_two(text: str) -> str | None:
    joined = set(_OF_TWO_JOINED.findall(text))
    if len(joined) == 1 and not says_it_is_unsure(text):
        return str(joined.pop())
    # Brackets hold what an action is, with verbs and words of order of its own, or its name.
    text = _BRACKETS.sub(" ", text.lower())
    letters = re.sub(r"\baction\b|\band\b|\bthen\b|[\W_]", "", text)
    if letters in ("ab", "ba"):
        return letters.upper()
    if says_it_is_unsure(text) or "not clear" in text or "no clear" in text:
        return None
    found = (
        pairwise(marks.finditer(text)) for marks in (_OF_TWO_NAMED, _OF_TWO_LISTED, _OF_TWO_BARE)
    )
    changes = ([(x, y) for x, y in each if x[1] != y[1]] for each in found)
    pairs: list[tuple[re.Match[str], re.Match[str]]] = next(filter(None, changes), [])
    for one, other in pairs:
        between, lead = text[one.end() : other.start()], text[: one.start()].rstrip()
        # "Before A happens, B happens" names the later one first.
        if _TURNING.search(between) or (lead.endswith("before") and not _KEEPING.search(between)):
            return (other[1] + one[1]).upper()
        if _KEEPING.search(between) or lead.endswith("after"):
            return (one[1] + other[1]).upper()
    if pairs:
        return (pairs[0][0][1] + pairs[0][1][1]).upper()
    return _of_one_named(text)


def _of_one_named(text: str) -> str | None:
    """Return the order of a text such as "Action B happens first", which names one action."""
    for marks in (_OF_TWO_NAMED, _OF_TWO_BARE):
        found = list(marks.finditer(text))
        if len({each[1] for each in found}) != 1:
            continue
        placed = _OF_TWO_PLACED.match(text, found[0].end())
        if placed is None or NEGATIONS.intersection(words_of(text)):
            return None
        # "Second" and "last" of two actions are the same place.
        return "AB" if (found[0][1] == "a") is (placed[1] is not None) else "BA"
    return None


@lru_cache(maxsize=1 << 16)
def _ranks(order: str | None, label: str) -> tuple[int, ...] | None:
    """Return the rank of each letter of an order; None if it is not an order of all letters."""
    right = label.split(", ")
    letters = (order or "").split(", ")
    if sorted(letters) != sorted(right):
        return None
    return tuple(right.index(letter) + 1 for letter in letters)


def ranks_in(answer: ReadAnswer) -> tuple[int, ...] | None:
    """Return the rank of each letter of a parsed order, or None if it is invalid."""
    # An invalid order may name every letter, and another one that was not shown.
    return None if ": " in answer.how else _ranks(answer.value, answer.label)


@lru_cache(maxsize=1 << 14)
def ndcg_of(ranks: tuple[int, ...]) -> float:
    """Return the NDCG of an order of all captions (VidHal, formulas 2 to 6).

    Relevance is ``M + 1 - rank``. The discounted sum is scaled so that the right order has 1 and
    its reverse 0. Formula 6 prints ``M - j``, but the reverse order needs ``M + 1 - j``.

    Args:
        ranks: The rank of each caption, in the order that the model gave; a permutation of 1 … M.
            A single caption is in order.
    """
    # The discounted sum alone is above 0 for every order, even for the reverse one.
    best = list(range(1, len(ranks) + 1))
    top, bottom = _dcg(best), _dcg(best[::-1])
    return (_dcg(ranks) - bottom) / (top - bottom) if len(best) > 1 else 1.0


def _dcg(ranks: Sequence[int]) -> float:
    """Return formula 3, with logarithms to base 2; the base cancels out in the quotient."""
    size = len(ranks)
    return sum((size + 1 - rank) / math.log2(place + 2) for place, rank in enumerate(ranks))


_EXACT_LETTERS = 11  # 27 ** 11 < 2 ** 53, so that a float holds the code exactly.


def order_code(letters: Sequence[str]) -> float:
    """Return a number above 0: exact for up to eleven letters, otherwise a 48-bit hash."""
    if len(letters) <= _EXACT_LETTERS and all(len(x) == 1 and "A" <= x <= "Z" for x in letters):
        code = 0
        for letter in letters:
            code = code * 27 + ord(letter) - 64
        return float(code)
    return float(number_of(*letters))


class PairQuestion(NamedTuple):
    """Two captions to choose between, in display order."""

    first: str
    """Letter of the first caption."""
    second: str
    """Letter of the second caption."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairAnswer:
    """A model's answer to a question."""

    question: PairQuestion
    """The pair."""
    chosen: str
    """Letter of the chosen caption."""


class RelativeOrdering:
    """Finds an order with as few questions about pairs as possible.

    Each caption is first compared with its neighbour in display order, and placed on the side that
    the answer says. It is then compared with the captions on that side, the nearest first, until
    it does not pass one. No pair is asked whose order is known, so that cycles cannot arise. For
    three captions this is the paper's decision tree: two questions, and a third if they leave two
    orders open.

    For an unparsed answer, the released inference looks at the annotation and assumes the wrong
    choice. Here :meth:`answer` accepts parsed answers only; the caller decides whether to stop or
    to assume the wrong choice.

    Args:
        letters: Letters of the captions, in display order.

    Raises:
        ValueError: There are fewer than two letters, or a duplicate.
    """

    def __init__(self, letters: Sequence[str]) -> None:
        if len(letters) < 2 or len(set(letters)) < len(letters):
            raise ValueError(f"give at least two different letters; got {list(letters)}")
        self._letters = tuple(letters)
        self._answers: list[PairAnswer] = []
        self._steps = self._ask()
        self._question: PairQuestion | None = next(self._steps)
        self._order: tuple[str, ...] | None = None

    @property
    def question(self) -> PairQuestion | None:
        """The next pair; None once the order is known."""
        return self._question

    @property
    def order(self) -> tuple[str, ...] | None:
        """The order, the most faithful caption first; None while a question is open."""
        return self._order

    @property
    def answers(self) -> tuple[PairAnswer, ...]:
        """The questions and answers so far."""
        return tuple(self._answers)

    def answer(self, chosen: str) -> None:
        """Add the answer to :attr:`question`.

        Args:
            chosen: Letter of the chosen caption.

        Raises:
            ValueError: No question is open, or the letter is not one of the pair.
        """
        question = self._question
        if question is None:
            raise ValueError("the order is known, so no question is open; read it from .order")
        if chosen not in question:
            raise ValueError(f"{chosen!r} is neither {question.first!r} nor {question.second!r}")
        self._answers.append(PairAnswer(question=question, chosen=chosen))
        try:
            self._question = self._steps.send(chosen)
        except StopIteration as stop:
            # The order needs no further answer.
            self._question, self._order = None, tuple(stop.value)

    def _ask(self) -> Generator[PairQuestion, str, list[str]]:
        # Insertion sort: a caption passes its neighbours as long as the answers prefer it.
        order = [self._letters[0]]
        for neighbour, letter in zip(self._letters, self._letters[1:], strict=False):
            place = order.index(neighbour)
            before = (yield self.pair_of(neighbour, letter)) == letter
            if before:
                while place > 0 and (yield self.pair_of(order[place - 1], letter)) == letter:
                    place -= 1
            else:
                place += 1
                while place < len(order) and (yield self.pair_of(order[place], letter)) != letter:
                    place += 1
            order.insert(place, letter)
        return order

    def pair_of(self, one: str, other: str) -> PairQuestion:
        """Return the question about two letters, in display order."""
        first, second = sorted((one, other), key=self._letters.index)
        return PairQuestion(first, second)


def order_of_pairs(letters: Sequence[str], answers: Iterable[PairAnswer]) -> tuple[str, ...] | None:
    """Return the order that answers about pairs lead to (section 9.2, Figure 34).

    Args:
        letters: Letters of the captions, in display order.
        answers: The answers; of two about a pair the first counts.

    Returns:
        The order, the most faithful caption first; None if an answer is missing.
    """
    chosen: dict[frozenset[str], str] = {}
    for answer in answers:
        chosen.setdefault(frozenset(answer.question), answer.chosen)
    plan = RelativeOrdering(letters)
    while plan.question is not None:
        choice = chosen.get(frozenset(plan.question))
        if choice is None:
            return None
        plan.answer(choice)
    return plan.order

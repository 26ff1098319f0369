"""Lines of captions: how a caption is split, where its evidence is, and what its errors cost.

The rules are those of the released ``line_by_line_utils.py``. It compares texts with ``difflib``,
which is slow. Here the same numbers are found by searching for substrings, which takes a hundredth
of the time.

Unsupported lines, misplaced actions, and actions out of order have a cost.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import accumulate, repeat
from math import inf
from typing import NamedTuple

# As in the script, a sentence ends where a capital letter follows: "approx. 3 m" is one.
_SENTENCE_END = re.compile(r"([.!?])\s+([A-Z])")
_AFTER_SEMICOLON = re.compile(r";\s+")
_EMPTY_LINES = re.compile(r"\n\s*\n")
_LIST_MARKS = (re.compile(r"(?m)^\s*[-•*]\s+"), re.compile(r"(?m)^\s*\d+[.)]\s+"))
_LEAST_CHARS = 20
"""A shorter line is joined with the next one."""


def lines_of(caption: str) -> list[str]:
    """Return the lines of a caption: its sentences, without list marks."""
    text = caption.replace("\r\n", "\n").replace("\r", "\n")
    text = _SENTENCE_END.sub(r"\1\n\2", text)
    text = _EMPTY_LINES.sub("\n", _AFTER_SEMICOLON.sub(";\n", text))
    for marks in _LIST_MARKS:
        text = marks.sub("\n", text)
    lines: list[str] = []
    for line in filter(None, map(str.strip, text.split("\n"))):
        if lines and len(lines[-1]) < _LEAST_CHARS:
            lines[-1] += f" {line}"
        else:
            lines.append(line)
    return lines


_DESCRIPTION = r"here(?:'s| is) an? (?:detailed |brief |quick )?description of the video"
# Phrases that make a heading where they are most of a line. Each is searched for by itself, since
# its share of the line counts. The line has no colons by then, so that the mark of a line's end
# after bold text is the end itself.
_HEADINGS = tuple(
    re.compile(phrase, re.IGNORECASE)
    for phrase in (
        _DESCRIPTION,
        r"overall (?:impression|summary|description|analysis)",
        "visual details",
        "overall effect",
        "in summary",
        "to summarize",
        r"\*\*.*?\*\*\s*$",
        f"{_DESCRIPTION} based on the images provided",
        "here is a detailed description of the images you provided",
        "here's a detailed description of the video, capturing its key elements",
        "here's a detailed description of the video, based on the images provided",
    )
)
# One of these words is in each phrase.
_HINTS = ("descri", "overall", "visual", "summar", "**")
_LEAST_WORDS = 3
_MOST_OF_A_LINE = 0.7


def is_heading(line: str) -> bool:
    """Return whether a line has fewer than three words, or is mostly a heading's phrase."""
    if len(line.replace("*", "").split()) < _LEAST_WORDS:
        return True
    low = re.sub("[:;]", "", line.lower())
    if not any(hint in low for hint in _HINTS):
        return False
    found = (phrase.search(low) for phrase in _HEADINGS)
    length = len(line.strip())
    return any(m is not None and (m.end() - m.start()) / length > _MOST_OF_A_LINE for m in found)


_MARKS = re.compile(r"[^\w\s']")
# The script's weights. Characters are counted and the rest are shares: the longest common
# substring nearly always decides, and one common letter already reaches the least score.
_PER_CHAR, _PER_WORD, _PER_RATIO = 0.4, 0.3, 0.3
_LEAST_SCORE = 0.3
# difflib leaves out the popular characters of texts from this length on (its ``autojunk``).
_POPULAR_FROM = 200


def plain(text: str) -> str:
    """Return a text in lower case, with single blanks for all marks but apostrophes."""
    return " ".join(_MARKS.sub(" ", text).lower().split())


class _Similarity(NamedTuple):
    """How similar a line is to evidence."""

    chars: int
    """Length of the longest common substring."""
    words: float
    """Share of the evidence's words that the line has."""
    ratio: float
    """The ratio of difflib, or an upper limit of it."""

    @property
    def score(self) -> float:
        """The score by which lines are chosen."""
        return self.chars * _PER_CHAR + self.words * _PER_WORD + self.ratio * _PER_RATIO


class SourceLines:
    """The lines of a source caption, in which evidence is looked up.

    Args:
        caption: The caption.
    """

    def __init__(self, caption: str) -> None:
        self.lines = lines_of(caption)

    @cached_property
    def _first(self) -> dict[str, int]:
        """Plain line -> its first place; equal lines are equally similar to everything."""
        first: dict[str, int] = {}
        for place, line in enumerate(map(plain, self.lines)):
            if line:
                first.setdefault(line, place)
        return first

    @cached_property
    def _short(self) -> str:
        """All lines that difflib compares as a whole, apart by a mark that evidence lacks."""
        return "\n".join(line for line in self._first if len(line) < _POPULAR_FROM)

    def place_of(self, evidence: str, *, by_share: bool = False) -> int | None:
        """Return the place of the most similar line, the first of equals; None if none is.

        The released script adds 0.4 for every character of the longest common substring, so that
        one common letter is similar enough.

        Args:
            evidence: The evidence.
            by_share: Whether the substring counts by its share of the evidence instead, as the
                other two parts do, when the chosen line is accepted.
        """
        sought = plain(evidence)
        if not sought:
            return None
        line, found = self._most_similar(sought)
        if not by_share:
            return self._first[line] if found.score >= _LEAST_SCORE and found.score > 0 else None
        share = found.chars / len(sought)
        score = share * _PER_CHAR + found.words * _PER_WORD + _ratio(sought, line) * _PER_RATIO
        return self._first[line] if line and score >= _LEAST_SCORE else None

    def _most_similar(self, sought: str) -> tuple[str, _Similarity]:
        """Return the most similar line; an empty one if there is none.

        The ratio of a line without rivals is not needed, and is left at its lower limit of 0.
        """
        chars = self._longest(sought)
        most = max(chars.values(), default=0)
        # One character weighs 0.4, and the other two parts together weigh 0.6 at most.
        rivals = [line for line, size in chars.items() if size >= most - 1]
        words = set(sought.split())
        common = [len(words.intersection(line.split())) / len(words) for line in rivals]
        known = [
            (line, _Similarity(chars[line], share, 0.0))
            for line, share in zip(rivals, common, strict=True)
        ]
        if len(known) == 1 and most:
            return known[0]
        limits = [
            (each._replace(ratio=_most_ratio(sought, line)).score, line, each)
            for line, each in known
        ]
        best = "", _Similarity(0, 0.0, 0.0)
        # By their limits, so that most ratios are never made.
        for limit, line, each in sorted(limits, key=lambda entry: -entry[0]):
            if limit < best[1].score:
                break
            made = each._replace(ratio=_ratio(sought, line))
            if _is_better((line, made), best, self._first):
                best = line, made
        return best

    def _longest(self, sought: str) -> dict[str, int]:
        """Return each line with the size of its longest common substring, of the largest sizes.

        Of lines whose size is smaller than the largest one by two or more, some are left out.
        """
        # Only difflib knows the substring of lines of which it leaves out popular characters.
        sizes = {
            line: SequenceMatcher(None, sought, line).find_longest_match().size
            for line in self._first
            if len(line) >= _POPULAR_FROM
        }
        most = longest_common(sought, self._short)
        # No short line comes within one character of the longest, so none is a rival.
        if max(sizes.values(), default=0) > most + 1:
            return sizes
        short = self._short.split("\n") if self._short else []
        for size in (most, most - 1) if most > 1 else (most,):
            parts = {part for part in _windows(sought, size) if part in self._short}
            for line in short:
                if line not in sizes and any(part in line for part in parts):
                    sizes[line] = size
        return {**dict.fromkeys(short if most < 2 else (), 0), **sizes}


def _is_better(
    new: tuple[str, _Similarity], old: tuple[str, _Similarity], places: dict[str, int]
) -> bool:
    """Return whether a line is more similar than another, or as similar and earlier."""
    if new[1].score != old[1].score:
        return new[1].score > old[1].score
    return bool(old[0]) and places[new[0]] < places[old[0]]


def _windows(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(len(text) - size + 1))


def longest_common(first: str, second: str) -> int:
    """Return the length of the longest common substring."""
    if first in second:
        return len(first)
    best = start = 0
    while start + best < len(first):
        # Only a longer one is of interest, so that the length that is tried never falls.
        if first[start : start + best + 1] in second:
            best += 1
        else:
            start += 1
    return best


def _ratio(sought: str, line: str) -> float:
    """Return the ratio of difflib."""
    if len(line) >= _POPULAR_FROM:
        return SequenceMatcher(None, sought, line).ratio()
    return 2.0 * common_chars(sought, line) / (len(sought) + len(line))


def _most_ratio(sought: str, line: str) -> float:
    """Return an upper limit of the ratio: that of the characters in any order."""
    common = sum((Counter(sought) & Counter(line)).values())
    return 2.0 * common / (len(sought) + len(line))


def common_chars(first: str, second: str) -> int:
    """Return how many characters the matching blocks of difflib have.

    The longest common substring is the first block, the first one of equals in the first text and
    then in the second; the parts before and after it are compared likewise. Texts from 200
    characters on, of which difflib leaves out popular characters, have other blocks.
    """
    total = 0
    parts = [(0, len(first), 0, len(second))]
    while parts:
        start, end, low, high = parts.pop()
        size, at, there = 0, start, low
        place = start
        while place + size < end:
            found = second.find(first[place : place + size + 1], low, high)
            if found < 0:
                place += 1
            else:
                size, at, there = size + 1, place, found
        if size:
            total += size
            parts += [(start, at, low, there), (at + size, end, there + size, high)]
    return total


ORDER_PENALTY = 0.1
"""The cost of a pair of actions out of order; the script ignores its option for it."""
# 4,096 subsets are tried at most; each further action doubles their number.
_MOST_SEARCHED = 12


class Target(NamedTuple):
    """A line as its cost depends on it."""

    supported: bool
    """Whether the source caption entails it."""
    action: bool
    """Whether it is a dynamic action."""
    anywhere: bool
    """Whether it costs nothing at any place, once supported: a summary or a description."""
    place: int | None
    """The source line with its evidence; None without one."""

    @property
    def ordered(self) -> bool:
        """Whether its place counts for the order of the lines after it."""
        return self.supported and self.action


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """Lines with their places in the source caption."""

    cost: float
    """The cost of all lines."""
    most: float
    """What the cost is divided by."""
    actions: int
    """Number of supported actions."""
    path: tuple[int, ...]
    """The place of each line; -1 for one without a place."""
    costs: tuple[float, ...]
    """The cost of each line, penalties apart."""
    penalties: tuple[float, ...]
    """Its penalty for the actions before it that are placed after it."""

    @property
    def normalized(self) -> float:
        """The cost as a share of its limit; infinite or NaN if that is 0."""
        if self.most:
            return self.cost / self.most
        return inf if self.cost else float("nan")


class _Cell(NamedTuple):
    """The cheapest way to place the lines so far, with the last one at some source line."""

    cost: float
    before: int
    """The place of the line before the last one."""
    after: tuple[int, ...]
    """For each source line, how many actions so far are placed after it."""


def released_matching(targets: Sequence[Target], sources: int) -> Matching:
    """Return the places that the released dynamic programme finds, and their cost.

    Each cell keeps one path only, which later penalties depend on, so that the cost need not be the
    lowest one. Sums of 0.1 are not exact and can decide: they are added up as the script does.

    Args:
        targets: The lines.
        sources: Number of source lines, at least 1.
    """
    penalties = list(accumulate(repeat(ORDER_PENALTY, len(targets)), initial=0.0))
    cells = [_Cell(0.0, 0, (0,) * sources)] * sources
    steps: list[list[_Cell]] = []
    for target in targets:
        cells = _next(target, cells, penalties)
        steps.append(cells)
        if target.ordered:
            cells = [cell._replace(after=_placed(cell.after, at)) for at, cell in enumerate(cells)]
    last = min(range(sources), key=lambda at: steps[-1][at].cost)
    path = [last]
    for cells in reversed(steps[1:]):
        path.append(cells[path[-1]].before)
    path.reverse()
    actions = sum(target.ordered for target in targets)
    return Matching(
        cost=steps[-1][last].cost,
        most=(len(targets) - actions) + ORDER_PENALTY * ((actions * (actions - 1)) / 2),
        actions=actions,
        path=tuple(path),
        costs=tuple(_base(target, at) for target, at in zip(targets, path, strict=True)),
        penalties=_penalties_of(targets, path, penalties),
    )


def _next(target: Target, cells: Sequence[_Cell], penalties: Sequence[float]) -> list[_Cell]:
    """Return the cells after one more line."""
    # Equal cells lead to equal costs, and the first one counts.
    first: dict[tuple[float, tuple[int, ...]], int] = {}
    for at, cell in enumerate(cells):
        first.setdefault((cell.cost, cell.after), at)
    ordered = sorted((cost, at, after) for (cost, after), at in first.items())
    found = []
    for at in range(len(cells)):
        base = _base(target, at)
        best, before, kept = inf, 0, ordered[0][2]
        for cost, earlier, after in ordered:
            total = cost + base
            # Costs rise from here on, and penalties only add to them.
            if total > best:
                break
            if _is_penalized(target):
                total += penalties[after[at]]
            if total < best or (total == best and earlier < before):
                best, before, kept = total, earlier, after
        found.append(_Cell(best, before, kept))
    return found


def _is_penalized(target: Target) -> bool:
    # The script's comment says "unless it is both"; its code has "and", as here.
    return target.action or target.supported


def _base(target: Target, at: int) -> float:
    if not target.supported:
        return 1.0
    return 0.0 if target.anywhere or at == target.place else 1.0


def _placed(after: tuple[int, ...], at: int) -> tuple[int, ...]:
    """Return the counts with one more action at a place."""
    return (*[count + 1 for count in after[:at]], *after[at:])


def _penalties_of(
    targets: Sequence[Target], path: Sequence[int], penalties: Sequence[float]
) -> tuple[float, ...]:
    made: list[float] = []
    places: list[int] = []
    for target, at in zip(targets, path, strict=True):
        later = sum(place > at for place in places) if _is_penalized(target) else 0
        made.append(penalties[later])
        if target.ordered:
            places.append(at)
    return tuple(made)


def corrected_matching(targets: Sequence[Target]) -> Matching:
    """Return the cheapest cost: lines are at the places of their evidence, or cost 1.

    A line without support costs 1, and so does an action without evidence. Each pair of actions in
    the wrong order costs 0.1, of which the later line bears the cost. Taking an action out of the
    order costs 1 as well, which is cheaper if it is in more than ten such pairs. The limit is what
    all lines cost if every action is out of order with all others, so that it is never exceeded.

    Args:
        targets: The lines.
    """
    placed = {n: t.place for n, t in enumerate(targets) if t.ordered and t.place is not None}
    left = placed.keys() - _taken_out(placed)
    costs = tuple(
        float(not t.supported or not (t.anywhere or n in left)) for n, t in enumerate(targets)
    )
    penalties = [0.0] * len(targets)
    seen: list[int] = []
    for number in sorted(left):
        place = placed[number]
        # Actions at one place are in no order, so that only places after this one count.
        at = bisect_left(seen, place + 1)
        penalties[number] = ORDER_PENALTY * (len(seen) - at)
        seen.insert(at, place)
    actions = len(placed)
    pairs = actions * (actions - 1) // 2
    # Pairs are a whole number, and sums of 0.1 are not exact.
    wrong = round(sum(penalties) / ORDER_PENALTY)
    return Matching(
        cost=sum(costs) + ORDER_PENALTY * wrong,
        most=(len(targets) - actions) + ORDER_PENALTY * pairs,
        actions=actions,
        path=tuple(placed.get(n, -1) for n in range(len(targets))),
        costs=costs,
        penalties=tuple(penalties),
    )


def _taken_out(placed: Mapping[int, int]) -> frozenset[int]:
    """Return the actions that are cheaper out of the order: exactly for up to twelve, else nearly.

    One that is in ten wrong pairs or fewer never is, whichever others are taken out.
    """
    pairs = {
        n: frozenset(m for m in placed if (m - n) * (placed[m] - placed[n]) < 0) for n in placed
    }
    worth = 1 / ORDER_PENALTY
    chosen = sorted(n for n in pairs if len(pairs[n]) > worth)
    # Of more, the worst one is taken out as long as that makes it cheaper.
    if len(chosen) > _MOST_SEARCHED:
        out: set[int] = set()
        while len(pairs[worst := max(chosen, key=lambda n: len(pairs[n] - out))] - out) > worth:
            out.add(worst)
            chosen.remove(worst)
        return frozenset(out)
    best, taken = inf, frozenset[int]()
    for bits in range(1 << len(chosen)):
        out = {n for at, n in enumerate(chosen) if bits >> at & 1}
        wrong = sum(len(pairs[n] - out) for n in pairs if n not in out) // 2
        # In tenths, which are exact.
        if (cost := len(out) * worth + wrong) < best:
            best, taken = cost, frozenset(out)
    return taken

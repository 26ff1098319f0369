"""Human labels: their files, and how they join the claims of a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hallujudge.metrics.framework.agreement import krippendorff_alpha
from hallujudge.metrics.framework.json_values import schema_of
from hallujudge.metrics.framework.results import JsonValue
from hallujudge.sdk.archives.formats import read_format
from hallujudge.sdk.archives.json_files import amount, named, shown
from hallujudge.sdk.archives.record_values import canonical_id
from hallujudge.sdk.archives.records import Record, read_records
from hallujudge.sdk.archives.stored_files import refuse_schema
from hallujudge.sdk.errors import ArchiveError, InvalidInputError
from hallujudge.sdk.report.export_formats import csv_cell

from .verdicts import VERDICTS, DecidedItem

_TRUE_WORDS = {True: "not_supported", False: "supported", None: "unsure"}
# Papers write hallucinated for what is not_supported here.
_WORDS: Mapping[str, bool | None] = {
    "supported": False,
    "not_supported": True,
    "hallucinated": True,
    "unsure": None,
}
# What the buttons of the HTML page say.
_ANSWERS = ("agree", "disagree")
_TEXTS = ("text", "annotator", "signature", "run")
# Equal to 0 and 1, which some tools write instead.
_MARKS = (True, False)
# A run has fewer claims; the limit keeps a wrong file from filling the memory.
_MOST = 1_000_000
# Pages and sheets cut longer texts, and sheets put an apostrophe before what looks like a formula.
_COMPARED = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A person's label of a claim, of some words of a response, or of a whole item."""

    item: str
    """Id of the item."""
    hallucinated: bool | None
    """Whether it is hallucinated; None if the annotator is unsure."""
    claim: int | None = None
    """Place of the claim in the item's evidence; None for words or a whole item."""
    span: tuple[int, int] | None = None
    """First character of the labelled words and the position after the last."""
    text: str = ""
    """The claim or the words; empty if the file does not have them."""
    annotator: str = ""
    """Name of the annotator."""
    signature: str = ""
    """Signature of the run that was labelled; empty if the file does not have it."""
    run: str = ""
    """Identity of that run, as the page exports it; empty if the file does not have it."""

    @property
    def key(self) -> tuple[object, ...]:
        """Return what identifies the label; a later one with the same key replaces it."""
        return self.item, self.claim, self.span, self.annotator

    def to_json(self) -> dict[str, JsonValue]:
        """Return the label as a line of ``labels.jsonl``."""
        line: dict[str, JsonValue] = {"schema": schema_of("label"), "item": self.item}
        line["label"] = _TRUE_WORDS[self.hallucinated]
        if self.claim is not None:
            line["claim"] = self.claim
        if self.span is not None:
            line["start"], line["end"] = self.span
        for name in _TEXTS:
            if value := getattr(self, name):
                line[name] = value
        return line


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLabels:
    """The labels of files."""

    labels: tuple[Label, ...]
    """The labels; of those with one key the last."""
    blank: int
    """Number of rows of sheets that are not filled in."""
    changed: int
    """Number of labels that another one replaced and contradicts."""

    @property
    def changed_note(self) -> str:
        """Return a warning about labels that were replaced; empty if there are none."""
        if not self.changed:
            return ""
        return (
            f"{amount(self.changed, 'label contradicts', 'labels contradict')} an earlier one of "
            "the same annotator, which no longer counts; if they are of several people, name them "
            "in the column annotator."
        )


def read_labels(*paths: str | Path, items: Iterable[DecidedItem] = ()) -> list[Label]:
    """Return the labels of files; see :func:`find_labels`."""
    return list(find_labels(*paths, items=items).labels)


def find_labels(*paths: str | Path, items: Iterable[DecidedItem] = ()) -> FoundLabels:
    """Return the labels of files, and what became of the others.

    A file of JSON lines or a table has the keys ``item`` and ``label``, and ``claim``, ``start``,
    ``end``, ``text``, ``annotator`` where they are known. A label is ``supported``,
    ``not_supported`` (or ``hallucinated``) or ``unsure``; a row whose label is blank has none. The
    HTML page's ``agree`` and ``disagree`` need its ``verdict``. Records with ``words``, pairs of a
    word and whether it is hallucinated, label the words and the whole item, as in HAT (Petryk et
    al., ALOHa, 2024).

    Args:
        paths: The files; a later label of one annotator replaces an earlier one.
        items: Items of the run. Records with marked words whose id is not that of an item label
            the item with the same response.

    Raises:
        ArchiveError: A file can't be read, a record is not a label, or there is no label.
    """
    found: dict[tuple[object, ...], Label] = {}
    known = _Items.of(items)
    blank = changed = 0
    for path in paths:
        for record in read_records(read_format(Path(path)).source):
            blank += (given := _labels_of(record, known)) is None
            for label in given or ():
                earlier = found.get(label.key)
                # A label that repeats an earlier one takes nothing from it.
                changed += earlier is not None and earlier.hallucinated != label.hallucinated
                # The later label counts, as the pages and sheets are corrected by labelling again.
                found[label.key] = label
            if len(found) > _MOST:
                raise ArchiveError(f"{path}: more than {_MOST:,} labels; give fewer files")
    if not found:
        names = ", ".join(map(str, paths))
        raise ArchiveError(
            f"{names}: no label in {amount(blank, 'row', 'rows')}; fill in the column 'label'"
        )
    return FoundLabels(labels=tuple(found.values()), blank=blank, changed=changed)


@dataclass(frozen=True, slots=True)
class _Items:
    """Items of a run, for marked words that name them in another way."""

    ids: frozenset[str]
    by_response: Mapping[str, Sequence[DecidedItem]]

    @classmethod
    def of(cls, items: Iterable[DecidedItem]) -> _Items:
        ids, by_response = set(), defaultdict(list)
        for item in items:
            ids.add(item.id)
            # A run may not keep its responses.
            if item.response:
                by_response[item.response].append(item)
        return cls(frozenset(ids), by_response)

    def named(self, identifier: str, response: str, image: str) -> str:
        """Return the id of the item with an id, or with a response, if this is one item."""
        if identifier in self.ids:
            return identifier
        same = self.by_response.get(response, ())
        if len(same) > 1:
            same = [item for item in same if item.cluster == image]
        return same[0].id if len(same) == 1 else identifier


def _labels_of(record: Record, known: _Items) -> Iterable[Label] | None:
    """Return the labels of a record; None if it is a row of a sheet that is not filled in."""
    if "words" in record.values:
        return _marked(record, known)
    # A sheet has a row for each claim, of which most are blank while it is filled in.
    if "label" in record.values and str(record.values["label"] or "").strip() == "":
        return None
    return (_label(record),)


def _label(record: Record) -> Label:
    values = record.values
    refuse_schema(values, "label", record.place)
    missing = [key for key in ("item", "label") if values.get(key) in (None, "")]
    if missing:
        raise ArchiveError(
            f"{record.place}: no {missing[0]!r}, found {named(sorted(values))}; a label has item, "
            "label, and claim, start, end, text and annotator where they are known"
        )
    return Label(
        item=canonical_id(values["item"], record.place),
        hallucinated=_truth(record),
        claim=_number(record, "claim"),
        span=_span(record),
        **{name: _label_text(record, name) for name in _TEXTS},
    )


def _truth(record: Record) -> bool | None:
    """Return whether the claim is hallucinated, from a verdict if the label is about that."""
    # People write "not supported" and "Not-supported" in sheets.
    label = str(record.values["label"]).strip().lower().replace(" ", "_").replace("-", "_")
    if label in _WORDS:
        return _WORDS[label]
    if label not in _ANSWERS:
        raise ArchiveError(
            f"{record.place}: the label {shown(record.values['label'])} is unknown; use "
            f"{', '.join((*_WORDS, *_ANSWERS))}"
        )
    verdict = str(record.values.get("verdict", ""))
    if verdict not in VERDICTS:
        raise ArchiveError(
            f"{record.place}: {label!r} needs the verdict it is about; 'verdict' is "
            f"{shown(record.values.get('verdict'))}, use {', '.join(VERDICTS)}"
        )
    said = VERDICTS[verdict]
    # To agree keeps the verdict, to disagree turns it around; an open verdict tells nothing.
    return None if said is None else said == (label == "agree")


def _number(record: Record, key: str) -> int | None:
    value = record.values.get(key)
    if value is None or value == "":
        return None
    try:
        # A column of numbers with an empty cell becomes one of floats in many tools.
        number = int(str(value).removesuffix(".0"))
    except ValueError:
        number = -1
    if number < 0:
        raise ArchiveError(
            f"{record.place}: {key} is {shown(value)}; give a whole number from 0 on"
        )
    return number


def _span(record: Record) -> tuple[int, int] | None:
    start, end = _number(record, "start"), _number(record, "end")
    if start is None and end is None:
        return None
    if start is None or end is None or end <= start:
        raise ArchiveError(
            f"{record.place}: 'start' is {shown(start)} and 'end' is {shown(end)}; give start "
            "and a larger end"
        )
    return start, end


def _label_text(record: Record, key: str) -> str:
    value = record.values.get(key)
    return "" if value is None else str(value)


def _marked(record: Record, known: _Items) -> Iterator[Label]:
    """Yield a label of each word, and one of the whole response."""
    values = record.values
    words, response = values["words"], values.get("caption", values.get("response"))
    identifier = values.get("item", values.get("id"))
    if not isinstance(words, list) or not all(map(_is_marked, words)):
        raise ArchiveError(
            f"{record.place}: words is {shown(words)}; give pairs of a word and true or false"
        )
    # A file of words alone has no response; its words are then all that there is of it.
    text = response if isinstance(response, str) else " ".join(word for word, _ in words)
    image, annotator = _label_text(record, "image_id"), _label_text(record, "annotator")
    item = known.named(canonical_id(identifier, record.place), text, image)
    for (word, marked), span in zip(words, _places(record, words, text), strict=True):
        yield Label(item=item, hallucinated=bool(marked), span=span, text=word, annotator=annotator)
    # HAT's captions have the key too, and it agrees with their words; other files have words alone.
    whole = values.get("contains_hallucination", any(marked for _, marked in words))
    if whole not in _MARKS:
        raise ArchiveError(
            f"{record.place}: contains_hallucination is {shown(whole)}; give true or false"
        )
    yield Label(item=item, hallucinated=bool(whole), annotator=annotator)


def _is_marked(pair: object) -> bool:
    """Return whether a value is a word and whether it is hallucinated; the text "false" is not."""
    return (
        isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and pair[1] in _MARKS
    )


def _places(record: Record, words: list[list[str]], text: str) -> list[tuple[int, int]]:
    """Return where words are in a response, one after the other."""
    places = []
    end = 0
    for word, _ in words:
        # From the last word on, so that a word that is repeated has a place each time.
        start = text.find(word, end)
        if start < 0:
            raise ArchiveError(f"{record.place}: the word {word!r:.60} is not in the response")
        end = start + len(word)
        places.append((start, end))
    return places


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedLabels:
    """Labels by claim and by item, with several annotators joined by majority."""

    claims: Mapping[tuple[str, int], bool]
    """Item and claim -> whether it is hallucinated."""
    items: Mapping[str, bool]
    """Item -> whether anything in it is hallucinated."""
    annotators: tuple[str, ...]
    """Names of the annotators."""
    alpha: float | None
    """Krippendorff's alpha over annotators; None if no claim or item has two labels."""
    unsure: int
    """Claims and items without a majority."""
    unknown: int
    """Labels of items or claims that the run does not have, or that have another text."""


def match_labels(labels: Sequence[Label], items: Iterable[DecidedItem]) -> MatchedLabels:
    """Join labels with the claims of a run.

    A label of words counts for every claim that shares a character with them; a claim is then
    hallucinated if any of its words is. An item whose claims are all labelled has a label too: it
    is hallucinated if one of its claims is. A label of the whole item takes precedence.

    Args:
        labels: The labels.
        items: The items of the run.
    """
    items = list(items)
    # Sheets guard ids against formulas, and a label must still find its item.
    names = _names_in_sheets(items)
    by_item: dict[str, list[Label]] = defaultdict(list)
    for label in labels:
        by_item[names.get(label.item, label.item)].append(label)
    claims: dict[tuple[str, int], list[bool | None]] = {}
    whole: dict[str, list[bool | None]] = {}
    unknown, seen = 0, set()
    for item in items:
        seen.add(item.id)
        if given := by_item.get(item.id):
            found, one, other = _of_item(item, given)
            claims |= found
            unknown += other
            if one:
                whole[item.id] = one
    unknown += sum(len(given) for key, given in by_item.items() if key not in seen)
    return _joined(claims, whole, labels, unknown)


def matched_labels(
    labels: Sequence[Label], items: Sequence[DecidedItem], run: str
) -> MatchedLabels:
    """Join labels with the claims of a run that must be theirs.

    Args:
        labels: The labels.
        items: The items of the run.
        run: What messages call the run.

    Raises:
        InvalidInputError: No label is about a claim or item of the run.
    """
    matched = match_labels(labels, items)
    if matched.claims or matched.items:
        return matched
    if matched.unsure:
        raise InvalidInputError(
            f"every label of {run} is unsure, or contradicted by another annotator; label some "
            "claims as supported or not"
        )
    names = _names_in_sheets(items)
    known = next((label for label in labels if label.item in names), None)
    if known is None:
        raise InvalidInputError(
            f"none of {len(labels):,} labels is of a claim or item of {run}; labels name the "
            "run's items by id; marked words may name them by their response"
        )
    item = next(item for item in items if item.id == names[known.item])
    raise InvalidInputError(
        f"none of {len(labels):,} labels is of a claim of {run}: {_mismatch(known, item)}"
    )


def _mismatch(label: Label, item: DecidedItem) -> str:
    """Return why a label is of no claim of its item."""
    texts = {claim.index: claim.text for claim in item.claims}
    if label.claim is None:
        return f"the words of the first one are in no claim of item {label.item!r:.80}"
    if label.claim not in texts:
        return (
            f"item {label.item!r:.80} has no claim {label.claim!s:.20}; a claim's number is its "
            f"place in the item's evidence, from 0 to {max(texts, default=0)}"
        )
    return (
        f"claim {label.claim} of item {label.item!r:.80} is {texts[label.claim]!r:.80}, but the "
        f"label's text is {label.text!r:.80}; label this run's claims"
    )


def _names_in_sheets(items: Sequence[DecidedItem]) -> dict[str, str]:
    """Return the ids of items by what a sheet shows where it can't show the id itself."""
    shown = {csv_cell(item.id): item.id for item in items}
    # True ids come last: one that equals what a sheet shows of another id stays its own.
    return shown | {item.id: item.id for item in items}


def _joined(
    claims: Mapping[tuple[str, int], list[bool | None]],
    whole: Mapping[str, list[bool | None]],
    labels: Sequence[Label],
    unknown: int,
) -> MatchedLabels:
    truths = {key: _majority(said) for key, said in claims.items()}
    items = {key: _majority(said) for key, said in whole.items()}
    of_claims = Counter(item for item, _ in truths)
    units = [
        [value for value in said if value is not None]
        for said in (*claims.values(), *whole.values())
    ]
    return MatchedLabels(
        claims={key: truth for key, truth in truths.items() if truth is not None},
        items={key: truth for key, truth in items.items() if truth is not None},
        # Sorted, since calibration.json is deterministic and sets have no order.
        annotators=tuple(sorted({label.annotator for label in labels if label.annotator})),
        alpha=krippendorff_alpha(units),
        unsure=sum(truth is None for truth in truths.values())
        # An item is counted here only if its claims, which are counted above, have no labels.
        + sum(truth is None and not of_claims.get(item) for item, truth in items.items()),
        unknown=unknown,
    )


def _of_item(
    item: DecidedItem, labels: Sequence[Label]
) -> tuple[dict[tuple[str, int], list[bool | None]], list[bool | None], int]:
    """Return what annotators say of an item's claims and of the item, and labels of neither."""
    by_annotator: dict[str, list[Label]] = defaultdict(list)
    for label in labels:
        by_annotator[label.annotator].append(label)
    claims: dict[tuple[str, int], list[bool | None]] = defaultdict(list)
    whole: list[bool | None] = []
    unknown = 0
    for given in by_annotator.values():
        found, other = _of_annotator(item, given)
        for index, said in found.items():
            claims[item.id, index].append(said)
        unknown += other
        about = [label.hallucinated for label in given if label.claim is None and not label.span]
        if about:
            # Labels of several files may repeat; as in one file, the last one counts.
            whole.append(about[-1])
        elif item.claims and len(found) == len(item.claims):
            whole.append(None if None in found.values() else any(found.values()))
    return dict(claims), whole, unknown


def _of_annotator(item: DecidedItem, labels: Sequence[Label]) -> tuple[dict[int, bool | None], int]:
    """Return one annotator's labels of the claims, and the number of labels of other claims."""
    texts = {claim.index: claim.text for claim in item.claims}
    found: dict[int, bool | None] = {}
    unknown = 0
    for claim in item.claims:
        words = [label.hallucinated for label in labels if _overlap(label.span, claim.span)]
        if words:
            found[claim.index] = True if True in words else (None if None in words else False)
    for label in labels:
        if label.claim is None:
            continue
        # After the labels of words, which a label of the claim itself replaces.
        if label.claim in texts and _same(label.text, texts[label.claim]):
            found[label.claim] = label.hallucinated
        else:
            unknown += 1
    return found, unknown


def _same(text: str, claim: str) -> bool:
    """Return whether a label's text is that of a claim, as sheets and pages shorten it."""
    begin = text.removeprefix("'")[:_COMPARED]
    # Without a text, the number of the claim is all there is to go by.
    return begin == claim.removeprefix("'")[:_COMPARED] or not text


def _overlap(one: tuple[int, int] | None, other: tuple[int, int] | None) -> bool:
    return bool(one and other and one[0] < other[1] and other[0] < one[1])


def _majority(said: Sequence[bool | None]) -> bool | None:
    """Return what most annotators say; None without a majority."""
    # Annotators who are unsure have no vote.
    wrong, right = said.count(True), said.count(False)
    return None if wrong == right else wrong > right

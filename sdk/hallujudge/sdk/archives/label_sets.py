"""POPE's labels and RePOPE's for the same questions, and what differs in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hallujudge.metrics.answers.closed_questions import ClosedQuestions
from hallujudge.metrics.pope import BENCHMARK, LABEL_SETS

from ..errors import ArchiveError
from .found_files import found_files
from .inputs import ReaderInput, are_paths
from .question_files import asks_the_same, given_label, id_of, label_of
from .record_values import optional_text
from .records import Record, Records, read_records
from .split_files import questions_of_file

DROPPED = ""
"""The label of a question that a set dropped."""


def labels_of_file(path: str | Path) -> str:
    """Return the set of labels that the name of a file has, else the first one."""
    name = Path(path).stem.casefold()
    # Later sets first: "repope" holds the name of "pope".
    return next((each for each in reversed(LABEL_SETS) if each in name), LABEL_SETS[0])


def files_of_labels(declared: ClosedQuestions, references: object) -> dict[str, list[str | Path]]:
    """Return set of labels -> its files, in the order of the benchmark; empty without any."""
    if declared.name != BENCHMARK.name or not are_paths(references):
        return {}
    held = {
        name: [path for path in references if labels_of_file(path) == name] for name in LABEL_SETS
    }
    return {name: files for name, files in held.items() if files}


def last_labels(declared: ClosedQuestions, given: ReaderInput) -> ReaderInput:
    """Return the files of the last set of labels, where there are several.

    Answers to questions that this set dropped are left out, unless it is the first one.

    Args:
        declared: The benchmark.
        given: Answers, and files of questions with labels.

    Raises:
        ArchiveError: See :func:`label_changes`.
    """
    references = given.references
    name = references.name if isinstance(references, Records) else references
    files = [name] if isinstance(name, (str, Path)) else references
    held = files_of_labels(declared, files)
    # POPE's own labels, the first set, drop no question.
    if not held or list(held) == [LABEL_SETS[0]]:
        return given
    if len(held) > 1:
        first, *_, last = held.values()
        # Labels of other questions would be found out after the run only.
        label_changes(declared, first, last)
        references = last[0] if len(last) == 1 else last
    options = replace(given.options, drop_unknown=True)
    return ReaderInput(given.responses, references, options, given.group_by)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedLabel:
    """A question whose label differs in two sets, or that one of them dropped."""

    split: str
    """Its split; empty without one."""
    id: str
    """Its id within the split."""
    image: str
    """The image that it asks about."""
    question: str
    """Its text."""
    before: str
    """The label in the first set; :data:`DROPPED` if this lacks the question."""
    after: str
    """The label in the second set; :data:`DROPPED` if this lacks the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelChanges:
    """What differs in two sets of labels of one split."""

    split: str
    """The split; empty without one."""
    before: int
    """Questions of the first set."""
    after: int
    """Questions of the second set."""
    kept: int
    """Questions with the same label in both."""
    text_differs: int
    """Questions of both whose text is not equal to the letter."""
    changed: tuple[ChangedLabel, ...]
    """The others."""

    def count(self, before: str, after: str) -> int:
        """Return how many questions have one label in the first set and another in the second."""
        return sum((each.before, each.after) == (before, after) for each in self.changed)


def label_changes(
    declared: ClosedQuestions, before: Sequence[str | Path], after: Sequence[str | Path]
) -> tuple[LabelChanges, ...]:
    """Return what differs in two sets of labels, by split.

    Args:
        declared: The benchmark.
        before: The files of the first set.
        after: The files of the second set.

    Raises:
        ArchiveError: An id names another image or question in the second set, or a label is not
            one of the benchmark's.
    """
    first, second = _questions(declared, before), _questions(declared, after)
    splits = dict.fromkeys(split for split, _ in (*first, *second))
    return tuple(_changes_of(declared, split, first, second) for split in splits)


def _changes_of(
    declared: ClosedQuestions,
    split: str,
    first: Mapping[tuple[str, str], Record],
    second: Mapping[tuple[str, str], Record],
) -> LabelChanges:
    # In the order of the first set, then what the second one added.
    ids = [key for key in dict.fromkeys((*first, *second)) if key[0] == split]
    changed: list[ChangedLabel] = []
    differs = 0
    for key in ids:
        one, other = first.get(key), second.get(key)
        if one is not None and other is not None:
            differs += _checked_text(declared, key[1], one, other)
        labels = [_label(declared, record) for record in (one, other)]
        if labels[0] != labels[1]:
            shown = one or other
            assert shown is not None, "the id is of one of them"
            image, text = _texts(declared, shown)
            changed.append(
                ChangedLabel(
                    split=split,
                    id=key[1],
                    image=image,
                    question=text,
                    before=labels[0],
                    after=labels[1],
                )
            )
    return LabelChanges(
        split=split,
        before=sum(key in first for key in ids),
        after=sum(key in second for key in ids),
        kept=len(ids) - len(changed),
        text_differs=differs,
        changed=tuple(changed),
    )


def _questions(
    declared: ClosedQuestions, files: Sequence[str | Path]
) -> dict[tuple[str, str], Record]:
    """Return split and id -> question."""
    splits = declared.split_files
    found: dict[tuple[str, str], Record] = {}
    paths = [file.path for path in files for file in found_files(path)]
    for path in paths:
        for record in read_records(questions_of_file(splits, path)):
            split = str(record.values.get(splits.field, "")) if splits else ""
            key = split, id_of(declared, record, required=True)
            if key in found:
                raise ArchiveError(
                    f"{record.place}: the question {key[1]!r:.60} is in the same set of labels "
                    "twice; give each file once, and name each after its split"
                )
            found[key] = record
    return found


def _texts(declared: ClosedQuestions, record: Record) -> Iterator[str]:
    keys = (declared.keys.media, declared.keys.asked)
    return (optional_text(record, each) for each in keys)


def _checked_text(declared: ClosedQuestions, id: str, one: Record, other: Record) -> bool:
    """Return whether the texts of a question differ, which must be by a misspelling only."""
    image, text = _texts(declared, one)
    new_image, new_text = _texts(declared, other)
    if image != new_image or not asks_the_same(text, new_text):
        raise ArchiveError(
            f"{other.place}: question {id!r:.60} is {new_text!r:.80} about {new_image}, but "
            f"{text!r:.80} about {image} in the other labels; give labels of the same questions"
        )
    return text != new_text


def _label(declared: ClosedQuestions, record: Record | None) -> str:
    if record is None:
        return DROPPED
    given = given_label(declared, record)
    if (label := label_of(declared, given)) is None:
        known = " nor ".join(declared.labels)
        raise ArchiveError(
            f"{record.place}: the label {given!r:.40} is neither {known}; correct it"
        )
    return label

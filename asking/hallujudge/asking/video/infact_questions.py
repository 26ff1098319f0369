"""Questions of INFACT: those that need the video, those about procedures, and people's audit.

Yang et al., 2026, section 3.2 and appendix A.3.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from random import Random
from typing import Any

from hallujudge.metrics.answers.choices import parse_as_labelled
from hallujudge.metrics.answers.closed_questions import Answer
from hallujudge.metrics.infact import BENCHMARK
from hallujudge.metrics.infact.operators import INVARIANT, TEXT_ONLY
from hallujudge.sdk.archives.local_files import read_bytes
from hallujudge.sdk.archives.question_files import options_of
from hallujudge.sdk.archives.record_values import LABEL, choose_key, id_under, optional_text
from hallujudge.sdk.archives.records import read_records
from hallujudge.sdk.errors import ArchiveError, InvalidInputError

from .degraded_folders import MANIFEST, manifest_lines
from .degrading import PROCEDURAL
from .text_operators import places

_KEYS = BENCHMARK.keys
_VIDEO = _KEYS.media
_COLUMNS = ("operator", "subtype", "question_id", "video", "question", "options", "choice")
NOT_ANSWERABLE = "none"
"""What people write in place of a choice if a question can't be answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question about a video."""

    id: str
    asked: str
    """What it asks; empty if the file does not say."""
    label: str
    """The right answer."""
    video: str
    """Its video; empty if the file does not say."""
    options: Mapping[str, str]
    """Choices: letter -> text."""
    record: Mapping[str, Any]
    """The whole record of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Questions that need their video."""

    questions: tuple[Question, ...]
    """The questions, in the order of the file."""
    solved: Mapping[str, int]
    """Questions that text alone solves -> number of models that did."""
    unanswered: int
    """Questions that no model answered; they are kept."""


def read_questions(path: Path) -> list[Question]:
    """Read a file of questions.

    Raises:
        ArchiveError: A record has no id or label, or an id appears twice.
    """
    found: dict[str, Question] = {}
    key = label = ""
    for record in read_records(path):
        # The first record shows which keys a file has.
        key = key or choose_key(record, None, _KEYS.id, "the id")
        label = label or choose_key(record, None, _KEYS.label, LABEL)
        question = Question(
            id=id_under(record, key),
            asked=optional_text(record, _KEYS.asked),
            label=optional_text(record, (label,)),
            video=optional_text(record, _VIDEO),
            options=options_of(record, _KEYS.options),
            record=dict(record.values),
        )
        if question.id in found:
            raise ArchiveError(f"{record.place}: question {question.id!r:.60} appears twice")
        found[question.id] = question
    if not found:
        raise ArchiveError(f"{path}: no records; give a record for each question")
    return list(found.values())


def needing_video(
    questions: Sequence[Question], answers: Sequence[Path], solved_by: int | None = None
) -> Kept:
    """Return the questions that models do not answer rightly without the video.

    The paper's filter is "an ensemble of language models"; it does not say how many of them must
    fail. Here a question goes if more than half of the models that answered it are right.

    Args:
        questions: The questions.
        answers: Answers without the video, a file for each model. Records of other operators than
            ``text_only`` are skipped.
        solved_by: Number of models that must be right for a question to go.

    Raises:
        ArchiveError: An answer has no id or response.
    """
    known = {question.id: question for question in questions}
    right: dict[str, int] = defaultdict(int)
    asked: dict[str, int] = defaultdict(int)
    for path in answers:
        for identifier, is_right in _text_only(path, known).items():
            asked[identifier] += 1
            right[identifier] += is_right
    gone = {
        identifier: count
        for identifier, count in right.items()
        if (count >= solved_by if solved_by else 2 * count > asked[identifier])
    }
    return Kept(
        questions=tuple(question for question in questions if question.id not in gone),
        solved=gone,
        unanswered=sum(question.id not in asked for question in questions),
    )


def _text_only(path: Path, questions: Mapping[str, Question]) -> dict[str, bool]:
    """Return whether one model's answers without the video are right."""
    found: dict[str, bool] = {}
    key = response = ""
    for record in read_records(path):
        # A file of answers without the video alone needs no operator.
        operator = optional_text(record, ("operator",)) or TEXT_ONLY
        if operator.strip().lower().replace(" ", "_").replace("-", "_") != TEXT_ONLY:
            continue
        key = key or choose_key(record, None, _KEYS.id, "the id")
        response = response or choose_key(record, None, _KEYS.response, "the answer")
        identifier = id_under(record, key)
        question = questions.get(identifier)
        # The models may have been asked more questions than this file has.
        if question is None:
            continue
        if identifier in found:
            raise ArchiveError(
                f"{record.place}: question {identifier!r:.60} appears twice; give a file for each "
                "model"
            )
        text = optional_text(record, (response,))
        answer = Answer(text, question.label, options=question.options)
        found[identifier] = parse_as_labelled(answer).right
    if not found:
        raise ArchiveError(f"{path} answers none of the questions without the video")
    return found


def procedural_questions(out: Path, tasks: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return two questions for each video of a procedure: the steps in order, and exchanged.

    Args:
        out: The folder of the degraded videos.
        tasks: Video -> the name of what is done in it.
    """
    # One question has the answer yes and one no, so that a constant answer is right in half.
    options = {"A": "Yes, the sequence is correct", "B": "No, the sequence is incorrect"}
    found = []
    for _, line in manifest_lines(out / PROCEDURAL / MANIFEST):
        name = line["video"]
        task = f" about task <{tasks[name]}>" if tasks.get(name) else ""
        shown = {
            "A": PurePosixPath("base", name),
            "B": PurePosixPath(PROCEDURAL, name).with_suffix(".mp4"),
        }
        found += [
            {
                "question_id": f"{name}/{kind}",
                "video": str(shown[label]),
                "question": f"Is the sequence of steps{task} shown logical?",
                "options": options,
                "label": label,
                "dimension": "factuality",
                "order_sensitive": True,
            }
            for label, kind in (("A", "correct"), ("B", "exchanged"))
        ]
    return found


def audit_sheets(
    questions: Sequence[Question], out: Path, *, cases: int, annotators: int, seed: int
) -> list[str]:
    """Return a sheet for each annotator, as CSV: sampled questions under each operator.

    Sheets have no label, and each has an order of its own. Choices are left empty.

    Args:
        questions: The questions.
        out: The folder of the degraded videos.
        cases: Number of questions for each operator; the paper has 200.
        annotators: Number of annotators; the paper has three.
        seed: Seed of the sample and of the orders.

    Raises:
        InvalidInputError: The folder has no video of a question under an operator that keeps the
            label.
    """
    draw = Random(seed)  # noqa: S311 - no secret
    rows = [row for found in _cases(questions, out) for row in _sample(found, cases, draw)]
    if not rows:
        raise InvalidInputError(
            f"{out} has no video of these questions under {', '.join(INVARIANT)}; first make some "
            "with hallujudge build infact, from videos that the questions name"
        )
    return [_csv(_sample(rows, len(rows), draw)) for _ in range(annotators)]


def _cases(questions: Sequence[Question], out: Path) -> Iterator[list[dict[str, str]]]:
    """Yield the rows of each operator that keeps the label."""
    by_video = by_stem(questions)
    for operator in INVARIANT:
        manifest = out / operator / MANIFEST
        if not manifest.exists():
            continue
        yield [
            _row(question, operator, line)
            for _, line in manifest_lines(manifest)
            for question in by_video.get(stem_of(line["video"]), ())
        ]


def _row(question: Question, operator: str, line: Mapping[str, Any]) -> dict[str, str]:
    kinds = {caption.get("kind", "") for caption in line["parameters"].get("captions", ())}
    video = PurePosixPath(operator, line["video"]).with_suffix(".mp4")
    options = "\n".join(f"({letter}) {text}" for letter, text in question.options.items())
    # A video with both kinds of captions is of neither subtype.
    subtype = kinds.pop() if len(kinds) == 1 else ""
    values = (operator, subtype, question.id, str(video), question.asked, options, "")
    return dict(zip(_COLUMNS, values, strict=True))


def by_stem(questions: Iterable[Question]) -> dict[str, list[Question]]:
    """Return questions by the names of their videos, without folders and suffix."""
    found: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        found[stem_of(question.video or question.id)].append(question)
    return found


def stem_of(name: str) -> str:
    """Return the name of a video without folders and suffix."""
    # Names that were written on Windows have backslashes.
    return PurePosixPath(name.replace("\\", "/")).with_suffix("").name


def _sample(rows: Sequence[dict[str, str]], count: int, draw: Random) -> list[dict[str, str]]:
    return [rows[place] for place in places(draw, len(rows))[:count]]


def _csv(rows: Iterable[Mapping[str, str]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def collected(sheets: Sequence[Path]) -> list[dict[str, Any]]:
    """Return the choices of all annotators, a record for each question under an operator.

    ``hallujudge analyze --audit`` reads these records.

    Raises:
        ArchiveError: A choice is missing, or the sheets have other rows.
    """
    read = [dict(_filled(sheet)) for sheet in sheets]
    for sheet, choices in zip(sheets[1:], read[1:], strict=True):
        # Choices are put together by row, so that all sheets must have the same rows.
        if odd := sorted(choices.keys() ^ read[0].keys()):
            raise ArchiveError(
                f"{sheet} and {sheets[0]} have other rows, such as question {odd[0][2]!r:.60} "
                f"under {odd[0][0]}; give the sheets of one audit"
            )
    # In the order of the first sheet: each annotator has another one.
    return [
        {
            "operator": operator,
            **({"subtype": subtype} if subtype else {}),
            "question_id": question,
            "choices": [choices[operator, subtype, question] for choices in read],
        }
        for operator, subtype, question in read[0]
    ]


def _filled(sheet: Path) -> Iterator[tuple[tuple[str, str, str], str | None]]:
    """Yield the choice of each row of a sheet; None for a question that can't be answered."""
    # Spreadsheets write a mark of UTF-8 before the first column.
    text = read_bytes(sheet).decode("utf-8-sig", "replace")
    # Without newline, as csv asks: options have line breaks within their cell.
    rows = csv.DictReader(io.StringIO(text, newline=""))
    if missing := [name for name in _COLUMNS if name not in (rows.fieldnames or ())]:
        raise ArchiveError(
            f"{sheet} has no column {missing[0]}; give a sheet with {', '.join(_COLUMNS)}, "
            "separated by commas"
        )
    for row in rows:
        choice = (row["choice"] or "").strip()
        if not choice:
            raise ArchiveError(
                f"{sheet}:{rows.line_num}: there is no choice; write a letter, or {NOT_ANSWERABLE} "
                "for a question that can't be answered"
            )
        key = row["operator"], row["subtype"], row["question_id"]
        yield key, None if choice.lower() == NOT_ANSWERABLE else choice

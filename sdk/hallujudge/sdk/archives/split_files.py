"""Splits of a benchmark that number their questions alike, and which of them an answer is of.

Ids of such questions are only unique with the name of their split, as in ``random:1``. A file is of
the split that its name has, a record of the split that one of its keys has. Answers without either
are placed by their question. Answers are never placed by their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path, PurePath

from hallujudge.metrics.answers.closed_questions import ClosedQuestions, SetFiles

from ..errors import ArchiveError
from .formats import read_format
from .inputs import InputOptions, ReaderInput, Responses, are_paths
from .joins import refuse
from .json_files import named
from .local_files import as_path
from .question_files import asks_the_same, id_of, in_order, joined_labels, normal_text
from .record_values import TEXT_FLAG, canonical_id, choose_key
from .records import Record, Records, name_of, read_records
from .set_files import known_sets, split_of, split_of_file


def joined_splits(declared: ClosedQuestions, given: ReaderInput) -> ReaderInput:
    """Return answers and questions with ids that are unique over the splits of a benchmark.

    Args:
        declared: The benchmark.
        given: The answers, and the questions in one file or several.

    Raises:
        ArchiveError: Questions have no label, or nothing says which split a question or an answer
            is of.
    """
    responses, references, options, group_by = given
    assert references is not None, "they are the questions"
    splits = declared.split_files
    by_key = splits is not None and _names_split(splits, responses)
    if are_paths(references):
        sources = [questions_of_file(splits, as_path(path)) for path in references]
        # Only such questions may have their labels in another file.
        by_text = declared.joins_by_text
        rows = joined_labels(declared, sources) if by_text else in_order(chain(*sources))
    elif splits is None or isinstance(references, Mapping):
        return given
    else:
        source = references
        if by_key and isinstance(references, (str, Path)):
            source = questions_of_file(splits, as_path(references))
        if not _names_split(splits, source):
            return given
        rows = list(read_records(source))
    if splits is None or options.join == "order":
        return ReaderInput(responses, rows, options, group_by)
    asked = _SplitQuestions(declared, splits, rows, options)
    if not asked.repeat and not (by_key and split_of(splits, rows[0].values)):
        return ReaderInput(responses, rows, options, group_by)
    asked.refuse_unknown_splits()
    answers = asked.placed(responses)
    # Every answer has the id of its question now, by whatever that was found.
    join_by = "auto" if options.join == "text" else options.join
    return ReaderInput(answers, asked.qualified(), replace(options, join=join_by), group_by)


def _names_split(splits: SetFiles, source: Responses) -> bool:
    first = next(read_records(source), None)
    return first is not None and bool(split_of(splits, first.values))


def questions_of_file(splits: SetFiles | None, path: Path) -> Records:
    """Return the questions of a file, with the split that its name has and its records lack."""
    source = read_format(path).source
    of_file = "" if splits is None else split_of_file(splits, path)

    def records() -> Iterator[Record]:
        for record in read_records(source):
            found = splits and (split_of(splits, record.values) or of_file)
            if splits is None or not found:
                yield record
            else:
                yield record._replace(values={**record.values, splits.field: found})

    return Records(records, str(path))


class _SplitQuestions:
    """The questions of all splits, by which answers are placed."""

    def __init__(
        self,
        declared: ClosedQuestions,
        splits: SetFiles,
        rows: Sequence[Record],
        options: InputOptions,
    ) -> None:
        self._declared = declared
        self._splits = splits
        self._rows = rows
        self._options = options
        self._by_id: dict[str, list[Record]] = {}
        self._by_text: dict[tuple[str, str], list[Record]] = {}
        self._by_image: dict[str, list[Record]] = {}
        self._with_ids = self.id_key(rows[0]) is not None
        for row in rows:
            self._by_id.setdefault(self.own_id(row), []).append(row)
            image, text = self.text_of(row)
            self._by_text.setdefault((image, text), []).append(row)
            self._by_image.setdefault(image, []).append(row)

    @property
    def repeat(self) -> bool:
        """Whether ids are not unique; of questions without ids, whether the questions are not."""
        return len(self._by_id if self._with_ids else self._by_text) < len(self._rows)

    def id_key(self, record: Record) -> str | None:
        """Return the key of a record's id, which the user may have named; None without an id."""
        keys = (self._options.id_key, *self._declared.keys.id)
        return next((key for key in keys if key and key in record.values), None)

    def own_id(self, record: Record) -> str:
        """Return the id that a record has in its file; without ids, its position.

        Raises:
            ArchiveError: The record has none, unlike other records.
        """
        if (key := self.id_key(record)) is None:
            return id_of(self._declared, record, required=self._with_ids)
        return canonical_id(record.values[key], record.place)

    def text_of(self, row: Record) -> tuple[str, str]:
        """Return image and question of a question."""
        return normal_text(self._declared, row, self._declared.keys.asked)

    def split_of(self, row: Record) -> str:
        """Return the split of a question."""
        return split_of(self._splits, row.values)

    def splits(self) -> tuple[str, ...]:
        """Return the splits, in the order of their questions."""
        return tuple(dict.fromkeys(map(self.split_of, self._rows)))

    def refuse_unknown_splits(self) -> None:
        """Refuse questions that no split is known of.

        Raises:
            ArchiveError: There are some.
        """
        if lacking := [row.place for row in self._rows if not self.split_of(row)]:
            field = self._splits.field
            raise refuse(
                f"ids of questions repeat, and some have no {field}",
                lacking,
                f"Name each file of questions after its {field} ({known_sets(self._splits)}), or "
                f"give each question the key {field!r}",
            )

    def qualified(self) -> list[Record]:
        """Return the questions with the ids that tell the splits apart."""
        return [self.with_id(row, row) for row in self._rows]

    def with_id(self, record: Record, question: Record) -> Record:
        """Return a record with the split and the id of its question."""
        return self.with_split(record, self.split_of(question), self.own_id(question))

    def with_split(self, record: Record, split: str, own: str) -> Record:
        """Return a record with a split, and with an id that no other split has."""
        key = self.id_key(record) or self._options.id_key or self._declared.keys.id[0]
        more = {self._splits.field: split, key: f"{split}:{own}" if split else own}
        return record._replace(values={**record.values, **more})

    def asked_by(self, answer: Record) -> list[Record]:
        """Return the questions of an answer's id and text, or else of its image and text."""
        image, text = self._asked_in(answer)
        if not text:
            return []
        with_id = self.id_key(answer) is not None
        same = [
            row
            for row in (self._by_id.get(self.own_id(answer), ()) if with_id else ())
            for media, asked in [self.text_of(row)]
            if asks_the_same(text, asked) and _same_file(image, media)
        ]
        if same or self._options.join == "id":
            return same
        return self._by_text.get((image, text)) or self._misspelt(image, text)

    def _misspelt(self, image: str, text: str) -> list[Record]:
        """Return the questions about an image whose text differs by a misspelt word."""
        rows = self._by_image.get(image, ())
        return [row for row in rows if asks_the_same(text, self.text_of(row)[1])]

    def of_split(self, answer: Record, split: str) -> Record | None:
        """Return the question of a split with an answer's image and text."""
        found = self._by_text.get(self._asked_in(answer), ())
        return next((row for row in found if self.split_of(row) == split), None)

    def _asked_in(self, answer: Record) -> tuple[str, str]:
        keys = self._declared.keys
        # Where a record has both, its text is the question.
        question = keys.asked if "answer" in answer.values else keys.question
        return normal_text(self._declared, answer, question)

    def placed(self, responses: Responses) -> Records:
        """Return the answers of all files, with the ids of their questions.

        Raises:
            ArchiveError: Nothing says which split an answer is of, or a split has no answers.
        """
        parts: list[tuple[str, Responses]] = []
        unplaced: list[Record] = []
        of_records = False
        for name, source in _parts_of(responses):
            by_key = _names_split(self._splits, source)
            split = split_of_file(self._splits, Path(name)) if name else ""
            split = split or ("" if by_key else self._split_by_questions(source))
            # Which splits are there is then in the records, and is checked as these are read.
            of_records |= by_key
            if split or by_key:
                parts.append((split, source))
            else:
                unplaced += read_records(source)
        if not (unplaced or of_records or self._options.allow_missing):
            self._refuse_missing({split for split, _ in parts})
        # Placed together, since equal answers of several files may be one for each split.
        chosen = self._placed_by_questions(unplaced)

        def records() -> Iterator[Record]:
            known = (map(partial(self._in_split, split), read_records(s)) for split, s in parts)
            for position, record in enumerate(chain(chain.from_iterable(known), chosen)):
                yield record._replace(position=position)

        return Records(records, name_of(responses))

    def _in_split(self, of_file: str, answer: Record) -> Record:
        """Return an answer of a known split with the id of its question."""
        split = split_of(self._splits, answer.values) or of_file
        if not split:
            raise self._refused([answer])
        if self.id_key(answer) is not None:
            return self.with_split(answer, split, self.own_id(answer))
        if (question := self.of_split(answer, split)) is None:
            # An unknown question is refused, or left unscored, with all others.
            return self.with_split(answer, split, f"record {answer.position + 1}")
        return self.with_id(answer, question)

    def _split_by_questions(self, source: Responses) -> str:
        """Return the only split that asks all questions of a file; empty if there is none."""
        possible = set(self.splits())
        for record in read_records(source):
            asked = self.asked_by(record)
            if not asked and self._options.drop_unknown:
                continue
            possible &= set(map(self.split_of, asked))
            if not possible:
                break
        return possible.pop() if len(possible) == 1 else ""

    def _placed_by_questions(self, answers: Sequence[Record]) -> list[Record]:
        """Return answers with the ids of their questions, some of which several splits ask.

        Answers to such a question are told apart only if it makes no difference: if they are
        equal, one for each split, or if a file has each different question once, for all splits.

        Raises:
            ArchiveError: An answer may be of several splits.
        """
        groups: dict[tuple[str, str], tuple[list[Record], list[Record]]] = {}
        placed: list[Record] = []
        unsure: list[Record] = []
        for answer in answers:
            questions, known = self._asked_in_listed(answer)
            texts = {self.text_of(question) for question in questions}
            if not texts and self._options.drop_unknown:
                # A question that the labels dropped is of no split.
                placed.append(self.with_split(answer, "", self.own_id(answer)))
                continue
            if known and len(texts) == 1:
                placed += [self.with_id(answer, question) for question in questions]
                continue
            if len(texts) != 1:
                unsure.append(answer)
                continue
            groups.setdefault(texts.pop(), (questions, []))[1].append(answer)
        whole = sum(len(questions) for questions, _ in groups.values()) == len(self._rows)
        once = whole and not unsure and all(len(given) == 1 for _, given in groups.values())
        for questions, given in groups.values():
            if len(questions) == 1:
                placed += [self.with_id(answer, questions[0]) for answer in given]
            elif once or self._are_equal(given, len(questions)):
                each = given * len(questions) if once else given
                placed += map(self.with_id, each, questions)
            else:
                unsure += given
        if unsure:
            raise self._refused(unsure)
        return placed

    def _asked_in_listed(self, answer: Record) -> tuple[list[Record], bool]:
        """Return the questions of an answer, and whether it lists the splits that these are of.

        VLMEvalKit has one answer to a question of several splits, such as ``random,popular``.
        """
        questions = self.asked_by(answer)
        listed = answer.values.get(self._splits.field)
        names = listed if isinstance(listed, list) else str(listed or "").split(",")
        splits = {self._splits.names.get(str(name).strip(), "") for name in names}
        # A value with any other name in it is no list of splits.
        if "" in splits:
            return questions, False
        return [row for row in questions if self.split_of(row) in splits], True

    def _are_equal(self, answers: Sequence[Record], splits: int) -> bool:
        """Return whether each split has an answer, and all are the same."""
        keys, named_key = self._declared.keys.response, self._options.text_key
        key = choose_key(answers[0], named_key, keys, "the answer", TEXT_FLAG)
        return len(answers) == splits and len({str(a.values.get(key)) for a in answers}) == 1

    def _refused(self, answers: Sequence[Record]) -> ArchiveError:
        field = self._splits.field
        return refuse(
            f"ids of questions repeat, and answers have no {field} that is certain",
            [answer.place for answer in answers],
            f"Give one file of answers for each {field}, named after it "
            f"({known_sets(self._splits)}), or give each answer the key {field!r}",
        )

    def _refuse_missing(self, found: set[str]) -> None:
        if lacking := [split for split in self.splits() if split not in found]:
            raise ArchiveError(
                f"no answers to the questions of the {self._splits.field} {named(lacking)}. Give "
                "their answers too, or leave out these questions; to count them as unscored, pass "
                "InputOptions(allow_missing=True)"
            )


def _parts_of(source: Responses) -> Sequence[tuple[str, Responses]]:
    """Return the files of an archive with their names, or the archive alone."""
    if isinstance(source, Records) and source.parts:
        return [(part.name, part) for part in source.parts]
    return [(name_of(source), source)]


def _same_file(name: str, other: str) -> bool:
    """Return whether two images may be the same: folders are left out by some tools."""
    return not name or not other or PurePath(name).name == PurePath(other).name

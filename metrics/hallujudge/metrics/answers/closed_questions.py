"""Benchmarks of closed questions: their declaration.

A benchmark of questions with a yes, a no, a letter or an order as answer is a value of
:class:`ClosedQuestions` in the module of its family, named ``BENCHMARK``. Everything else (the wire
message, archive reader, command, report view and schema) is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from ..framework.asking import AskingProtocol, OwnAsking
from ..framework.metric import (
    LLM_JUDGES,
    Metric,
    OptionDefinition,
    VariantDefinition,
)

# Declarations have all that they need from this module.
from .answer_items import Answer as Answer
from .answer_items import AnswersEvidence as AnswersEvidence
from .answer_items import AnswersItem as AnswersItem
from .answer_items import AnswerVerdict as AnswerVerdict
from .answer_items import one_answer as one_answer
from .answer_scores import AnswerScore


class Parsed(NamedTuple):
    """What a parser makes of an answer."""

    value: str | None
    """The parsed answer; None if the parser's rules do not apply."""
    right: bool
    """Whether it is right."""
    how: str
    """The parser, or its rule, that parsed the answer."""
    unsure: bool = False
    """Whether the words of the answer express uncertainty."""
    counts: bool = True
    """Whether it counts; a judge's "unsure", for example, may be an answer that leaves it open."""
    credit: float | None = None
    """What it adds to the right answers, where that is not 0 or 1 by whether it is right."""


AnswerParser: TypeAlias = Callable[[Answer], Parsed]
"""Parses an answer that has a response, and compares it with its label."""
UnparsedAs: TypeAlias = Literal["wrong", "no", "unscored"]
"""What an unparsed answer counts as: wrong; wrong, and as a no; or nothing."""


def of_first(name: str, default: str = "") -> Callable[[AnswersItem], str]:
    """Return the function that takes a field of the first answer; the default if it is empty."""
    return lambda item: (item.answers and item.answers[0].fields.get(name)) or default


def compared_by(
    parser: Callable[[str], str | None], how: str, of: str = "response"
) -> AnswerParser:
    """Return the parser of answers that are right if they equal their label.

    Args:
        parser: Returns the parsed answer of a text.
        how: Name of the parser.
        of: What is parsed: the response, or a field such as that of a judge's reply.
    """

    def parse_response(answer: Answer) -> Parsed:
        value = parser(answer.response or "")
        return Parsed(value, value == answer.label, how)

    def parse_field(answer: Answer) -> Parsed:
        value = parser(answer.fields.get(of, ""))
        return Parsed(value, value == answer.label, how)

    # Chosen once, and not for each answer.
    return parse_response if of == "response" else parse_field


def by_name(name: str, parse: AnswerParser, others: AnswerParser) -> AnswerParser:
    """Return the parser that parses the answer of one name unlike the others of its bundle."""
    return lambda answer: (parse if answer.name == name else others)(answer)


MissingAs: TypeAlias = Literal["unscored", "wrong in part", "wrong"]
"""What a null or empty response, or a failure text, counts as: nothing; wrong, unless the whole
bundle is null, which then counts nothing; or wrong. In a benchmark that says the second, archives
may lack answers to questions and have others, which do not count, and a note says so; the third is
then also for questions without a record, which otherwise count nothing."""


class AnswerVariant(Struct, frozen=True, kw_only=True):
    """A variant of a benchmark."""

    name: str
    """Name of the variant."""
    meaning: str
    """Description in one sentence."""
    parse: AnswerParser
    """The answer parser."""
    unparsed: UnparsedAs = "wrong"
    """What an unparsed answer counts as."""
    missing: MissingAs = "unscored"
    """What a missing answer counts as."""
    scores: tuple[AnswerScore, ...] = ()
    """The benchmark's scores with formulas of this variant; empty where they are the same."""
    notes: Callable[[Mapping[str, float]], Iterable[str]] | None = None
    """Returns notes on the sums of all columns."""


class FileNames(dict[str, str]):
    """Names in files -> values of a field for which there are files of their own.

    They are files of sets or, where questions have files too, of splits whose ids are equal.
    """


class Keys(Struct, frozen=True, kw_only=True):
    """Keys of the released files, the usual ones first."""

    response: tuple[str, ...]
    """Keys of the response."""
    label: tuple[str, ...]
    """Keys of the label; empty if ``complete`` makes it."""
    id: tuple[str, ...] = ("question_id", "id")
    """Keys of the id."""
    asked: ClassVar[tuple[str, ...]] = ("question", "Question", "query", "text", "prompt")
    """Keys of the question, of any benchmark."""
    media: tuple[str, ...] = ("image", "image_id", "image_source")
    """Keys of the image or video, by which intervals group items. Without any, or with one that
    ``id`` has too, bundles have images or videos of their own, and archives need not name them."""
    options: tuple[str, ...] = ("options", "choices")
    """Keys of the choices: an object letter -> text, or a list in the order of the letters. They
    are needed if the answers of the trial item have some."""
    fields: Mapping[str, tuple[str, ...]] = {}
    """Field -> keys of its value, which records may not lack. Those in ``seen``, those that an
    answer of ``trial`` has, and those that name an answer within its bundle belong to answers, all
    others to items."""
    values: Mapping[str, Mapping[str, str]] = {}
    """Field, or ``label`` -> its values as files, or their names, have them, in lower case ->
    value; others stay. Spaces around them are ignored, and so is the fraction of a whole number
    such as ``1.0``."""
    optional: tuple[str, ...] = ()
    """Fields that records may lack, which then are empty, as are lists and objects: those are for
    ``unfold`` and ``complete``, which take a table's cells apart by ``with_lists``."""

    @property
    def question(self) -> tuple[str, ...]:
        """Keys of the question, in files that have the response too."""
        return tuple(key for key in self.asked if key not in (*self.response, *self.label))

    @property
    def own_media(self) -> bool:
        """Whether a bundle has an image or video of its own, which its id tells."""
        return not self.media or not {*self.media}.isdisjoint(self.id)


class Bundling(Struct, frozen=True, kw_only=True):
    """Which answers count together; by default each one alone.

    The method ``held_answers`` of the base class returns those that one record holds.
    """

    by: tuple[str, ...] = ()
    """Fields whose equal values make records one bundle; without any, their id does."""
    name: tuple[str, ...] = ()
    """Fields whose values name a record within its bundle. It needs all the names of ``places``; if
    the trial item lacks some, it needs the first one, and counts with those of its answers that can
    be scored. So does a bundle of one id whose names ``places`` does not have."""


class InputTable(Struct, frozen=True, kw_only=True):
    """A further file of an archive."""

    name: str
    """The name of its option on the command line; with ``_file`` where the metric has one too."""
    meaning: str
    """Noun phrase for the option's help."""
    form: Literal["by id", "in order", "asked", "answers", "whole", "lines", "own"] = "by id"
    """``by id``: one object, id of a bundle -> value, which its records get under the table's name;
    every bundle needs one.
    ``in order``: the same, or a list with a value for each record of the responses, in their order.
    ``asked``: records with the id of a bundle, whose values its records get; only these questions
    were asked, of all in the file of questions. ``answers``: the same, of records that count as
    answers where there is no other of their id. ``whole``: one object, and ``lines``: lines of
    text, for items that are no questions. ``own``: records of which the method ``own_table`` of the
    base class makes what all records get."""

    @property
    def required(self) -> bool:
        """Whether every bundle needs its value."""
        return self.form == "by id"

    @property
    def computed(self) -> bool:
        """Whether an option of the metric may have what it holds computed instead."""
        return self.form in ("answers", "own")


class SetFiles(NamedTuple):
    """How files say which set, or which split of equal ids, their records are of."""

    field: str
    """The field of items, and a key of records."""
    names: Mapping[str, str]
    """Beginning of a file's name, or of splits any word in it -> value of the field."""


Unfold: TypeAlias = Callable[
    [Sequence[Mapping[str, object]], str],
    Iterator[tuple[int, Mapping[str, object] | ValueError]],
]
"""Yields the bundles of records, each with its record's position, and for a record that can't be
read an error like those of ``complete``, in place of its bundles. The second argument is
``response``, or ``label`` for files of questions. Raises such an error if nothing can be read."""


class EachRecord(NamedTuple):
    """The reading of files whose records are one bundle each, once they are changed."""

    change: Callable[[Mapping[str, object], int, str], Mapping[str, object]]
    """Returns a record, of its place from 0 on, and of the second argument of ``Unfold``. Raises as
    ``complete`` does."""


SpecialItem: TypeAlias = Callable[[AnswersItem, Mapping[str, object]], AnswersItem]
"""Returns an item of another kind, with what its record holds; raises as ``complete`` does."""


class AnswerFault(NamedTuple):
    """Why an answer of a file would be unscored."""

    problem: str
    """The fault, in the plural."""
    found: object
    """The value."""
    remedy: str
    """The next step."""


def _slots() -> Mapping[str, str | Callable[[Answer], str]]:
    return {name: name for name in ("question", "reference", "response")}


class JudgedAnswers(Struct, frozen=True, kw_only=True):
    """What a language model may judge in a benchmark: the answers, or one of a partial bundle.

    That one has the name of the trial's last answer. Of other bundles of several, each answer is
    judged that is not parsed without a verdict.
    """

    choices: Mapping[str, str]
    """What a judge may answer -> the verdict that it stands for."""
    prompts: Mapping[str, str]
    """Empty, or a value of a field in ``places`` -> the prompt, for all or for this value: a text
    with ``{{slot}}`` for each slot, or the name of one that Hallujudge has."""
    slots: Mapping[str, str | Callable[[Answer], str]] = msgspec.field(default_factory=_slots)
    """Slot of the prompts -> ``question``, ``response``, ``label`` or a field of the judged answer,
    or a function that makes its text of the answer."""

    @property
    def noun(self) -> str:
        """What has verdicts, in the plural: the name of the response's slot."""
        said = (slot for slot, of in self.slots.items() if of == "response")
        return f"{next(said, 'response')}s"

    @property
    def reference(self) -> str:
        """The slot without whose text nothing can be judged; empty if there is none."""
        return next((slot for slot in self.slots if self._is_reference(slot)), "")

    def _is_reference(self, slot: str) -> bool:
        of = self.slots[slot]
        return slot == "reference" or callable(of) or of in ("reference", "label")

    def text(self, slot: str, answer: Answer) -> str:
        """Return the text of a slot of the prompts."""
        of = self.slots[slot]
        if callable(of):
            return of(answer)
        own = getattr(answer, of) if of in ("question", "response", "label") else None
        return own or answer.fields.get(of, "")


# Compared by identity: it is one value of a module, and holds functions.
class ClosedQuestions(Struct, frozen=True, kw_only=True, eq=False):
    """A benchmark of closed questions."""

    name: str
    """The metric's name, such as ``pope``. ``metrics/papers`` has its papers, and what they say of
    its scores; those of a benchmark from outside are in ``NAME.toml`` beside its module."""
    title: str
    """The benchmark and what it measures, such as ``POPE: yes answers about what is absent.``"""
    unit: str
    """The plural noun for items in totals; also a column of ones."""
    keys: Keys
    """Keys of the released files."""
    variants: tuple[AnswerVariant, ...]
    """The variants, the default first."""
    scores: tuple[AnswerScore, ...]
    """The scores, in the order of the report."""
    ranked_by: tuple[str, ...]
    """The scores that rank models, the first one that compared runs have: runs of a part of the
    benchmark may lack some. The last one is at its best for the trial item."""
    trial: AnswersItem
    """A small example whose answers are right, with the first label that it may have. An unscored
    bundle would be like it at best and, with wrong answers, at worst; ratios that it does not take
    to their limits have these as bounds, and no count may be part of two of them."""
    labels: tuple[str, ...] = ("yes", "no")
    """The labels; empty if any text may be one."""
    bundle: Bundling = msgspec.field(default_factory=Bundling)
    """Which answers count together."""
    group_by: tuple[str, ...] = ()
    """Fields of items by which results are grouped by default; the records of a bundle agree in
    these, and in those of ``places``, unless they lack them."""
    places: Mapping[str, tuple[str, ...] | Mapping[str, str]] = {}
    """Field -> values that it may have, perhaps with their meanings; archives with others are
    refused, items with others are unscored. Names within a bundle may be written in any way."""
    seen: tuple[str, ...] = ()
    """Fields of answers that parsers and counts look at, also those of a bundle's groups."""
    options: tuple[OptionDefinition, ...] = ()
    """Options of the metric."""
    question_files: str = ""
    """Usual name of a file of questions, which answers are joined with for what they leave out;
    empty if they leave nothing out."""
    unfold: Unfold | EachRecord | None = None
    """Reads released files that hold many bundles in one record, or changes each record."""
    tables: tuple[InputTable, ...] = ()
    """Further files of an archive."""
    complete: Callable[[Answer, Mapping[str, object]], Answer] | None = None
    """Returns an answer with what only this benchmark reads of its record. Raises ``ValueError``,
    with the fault and the next step, for a record that can't be read."""
    judged: JudgedAnswers | None = None
    """What a language model may judge; None if answers are parsed only."""
    base: type[Metric] | None = None
    """The base class of the metric, an ``AnswersMetric`` (a ``MeansMetric`` if it has means) with
    what only this benchmark computes; None for the shared one."""
    asking: tuple[AskingProtocol, ...] | OwnAsking = ()
    """The ways to put its questions to a model, the default first; empty for one call with a prompt
    by the labels. The method ``shown`` of the base class says what else a model is shown."""

    @property
    def summary(self) -> str:
        """What it measures, in one line."""
        name, _, what = self.title.partition(": ")
        return f"{what[:1].upper()}{what[1:]}" or name

    @property
    def main_score(self) -> str:
        """The score of one bundle, which all runs have."""
        return self.ranked_by[-1]

    @property
    def of_answers(self) -> tuple[str, ...]:
        """The fields of answers: those that are seen, and those of the trial item's answers."""
        had = (name for each in self.trial.answers for name in each.fields)
        return tuple(dict.fromkeys((*self.seen, *had)))

    @property
    def choices(self) -> bool:
        """Whether answers choose among options, which their records or files of questions hold."""
        return all(each.options for each in self.trial.answers)

    @property
    def incomplete(self) -> bool:
        """Whether archives may lack answers to questions, and have answers to others."""
        missing = {each.missing for each in self.variants}
        return bool(self.question_files) and "wrong in part" in missing

    @property
    def judge_option(self) -> str:
        """The option whose values are judges, ``given`` and perhaps parsers; empty without one."""
        if self.judged is None:
            return ""
        return next((each.name for each in self.options if set(LLM_JUDGES) & {*each.choices}), "")

    @property
    def verdicts(self) -> tuple[str, ...]:
        """Fields with a verdict on an answer, which questions never have.

        They are ``judgement``, or else those that parsers see and records may lack. An answer that
        has the first needs no label.
        """
        if self.judged is None or self.partial:
            return ()
        told = (name for name in self.seen if name in self.keys.optional)
        return ("judgement",) if "judgement" in self.keys.fields else tuple(told)

    @property
    def verdict(self) -> str:
        """The field of a judged answer with its verdict, from the file or a judge."""
        return next(iter(self.verdicts), "judgement")

    @property
    def lacking(self) -> str:
        """What is missing of an answer that can't be judged, and the next step."""
        assert self.judged is not None, "asked only then"
        slot = self.judged.reference
        of = self.judged.slots[slot]
        keys = {**self.keys.fields, "label": self.keys.label}
        key, *_ = keys.get(slot if callable(of) else of, (slot,))
        return f"no {key} to judge by; give it"

    @property
    def names(self) -> Mapping[str, str]:
        """The names that answers of a bundle may have -> meaning; empty if any."""
        held = self.places.get(self.bundle.name[0], {}) if self.bundle.name else {}
        return held if isinstance(held, Mapping) else dict.fromkeys(held, "")

    @property
    def partial(self) -> bool:
        """Whether a bundle counts with those of its answers that can be scored."""
        lacking = self.names.keys() - {answer.name for answer in self.trial.answers}
        return bool(self.bundle.name and (lacking if self.names else not self.bundle.by))

    @property
    def needed(self) -> tuple[str, ...]:
        """Names of the answers that a bundle may not lack; empty if they are not known."""
        return tuple(self.names)[:1] if self.partial else tuple(self.names)

    @property
    def same(self) -> tuple[str, ...]:
        """The fields in which the records of a bundle agree: its place in the benchmark."""
        apart = {*self.bundle.by, *self.bundle.name, *self.verdicts}
        names = dict.fromkeys((*self.group_by, *self.places))
        return tuple(name for name in names if name in self.keys.fields and name not in apart)

    @property
    def limits(self) -> Mapping[str, Collection[str]]:
        """Field of items or of what is seen of answers -> values that it may have."""
        return {name: v for name, v in self.places.items() if name not in self.bundle.name}

    @property
    def several(self) -> bool:
        """Whether a bundle may have several answers, as the trial item then has."""
        return bool(self.bundle.name) or len(self.trial.answers) > 1

    @property
    def alone(self) -> bool:
        """Whether every answer counts alone."""
        return not (self.several or self.bundle.by)

    @property
    def judged_name(self) -> str:
        """The name of the judged answer within a partial bundle."""
        return self.trial.answers[-1].name

    @property
    def judges_each(self) -> bool:
        """Whether every answer of a bundle is judged."""
        return self.judged is not None and self.several and not self.partial

    @property
    def prompt_by(self) -> str:
        """The field of items that chooses the judge's prompt; empty if there is one prompt."""
        values = set(self.judged.prompts) if self.judged is not None else {""}
        fields = (
            n for n, known in self.places.items() if n not in self.seen and values <= {*known}
        )
        return "" if values == {""} else next(fields, "")

    @property
    def set_files(self) -> SetFiles | None:
        """How files are named by sets; None if an archive has no file for each set."""
        return None if self.question_files else self._named_files

    @property
    def split_files(self) -> SetFiles | None:
        """How files of equal ids are told apart; None if ids are unique."""
        return self._named_files if self.question_files else None

    @property
    def _named_files(self) -> SetFiles | None:
        named = (SetFiles(*each) for each in self.keys.values.items())
        return next((each for each in named if isinstance(each.names, FileNames)), None)

    @property
    def joins_by_text(self) -> bool:
        """Whether answers may be joined with their questions by text or order too, not by id only.

        Files that lack the splits' ids are, if answers have nothing but a text and a label.
        """
        more = self.keys.fields or self.complete or self.unfold or self.choices
        return self.split_files is not None and self.alone and not more

    def variant(self, name: str) -> AnswerVariant:
        """Return the variant with a name, which must exist."""
        return next(each for each in self.variants if each.name == name)

    @property
    def variant_definitions(self) -> tuple[VariantDefinition, ...]:
        """The variants as every metric declares them."""
        return tuple(VariantDefinition(name=v.name, meaning=v.meaning) for v in self.variants)

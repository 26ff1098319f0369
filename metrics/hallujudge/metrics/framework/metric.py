"""The base class of metrics, and what a metric declares: papers, variants, options.

Help texts, tables, tooltips and the wire's description of a metric are made from the declarations.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct, structs

from ..errors import OptionError, UnknownVariantError, choose_from
from .arrays import FloatArray, np
from .columns_and_scores import Column, JudgedColumn, ScoreDefinition
from .results import Item, ItemResult, Outcome
from .signature import ASKED, OF_EVERY_RUN, PROMPTS, SIGNATURE_FIELDS, Signature

Purpose: TypeAlias = Literal["input", "metric", "judge"]
"""What an option sets; help pages group options by it."""

# They begin titles, and tell nothing in the key of a BibTeX entry.
_SMALL_WORDS = frozenset({"a", "an", "the", "on", "towards"})


class Paper(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A paper that defines a metric, or a part of it."""

    title: str
    """Title of the paper."""
    authors: str
    """First author and others, such as ``Rohrbach et al.``."""
    names: str = ""
    """All authors, separated by commas; empty if only :attr:`authors` are known."""
    year: int
    """Year of the first version."""
    link: str = ""
    """arXiv id or DOI; empty without either."""
    venue: str = ""
    """Conference and its year, such as ``EMNLP 2018``; empty for a preprint."""
    where: str = ""
    """Section or formulas that define the scores."""

    @property
    def citation(self) -> str:
        """Return the citation on one line."""
        parts = (f"{self.authors}, {self.title}, {self.year}", self.link, self.where)
        return "; ".join(part for part in parts if part)

    @property
    def bibtex(self) -> str:
        """Return the BibTeX entry."""
        # BibTeX writes "and others" for "et al."
        people = re.split(r", | and ", self.names or self.authors.replace(" et al.", ", others"))
        venue, _, year = self.venue.rpartition(" ")
        site, _, number = self.link.partition(":")
        fields = {
            # Inner braces keep the letters' case.
            "title": f"{{{self.title}}}",
            "author": " and ".join(people),
            "booktitle": venue,
            "year": year or str(self.year),
            "eprint": number if site == "arXiv" else "",
            "archivePrefix": "arXiv" if site == "arXiv" else "",
            "url": f"https://arxiv.org/abs/{number}" if site == "arXiv" else self.link,
        }
        words = re.findall(r"[a-z0-9]+", self.title.lower())
        word = next((word for word in words if word not in _SMALL_WORDS), "")
        key = f"{people[0].split()[-1].lower()}{fields['year']}{word}"
        lines = [f"  {name} = {{{text}}}," for name, text in fields.items() if text]
        return "\n".join([f"@{'inproceedings' if venue else 'misc'}{{{key},", *lines, "}"])


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantDefinition:
    """A variant of a metric."""

    name: str
    """Name of the variant, such as ``published``."""
    meaning: str
    """Description in one sentence."""


PUBLISHED = VariantDefinition(
    name="published", meaning="Reproduces the released script exactly, including its known bugs."
)
"""The variant of metrics whose authors released one script."""

# In a terminal of 80 columns, help shows an option's name and this many characters next to it.
LONGEST_HELP = 60


class OptionDefinition(Struct, frozen=True, kw_only=True):
    """An option of a metric."""

    name: str
    """Name of the option."""
    default: str = ""
    """Default value; by default the first choice, if there are choices."""
    choices: tuple[str, ...] = ()
    """Allowed values; empty for free text."""
    meaning: str
    """Noun phrase that names what the option sets."""
    details: str = ""
    """What the choices mean, in one sentence; empty if the names say enough."""
    purpose: Purpose = "metric"
    """What the option sets."""
    number: bool = False
    """Whether the value is a number."""
    file: bool = False
    """Whether the value is a text that the command line reads from a file."""

    def __post_init__(self) -> None:
        if not self.default and self.choices:
            structs.force_setattr(self, "default", self.choices[0])

    @property
    def help(self) -> str:
        """Return the meaning and the choices on one short line; of many choices, the first ones."""
        if not self.choices:
            return self.meaning
        *others, last = self.choices
        meaning = self.meaning.rstrip(".")
        text = f"{meaning}: {', '.join(others)} or {last}."
        # One left out of two would be the other one.
        while len(text) > LONGEST_HELP and len(self.choices) > 2 and others:
            text = f"{meaning}: {', '.join(others)}, ..."
            others.pop()
        return text

    @property
    def sentence(self) -> str:
        """Return the meaning with its details."""
        return f"{self.meaning} {self.details}".rstrip()


class JudgeOption(OptionDefinition, frozen=True, kw_only=True):
    """An option that chooses a judge, or says how it is asked."""

    purpose: Purpose = "judge"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOption:
    """An option of a metric's archives, which only this metric's reader takes."""

    name: str
    """Name of the option."""
    meaning: str
    """Noun phrase for the option's help."""
    kind: Literal["file", "folder", "text", "texts", "set"] = "file"
    """What its value is: a file, a folder of what records name, a text, several texts, or what the
    command or another option sets."""
    named: str = ""
    """The name on the command line; empty for the same name."""

    @property
    def flag(self) -> str:
        """Return the flag on the command line."""
        return f"--{(self.named or self.name).replace('_', '-')}"


LLM_JUDGES = ("llm", "router")
"""The judges that call a language model: one, or those of ``judge_order`` one after the other."""
SEES = "sees"
"""A language model that is shown the image, where others read its scene graph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """Base class of all metrics: declarations, and how statistics become scores.

    A family declares its papers, variants, options, columns and scores, and defines
    :meth:`extreme`. A field of an option's name holds the option's value.

    Attributes:
        variant: The variant's name. Empty for the first one.
        prompts: Hashes of the prompts that the answering model was given, if the archive has them.
        asked: How it was asked, if the archive says so.
        responses: How missing responses are recognised, for the signature. Empty for the default.
        thoughts: What happens to thoughts; empty for the default, which leaves them out.
        thought_marks: Further marks of thoughts that the user named; empty without any.
    """

    name: ClassVar[str]
    """The metric's name, such as ``chair``."""
    summary: ClassVar[str]
    """What the metric measures, in one line."""
    papers: ClassVar[tuple[Paper, ...]]
    """The papers that define it."""
    variants: ClassVar[tuple[VariantDefinition, ...]]
    """The variants, the default first."""
    options: ClassVar[tuple[OptionDefinition, ...]] = ()
    """What a run may choose besides the variant."""
    unit: ClassVar[str]
    """The plural noun for items in totals, such as ``captions``; also a column of ones."""
    folds: ClassVar[bool] = True
    """Whether clusters may be summed before scores are computed.

    True where columns are whole numbers and only their sums count. Memory then stops growing with
    the number of items."""
    columns: ClassVar[tuple[Column, ...]]
    """The statistics of an item, in order."""
    score_definitions: ClassVar[tuple[ScoreDefinition, ...]]
    """The scores of all variants and options, in the order of the report."""
    ranked_by: ClassVar[tuple[str, ...]]
    """The scores that rank models: the first one that compared runs have. The last one is also the
    score of a single response."""
    ranking_source: ClassVar[str] = ""
    """Where the paper, or a public leaderboard, ranks models so, in one sentence."""
    headline: ClassVar[tuple[str, ...]] = ()
    """The scores that a short table shows, those of the paper's own table; empty for all."""
    judged: ClassVar[tuple[JudgedColumn, ...]] = ()
    """The columns that human labels can correct."""
    unresolved: ClassVar[str] = ""
    """The column that counts an item's claims without a verdict. Empty where a scored item has
    a verdict for every claim."""
    text_scores: ClassVar[tuple[str, ...] | None] = None
    """The scores that a thought can have too, since they are of texts; None for all."""
    split_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields whose value is a list of groups, separated by commas."""
    group_by: ClassVar[tuple[str, ...]] = ()
    """The fields by which results are grouped by default."""
    judge_option: ClassVar[str] = ""
    """The option that names the judge; empty if the metric has no judge."""
    panel_asks: ClassVar[bool] = False
    """Whether all members of its panels are language models."""
    extractor_option: ClassVar[str] = "extractor"
    """The option that names the extractor."""

    variant: str = ""
    prompts: str = ""
    asked: str = ""
    responses: str = ""
    thoughts: str = ""
    thought_marks: str = ""

    def __post_init__(self) -> None:
        # Defaults are filled in here, so that equal settings are equal values.
        known = self.variant_names()
        object.__setattr__(self, "variant", self.variant or known[0])
        if self.variant not in known:
            raise UnknownVariantError(self.name, self.variant, known)
        for option in self.options:
            value = getattr(self, option.name) or option.default
            object.__setattr__(self, option.name, value)
            if option.choices and value not in option.choices:
                problem = f"{value!r} is not a value of it; {choose_from(value, option.choices)}"
                raise OptionError(self.name, option.name, problem)

    @classmethod
    def overrides(cls, method: str) -> bool:
        """Return whether this metric's class replaces a method of one of its base classes.

        Most metrics replace few methods, so that callers ask once and not for each item.
        """
        # Where two classes or more define a method, one replaces that of another.
        _, *replaced = (kind for kind in cls.__mro__ if method in vars(kind))
        return bool(replaced)

    @classmethod
    def variant_names(cls) -> tuple[str, ...]:
        """Return the names of the variants, the default first."""
        return tuple(variant.name for variant in cls.variants)

    @classmethod
    def asks_llm(cls, options: Mapping[str, str]) -> bool:
        """Return whether a language model judges in a run with these options."""
        panel = cls.panel_asks and bool(options.get("panel"))
        return panel or options.get(cls.judge_option) in (*LLM_JUDGES, SEES)

    @classmethod
    def calls_models(cls, options: Mapping[str, str]) -> bool:
        """Return whether language models judge or extract in a run."""
        return cls.asks_llm(options) or options.get(cls.extractor_option) == "llm"

    @classmethod
    def loads_models(cls, options: Mapping[str, str]) -> bool:  # noqa: ARG003 - few metrics do
        """Return whether a run loads models, such as sentence encoders."""
        return False

    @classmethod
    def needs_models(cls, options: Mapping[str, str]) -> bool:
        """Return whether a run calls or loads models; others only need a processor."""
        return cls.calls_models(options) or cls.loads_models(options)

    @property
    def scores(self) -> tuple[ScoreDefinition, ...]:
        """Return the scores of this variant and these options, in the order of the report."""
        return self.score_definitions

    @property
    def main_score(self) -> str:
        """Return the name of the score of a single response: the last that ranks models."""
        # Those before it need several kinds of items, or are undefined for some responses.
        return self.ranked_by[-1]

    @property
    def division(self) -> Callable[[str], tuple[str, str, str, bool]] | None:
        """Return how the variant tells thoughts from answers; None for the common rules.

        It returns a ``Said`` of the package ``responses``.
        """
        return None

    def is_open(self, item: Item) -> bool:  # noqa: ARG002
        """Return whether an item's response is a text of sentences, such as a caption."""
        return True

    def disagrees(self, item: Item, thought: str) -> bool | None:  # noqa: ARG002
        """Return whether a thought's last clear answer is another one than the item's.

        None if one of the two has no clear answer, or the metric is not of closed questions.
        """
        return None

    @property
    def repeated_by(self) -> str:
        """Return the field by whose groups an item counts repeatedly overall, or empty."""
        return ""

    @property
    def signature(self) -> Signature:
        """Return the fields that the scores depend on, other than inputs and interval settings."""
        fields = [("var", self.variant), *self.signature_fields()]
        of_archive = ((PROMPTS, self.prompts), (ASKED, self.asked), ("responses", self.responses))
        fields += [(name, value) for name, value in of_archive if value]
        return Signature(metric=self.name, fields=tuple(fields))

    def signature_fields(self) -> tuple[tuple[str, str], ...]:
        """Return the fields that the scores depend on in addition to the variant."""
        return ()

    @classmethod
    def signature_names(cls) -> tuple[str, ...]:
        """Return the names of all fields that signatures of this metric may have, in order."""
        # Fields that a run does not use are absent, so that every option is set to another value.
        set_to = {o.name: next(filter(o.default.__ne__, o.choices), "set") for o in cls.options}
        values = {field.name: set_to.get(field.name, "set") for field in fields(cls) if field.init}
        whole = cls(**values | {"variant": cls.variants[0].name})
        own = {name for name, _ in whole.signature.fields}
        return tuple(name for name in SIGNATURE_FIELDS if name in own | OF_EVERY_RUN)

    def expand(self, items: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:  # noqa: ARG002
        """Return more columns, of the same length, that need all items of a table.

        How often the commonest answer was given depends on which one that is, so the columns that
        count it are made from a ``label`` column when a table is scored.
        """
        return {}

    def derive(self, clusters: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """Return the clusters with additional columns that scores need.

        A score that is a mean over images of each image's own ratio needs the ratio as a column.
        """
        return clusters

    def item_values(
        self, score: ScoreDefinition, results: Sequence[ItemResult]
    ) -> list[float | None]:
        """Return a score of each item alone; None if it is undefined or the item is unscored."""
        name = score.name
        asked = [r for r in results if r.outcome is Outcome.SCORED and name not in r.scores]
        counted = iter(self._values(score, [result.statistics for result in asked]))
        values = [
            result.scores[name]
            if name in result.scores
            else next(counted)
            if result.outcome is Outcome.SCORED
            else None
            for result in results
        ]
        # An item alone may have nothing to divide by.
        return [v if v is not None and math.isfinite(v) else None for v in values]

    def _values(self, score: ScoreDefinition, rows: Sequence[Sequence[float]]) -> list[float]:
        """Return a score of each row of statistics, as if it were a table of its own."""
        # These columns depend on all rows of a table, so that each row is a table of its own.
        if len(rows) > 1 and self.overrides("expand"):
            return [value for row in rows for value in self._values(score, [row])]
        if not rows:
            return []
        columns = np.array(rows, np.float64).T
        names = [column.name for column in self.columns]
        table = {self.unit: np.ones(len(rows)), **dict(zip(names, columns, strict=True))}
        table = {**self.derive({**table, **self.expand(table)})}
        with np.errstate(all="ignore"):
            values: list[float] = score.value(
                {name: table[name] for name in score.columns}
            ).tolist()
        return values

    def resolve(self, items: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, FloatArray]:  # noqa: ARG002
        """Return the columns with every claim without a verdict at its best, or at its worst."""
        return items

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:
        """Return the statistics of an unscored item at its best, or at its worst.

        Columns that it leaves out, such as those of :meth:`expand`, are 0.

        Args:
            observed: For each column the largest number that a scored item has.
            best: Which of the two.
        """
        raise NotImplementedError

    def notes_on(self, totals: Mapping[str, float]) -> tuple[str, ...]:  # noqa: ARG002
        """Return sentences for the report about what its scores count.

        Args:
            totals: The sums of the columns over all items.
        """
        return ()


SOFT, YES = "soft", "yes"
"""The option's name, and its value in runs that count probabilities."""
WITHOUT_PROBABILITY = "without_probability"
"""The column of what counts by its verdict where probabilities count."""


def soft_option(probability: str, details: str) -> OptionDefinition:
    """Return the option of a metric.

    Args:
        probability: What counts, such as ``P(right)``.
        details: Judges that state it, and what counts by verdict.
    """
    meaning = f"Count {probability} instead of verdicts."
    return OptionDefinition(name=SOFT, choices=("no", YES), meaning=meaning, details=details)


def verdicts_option(name: str, meaning: str, given: str) -> OptionDefinition:
    """Return the option of a metric whose verdicts come with the files, or from a judge.

    Args:
        name: Name of the option.
        meaning: Noun phrase for its help.
        given: Which verdicts of the files count.
    """
    details = f"given uses {given}; llm and router are judges."
    choices = ("given", "llm", "router")
    return OptionDefinition(name=name, choices=choices, meaning=meaning, details=details)


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftMetric(Metric):
    """A metric with the option ``soft``; what has no probability counts by its verdict.

    Attributes:
        soft: ``yes`` counts probabilities instead of verdicts.
    """

    soft_scores: ClassVar[str]
    """In which scores what counts how much."""
    soft_noun: ClassVar[str]
    """What has verdicts, in the plural."""

    soft: str = ""

    @property
    def is_soft(self) -> bool:
        """Return whether probabilities count instead of verdicts."""
        return self.soft == YES

    def soft_fields(self) -> tuple[tuple[str, str], ...]:
        """Return the option as a field of the signature; none if verdicts count."""
        return ((SOFT, YES),) if self.is_soft else ()

    def verdicts_in(self, totals: Mapping[str, float]) -> int:
        """Return how many have a verdict.

        Args:
            totals: Each column's sum over the scored items.
        """
        raise NotImplementedError

    def notes_on(self, totals: Mapping[str, float]) -> tuple[str, ...]:
        """Return how many count by their verdict, if probabilities count and any has a verdict."""
        known = self.verdicts_in(totals)
        if not self.is_soft or not known:
            return ()
        missing = int(totals[WITHOUT_PROBABILITY])
        found = (
            f"{missing:,} of {known:,} {self.soft_noun} have no probability and count by their "
            "verdict"
            if missing
            else f"all {known:,} {self.soft_noun} with a verdict have a probability"
        )
        return (f"Soft: {self.soft_scores}; {found}. The other scores count verdicts.",)

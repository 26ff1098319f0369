"""The base class of metrics, and what a metric declares: papers, variants, options.

Help texts, tables, tooltips and the wire's description of a metric are made from the declarations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    ClassVar,
    Literal,
    Protocol,
    TypeAlias,
    TypeGuard,
    runtime_checkable,
)

from ..errors import OptionError, UnknownVariantError
from .columns_and_scores import Column, JudgedColumn, ScoreDefinition
from .signature import Signature

if TYPE_CHECKING:
    from .columns_and_scores import FloatArray

Purpose: TypeAlias = Literal["input", "metric", "judge"]
"""What an option sets; help pages group options by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A paper that defines a metric, or a part of it."""

    title: str
    """Title of the paper."""
    authors: str
    """First author and others, such as ``Rohrbach et al.``."""
    year: int
    """Year of publication."""
    link: str = ""
    """arXiv id or DOI; empty without either."""
    where: str = ""
    """Section or formulas that define the scores."""

    @property
    def citation(self) -> str:
        """Return the citation on one line."""
        parts = (f"{self.authors}, {self.title}, {self.year}", self.link, self.where)
        return "; ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantDefinition:
    """A variant of a metric."""

    name: str
    """Name of the variant, such as ``published``."""
    meaning: str
    """Description in one sentence."""


PUBLISHED = VariantDefinition(
    name="published",
    meaning="Reproduces the released script exactly, including its known bugs.",
)
"""The variant of metrics whose authors released one script."""

# The help of an option stands beside its name, in a terminal of 80 columns.
_LINE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionDefinition:
    """An option of a metric."""

    name: str
    """Name of the option."""
    default: str
    """Default value."""
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

    @property
    def help(self) -> str:
        """Return the meaning and the choices on one short line; of many choices, the first ones."""
        if not self.choices:
            return self.meaning
        *others, last = self.choices
        meaning = self.meaning.rstrip(".")
        text = f"{meaning}: {', '.join(others)} or {last}."
        while len(text) > _LINE and others:
            text = f"{meaning}: {', '.join(others)}, ..."
            others.pop()
        return text

    @property
    def sentence(self) -> str:
        """Return the meaning with its details."""
        return f"{self.meaning} {self.details}".rstrip()


def is_expanding(metric: object) -> TypeGuard[ExpandingMetric]:
    """Return whether a metric is an :class:`ExpandingMetric`."""
    return _follows(metric, ExpandingMetric)


def is_resolving(metric: object) -> TypeGuard[ResolvingMetric]:
    """Return whether a metric is a :class:`ResolvingMetric`."""
    return _follows(metric, ResolvingMetric)


def is_repeating(metric: object) -> TypeGuard[RepeatingMetric]:
    """Return whether a metric is a :class:`RepeatingMetric`."""
    return _follows(metric, RepeatingMetric)


_FOLLOWS: dict[tuple[type, type], bool] = {}


def _follows(metric: object, protocol: type) -> bool:
    """Return whether a metric follows a protocol, which all metrics of its class do or don't.

    ``isinstance`` takes 30 microseconds for a protocol, and short reports asked it four times.
    """
    key = type(metric), protocol
    if (known := _FOLLOWS.get(key)) is None:
        known = _FOLLOWS[key] = isinstance(metric, protocol)
    return known


@runtime_checkable
class ExpandingMetric(Protocol):
    """A metric with columns that are made from a whole table of items.

    How often the commonest answer was given needs to know which one that is; the columns that count
    it are made when a table is scored, from a ``label`` column.
    """

    def expand(self, items: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """Return more columns, of the same length, for the items of a table."""
        ...


@runtime_checkable
class ResolvingMetric(Protocol):
    """A metric whose scored items may hold claims without a verdict."""

    @property
    def unresolved(self) -> str:
        """The column that counts an item's claims without a verdict."""
        ...

    def resolve(self, items: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, FloatArray]:
        """Return the columns with every claim without a verdict at its best, or at its worst."""
        ...


@runtime_checkable
class RepeatingMetric(Protocol):
    """A metric whose items may belong to several groups of a field."""

    @property
    def split_fields(self) -> frozenset[str]:
        """Fields whose value is a list of groups, separated by commas."""
        ...

    @property
    def repeated_by(self) -> str:
        """The field by whose groups an item counts repeatedly in the overall scores, or empty."""
        ...


class Metric(Protocol):
    """Interface of a metric for the tally."""

    @property
    def name(self) -> str:
        """Return the metric's name, such as ``chair``."""
        ...

    @property
    def variant(self) -> str:
        """Return the variant's name, such as ``published``."""
        ...

    @property
    def unit(self) -> str:
        """Return the plural noun for items in totals, such as ``captions``; a column of ones."""
        ...

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return the statistics of an item, in order."""
        ...

    @property
    def scores(self) -> tuple[ScoreDefinition, ...]:
        """Return the scores, in the order of the report."""
        ...

    @property
    def judged(self) -> tuple[JudgedColumn, ...]:
        """Return the columns that human labels can correct."""
        ...

    @property
    def folds(self) -> bool:
        """Return whether clusters may be summed before scores are computed.

        True where columns are whole numbers whose sums are all that counts; then memory stops
        growing with the number of items.
        """
        ...

    @property
    def signature(self) -> Signature:
        """Return the fields that the scores depend on, other than inputs and interval settings."""
        ...

    def derive(self, clusters: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """Return additional columns of clusters that scores need.

        A score that is a mean over images of each image's own ratio needs the ratio as a column.
        Most metrics have none and return the clusters.
        """
        ...

    def notes_on(self, totals: Mapping[str, float]) -> tuple[str, ...]:
        """Return sentences for the report about what its scores count.

        Args:
            totals: The sums of the columns over all items.
        """
        ...

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:
        """Return the statistics of an unscored item at its best, or at its worst.

        Args:
            observed: For each column the largest number that a scored item has.
            best: Which of the two.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricBase:
    """Declarations and shared behaviour of every metric.

    A field of an option's name holds the option's value; empty means the default.

    Attributes:
        variant: The variant's name; empty: the first one.
        responses: How missing responses are recognised, for the signature; empty: as shipped.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    papers: ClassVar[tuple[Paper, ...]]
    variants: ClassVar[tuple[VariantDefinition, ...]]
    options: ClassVar[tuple[OptionDefinition, ...]] = ()
    unit: ClassVar[str]
    folds: ClassVar[bool] = True
    columns: ClassVar[tuple[Column, ...]]
    score_definitions: ClassVar[tuple[ScoreDefinition, ...]]
    judged: ClassVar[tuple[JudgedColumn, ...]] = ()

    variant: str = ""
    responses: str = ""

    def __post_init__(self) -> None:
        known = self.variant_names()
        object.__setattr__(self, "variant", self.variant or known[0])
        if self.variant not in known:
            raise UnknownVariantError(self.name, self.variant, known)
        for option in self.options:
            value = getattr(self, option.name) or option.default
            object.__setattr__(self, option.name, value)
            if option.choices and value not in option.choices:
                problem = f"{value!r} is not one of {', '.join(option.choices)}"
                raise OptionError(self.name, option.name, problem)

    @classmethod
    def variant_names(cls) -> tuple[str, ...]:
        """Return the names of the variants, the default first."""
        return tuple(variant.name for variant in cls.variants)

    @property
    def scores(self) -> tuple[ScoreDefinition, ...]:
        """Return the scores in the order of the report."""
        return self.score_definitions

    @property
    def signature(self) -> Signature:
        """Return the variant and the metric's own fields."""
        fields = [("var", self.variant), *self.signature_fields()]
        if self.responses:
            fields.append(("responses", self.responses))
        return Signature(metric=self.name, fields=tuple(fields))

    def signature_fields(self) -> tuple[tuple[str, str], ...]:
        """Return the fields that the scores depend on in addition to the variant."""
        return ()

    def derive(self, clusters: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """Return the clusters unchanged."""
        return clusters

    def notes_on(self, totals: Mapping[str, float]) -> tuple[str, ...]:  # noqa: ARG002
        """Return no notes."""
        return ()


SOFT, YES = "soft", "yes"
"""The option's name, and its value in runs that count probabilities."""


def soft_option(probability: str, details: str) -> OptionDefinition:
    """Return the option of a metric.

    Args:
        probability: What counts, such as ``P(right)``.
        details: Judges that state it, and what counts by verdict.
    """
    return OptionDefinition(
        name=SOFT,
        default="no",
        choices=("no", YES),
        meaning=f"Count {probability} instead of verdicts.",
        details=details,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftMetric(MetricBase):
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
        missing = int(totals["without_probability"])
        found = (
            f"{missing:,} of {known:,} {self.soft_noun} have no probability and count by their "
            "verdict"
            if missing
            else f"all {known:,} {self.soft_noun} with a verdict have a probability"
        )
        return (f"Soft: {self.soft_scores}; {found}. The other scores count verdicts.",)

"""Base class of all metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ..errors import OptionError, UnknownVariantError
from .definitions import OptionDefinition, Paper, VariantDefinition
from .metric import Column, JudgedColumn, ScoreDefinition
from .signature import Signature

if TYPE_CHECKING:
    from .metric import FloatArray

__all__ = ["MetricBase"]


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

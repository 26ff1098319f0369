"""The help of declared options."""

from __future__ import annotations

from hallujudge.metrics.framework.metric import OptionDefinition


def test_help_has_the_choices_or_as_many_as_fit_on_a_line() -> None:
    few = OptionDefinition(name="x", default="a", choices=("a", "b", "c"), meaning="What it is.")
    assert few.help == "What it is: a, b or c."
    words = tuple(f"choice-{number}" for number in range(20))
    many = OptionDefinition(name="x", default="a", choices=words, meaning="What it is.")
    assert many.help == "What it is: choice-0, choice-1, choice-2, choice-3, ..."
    assert len(many.help) <= 60
    free = OptionDefinition(name="x", default="", meaning="What it is.")
    assert free.help == "What it is."

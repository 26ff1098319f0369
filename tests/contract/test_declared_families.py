"""A benchmark of ours has its four places; what it lacks is said in words, with where it goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hallujudge.metrics.families import FAMILIES, benchmarks_of, metrics_of
from hallujudge.metrics.framework.papers import facts_of
from hallujudge.sdk.archives.example_files import example_archives

ROOT = Path(__file__).resolve().parents[2]
METRICS = "metrics/hallujudge/metrics"


def _file(name: str) -> str:
    return f"{name.replace('-', '_')}.toml"


def lacking(family: str) -> Iterator[str]:
    """Yield what a family of closed questions lacks, each as a sentence with where it goes."""
    if not metrics_of(family):
        yield (
            f"{METRICS}/{family}.py is a family, as all modules there are, but has neither "
            "a BENCHMARK nor a metric: name a ClosedQuestions BENCHMARK, or move the module to "
            "answers/ or framework/."
        )
    golden = "".join(path.read_text() for path in (ROOT / "tests" / "golden").glob("test_*.py"))
    guides = "".join(path.read_text() for path in (ROOT / "docs" / "how-to").glob("*.md"))
    for declared in benchmarks_of(family):
        name = declared.name
        facts = facts_of(name)
        if not facts.papers:
            yield (
                f"Add the paper of {name} as {METRICS}/papers/{_file(name)}: title, authors, "
                "names, year, link and where."
            )
        if not facts.ranking_source:
            yield (
                f"Add a table metrics.{name} to the paper's file: in ranking_source, say where the "
                "paper ranks models by the score of ranked_by."
            )
        if name not in example_archives():
            yield (
                f"Add a small archive of {name} as [examples.{name}] to {METRICS}/papers/"
                f"{_file(family)}: the command and its files. Tests draw their archives, runs and "
                "questions from it."
            )
        has_script = any(variant.name != "paper" for variant in declared.variants)
        if has_script and f'"{name}"' not in golden:
            yield (
                f"Add tests/golden/test_{family}_scores.py: the numbers that the released script "
                f"of {name} gives for small data."
            )
        if f"score {name}" not in guides:
            yield (
                f"Run tools/generated_pages.py: it writes a section about {name} from the module's "
                f"docstring. Or write a page docs/how-to/score-{name}.md."
            )


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_has_everything(family: str) -> None:
    assert not [*lacking(family)], "\n".join(lacking(family))


def test_what_is_missing_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "metrics_of", lambda _family: ())
    (sentence,) = lacking("pope")
    assert sentence.startswith("metrics/hallujudge/metrics/pope.py is a family, as all modules")
    monkeypatch.undo()
    monkeypatch.setitem(globals(), "example_archives", dict)
    (sentence,) = lacking("pope")
    assert sentence.startswith("Add a small archive of pope as [examples.pope] to metrics/")

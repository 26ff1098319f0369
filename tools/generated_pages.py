"""Write the parts of README.md and docs/ that the metrics' declarations say, between two marks.

    python tools/generated_pages.py [--check]

A part lies between ``<!-- generated: NAME -->`` and ``<!-- end -->``. With ``--check``, nothing is
written: pages that are not current are named, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from shlex import split

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.metrics.answers.closed_questions import ClosedQuestions
from hallujudge.metrics.families import FAMILIES, benchmarks_of, family_of, metric_names
from hallujudge.metrics.framework.papers import published_rows
from hallujudge.sdk.archives.example_files import example_archives

ROOT = Path(__file__).resolve().parents[1]
GUIDES = ROOT / "docs" / "how-to"
_PART = re.compile(r"(<!-- generated: ([a-z ]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_MOST_SCORES = 9


def metrics(_page: Path) -> Iterator[str]:
    """Yield the table of metrics."""
    yield from ("| metric | measures | scores | variants |", "|---|---|---|---|")
    for name in metric_names():
        entry = metric_entry(name)
        paper, summary = entry.metric.papers[0], entry.metric.summary.rstrip(".")
        scores = [f"`{score.name}`" for score in entry.metric.score_definitions]
        left = len(scores) - _MOST_SCORES
        more = f" and {left} more" if left > 0 else ""
        variants = " ".join(f"`{variant}`" for variant in entry.variants)
        where = f"{paper.authors.removesuffix('.')}. {paper.year}, {paper.where}"
        measures = f"{summary[0].lower()}{summary[1:]} ({where})"
        yield f"| `{name}` | {measures} | {' '.join(scores[:_MOST_SCORES])}{more} | {variants} |"


def guides(page: Path) -> Iterator[str]:
    """Yield links to the pages about scoring, by title."""
    found = {_title(path): path for path in GUIDES.glob("score-*.md")}
    links = (f"[{title}]({_link(page, found[title])})" for title in sorted(found, key=str.casefold))
    yield ",\n".join(links) + "."
    yield f"\nThe page about other benchmarks has {', '.join(map(_named, _without_a_page()))}."


def figures(page: Path) -> Iterator[str]:
    """Yield links to the sections of other pages about published figures."""
    for path in sorted(GUIDES.glob("score-*.md")):
        if "\n## Published figures\n" in path.read_text(encoding="utf-8"):
            yield f"* [{_title(path)}]({_link(page, path)}#published-figures)"


def without_rows(_page: Path) -> Iterator[str]:
    """Yield the metrics of which no published rows are shipped."""
    names = (name for name in metric_names() if not published_rows(metric_entry(name).metric))
    yield f"No rows are shipped for {', '.join(f'`{name}`' for name in names)}."


def layouts(_page: Path) -> Iterator[str]:
    """Yield the files of each metric's example, with the options that take them."""
    yield from ("| metric | options and files |", "|---|---|")
    for name, example in example_archives().items():
        given = pairwise(split(example.command))
        paths = "\n".join(example.files)
        files = [f"`{option} {file}`" for option, file in given if file in paths]
        yield f"| `{name}` | {' '.join(files)} |"


def benchmarks(_page: Path) -> Iterator[str]:
    """Yield a section about each benchmark that no page is about: what its module says of it."""
    for declared in _without_a_page():
        head, _, body = _documented(declared).partition("\n\n")
        what = head.partition(": ")[2]
        yield f"## {_named(declared)}\n\n{what[0].upper()}{what[1:]}\n"
        yield f"    {example_archives()[declared.name].command}\n\n{body}\n"


def _without_a_page() -> Iterator[ClosedQuestions]:
    """Yield the declared benchmarks that no page by hand is about."""
    pages = [path.read_text(encoding="utf-8") for path in GUIDES.glob("score-*.md")]
    written_ones = _PART.sub("", "\n".join(pages))
    declared = (each for family in FAMILIES for each in benchmarks_of(family))
    return (each for each in declared if f"score {each.name}" not in written_ones)


def _documented(declared: ClosedQuestions) -> str:
    """Return what a benchmark's module says of it, in Markdown."""
    text = import_module(f"hallujudge.metrics.{family_of(declared.name)}").__doc__ or ""
    return text.strip().replace("``", "`")


def _named(declared: ClosedQuestions) -> str:
    return _documented(declared).partition(":")[0]


PARTS: Mapping[str, Callable[[Path], Iterator[str]]] = {
    "metrics": metrics,
    "benchmarks": benchmarks,
    "guides": guides,
    "published figures": figures,
    "without rows": without_rows,
    "layouts": layouts,
}


def _title(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def _link(page: Path, target: Path) -> str:
    return os.path.relpath(target, page.parent)


def written(page: Path) -> str:
    """Return the text of a page with its parts as they should be."""

    def part(found: re.Match[str]) -> str:
        return f"{found[1]}\n" + "\n".join(PARTS[found[2]](page)) + f"\n\n{found[3]}"

    return _PART.sub(part, page.read_text(encoding="utf-8"))


def main() -> int:
    """Write the pages, or name those that are not current."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    other = [page for page in pages if written(page) != page.read_text(encoding="utf-8")]
    for page in other:
        print(f"{page.relative_to(ROOT)} is not current: run tools/generated_pages.py")
        if not check:
            page.write_text(written(page), encoding="utf-8")
    return int(check and bool(other))


if __name__ == "__main__":
    sys.exit(main())

"""Count the fields of a benchmark's declaration, and how many of our benchmarks use each.

    python tools/declaration_fields.py

A field is used where it differs from its default, or where it has none. A field that few use says
something about one paper: what a paper does alone is a function in the module of its family.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import NODEFAULT, Struct, structs

from hallujudge.metrics.answers import closed_questions
from hallujudge.metrics.answers.closed_questions import ClosedQuestions
from hallujudge.metrics.families import FAMILIES, benchmarks_of

FEW = 3
"""A field that fewer benchmarks use belongs in the modules of their families."""


def declaring_classes() -> list[type]:
    """Return the classes of a declaration: those that its module defines."""
    kinds = [each for each in vars(closed_questions).values() if isinstance(each, type)]
    own = (each for each in kinds if each.__module__ == closed_questions.__name__)
    return [each for each in own if issubclass(each, Struct) or dataclasses.is_dataclass(each)]


def defaults_of(kind: Any) -> dict[str, object]:
    """Return each field of a class with its default; ``NODEFAULT`` where it has none."""
    if issubclass(kind, Struct):
        return {each.name: _default(each) for each in structs.fields(kind)}
    missing = dataclasses.MISSING
    return {
        each.name: NODEFAULT if each.default is missing else each.default
        for each in dataclasses.fields(kind)
    }


def _default(field: structs.FieldInfo) -> object:
    made = field.default_factory
    return field.default if made is NODEFAULT else made()


def benchmarks() -> list[ClosedQuestions]:
    """Return the benchmarks of closed questions that Hallujudge has."""
    return [declared for family in FAMILIES for declared in benchmarks_of(family)]


def users(declared: Iterable[ClosedQuestions]) -> dict[str, set[str]]:
    """Return ``Class.field`` -> names of the benchmarks that use the field."""
    kinds = {kind: defaults_of(kind) for kind in declaring_classes()}
    found: dict[str, set[str]] = {
        f"{kind.__name__}.{name}": set() for kind, fields in kinds.items() for name in fields
    }
    for benchmark in declared:
        for name in used_by(benchmark, kinds):
            found[name].add(benchmark.name)
    return found


def used_by(value: object, kinds: Mapping[type, Mapping[str, object]]) -> Iterator[str]:
    """Yield the fields that a declaration, or a part of one, uses."""
    for name, default in kinds.get(type(value), {}).items():
        held: Any = getattr(value, name)
        if held != default:
            yield f"{type(value).__name__}.{name}"
        for part in held if isinstance(held, tuple) else (held,):
            yield from used_by(part, kinds)


def main() -> None:
    """Print each class with its fields, the most used first."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    listed = benchmarks()
    found = users(listed)
    counts: defaultdict[str, int] = defaultdict(int)
    for name in found:
        counts[name.partition(".")[0]] += 1
    for kind, count in counts.items():
        print(f"{kind}: {count} fields")
        own = {name: each for name, each in found.items() if name.partition(".")[0] == kind}
        for name, by in sorted(own.items(), key=lambda each: -len(each[1])):
            few = f"  {', '.join(sorted(by))}" if len(by) < FEW else ""
            print(f"  {len(by):>3} {name.partition('.')[2]}{few}")
    rare = sum(len(by) < FEW for by in found.values())
    print(f"{len(found)} fields, {rare} of them used by fewer than {FEW} of {len(listed)}")


if __name__ == "__main__":
    main()

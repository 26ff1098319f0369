"""Schemas of files: each kind has one version, and a newer one is refused with a sentence."""

from __future__ import annotations

import pytest

from hallujudge.metrics.framework.json_values import FILE_SCHEMAS, schema_of, schema_problem


@pytest.mark.parametrize("kind", FILE_SCHEMAS)
def test_this_and_older_versions_are_read(kind: str) -> None:
    versions = range(1, FILE_SCHEMAS[kind] + 1)
    assert schema_of(kind) == f"hallujudge.{kind}/{versions[-1]}"
    assert [schema_problem(f"hallujudge.{kind}/{version}", kind) for version in versions] == [
        "" for _ in versions
    ]


@pytest.mark.parametrize("kind", FILE_SCHEMAS)
def test_a_newer_version_is_refused(kind: str) -> None:
    newer = f"hallujudge.{kind}/{FILE_SCHEMAS[kind] + 1}"
    problem = schema_problem(newer, kind)
    assert newer in problem
    assert problem.endswith("update hallujudge")


@pytest.mark.parametrize("found", ["", 1, "report/1", "hallujudge.gate/1", "hallujudge.report/0"])
def test_another_schema_is_refused(found: object) -> None:
    assert schema_problem(found, "report").endswith("not hallujudge.report/1")


def test_files_that_people_write_need_no_schema() -> None:
    assert schema_problem(None, "label") == ""

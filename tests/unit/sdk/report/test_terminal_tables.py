"""The report as a table and as Markdown."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from support import report_samples as samples
from support.messages import expected_message

from hallujudge.sdk.report import render_markdown, render_table

BY_SOURCE = {"source": {samples.HOSTILE: samples.scores(), "": samples.scores()}}
MANY = {"place": {f"p{number}": samples.scores() for number in range(250)}}


def test_table_holds_scores_with_intervals_and_counts() -> None:
    lines = render_table(samples.report()).splitlines()
    assert lines[0] == "chair (published)"
    assert "95% interval" in lines[2]
    [row] = [line for line in lines if line.startswith("chair_i")]
    assert row.split()[:5] == ["chair_i", "0.1877", "[0.1700,", "0.2000]", "1,998"]
    [row] = [line for line in lines if line.startswith("mean_words")]
    assert row.split()[1:4] == ["98.77", "[97.50,", "100.25]"]


def test_table_shows_a_score_that_is_not_defined_as_a_dash() -> None:
    [row] = [line for line in render_table(samples.report()).splitlines() if "chair_s" in line]
    assert row.split()[:3] == ["chair_s", "–", "1,998"]


def test_many_undefined_scores_are_left_out_unless_all_rows_are_wanted() -> None:
    """A run of AMBER's descriptions alone has none of the scores of its questions."""
    report = samples.report()
    undefined = {
        f"other_{n}": replace(report.scores["chair_s"], name=f"other_{n}") for n in range(9)
    }
    report = replace(report, scores={**report.scores, **undefined})
    text = render_table(report)
    assert "other_8" not in text
    assert expected_message("sdk.report.terminal_tables:ten-scores-are-undefined") in text
    assert "other_8" in render_table(report, all_rows=True)
    alone = replace(report, scores=undefined)
    assert "other_8" in render_table(alone)


def test_table_says_that_everything_is_scored() -> None:
    text = render_table(samples.report())
    assert expected_message("sdk.report.report_text:all-items-are-scored") in text
    assert "unscored could make" not in text


@pytest.mark.parametrize("width", [50, 100])
def test_table_names_reasons_and_bounds(width: int) -> None:
    text = render_table(samples.report(unscored=2), width=width)
    assert "1,998 of 2,000 items scored; 2 unscored" in text
    assert "RESPONSE_MISSING 2" in " ".join(text.split())
    assert "0.1000 to 0.3000" in text


@pytest.mark.parametrize("width", [1, 40, 60, 80, 100, 200])
@pytest.mark.parametrize("unscored", [0, 2])
def test_table_keeps_to_the_width_and_cuts_no_figure(width: int, unscored: int) -> None:
    text = render_table(samples.report(unscored=unscored, groups=BY_SOURCE), width=width)
    assert max(map(len, text.splitlines())) <= max(width, 40)
    squeezed = re.sub(r"\s+", "", text)
    for figure in ("0.1877", "[0.1700,", "0.2000]", "98.77", "[97.50,", "100.25]", "1,998"):
        assert figure in squeezed


@pytest.mark.parametrize("width", [40, 77, 100])
def test_table_wraps_the_signature_without_losing_any_of_it(width: int) -> None:
    text = render_table(samples.report(), width=width)
    tail = text[text.index("\nsignature\n") + len("\nsignature\n") :]
    assert tail.replace("\n", "").replace(" ", "") == samples.SIGNATURE


def test_signatures_break_at_their_bars() -> None:
    signature = "chair|graph:coco-published|var:published|n:2000|v:0.1.0"
    text = render_table(samples.report(signature=signature), width=40)
    assert [line.strip() for line in text.splitlines()[-2:]] == [
        "chair|graph:coco-published|",
        "var:published|n:2000|v:0.1.0",
    ]


def test_table_folds_a_signature_part_that_is_longer_than_a_line() -> None:
    signature = f"chair|graph:{'x' * 300}|v:1"
    text = render_table(samples.report(signature=signature), width=60)
    assert re.sub(r"\s", "", text).endswith(signature)


def test_table_is_plain_unless_asked_for_color() -> None:
    assert "\x1b" not in render_table(samples.report(groups=BY_SOURCE))
    assert "\x1b[" in render_table(samples.report(), color=True)


@pytest.mark.parametrize("variable", ["FORCE_COLOR", "NO_COLOR", "COLUMNS", "TERM"])
def test_environment_has_no_say_in_the_table(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = render_table(samples.report())
    monkeypatch.setenv(variable, "30")
    assert render_table(samples.report()) == before


def test_table_defuses_what_steers_a_terminal() -> None:
    text = render_table(samples.report(groups=BY_SOURCE))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert text.encode()
    assert "(none)" in text


def test_table_shows_markup_of_its_own_library_as_text() -> None:
    groups = {"source": {"[bold]x[/bold]": samples.scores()}}
    assert "[bold]x[/bold]" in render_table(samples.report(groups=groups))


def test_table_bounds_the_number_of_groups() -> None:
    text = render_table(samples.report(groups=MANY), all_rows=True)
    assert "p99 " in text
    assert "p100" not in text
    assert expected_message("sdk.report.page.first_screen:and-more-in-report-json") in text


def test_a_long_report_has_one_row_for_each_group_by_default() -> None:
    groups = {"source": {f"s{n}": samples.scores() for n in range(20)}, **MANY}
    text = render_table(samples.report(groups=groups))
    assert len(text.splitlines()) < 50
    [row] = [line for line in text.splitlines() if line.startswith("s19")]
    assert "0.1877" in row
    assert "[0.1700" not in row
    assert "by place\n" not in text, "half of its groups would look like all"
    assert "--all-rows prints all scores with intervals, and 250 groups by place." in text
    whole = render_table(samples.report(groups=groups), all_rows=True)
    assert "by place\n" in whole
    assert "--all-rows" not in whole


def test_one_key_of_many_groups_is_cut_to_a_screen() -> None:
    text = render_table(samples.report(groups=MANY))
    assert "p23 " in text
    assert "p24 " not in text
    assert "and 226 groups by place" in text


def test_a_short_table_has_the_scores_of_the_papers_table() -> None:
    names = ("base_accuracy", "rr_motion_blur", "tss", "average", "unparsed_rate")
    scores = {name: samples.score(name, 0.5) for name in names}
    groups = {"level": {f"l{n}": scores for n in range(6)}}
    report = replace(samples.report(metric="infact", groups=groups), scores=scores)
    text = render_table(report)
    assert [line.split()[0] for line in text.splitlines() if " 0.5000 " in line] == [
        *("base_accuracy", "tss", "average"), *(f"l{n}" for n in range(6))
    ]  # fmt: skip
    assert "rr_motion_blur" in render_table(report, all_rows=True)


def test_other_metrics_have_a_table_too() -> None:
    text = render_table(samples.report(metric="unheard-of", signature="unheard-of|v:1"))
    assert text.startswith("unheard-of (published)\n")
    assert "meaning" not in text
    assert "interval" in text


def test_markdown_is_a_table_that_any_reader_takes() -> None:
    lines = render_markdown(samples.report(unscored=2)).splitlines()
    assert lines[0] == "### chair (published)"
    table = [line for line in lines if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {6}
    assert r"| chair\_i | 0.1877 | [0.1700, 0.2000] | 1,998 | 0.1000 to 0.3000 |" in lines
    assert lines[-2] == samples.SIGNATURE


def test_markdown_defuses_groups() -> None:
    text = render_markdown(samples.report(groups=BY_SOURCE))
    assert "<script" not in text
    assert "\x1b" not in text
    rows = [line for line in text.splitlines() if "alert" in line]
    assert [len(re.findall(r"(?<!\\)\|", row)) for row in rows] == [5]
    assert text.count("```") == 2


def test_markdown_keeps_a_hostile_signature_in_its_block() -> None:
    text = render_markdown(samples.report(signature="a|b:```\n# title"))
    assert text.count("```") == 2
    assert "\n# title" not in text


def test_a_long_score_name_beside_bounds_breaks_after_an_underscore() -> None:
    report = samples.report(unscored=2)
    long = {"description_unparsed_rate": report.scores["chair_i"], **report.scores}
    lines = render_table(replace(report, scores=long), width=80).splitlines()
    [at] = [place for place, line in enumerate(lines) if line.startswith("description_unparsed")]
    assert (lines[at].split()[0], lines[at + 1].strip()) == ("description_unparsed_", "rate")

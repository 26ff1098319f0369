"""Charts of tables as SVG."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest

from hallujudge.sdk.report.charts import Chart, Row, chart_from, draw

ROWS: list[Row] = [
    {"model": "a", "k": 10, "value": 0.25, "low": 0.2, "high": 0.3},
    {"model": "a", "k": 20, "value": 0.75, "low": 0.7, "high": 0.8},
    {"model": "b", "k": 10, "value": None, "low": None, "high": None},
    {"model": "b", "k": 20, "value": 0.5, "low": 0.4, "high": 0.6},
]
LINES = Chart(kind="lines", x="k", y=("value",), by=("model",), low="low", high="high")


def test_each_value_is_a_dot_with_its_interval() -> None:
    drawn = ElementTree.fromstring(draw(LINES, ROWS, "a title"))
    assert len(list(drawn.iter("circle"))) == 3
    assert len(list(drawn.iter("polyline"))) == 2
    titles = [found.text for found in drawn.iter("title")]
    assert titles == ["a title", "a 10: 0.25", "a 20: 0.75", "b 20: 0.5"]


def test_higher_values_are_higher_up() -> None:
    drawn = ElementTree.fromstring(draw(LINES, ROWS, ""))
    first, second, third = (float(dot.attrib["cy"]) for dot in drawn.iter("circle"))
    assert second < third < first
    lines = [line for line in drawn.iter("line") if "stroke-width" in line.attrib]
    for line, dot in zip(lines, drawn.iter("circle"), strict=True):
        low, high = float(line.attrib["y1"]), float(line.attrib["y2"])
        assert high < float(dot.attrib["cy"]) < low


@pytest.mark.parametrize("kind", ["bars", "points", "lines"])
def test_nothing_to_draw(kind: str) -> None:
    chart = chart_from({"kind": kind, "x": "k", "y": ["value"]})
    assert chart is not None
    assert draw(chart, [{"k": 1, "value": None}], "empty") == ""
    assert "NaN" not in draw(chart, [{"k": 1, "value": 0}], "one value")


def test_bars_of_equal_and_negative_values_stay_inside() -> None:
    chart = Chart(kind="bars", x="name", y=("v",))
    rows: list[Row] = [{"name": "<script>", "v": -0.5}, {"name": "x", "v": 0.25}]
    text = draw(chart, rows, "bars")
    assert "<script>" not in text
    for bar in ElementTree.fromstring(text).iter("rect"):
        assert float(bar.attrib["height"]) > 0
        assert 0 <= float(bar.attrib["y"]) <= 300
    assert re.search("<title>bars</title>", text)


def test_json_round_trip() -> None:
    assert chart_from(LINES.to_json()) == LINES
    assert chart_from(None) is None
    with pytest.raises(TypeError, match="pie"):
        chart_from({"kind": "pie", "x": "k", "y": []})


def test_what_is_not_drawn_is_said() -> None:
    rows: list[Row] = [{"name": f"n{n % 45}", "by": n // 45, "v": n} for n in range(45 * 16)]
    text = draw(Chart(kind="bars", x="name", y=("v",), by=("by",)), rows, "")
    assert "2 more series are in the table only; 21 more names are in the table only" in text
    assert "in the table only" not in draw(LINES, ROWS, "")


def test_columns_of_several_series_have_a_figure_each() -> None:
    rows: list[Row] = [
        {"model": model, "k": k, "one": None if model == "a" else k, "other": k * 2}
        for model in ("a", "b")
        for k in (1, 2)
    ]
    chart = Chart(kind="lines", x="k", y=("one", "other"), by=("model",))
    drawn = ElementTree.fromstring(f"<page>{draw(chart, rows, 'a title')}</page>")
    figures = drawn.findall("div[@role='figure']")
    titles = [[title.text for title in figure.iter("title")] for figure in figures]
    assert titles == [
        ["a title: one", "b 1: 1", "b 2: 2"],
        ["a title: other", "a 1: 2", "a 2: 4", "b 1: 2", "b 2: 4"],
    ]
    first, second = (
        {dot.findtext("title"): dot.attrib["stroke"] for dot in figure.iter("circle")}
        for figure in figures
    )
    assert first["b 1: 1"] == second["b 1: 2"] != second["a 1: 2"]
    together = draw(Chart(kind="lines", x="k", y=("one", "other")), rows, "")
    assert together.count('role="figure"') == 1


def test_bars_have_the_order_of_a_column() -> None:
    rows: list[Row] = [
        {"name": "late", "v": 9, "rank": 10},
        {"name": "never", "v": 5, "rank": None},
        {"name": "early", "v": 1, "rank": 2},
    ]
    drawn = ElementTree.fromstring(
        draw(Chart(kind="bars", x="name", y=("v",), order="rank"), rows, "")
    )
    names = [text.text for text in drawn.iter("text")]
    assert [name for name in names if name in ("late", "never", "early")] == [
        *("early", "late", "never"),
    ]


def test_names_do_not_cover_the_label_of_the_axis() -> None:
    for names in (["a", "b"], [f"a rather long name {n}" for n in range(20)]):
        chart = Chart(kind="bars", x="name", y=("v",))
        drawn = ElementTree.fromstring(draw(chart, [{"name": n, "v": 1} for n in names], ""))
        texts = {text.text: text for text in drawn.iter("text")}
        label = float(texts.pop("name").attrib["y"])
        for text, found in texts.items():
            turned = float(found.attrib.get("transform", "rotate(0").partition("(")[2].split()[0])
            # A letter of this size is about six units wide.
            end = float(found.attrib["y"]) - math.sin(math.radians(turned)) * 6 * len(text or "")
            assert end < label - 8


def test_short_slanted_names_leave_no_room_below_them() -> None:
    chart = Chart(kind="bars", x="name", y=("v",))

    def height(letters: int) -> int:
        rows: list[Row] = [{"name": f"{n}" * letters, "v": 1} for n in range(8)]
        drawn = next(ElementTree.fromstring(draw(chart, rows, "")).iter("svg"))
        return int(drawn.attrib["viewBox"].split()[-1])

    assert height(4) < height(12) < height(26) == height(60)


def test_long_names_are_whole_and_inside_the_drawing() -> None:
    names = [f"spatio-temporal change {n:02d}" for n in range(24)]
    rows: list[Row] = [{"name": name, "v": 1} for name in names]
    drawn = ElementTree.fromstring(draw(Chart(kind="bars", x="name", y=("v",)), rows, ""))
    texts = {text.text: text for text in drawn.iter("text")}
    for name in names:
        found = texts[name].attrib
        turned = float(found["transform"].partition("(")[2].split()[0])
        # A letter of this size is about six units wide.
        assert float(found["x"]) - math.cos(math.radians(turned)) * 6 * len(name) > 0


def test_the_vertical_axis_names_all_columns() -> None:
    rows: list[Row] = [{"k": k, "one": 0.5, "other_one": 1} for k in (1, 2)]
    drawn = ElementTree.fromstring(
        draw(Chart(kind="lines", x="k", y=("one", "other_one")), rows, "")
    )
    assert "one, other one" in [text.text for text in drawn.iter("text")]

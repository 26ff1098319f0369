"""Charts of tables as SVG."""

from __future__ import annotations

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

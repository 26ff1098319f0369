"""Pictures of graphs and their figures."""

from __future__ import annotations

import pytest

from hallujudge.synonym_graphs import load_graph
from hallujudge.synonym_graphs.tools import draw_domain, draw_neighbourhood, statistics_of


def test_figures_and_pictures() -> None:
    graph = load_graph("robotics_objects")
    figures = statistics_of(graph)
    assert (figures.roots, figures.forms) == (len(graph.roots), len(graph.edges))
    whole = draw_domain(graph)
    assert all(f">{root}<" in whole for root in graph.roots)
    part = draw_neighbourhood(graph, "robot arm")
    assert ">robotic arm<" in part
    assert ">mechanical arm<" in part
    assert "<path" in part
    with pytest.raises(KeyError):
        draw_neighbourhood(graph, "unicorn")


def test_a_large_neighbourhood_is_a_list_without_lines() -> None:
    graph = load_graph("daily_life_objects")
    picture = draw_neighbourhood(graph, "person")
    assert "<path" not in picture
    assert picture.index(">person<") < picture.index(">baby<")
    assert "toddler" in picture
    assert ": 1 root<" in draw_neighbourhood(graph, "sofa").replace("3 forms, ", "")

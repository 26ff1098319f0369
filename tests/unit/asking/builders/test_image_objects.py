"""Probes: what pictures show and lack, with labels of every claim."""

from __future__ import annotations

import pytest

from hallujudge.asking.builders.image_objects import build_probes

OBJECTS = {
    **{f"{n}.jpg": ["dog", "sofa"] for n in range(4)},
    "4.jpg": ["dog", "lamp"],
    "5.jpg": ["car", "bus"],
}


def test_present_objects_are_shown_and_others_are_not() -> None:
    probes = build_probes(OBJECTS, per_image=1)
    assert {probe.probe for probe in probes} == {"present", "absent", "likely"}
    for probe in probes:
        is_there = set(probe.objects) <= {*OBJECTS[probe.image]}
        assert is_there == (probe.probe == "present"), probe
        known = {label["label"] for label in probe.labels()}
        assert known == {"supported" if is_there else "not_supported"}
        assert probe.to_json()["claims"] == [[name, "is", "present"] for name in probe.objects]


def test_likely_objects_are_those_that_occur_with_what_is_shown() -> None:
    [likely] = (p for p in build_probes(OBJECTS, per_image=2) if p.id == "4.jpg: likely")
    assert "sofa" in likely.objects, "four pictures show it with a dog"


def test_a_draw_depends_on_its_seed_alone() -> None:
    assert build_probes(OBJECTS, images=2, seed=1) == build_probes(OBJECTS, images=2, seed=1)
    with pytest.raises(ValueError, match="only 6 have enough objects"):
        build_probes(OBJECTS, images=7)

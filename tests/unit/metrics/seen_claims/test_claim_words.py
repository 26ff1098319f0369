"""What a claim is about, by its words: its kind, and the moment that a text names."""

from __future__ import annotations

import pytest

from hallujudge.metrics.framework.claims import Sentence, Triplet
from hallujudge.metrics.seen_claims.claim_words import (
    Moment,
    frames_near,
    kind_of,
    moment_of,
    moments_in,
)


@pytest.mark.parametrize(
    ("text", "label", "begin", "end"),
    [
        ("At 0:12 a man waves.", "0:12", 10, 14),
        ("Around 1:02 a man waves.", "1:02", 60, 64),
        ("At 0:01:02.5 a man waves.", "1:02.5", 60.5, 64.5),
        ("[0:12] A man waves.", "0:12", 10, 14),
        ("0:12 - a man waves.", "0:12", 10, 14),
        ("A man waves after 12 seconds.", "0:12", 10, 14),
        ("A man waves at the 12-second mark.", "0:12", 10, 14),
        ("A man waves at 12s.", "0:12", 10, 14),
        ("A man waves at one second.", "0:01", 0, 3),
        ("Twelve people wave 12 seconds into the video.", "0:12", 10, 14),
        ("Twenty-five seconds into the video a man waves.", "0:25", 23, 27),
        ("A man waves at 1 minute.", "1:00", 58, 62),
        ("From 0:10 to 0:15 a man waves.", "0:10-0:15", 10, 15),
        ("A man waves (0:10-0:15).", "0:10-0:15", 10, 15),
        ("Between 3 and 5 seconds a man waves.", "0:03-0:05", 3, 5),
        ("In the first three seconds a man waves.", "first 3 s", 0, 3),
        ("A man waves in the first few seconds.", "first 3 s", 0, 3),
        ("In the last 5 seconds a man waves.", "last 5 s", 95, 100),
        ("At the beginning of the video, a man waves.", "start", 0, 10),
        ("At the start, a man waves.", "start", 0, 10),
        ("The video begins with a man.", "start", 0, 10),
        ("Halfway through the clip a man waves.", "middle", 45, 55),
        ("At the end a man waves.", "end", 90, 100),
        ("They wait at the start line.", None, 0, 0),
        ("A man waves at the end.", "end", 90, 100),
        ("The clip ends with a man.", "end", 90, 100),
        # Places, the time of the day, orders, and what is not in the video.
        ("A lamp stands at the end of the table.", None, 0, 0),
        ("A lamp stands in the middle of the room.", None, 0, 0),
        ("The clock shows 10:45.", None, 0, 0),
        ("They meet at 10:45 pm.", None, 0, 0),
        ("They meet at 10:45.", None, 0, 0),
        ("Finally, a man waves.", None, 0, 0),
        ("The first man waves to the last woman.", None, 0, 0),
        ("At two tables men wait for seconds.", None, 0, 0),
    ],
)
def test_a_moment_is_read(text: str, label: str | None, begin: float, end: float) -> None:
    found = moments_in(text, 100.0)
    assert found == ([] if label is None else [Moment(label, begin, end)])


def test_of_a_video_of_unknown_length_every_moment_counts() -> None:
    assert [m.label for m in moments_in("They meet at 10:45, and leave at 0:03.", 0.0)] == [
        "10:45",
        "0:03",
    ]


def test_a_claim_has_the_moment_of_its_sentence() -> None:
    text = "At 0:03 the ball is red, and at 0:20 it is blue. The box is green. It falls at 0:03."

    def moment(words: str) -> str:
        start = text.index(words)
        found = moment_of(text, (start, start + len(words)), 30.0)
        return found.label if found else ""

    assert moment("the ball is red") == "0:03"
    assert moment("it is blue") == "0:20"
    assert moment("The box is green") == ""
    assert moment("It falls") == "0:03"
    # A claim without a place names its moment itself, or has none.
    assert moment_of("The box falls at 0:05.", None, 30.0) == Moment("0:05", 3.0, 7.0)
    assert moment_of("The box falls.", None, 30.0) is None
    assert len(moments_in(text, 30.0)) == 2


@pytest.mark.parametrize(
    ("begin", "end", "numbers"),
    [(1, 3, [2, 3, 4, 5, 6]), (0, 10, [2, 6, 10, 14, 18]), (4.6, 4.8, [9]), (30, 40, [20])],
)
def test_frames_are_taken_evenly_within_a_moment(
    begin: float, end: float, numbers: list[int]
) -> None:
    times = [at / 2 for at in range(21)]
    assert frames_near(Moment("", begin, end), times, 5) == numbers


@pytest.mark.parametrize(
    ("claim", "kind"),
    [
        (("dog", "is", "present"), "object"),
        (("cars", "is not", "present"), "object"),
        (("image", "shows", "dog"), "object"),
        (("dog", "in", "image"), "object"),
        (("dog", "is visible in", "photo"), "object"),
        (("dog", "is", "brown"), "attribute"),
        (("bus", "is not", "red"), "attribute"),
        (("man", "is", "chef"), "attribute"),
        (("girl", "is", "3-year-old"), "attribute"),
        (("dogs", "is", "2"), "count"),
        (("dogs", "are", "two"), "count"),
        (("two dogs", "is", "present"), "count"),
        (("picture", "has", "three cups"), "count"),
        (("number of dogs", "is", "one"), "count"),
        (("dog", "on", "sofa"), "relation"),
        (("man", "holds", "two cups"), "relation"),
        (("man", "in", "boots"), "relation"),
        (("people", "not on", "beach"), "relation"),
        (("man", "has", "hat"), "relation"),
    ],
)
def test_the_kind_follows_from_the_words(claim: tuple[str, str, str], kind: str) -> None:
    assert kind_of(Triplet(*claim)) == kind


def test_a_sentence_has_no_kind() -> None:
    assert kind_of(Sentence("Two dogs are brown.")) == ""

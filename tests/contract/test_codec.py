"""Values and messages with different fields are refused by the names of the fields."""

from __future__ import annotations

import enum
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import pytest
from support.messages import expected_message

from hallujudge.judge.v1 import chair_pb2, scoring_pb2, tri_he_pb2
from hallujudge.judge_service.wire import codec as codec_module
from hallujudge.judge_service.wire.codec import Codecs, MismatchError
from hallujudge.judge_service.wire.fields import Codec, MalformedError, value_reader

INLINE = scoring_pb2.InlineGraph.DESCRIPTOR


@dataclass(frozen=True, kw_only=True)
class Graph:
    name: str
    text: str
    layout: Literal["json", "table"] = "json"


@dataclass(frozen=True, kw_only=True)
class TooFew:
    name: str
    text: str


@dataclass(frozen=True, kw_only=True)
class TooMany(Graph):
    weight: float = 1.0


@dataclass(frozen=True, kw_only=True)
class OtherType:
    name: str
    text: int
    layout: str


class Mark(NamedTuple):
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Interval:
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise ValueError("the confidence is not in (0, 1)")


@dataclass(frozen=True, kw_only=True)
class Spec:
    metric: str
    interval: Interval = Interval(confidence=0.9)  # frozen


class Part(enum.Enum):
    SUBJECT = 1
    OBJECT = 2


@dataclass(frozen=True, kw_only=True)
class Verdict:
    part: Part | None


def codecs() -> Codecs:
    return Codecs(types={}, unions={}, needs={})


def codec(value_type: Any, message: Any) -> Any:
    return codecs().of(value_type, message.DESCRIPTOR)


def test_a_field_that_the_value_lacks() -> None:
    with pytest.raises(
        MismatchError,
        match=expected_message("judge_service.wire.codec:toofew-only-the-message-has-layout"),
    ):
        codec(TooFew, scoring_pb2.InlineGraph)


def test_a_field_that_the_message_lacks() -> None:
    with pytest.raises(
        MismatchError,
        match=expected_message("judge_service.wire.codec:toomany-only-the-value-has-weight"),
    ):
        codec(TooMany, scoring_pb2.InlineGraph)


def test_a_field_of_another_type() -> None:
    with pytest.raises(MismatchError, match=r"text is <class 'int'>"):
        codec(OtherType, scoring_pb2.InlineGraph)


def test_presence_that_only_one_side_has() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Task:
        response: str
        reference_objects: tuple[str, ...] | None

    with pytest.raises(MismatchError, match="response"):
        codec(Task, chair_pb2.ChairTask)


def test_enums_with_other_members() -> None:
    with pytest.raises(MismatchError, match="enum Part"):
        codecs().fields(
            Verdict,
            tri_he_pb2.ClaimVerdict.DESCRIPTOR,
            without=[f.name for f in tri_he_pb2.ClaimVerdict.DESCRIPTOR.fields if f.name != "part"],
        )


def test_literals_are_checked_and_empty_means_the_default() -> None:
    graph = codec(Graph, scoring_pb2.InlineGraph)
    message = scoring_pb2.InlineGraph(name="n", text="t")
    assert graph.read(message) == Graph(name="n", text="t", layout="json")
    message.layout = "yaml"
    with pytest.raises(
        MalformedError,
        match=expected_message("judge_service.wire.convert:layout-yaml-is-not-one-of-json"),
    ):
        graph.read(message)


def test_a_message_that_is_absent_is_the_default() -> None:
    fields = codecs().fields(
        Spec,
        scoring_pb2.ScoreSpec.DESCRIPTOR,
        without=["variant", "graphs", "options", "group_by", "claims"],
    )

    # Another name than that of the message: hints alone make the pair.
    read = value_reader(Spec, fields)
    assert read(scoring_pb2.ScoreSpec(metric="m")) == Spec(metric="m")
    message = scoring_pb2.ScoreSpec(metric="m", interval={"confidence": 2})  # type: ignore[arg-type]  # protobuf takes dictionaries
    with pytest.raises(
        MalformedError,
        match=expected_message("metrics.infact.operators:interval-the-confidence-is-not-in"),
    ):
        read(message)


def test_pairs_of_positions() -> None:
    span = scoring_pb2.Span
    assert codec(tuple[int, int], span).read(span(start=1, end=2)) == (1, 2)
    assert codec(Mark, span).read(span(start=1, end=2)) == Mark(1, 2)
    for value_type, value in ((Mark, Mark(3, 4)), (tuple[int, int], (3, 4))):
        message = span()
        codec(value_type, span).write(value, message)
        assert message == span(start=3, end=4)
    with pytest.raises(MismatchError):
        codec(tuple[int, str], span)


class Words(NamedTuple):
    text: str


class OwnWords(Words):
    """A class that is sent as the one it extends."""


@dataclass(frozen=True, kw_only=True)
class InlineGraph(Graph):
    """A class with the name of its message."""


@dataclass(frozen=True, kw_only=True)
class Source:
    shipped: Words | InlineGraph


@dataclass(frozen=True, kw_only=True)
class OtherSource:
    shipped: Words | Mark


@pytest.mark.parametrize(
    ("content", "member", "back"),
    [
        (Words("coco"), "shipped", Words("coco")),
        (OwnWords("coco"), "shipped", Words("coco")),
        (InlineGraph(name="", text=""), "inline", InlineGraph(name="", text="")),
    ],
)
def test_a_union_is_the_member_of_its_class(content: Any, member: str, back: Any) -> None:
    message = scoring_pb2.GraphSource()
    source = codec(Source, message)
    source.write(Source(shipped=content), message)
    assert message.WhichOneof("source") == member
    assert source.read(message) == Source(shipped=back)


def test_what_is_no_member_of_a_union() -> None:
    message = scoring_pb2.GraphSource()
    with pytest.raises(MalformedError, match=r"^source: is missing"):
        codec(Source, message).read(message)
    with pytest.raises(MalformedError, match=r"^shipped: Mark can't be sent"):
        codec(Source, message).write(Source(shipped=Mark(1, 2)), message)  # type: ignore[arg-type]  # the wrong class
    with pytest.raises(MismatchError, match="GraphSource"):
        codec(OtherSource, message)


def test_the_key_of_a_map_is_named() -> None:
    def refuse(_message: Any) -> object:
        raise MalformedError("too sure")

    class Task(NamedTuple):
        graphs: Mapping[str, object]

    graph = Codec(lambda _content, _message: None, refuse)
    known = Codecs(types={(object, "GraphSource"): graph}, unions={}, needs={})
    others = {field.name for field in scoring_pb2.ScoreSpec.DESCRIPTOR.fields} - {"graphs"}
    fields = known.fields(Task, scoring_pb2.ScoreSpec.DESCRIPTOR, without=others)
    message = scoring_pb2.ScoreSpec(graphs={"base": scoring_pb2.GraphSource(shipped="coco")})
    with pytest.raises(MalformedError, match=r"^graphs\[base\]: too sure"):
        value_reader(Task, fields)(message)


def test_a_thread_waits_for_a_converter_that_another_one_builds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entered, go_on = threading.Event(), threading.Event()
    fields_at_once = codec_module.fields_of

    def slowly(value_type: Any) -> Any:
        """Return the fields of a value once the other thread has had its turn."""
        entered.set()
        go_on.wait(60)
        return fields_at_once(value_type)

    monkeypatch.setattr(codec_module, "fields_of", slowly)
    known = codecs()

    def read() -> object:
        message = scoring_pb2.InlineGraph(name="n", text="t")
        return known.of(Graph, INLINE).read(message)

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(read)
        assert entered.wait(60)
        second = threads.submit(read)
        wait([second], timeout=0.2)
        go_on.set()
        assert first.result(60) == second.result(60) == Graph(name="n", text="t")

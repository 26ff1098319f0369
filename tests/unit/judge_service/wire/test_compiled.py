"""Conversion functions that are compiled from fields."""

from __future__ import annotations

import pytest

from hallujudge.judge.v1 import chair_pb2
from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge_service.wire.codec import Codecs
from hallujudge.judge_service.wire.compiled import Field, reader_of, writer_of
from hallujudge.judge_service.wire.places import MalformedError
from hallujudge.metrics import ChairItem, Item

CODECS = Codecs(types={}, shapes={}, rearranged={}, unions={})
COMMON = CODECS.fields(
    Item,
    pb.Item.DESCRIPTOR,
    without=[field.name for field in pb.Item.DESCRIPTOR.oneofs_by_name["task"].fields],
)
TASK = CODECS.fields(
    ChairItem, chair_pb2.ChairTask.DESCRIPTOR, without=[field.name for field in COMMON]
)
ITEM = ChairItem(id="1", fields={"model": "m"}, response=None, reference_objects=())


def refuse(_: object) -> object:
    raise MalformedError("is not valid")


def test_a_value_may_be_spread_over_a_message_and_one_within_it() -> None:
    message = pb.Item()
    writer_of(COMMON, chair=TASK)(ITEM, message)
    assert message.chair.HasField("reference_objects")
    assert not message.chair.HasField("response")
    assert reader_of(ChairItem, COMMON, chair=TASK)(message) == ITEM


def test_a_message_without_content_is_there_all_the_same() -> None:
    message = pb.Item()
    writer_of([], chair=TASK)(ChairItem(id="1", response=None, reference_objects=None), message)
    assert message.WhichOneof("task") == "chair"


def test_errors_name_the_field() -> None:
    uses = {"refuse": refuse}
    own = Field("id", "{m}.id = refuse({v})", "refuse({m}.id)", uses, located=True)
    inner = Field(
        "response", "{m}.response = refuse({v})", "refuse({m}.response)", uses, located=True
    )
    for place, fields, task in (("id", [own], []), ("chair.response", [], [inner])):
        with pytest.raises(MalformedError, match=rf"^{place}: is not valid"):
            writer_of(fields, chair=task)(ITEM, pb.Item())
        with pytest.raises(MalformedError, match=rf"^{place}: is not valid"):
            reader_of(ChairItem, fields, chair=task)(pb.Item())

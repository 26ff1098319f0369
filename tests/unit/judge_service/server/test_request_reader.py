"""Fields are counted in the bytes as protobuf parses them."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge_service.server.request_reader import (
    MalformedBytesError,
    TooManyFieldsError,
    count_fields,
    plan_of,
)

PLAN = plan_of(pb.ScoreRequest.DESCRIPTOR)


def request(count: int) -> bytes:
    message = pb.ScoreRequest()
    message.spec.metric = "tri-he"
    for index in range(count):
        item = message.items.add(id=str(index), fields={"model": "m" * 300})
        item.tri_he.response = "A dog."
        item.tri_he.reference_triplets.values.add(subject="dog", relation="on", object="grass")
    return message.SerializeToString()


def test_fields_of_every_depth_are_counted() -> None:
    # The spec and its metric; of an item itself, id, the map entry with its key and value, the
    # task with response and triplets: list, triplet and its three parts.
    assert count_fields(request(3), PLAN, 1_000) == 2 + 3 * (1 + 1 + 3 + 2 + 1 + 4)


def test_counting_stops_at_the_limit() -> None:
    with pytest.raises(TooManyFieldsError, match="more than 1,000 fields"):
        count_fields(b"\x12\x00" * 20_000_000, PLAN, 1_000)


@pytest.mark.parametrize(
    "data",
    [
        b"\x12",
        b"\x12\x05ab",
        b"\x12\x80",
        b"\x12" + b"\xff" * 11,
        b"\x0b\x0c",
        b"\x09\x01",
        b"\x0f",
    ],
)
def test_what_is_cut_off_or_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedBytesError):
        count_fields(data, PLAN, 1_000)


@given(st.binary(max_size=40))
def test_what_protobuf_takes_is_counted_and_ends(data: bytes) -> None:
    try:
        pb.ScoreRequest.FromString(data)
    except DecodeError:
        return
    try:
        assert 0 <= count_fields(data, PLAN, 1_000) <= len(data)
    except MalformedBytesError as err:
        assert "groups" in str(err)  # noqa: PT017 - the only difference

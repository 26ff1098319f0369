"""Connections: how many may stay open, and which are closed first."""

from __future__ import annotations

import pytest

from hallujudge.judge_service.server.authentication import network_of
from hallujudge.judge_service.server.connections import Connection, ConnectionLimits, surplus
from hallujudge.judge_service.settings.server_settings import LimitSettings


@pytest.mark.parametrize(
    ("files", "total", "by_address"),
    [(1024, 768, 576), (256, 192, 144), (2000, 1500, 1024), (1 << 20, 4096, 1024), (3, 1, 1)],
)
def test_files_are_left_for_other_work_and_places_for_other_addresses(
    files: int, total: int, by_address: int
) -> None:
    limits = ConnectionLimits.of(LimitSettings(), files)
    assert (limits.total, limits.by_address) == (total, by_address)
    assert limits.burst > total


def test_the_settings_are_the_most() -> None:
    settings = LimitSettings(max_connections=100, max_connections_by_address=20)
    limits = ConnectionLimits.of(settings, 1 << 20)
    assert (limits.total, limits.by_address) == (100, 20)


def closed(
    *peers: str,
    total: int = 9,
    by_address: int = 9,
    calls: dict[str, int] | None = None,
    silent: tuple[str, ...] = (),
) -> list[str]:
    limits = ConnectionLimits(files=99, total=total, by_address=by_address)
    connections = [
        Connection(file=place, inode=place, peer=peer, network=network_of(peer))
        for place, peer in enumerate(peers)
    ]

    def spoke(one: Connection) -> bool:
        return one.peer not in silent

    return [one.peer for one in surplus(connections, calls or {}, limits, spoke)]


A, B, C = ([f"ipv4:10.0.0.{host}:{port}" for port in range(4)] for host in (1, 2, 3))


def test_the_oldest_connection_without_a_call_goes_first() -> None:
    assert closed(*A, total=3) == [A[0]]
    assert closed(*A, by_address=2) == [A[0], A[1]]
    assert closed(*A) == []


def test_silent_connections_go_before_older_ones_that_spoke() -> None:
    assert closed(*A, total=1, silent=(A[1], A[3])) == [A[1], A[3], A[0]]


def test_connections_of_known_callers_go_last_and_the_longest_unused_first() -> None:
    calls = {A[1]: 0, A[0]: 0}
    assert closed(*A, total=3, calls=calls) == [A[2]]
    assert closed(*A, total=1, calls=calls) == [A[2], A[3], A[1]]


def test_a_connection_with_a_running_call_is_never_closed() -> None:
    running = dict.fromkeys(A, 1)
    assert closed(*A, total=1, by_address=1, calls=running) == []
    assert closed(*A, *B, total=4, by_address=1, calls=running) == B


def test_the_limit_of_an_address_is_for_that_address_alone() -> None:
    assert closed(*A, *B[:2], *C[:1], by_address=2) == [A[0], A[1]]


def test_the_limit_in_all_counts_what_the_limit_of_an_address_leaves() -> None:
    assert closed(*A, *B[:2], total=3, by_address=2) == [A[0], A[1], A[2]]


def test_one_network_of_ipv6_is_one_address() -> None:
    peers = [f"ipv6:%5B2001:db8::{host}%5D:1" for host in (1, 2, 3)]
    other = "ipv6:%5B2001:db8:0:1::1%5D:1"
    assert closed(*peers, other, by_address=2) == [peers[0]]

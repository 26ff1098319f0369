"""Addresses of callers."""

from __future__ import annotations

import pytest

from hallujudge.judge_service.server.authentication import anonymous, host_of, network_of, peer_of


@pytest.mark.parametrize(
    ("client", "peer"),
    [
        (("10.0.0.7", 40312), "ipv4:10.0.0.7:40312"),
        (("::ffff:10.0.0.7", 40312), "ipv4:10.0.0.7:40312"),
        (("::1", 40312), "ipv6:%5B::1%5D:40312"),
        (None, "unknown"),
    ],
)
def test_http_clients_have_the_addresses_that_grpc_gives_them(
    client: tuple[str, int] | None, peer: str
) -> None:
    assert peer_of(client) == peer


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("ipv4:10.0.0.7:40312", "ipv4:10.0.0.7"),
        ("ipv6:%5B::1%5D:40312", "ipv6:[::1]"),
        ("ipv6:[::1]:40312", "ipv6:[::1]"),
        ("ipv6:%5B2001:db8::7%5D:443", "ipv6:[2001:db8::7]"),
        ("ipv6:%5Bfe80::1%25eth0%5D:443", "ipv6:[fe80::1%eth0]"),
        ("unix:", "unix:"),
        ("unknown", "unknown"),
    ],
)
def test_people_read_an_address_without_its_port_and_without_the_form_of_a_uri(
    peer: str, host: str
) -> None:
    assert host_of(peer) == host
    assert anonymous(peer).id == f"peer:{host}"
    assert anonymous(peer).name == f"anonymous ({host})"


def test_a_caller_is_its_machine_on_whatever_port_it_calls() -> None:
    first, second, other = (
        anonymous(f"ipv6:%5B2001:db8::{end}") for end in ("7%5D:40312", "7%5D:40313", "8%5D:40312")
    )
    assert first == second
    assert first.id != other.id


@pytest.mark.parametrize(
    ("peer", "network"),
    [
        ("ipv4:10.0.0.7:40312", "ipv4:10.0.0.7"),
        ("ipv6:%5B::1%5D:40312", "ipv6:[::1]"),
        ("ipv6:%5B2001:db8:0:1:aa::7%5D:443", "ipv6:[2001:db8:0:1::/64]"),
        ("ipv6:%5Bfe80::1%25eth0%5D:443", "ipv6:[fe80::/64]"),
        ("unix:", "unix:"),
    ],
)
def test_addresses_of_one_network_of_ipv6_count_together(peer: str, network: str) -> None:
    assert network_of(peer) == network


def test_places_of_a_caller_without_a_key_count_by_network_and_by_connection() -> None:
    assert anonymous("ipv6:%5B2001:db8::7%5D:443").levels == (
        "peer:ipv6:[2001:db8::/64]",
        "ipv6:%5B2001:db8::7%5D:443",
    )
    assert anonymous("unix:").levels == ("peer:unix:",)

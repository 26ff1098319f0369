"""Certificates for tests, made when they are needed."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path

import trustme

__all__ = ["Certificates", "make_certificates", "make_server_certificate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """PEM files of one authority, and of certificates from it."""

    ca: str
    """The authority."""
    server: tuple[str, str]
    """The server's certificate and its private key."""
    client: tuple[str, str]
    """A client's certificate and its private key."""
    expired: tuple[str, str]
    """A server's certificate that has expired, and its private key."""
    foreign: tuple[str, str]
    """A server's certificate for another name, and its private key."""


def make_certificates(folder: Path) -> Certificates:
    """Return certificates in a folder."""
    authority = trustme.CA()
    folder.mkdir(parents=True, exist_ok=True)
    ca = folder / "ca.pem"
    authority.cert_pem.write_to_path(ca)
    past = datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC)
    names = ("localhost", "127.0.0.1")
    return Certificates(
        ca=str(ca),
        server=_written(folder / "server", authority.issue_cert(*names)),
        client=_written(folder / "client", authority.issue_cert("ana@lab", common_name="ana")),
        expired=_written(folder / "expired", authority.issue_cert(*names, not_after=past)),
        foreign=_written(folder / "foreign", authority.issue_cert("other.example")),
    )


def make_server_certificate(path: Path, *, ends: datetime.datetime) -> tuple[str, str]:
    """Return a server's certificate that ends at a moment, and its private key."""
    return _written(path, trustme.CA().issue_cert("localhost", "127.0.0.1", not_after=ends))


def _written(path: Path, certificate: trustme.LeafCert) -> tuple[str, str]:
    chain, key = path.with_suffix(".pem"), path.with_suffix(".key")
    chain.write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    certificate.private_key_pem.write_to_path(key)
    return str(chain), str(key)

"""Reading of a server's metrics page."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field

from hallujudge.judge_service.settings.connection import web_address

from ..errors import InvalidInputError, MissingExtraError, UnavailableError

try:
    from prometheus_client.parser import text_string_to_metric_families
except ModuleNotFoundError as err:
    raise MissingExtraError.of("hallujudge top", "top") from err

__all__ = ["Reading", "fetch", "metrics_url", "parse"]

_MAX_BYTES = 8 << 20
_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The samples of a server at one moment."""

    at: float
    """The moment, in seconds."""
    samples: Mapping[str, list[tuple[dict[str, str], float]]] = field(default_factory=dict)
    """The labels and values of each metric."""

    def total(self, name: str, **labels: str) -> float:
        """Return the sum of a metric's samples that have these labels."""
        wanted = labels.items()
        return sum(value for found, value in self.samples.get(name, ()) if wanted <= found.items())

    def values(self, label: str, *names: str) -> list[str]:
        """Return the values of a label in some metrics, sorted."""
        found = (labels for name in names for labels, _ in self.samples.get(name, ()))
        return sorted({labels[label] for labels in found if label in labels})


def metrics_url(address: str) -> str:
    """Return the URL of the metrics of an address, such as ``127.0.0.1:9464``.

    Raises:
        InvalidInputError: It is not an address of a web server.
    """
    url = address if "://" in address else f"http://{address}"
    parts = web_address(url)
    if parts is None:
        raise InvalidInputError(
            f"{address!r} is not the address of a metrics page; give HOST:PORT, with the port that "
            "the server's --metrics-port names"
        )
    return url if parts.path.strip("/") else url.rstrip("/") + "/metrics"


def fetch(url: str) -> Reading:
    """Read a server's metrics.

    Raises:
        UnavailableError: Nothing answers, or it does not answer with metrics.
    """
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as response:  # noqa: S310 - http only
            data = response.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as err:
        reason = getattr(err, "reason", err)
        reason = getattr(reason, "strerror", None) or reason
        raise UnavailableError(
            f"{url} does not answer: {reason}; start the server with --metrics-port"
        ) from err
    if len(data) > _MAX_BYTES:
        raise UnavailableError(f"{url} sends more than {_MAX_BYTES} bytes; it is no metrics page")
    return parse(data.decode("utf-8", "replace"), time.monotonic())


def parse(text: str, at: float) -> Reading:
    """Return the samples of a page.

    Raises:
        UnavailableError: It is not a page of a Hallujudge server.
    """
    samples: dict[str, list[tuple[dict[str, str], float]]] = {}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                samples.setdefault(sample.name, []).append((sample.labels, sample.value))
    except (ValueError, IndexError, KeyError) as err:
        raise UnavailableError("the page is not one of metrics; check the address") from err
    if "hallujudge_build_info" not in samples:
        raise UnavailableError("the page is not a Hallujudge server's; check the address")
    return Reading(at=at, samples=samples)

"""Lines of ``items.jsonl``."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.framework.results import JsonValue

if TYPE_CHECKING:
    from msgspec.json import Encoder

__all__ = ["builtin", "item_lines", "response_of", "signed", "unsigned"]

_WHOLE = {int}


def item_lines(
    pairs: Iterable[tuple[Item, ItemResult]], statistics: tuple[str, ...], *, keep_text: bool
) -> bytes:
    """Return a line for each item, with everything that its report is computed from.

    Args:
        pairs: The scored items with their results.
        statistics: Names of the results' statistics.
        keep_text: Whether responses are written; otherwise their SHA-256 is.

    Raises:
        ValueError: A statistic or score is not a finite number.
    """
    return _encoder().encode_lines(
        [_line(item, result, statistics, keep_text=keep_text) for item, result in pairs]
    )


def _line(
    item: Item, result: ItemResult, statistics: tuple[str, ...], *, keep_text: bool
) -> dict[str, JsonValue]:
    line = result.to_json()
    evidence = line.pop("evidence")
    numbers = result.statistics
    # A set of types takes half the time of a loop, and most metrics count.
    whole = set(map(type, numbers)) == _WHOLE
    _refuse_infinite(result, () if whole else numbers)
    plain = numbers if whole else list(map(_plain, numbers))
    line["statistics"] = dict(zip(statistics, plain, strict=bool(numbers)))
    response = response_of(item)
    if keep_text:
        line["response"] = dict(response) if isinstance(response, Mapping) else response
    else:
        line["response_sha256"] = _hashed(response)
        if "detail" in line:
            # The detail may quote the response.
            line["detail"] = ""
    line["evidence"] = evidence
    return line


def signed(lines: bytes, signature: str) -> bytes:
    """Return whole lines with the run's signature, which is known when the run is complete."""
    # JSON escapes line feeds within texts. One byte is found in a quarter of the time of two.
    return _end(signature).join([line[:-1] for line in lines.split(b"\n")])


def unsigned(lines: bytes, signature: str) -> bytes:
    """Return whole lines without the run's signature."""
    return lines.replace(_end(signature), b"}\n")


def _end(signature: str) -> bytes:
    return b',"signature":' + _encoder().encode(signature) + b"}\n"


def response_of(item: Item) -> str | Mapping[str, str | None] | None:
    """Return an item's response; for items with several runs, run -> response."""
    response = getattr(item, "response", None)
    if isinstance(response, str):
        return response
    runs = getattr(item, "runs", None)
    if isinstance(runs, Mapping):
        return {name: run.response for name, run in runs.items()}
    return None


def _hashed(response: str | Mapping[str, str | None] | None) -> JsonValue:
    if isinstance(response, Mapping):
        return {name: _hashed(text) for name, text in response.items()}
    if response is None:
        return None
    return hashlib.sha256(response.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(number: float) -> int | float:
    """Return a whole number without its point."""
    if type(number) is int:
        return number
    return int(number) if float(number).is_integer() else number


def _refuse_infinite(result: ItemResult, statistics: Sequence[float]) -> None:
    """Refuse numbers that JSON does not have; the encoder would write null."""
    # A sum is finite only if all its parts are. Undefined scores are left out, as are zeros.
    if not math.isfinite(sum(filter(None, result.scores.values()), sum(statistics))):
        raise ValueError(f"item {result.id!r} has a score or statistic that is not finite")


def builtin(value: object) -> object:
    """Return a number or mapping of another library as msgspec encodes it.

    Raises:
        NotImplementedError: It is neither.
    """
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, float):
        return float(value)
    raise NotImplementedError(f"{type(value).__name__} has no JSON")


@cache
def _encoder() -> Encoder:
    # Imported here because only runs that write lines need it.
    from msgspec.json import Encoder

    return Encoder(enc_hook=builtin)

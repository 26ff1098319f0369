"""Copies of records, such as those that pad the last batch of several GPUs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b

from .inputs import Responses
from .json_files import amount, named
from .records import Records, name_of, read_records

# Tools give each record that they write other values of these.
_OWN_KEYS = frozenset({"answer_id", "uuid", "request_id", "created", "timestamp", "time"})


def without_copies(source: Responses) -> tuple[Records, tuple[str, ...]]:
    """Return records without those whose values an earlier one has, and a note on these.

    Args:
        source: An archive that can be read again.
    """
    seen: set[bytes] = set()
    copies: dict[int, str] = {}
    for record in read_records(source):
        if (content := _content(record.values)) in seen:
            copies[record.position] = record.place
        seen.add(content)
    kept = Records(
        lambda: (r for r in read_records(source) if r.position not in copies), name_of(source)
    )
    count = amount(len(copies), "record is a copy", "records are copies")
    note = f"{count} of an earlier one and left out: {named(list(copies.values()))}"
    return kept, (note,) if copies else ()


def _content(values: Mapping[str, object]) -> bytes:
    own = {key: value for key, value in values.items() if key not in _OWN_KEYS}
    text = json.dumps(own, sort_keys=True, default=repr)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()

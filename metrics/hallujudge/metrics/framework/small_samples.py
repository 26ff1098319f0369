"""Notes for reports whose sample is too small for their intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .intervals import FEW_CLUSTERS

__all__ = ["small_sample_notes"]

_NAMED = 10
_RULE = f"Intervals are unreliable below {FEW_CLUSTERS} clusters (images or videos)"


def small_sample_notes(
    scores: Mapping[str, int], groups: Mapping[str, Mapping[str, int]]
) -> tuple[str, ...]:
    """Return notes on scores and groups with too few clusters.

    Args:
        scores: Number of clusters that each score is based on.
        groups: For each field, how many clusters each of its groups has.
    """
    found = [_scores_note(scores), *[_groups_note(key, sizes) for key, sizes in groups.items()]]
    return tuple(filter(None, found))


def _scores_note(scores: Mapping[str, int]) -> str:
    few = {name: size for name, size in scores.items() if size < FEW_CLUSTERS}
    if not few:
        return ""
    if len(few) == len(scores) and len(set(few.values())) == 1:
        return f"{_RULE}; every score rests on {next(iter(few.values()))}."
    return f"{_RULE}; these scores rest on fewer: {_listed(f'{n} ({s})' for n, s in few.items())}."


def _groups_note(key: str, sizes: Mapping[str, int]) -> str:
    few = {value: size for value, size in sizes.items() if size < FEW_CLUSTERS}
    if not few:
        return ""
    listed = _listed(f"{value or '(none)'} ({size})" for value, size in few.items())
    return f"{_RULE}; {len(few)} of {len(sizes)} groups by {key} have fewer: {listed}."


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more

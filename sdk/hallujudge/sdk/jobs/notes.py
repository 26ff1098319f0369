"""Notes on the references of a job, which the server does not know: its items hold no files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..runs.manifest import Manifest

__all__ = ["with_notes", "without_notes"]

_KEY = "notes"
_MOST_NOTES, _MOST_CHARS = 20, 2_000


def with_notes(manifest: Manifest, notes: Sequence[str]) -> Manifest:
    """Return the manifest that a job keeps, with the notes for its report."""
    return replace(manifest, run={**manifest.run, _KEY: list(notes)}) if notes else manifest


def without_notes(manifest: Manifest) -> tuple[Manifest, tuple[str, ...]]:
    """Return the manifest as a run at the server writes it, and the notes of its report."""
    run = dict(manifest.run)
    kept = run.pop(_KEY, ())
    notes = kept[:_MOST_NOTES] if isinstance(kept, list) else ()
    return replace(manifest, run=run), tuple(str(note)[:_MOST_CHARS] for note in notes)

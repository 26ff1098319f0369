"""Loading of what registers by entry points: readers, judges, commands, engines, trackers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from .errors import HallujudgeError, InvalidInputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

# A module, or a function, that ends its process would end the command without a word, and leave the
# event loop of a server or of a run without an answer.
_FAILURES = (Exception, SystemExit)
_SHOWN = 200
_LOG = logging.getLogger(__name__)


def registered(group: str) -> EntryPoints:
    """Return the entry points of a group."""
    # It brings a parser of mails, which most commands and imports need not wait for.
    from importlib.metadata import entry_points

    return entry_points(group=group)


@cache
def names_beside(group: str, ours: frozenset[str], kind: str) -> tuple[str, ...]:
    """Return the names that other packages register beside ours.

    One of ours is not replaced: the package that registers it is named in a warning, once.

    Args:
        group: The group of entry points.
        ours: The names that Hallujudge has without an entry point.
        kind: What they register, such as ``judge``.
    """
    found = registered(group)
    for entry in (entry for entry in found if entry.name in ours):
        _LOG.warning(
            "the %s %s of the package %s (%s) is not used, because Hallujudge has one of that "
            "name; give it another name there, or uninstall the package",
            kind,
            entry.name,
            _package_of(entry),
            entry.value,
        )
    return tuple(sorted(found.names - ours))


def registered_once(group: str, name: str, kind: str) -> EntryPoint:
    """Return the entry point of a name that is registered.

    Args:
        group: The group of entry points.
        name: The name.
        kind: What it registers, such as ``tracker``.

    Raises:
        InvalidInputError: Several packages register it.
    """
    # Which of two packages is found first depends on the order of installation.
    entry, *others = registered(group).select(name=name)
    if others:
        packages = " and ".join(sorted(f"{_package_of(e)} ({e.value})" for e in (entry, *others)))
        raise InvalidInputError(
            f"the {kind} {name} is registered by {packages}; uninstall all but one of them"
        )
    return entry


def _package_of(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else "an unknown package"


def loaded(
    entry: EntryPoint, kind: str, error: type[InvalidInputError] = InvalidInputError
) -> object:
    """Return what an entry point names.

    Args:
        entry: The entry point.
        kind: What it registers, such as ``tracker``.
        error: The class of the error.

    Raises:
        InvalidInputError: It can't be loaded.
    """
    try:
        return entry.load()
    except HallujudgeError:
        raise
    except _FAILURES as err:
        # Alone, a missing key says nothing.
        why = problem_of(err) if isinstance(err, KeyError) or not str(err) else str(err)
        raise error(
            f"the {kind} {entry.name} ({entry.value}) can't be loaded: {one_line(why)}. Update or "
            "uninstall the package that registers it"
        ) from err


@contextmanager
def guarded(
    entry: EntryPoint, kind: str, error: type[InvalidInputError] = InvalidInputError
) -> Iterator[None]:
    """Name what another package registers where it fails, in the block.

    What goes wrong in a part of ours is a bug, or says itself what to do.

    Args:
        entry: The entry point.
        kind: What it registers, such as ``tracker``.
        error: The class of the error.

    Raises:
        InvalidInputError: It fails.
    """
    try:
        yield
    except HallujudgeError:
        raise
    except _FAILURES as err:
        if _package_of(entry) == "hallujudge":
            raise
        raise error(
            f"the {kind} {entry.name} ({entry.value}) failed ({problem_of(err)}); correct it, or "
            "uninstall the package that registers it"
        ) from err


def problem_of(err: BaseException) -> str:
    """Return the kind of an error and the beginning of its text, in one line."""
    return one_line(f"{type(err).__name__}: {err}".rstrip(": "))


def one_line(text: str) -> str:
    """Return the beginning of a text in one line."""
    return " ".join(text.split())[:_SHOWN]

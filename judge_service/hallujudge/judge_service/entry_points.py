"""Loading of what other packages register by entry points: readers, judges, commands, trackers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import HallujudgeError, InvalidInputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints


def registered(group: str) -> EntryPoints:
    """Return the entry points of a group."""
    # It brings a parser of mails, which most commands and imports need not wait for.
    from importlib.metadata import entry_points

    return entry_points(group=group)


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
    # A module that ends its process would end the command without a word.
    except (Exception, SystemExit) as err:
        why = str(err) or type(err).__name__
        raise error(
            f"the {kind} {entry.name} ({entry.value}) can't be loaded: {why}. Update or uninstall "
            "the package that registers it"
        ) from err

"""Settings of server and judges. This module says what a setting is: its names and its bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, TypeVar

ENV_PREFIX = "HALLUJUDGE_"
_NO_PREFIX = "no prefix"
NO_PREFIX: Mapping[str, bool] = {_NO_PREFIX: True}
"""Metadata of a group whose settings' options do not begin with the group's name."""
_SettingsT = TypeVar("_SettingsT")


def setting(
    default: Any,
    help: str,
    *,
    low: float = 0,
    high: float = 2**31 - 1,
    choices: tuple[str, ...] = (),
    option: str = "",
    variable: str = "",
) -> Any:
    """Return a dataclass field that is a setting.

    Args:
        default: Its default, whose type it has.
        help: Its help text.
        low: The least number.
        high: The greatest number.
        choices: The only texts, if they are limited.
        option: Its name on the command line and in the environment, unless that is the name of its
            group and its own.
        variable: Another tool's environment variable that sets it too.
    """
    # Switches are numbers from 0 to 1: a variable has no other way to say no, as "false" is a text.
    found = {"help": help, "low": low, "high": high, "choices": choices}
    return field(default=default, metadata={**found, "option": option, "variable": variable})


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A setting and its names."""

    name: str
    """Its name, such as ``llm.url``."""
    option: str
    """Its name on the command line, in the environment and in manifests, such as ``llm_url``."""
    table: str
    """Its table in a file of settings."""
    field: Field[Any]
    """Its field, made by :func:`setting`."""

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return f"{ENV_PREFIX}{self.option.upper()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The value of a setting and its source."""

    name: str
    value: object
    """The value, with the secrets in web addresses masked."""
    source: str
    """``argument``, ``environment NAME``, ``file PATH`` or ``default``."""
    variable: str
    """Its environment variable."""
    help: str
    """The help text."""


def definitions(settings: type, table: str) -> Iterator[Definition]:
    """Yield the settings of a class: its own first, then those of its groups.

    Args:
        settings: The class.
        table: The table of those that are in no group.
    """
    # The order of the sections in `hallujudge config show`: settings without a group come first.
    groups = [entry for entry in fields(settings) if _kind(entry)]
    for entry in fields(settings):
        if entry not in groups:
            option = entry.metadata["option"] or entry.name
            yield Definition(name=entry.name, option=option, table=table, field=entry)
    for group in groups:
        # The options of access and limits are older than these groups, and have kept their names.
        prefix = "" if _NO_PREFIX in group.metadata else f"{group.name}_"
        for own in fields(_kind(group)):
            yield Definition(
                name=f"{group.name}.{own.name}",
                option=own.metadata["option"] or f"{prefix}{own.name}",
                table=group.name,
                field=own,
            )


def from_names(settings: type[_SettingsT], values: Mapping[str, object]) -> _SettingsT:
    """Return settings from their values by name, such as ``llm.url``.

    Args:
        settings: Their class.
        values: Values by name; settings without one have their defaults.
    """
    own: dict[str, object] = {}
    groups: dict[str, dict[str, object]] = {}
    for name, value in values.items():
        group, _, key = name.rpartition(".")
        (groups.setdefault(group, {}) if group else own)[key] = value
    kinds = {entry.name: _kind(entry) for entry in fields(settings)}  # type: ignore[arg-type]  # the callers' are dataclasses
    return settings(**own, **{group: kinds[group](**groups[group]) for group in groups})


def _kind(entry: Field[Any]) -> Any:
    """Return the class of a group; None for a setting."""
    # Every setting has a help text, and no group has one.
    return None if "help" in entry.metadata else entry.default_factory

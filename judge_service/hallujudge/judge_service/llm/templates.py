"""Prompt templates: files with a name, a version, and a hash that is part of signatures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files

__all__ = ["Message", "Template", "load_template", "template_names"]

_SLOT = re.compile(r"\{\{([a-z_]+)\}\}")
_PART = re.compile(r"^--- (system|user|assistant) ---\n", re.MULTILINE)

Message = dict[str, str]
"""A chat message: ``role`` and ``content``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A prompt with slots."""

    name: str
    """Its name."""
    version: str
    """Raised whenever the meaning of the prompt changes."""
    digest: str
    """SHA-256 of the file, in hexadecimal: changes with every byte of it."""
    parts: tuple[tuple[str, str], ...]
    """Role and text of each message, slots unfilled."""

    @property
    def label(self) -> str:
        """Name, version and the hash's beginning, as signatures show them."""
        return f"{self.name}-{self.version}@{self.digest[:12]}"

    def messages(self, values: Mapping[str, str]) -> list[Message]:
        """The messages with their slots filled.

        Values are put in once and never looked at again: a slot mark inside a value stays as it is.

        Raises:
            KeyError: A slot has no value.
        """
        return [
            {"role": role, "content": _SLOT.sub(lambda slot: values[slot[1]], text)}
            for role, text in self.parts
        ]


def template_names() -> tuple[str, ...]:
    """Names of the templates that ship."""
    folder = files(__package__) / "prompts"
    names = (entry.name for entry in folder.iterdir())
    return tuple(sorted(name.removesuffix(".txt") for name in names if name.endswith(".txt")))


@cache
def load_template(name: str) -> Template:
    """A template that ships, by its file's name without suffix."""
    data = (files(__package__) / "prompts" / f"{name}.txt").read_bytes()
    head, *pieces = _PART.split(data.decode())
    fields = dict(line.split(": ", 1) for line in head.strip().splitlines())
    roles, texts = pieces[::2], pieces[1::2]
    return Template(
        name=fields["name"],
        version=fields["version"],
        digest=sha256(data).hexdigest(),
        parts=tuple((role, text.strip("\n")) for role, text in zip(roles, texts, strict=True)),
    )

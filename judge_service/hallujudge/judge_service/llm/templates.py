"""Prompt templates: files with a name, a version, and a hash that is part of signatures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files

from ..errors import InvalidInputError

__all__ = ["Message", "Template", "load_template", "own_template", "template_names"]

_MOST_CHARS = 100_000

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
    """Raised whenever the meaning of the prompt changes; empty for a user's own prompt."""
    digest: str
    """SHA-256 of the file, in hexadecimal: changes with every byte of it."""
    parts: tuple[tuple[str, str], ...]
    """Role and text of each message, slots unfilled."""

    @property
    def label(self) -> str:
        """Name, version and the hash's beginning; all of the hash of a user's own prompt."""
        if not self.version:
            return f"{self.name}@{self.digest}"
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


def own_template(text: str, slots: Sequence[str]) -> Template:
    """Return the template of a user's own prompt.

    Args:
        text: The prompt, with a mark such as ``{{question}}`` for each slot. Lines such as
            ``--- system ---`` begin a message; a prompt without them is one user message.
        slots: The slots, each of which the prompt needs.

    Raises:
        InvalidInputError: The prompt is too long, or its slots are not these.
    """
    if len(text) > _MOST_CHARS:
        raise InvalidInputError(
            f"the prompt has {len(text)} characters; at most {_MOST_CHARS} are allowed"
        )
    head, *pieces = _PART.split(text)
    parts = list(zip(pieces[::2], pieces[1::2], strict=True)) or [("user", text)]
    if pieces and head.strip():
        raise InvalidInputError(
            f"the prompt has text before its first message: {head.strip()[:60]!r}; move it below a "
            "line such as '--- user ---'"
        )
    found = {slot for _, part in parts for slot in _SLOT.findall(part)}
    if found != set(slots):
        wanted = ", ".join(f"{{{{{slot}}}}}" for slot in slots)
        told = ", ".join(f"{{{{{slot}}}}}" for slot in sorted(found)) or "none"
        raise InvalidInputError(f"the prompt needs the slots {wanted}; it has {told}")
    return Template(
        name="own",
        version="",
        digest=sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        parts=tuple((role, part.strip("\n")) for role, part in parts),
    )

"""A griffe extension: docstrings as Markdown, and the public names of modules that make theirs.

Docstrings are written for readers of the code, with Sphinx roles such as ``:class:`Report```. The
site renders Markdown, where a role would show as text. Modules whose names are imported on first
use compute their ``__all__``, which griffe does not evaluate.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|meth|func|data|attr|mod|exc):`~?([^`]+)`")
_EXAMPLE = re.compile(r"^Example:$", re.MULTILINE)


class MarkdownDocstrings(griffe.Extension):  # type: ignore[misc]  # untyped where mypy runs
    """Replaces roles by code and names the section that griffe reads examples from."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of an object when it has been loaded."""
        del kwargs
        if obj.docstring is not None:
            text = _ROLE.sub(lambda match: f"`{match[1]}`", obj.docstring.value)
            obj.docstring.value = _EXAMPLE.sub("Examples:", text.replace("``", "`"))

    def on_module(self, *, mod: griffe.Module, **kwargs: Any) -> None:
        """Export what a module imports for type checkers when the module has been loaded."""
        del kwargs
        if not mod.exports and "__all__" in mod.members:
            named = {name for name, member in mod.members.items() if not member.runtime}
            mod.exports = sorted(named)

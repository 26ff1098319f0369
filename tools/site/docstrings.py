"""A griffe extension: docstrings as Markdown.

Docstrings are written for readers of the code, with Sphinx roles such as ``:class:`Report```. The
site renders Markdown, where a role would show as text.
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

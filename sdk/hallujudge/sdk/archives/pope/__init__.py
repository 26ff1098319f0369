"""Answers to yes/no questions, and the questions, for POPE."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...errors import InvalidInputError
from ..formats import read_format
from ..inputs import InputOptions, ItemSource, Reader, References, Responses
from ..qa import kept
from .answers import Answers
from .questions import categorised, have_category, joined_labels, read_questions

__all__ = ["READERS", "read_pope"]

JOINS = ("auto", "id", "text", "order")


def read_pope(
    responses: Responses,
    references: References | None,
    options: InputOptions,
    group_by: tuple[str, ...],
) -> ItemSource:
    """Return answers joined with their questions.

    Raises:
        ArchiveError: See :func:`read_items`; also if a label is neither yes nor no.
    """
    if options.join not in JOINS:
        raise InvalidInputError(
            f"InputOptions(join={options.join!r}) is unknown; choose one of {', '.join(JOINS)}"
        )
    responses = kept(responses)
    if references is None:
        return Answers(responses, None, options, group_by).checked()
    if _are_files(references):
        paths = [Path(path) for path in references]  # type: ignore[arg-type, union-attr]  # paths
        sources = [(path, read_format(path).source) for path in paths]
        if have_category(responses):
            sources = [(path, categorised(path, source)) for path, source in sources]
        references = joined_labels([source for _, source in sources])
    elif isinstance(references, (str, Path)) and have_category(responses):
        references = categorised(Path(references), Path(references))
    questions = read_questions(references, responses, options, group_by)
    return Answers(responses, questions, options, group_by).checked()


def _are_files(references: References) -> bool:
    return (
        isinstance(references, list)
        and bool(references)
        and all(isinstance(path, (str, Path)) for path in references)
    )


READERS: Mapping[str, Reader] = {"pope": read_pope}
"""Metric -> its archive reader."""

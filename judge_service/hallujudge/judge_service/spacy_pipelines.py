"""Loading of installed spaCy pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from .errors import MissingExtraError
from .extras import install_advice

if TYPE_CHECKING:
    from spacy.language import Language

__all__ = ["installed_pipelines", "load_pipeline", "pipeline_label"]


def installed_pipelines() -> tuple[str, ...]:
    """Return the names of the pipelines that are installed as packages."""
    return tuple(sorted(each.name for each in entry_points(group="spacy_models")))


def load_pipeline(name: str, needed: str, *, suggested: str, exclude: Sequence[str]) -> Language:
    """Return an installed pipeline.

    Args:
        name: Name of an installed pipeline, or a folder.
        needed: What needs it, as the beginning of a message.
        suggested: The pipeline whose download the message names.
        exclude: Components that are not loaded.

    Raises:
        MissingExtraError: spaCy or the pipeline is not installed.
    """
    advice = f"{install_advice('spacy')} && python -m spacy download {suggested}"
    metadata = {"feature": "spacy", "extra": "spacy"}
    try:
        spacy = import_module("spacy")
    except ImportError as err:
        raise MissingExtraError(
            f"{needed}, but spaCy is not installed: {advice}", metadata=metadata
        ) from err
    try:
        loaded: Language = spacy.load(name, exclude=list(exclude))
    except OSError as err:
        other = "" if name == suggested else f"; install it, or use {suggested}"
        raise MissingExtraError(
            f"{needed}, but it is not installed{other}: {advice}", metadata=metadata
        ) from err
    return loaded


def pipeline_label(pipeline: Language) -> str:
    """Return the name and version of a pipeline, such as ``en_core_web_sm-3.8.0``."""
    meta = pipeline.meta
    return f"{meta['lang']}_{meta['name']}-{meta['version']}"

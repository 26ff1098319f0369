"""All settings by their names, and by those of their options."""

from __future__ import annotations

from collections.abc import Mapping

from .definitions import ENV_PREFIX, Definition
from .judge_settings import JUDGES
from .server_settings import SERVER

ALL: Mapping[str, Definition] = {each.name: each for each in (*SERVER, *JUDGES)}
"""All settings by name, such as ``llm.url``."""
RENAMED: Mapping[str, Definition] = {
    each.option: each for each in ALL.values() if each.option != each.name
}
"""Settings by the names of their options, such as ``llm_url``, where these are others."""
NO_KEYS = f"keys are not settings; set {ENV_PREFIX}LLM_API_KEY and the like"
"""The error for an API key that is given as a setting."""


def names_of(options: Mapping[str, object]) -> dict[str, object]:
    """Return values by the names of their settings.

    Args:
        options: Values by the names of options, which manifests have too, such as ``llm_url``.
    """
    return {RENAMED[key].name if key in RENAMED else key: options[key] for key in options}

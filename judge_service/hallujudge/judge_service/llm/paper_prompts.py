"""The prompts that papers print, as presets, and how replies of their own forms are read."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from ..errors import InvalidInputError
from .prompt_templates import Template, own_template

ASKED, EXTRACT, JUDGE = "answer", "extract", "judge"
"""What a preset replaces: a prompt of ``hallujudge ask``, of an extractor, or of a judge."""
KEYWORD_LISTS, PEOPLE_ANSWER, CONFIDENCE = "keyword-lists", "people-answer", "confidence"
"""Forms of replies: four lists of keywords, an answer of people, an answer with a confidence."""
NOT_AMONG_THEM = "<nan>"
"""The reply for an answer that matches none of those of people, in lower case."""
_SLOT = re.compile(r"\{\{([a-z_]+)\}\}")
_LIST = re.compile(r"(object|action) list ([12])\W*:\s*\[([^\]]*)\]", re.IGNORECASE)
_KEYS = {
    ("object", "1"): "reference_objects",
    ("action", "1"): "reference_behaviors",
    ("object", "2"): "predicted_objects",
    ("action", "2"): "predicted_behaviors",
}
# "80%", "80 percent", "0.8" or "80" at the end of a reply, after the answer.
_CONFIDENCE = re.compile(
    r"[\s,;:(]*(?:confidence\b[\s:=]*)?(\d+(?:\.\d+)?)\s*(%|percent)?[\s.)]*$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperPrompt:
    """A prompt that a paper prints."""

    preset: str
    """Name of the preset."""
    metric: str
    """The metric whose command takes it."""
    step: str
    """What it replaces."""
    source: str
    """Paper and section."""
    text: str
    """The prompt with slots."""
    protocol: str = ""
    """Protocol of asking that it belongs to; empty for the default."""
    reads: str = ""
    """Form of the reply; empty for a plain one."""

    @property
    def template(self) -> Template:
        """The prompt as a template, which signatures name by the preset."""
        slots = list(dict.fromkeys(_SLOT.findall(self.text)))
        return replace(own_template(self.text, slots), name=self.preset, version="1")


@cache
def paper_prompts() -> tuple[PaperPrompt, ...]:
    """Return all prompts that papers print, in the order of the file."""
    text = (files(__package__) / "prompts" / "papers.toml").read_text("utf-8")
    return tuple(PaperPrompt(**each) for each in tomllib.loads(text)["prompt"])


def presets_of(metric: str, step: str) -> tuple[str, ...]:
    """Return the names of the presets of a metric for a step."""
    return tuple(p.preset for p in paper_prompts() if (p.metric, p.step) == (metric, step))


def paper_prompt(preset: str, metric: str, step: str) -> PaperPrompt:
    """Return a printed prompt.

    Args:
        preset: Its name.
        metric: The metric.
        step: What it replaces.

    Raises:
        InvalidInputError: The metric has no such preset.
    """
    wanted = (preset, metric, step)
    found = next((p for p in paper_prompts() if (p.preset, p.metric, p.step) == wanted), None)
    if found is None:
        known = ", ".join(presets_of(metric, step)) or "none"
        raise InvalidInputError(
            f"the option prompt_preset is {preset!r:.60}; presets of {metric} are {known}"
        )
    return found


def read_keyword_lists(reply: str) -> dict[str, list[str]]:
    """Return the four lists of a reply to Mementos' printed prompt, by our names of them.

    Raises:
        ValueError: A list is missing, or there twice.
    """
    lists: dict[str, list[str]] = {}
    for kind, number, words in _LIST.findall(reply):
        key = _KEYS[kind.lower(), number]
        if key in lists:
            raise ValueError(f"{kind} list {number} is there twice")
        lists[key] = [word for part in words.split(",") if (word := part.strip(" \n\t'\"“”‘’"))]
    if missing := [key for key in _KEYS.values() if key not in lists]:
        raise ValueError(f"no list of {missing[0].replace('_', ' ')}")
    return lists


def read_confidence(reply: str) -> tuple[str, float | None]:
    """Return the answer of a reply and the confidence after it, in [0, 1]; None without one.

    A number above 1 is a percentage, and so is one with its sign.
    """
    found = _CONFIDENCE.search(reply)
    if found is None or not reply[: found.start()].strip():
        return reply, None
    value = float(found[1])
    share = value / 100 if found[2] or value > 1 else value
    if share > 1:
        return reply, None
    return reply[: found.start()].rstrip(), share

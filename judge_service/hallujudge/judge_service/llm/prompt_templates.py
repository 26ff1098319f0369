"""Prompt templates, and the fence around judged text.

A template is a file with a name, a version, and a hash that is part of signatures.

Judged text is data: nothing in it can end its fence or imitate another role. Three things are done
to a text before it enters a prompt:

* invisible characters (zero-width, direction, tag and control characters) are dropped or
  become spaces, so that nothing is hidden from a reader of the prompt;
* what fences and chat templates are made of is replaced by look-alikes that no tokeniser treats as
  a mark: ``<`` and ``>`` (``<|eot_id|>``, ``</s>``, ``<start_of_turn>``, our own fence) become
  single angle quotes, and upper-case words in square brackets (``[INST]``) get round ones;
* it is written as a JSON string, so that quotes and line breaks in it are escaped.

Prompts that papers print are presets, some of which have replies of their own forms.

Readers of a verdict see ``‹b›`` where the text had ``<b>``; the evidence keeps the text itself.
"""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

from msgspec import Struct
from msgspec.structs import replace

from hallujudge.metrics.framework.metric import JudgeOption, OptionDefinition

from ..errors import InvalidInputError

# A user's prompt file; a larger one is a mistake, such as a data file.
_MOST_CHARS = 100_000
# Where a text is put into a prompt: {{claims}}.
_SLOT = re.compile(r"\{\{([a-z_]+)\}\}")
# Also those that no slot has, such as {{ question }}, which would be sent as they are.
_ANY_SLOT = re.compile(r"\{\{([ \t]*\w+[ \t]*)\}\}")
# The line before each message of a prompt's file.
_PART = re.compile(r"^--- (system|user|assistant) ---[ \t]*\n", re.MULTILINE)
FENCE_OPEN = "<<<{name}"
"""Opens a block of judged text."""

FENCE_CLOSE = "{name}>>>"
"""Closes it."""

# ASCII signs and every character that compatibility normalisation turns into one: some tokenisers
# normalise before they look for marks.
_SIGNS = str.maketrans({"<": "‹", "＜": "‹", "﹤": "‹", ">": "›", "＞": "›", "﹥": "›"})
# Marks of chat templates, such as [INST]: a judged text must not speak in another role.
_BRACKETED = re.compile(r"[\[［](\s*/?\s*[A-Z][A-Z0-9_ ]*\s*)[\]］]")
_SPACES = re.compile(r"\s+")
# Unicode categories of control, format, private, unassigned and separator characters.
_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp", "Zs"})

# Blank when drawn, though Unicode calls them letters or symbols.
_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u2800")
Message = dict[str, str]
"""A chat message: ``role`` and ``content``."""


class Template(Struct, frozen=True, kw_only=True):
    """A prompt with slots."""

    name: str
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


def object_schema(properties: Mapping[str, object]) -> dict[str, object]:
    """Return the JSON schema of an object that has these properties and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def choice_schema(key: str, choices: Sequence[str]) -> dict[str, object]:
    """Return the JSON schema of an object with one key, whose value is one of some choices."""
    return object_schema({key: {"type": "string", "enum": list(choices)}})


@cache
def load_template(name: str) -> Template:
    """Return a template that ships, by its file's name without suffix.

    Raises:
        InvalidInputError: There is none of this name.
    """
    if (file := _shipped().get(name)) is None:
        raise InvalidInputError(
            f"no prompt is named {name!r}; a benchmark of your own has the prompt's text in its "
            "place"
        )
    data = file.read_bytes()
    head, *pieces = _PART.split(data.decode())
    fields = dict(line.split(": ", 1) for line in head.strip().splitlines())
    roles, texts = pieces[::2], pieces[1::2]
    return Template(
        name=fields["name"],
        version=fields["version"],
        digest=sha256(data).hexdigest(),
        parts=tuple((role, text.strip("\n")) for role, text in zip(roles, texts, strict=True)),
    )


@cache
def _shipped() -> Mapping[str, Traversable]:
    """Return the files of prompts by name; they are listed once, as the code is read once."""
    prompts = (files(__package__) / "prompts").iterdir()
    return {each.name.removesuffix(".txt"): each for each in prompts}


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
    # A file that was saved on Windows is the same prompt.
    text = text.replace("\r\n", "\n")
    head, *pieces = _PART.split(text)
    parts = list(zip(pieces[::2], pieces[1::2], strict=True)) or [("user", text)]
    if pieces and head.strip():
        raise InvalidInputError(
            f"the prompt has text before its first message: {head.strip()[:60]!r}; move it below a "
            "line such as '--- user ---'"
        )
    found = {slot for _, part in parts for slot in _ANY_SLOT.findall(part)}
    if found != set(slots):
        has = marks_of(sorted(found)) or "none"
        raise InvalidInputError(f"the prompt needs the slots {marks_of(slots)}; it has {has}")
    return Template(
        name="own",
        version="",
        digest=sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        parts=tuple((role, part.strip("\n")) for role, part in parts),
    )


def marks_of(slots: Iterable[str]) -> str:
    """Return the marks of slots as a prompt's text has them, with commas between."""
    return ", ".join(f"{{{{{slot}}}}}" for slot in slots)


def fenced(name: str, lines: Iterable[str]) -> str:
    """Lines of data between marks that no line can contain.

    Args:
        name: What the data is, such as ``SCENE``; chosen by us, never by the data.
        lines: Lines from :func:`as_line`.
    """
    body = list(lines)
    assert not any("<" in line or ">" in line or "\n" in line for line in body)
    return "\n".join([FENCE_OPEN.format(name=name), *body, FENCE_CLOSE.format(name=name)])


def as_line(value: str | Iterable[str]) -> str:
    """A text, or several, as one line of JSON."""
    data = defused(value) if isinstance(value, str) else [defused(part) for part in value]
    return json.dumps(data, ensure_ascii=False)


def defused(text: str) -> str:
    """The text as one visible line without anything that a fence or a chat template is made of."""
    if not (text.isascii() and text.isprintable()):
        text = "".join(map(_visible, text))
    text = text.translate(_SIGNS)
    return _SPACES.sub(" ", _BRACKETED.sub(r"(\1)", text)).strip()


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    # Variation selectors, here and below, are invisible and can carry a hidden text.
    if character in _BLANK or (category == "Mn" and 0xFE00 <= ord(character) <= 0xFE0F):
        return ""
    if category not in _HIDDEN and not 0xE0100 <= ord(character) <= 0xE01EF:
        return character
    return " " if category in {"Zl", "Zp", "Zs"} or character in "\t\n\v\f\r\x85" else ""


ASKED, EXTRACT, JUDGE = "answer", "extract", "judge"
"""What a preset replaces: a prompt of ``hallujudge ask``, of an extractor, or of a judge."""
KEYWORD_LISTS, PEOPLE_ANSWER, CONFIDENCE = "keyword-lists", "people-answer", "confidence"
"""Forms of replies: four lists of keywords, an answer of people, an answer with a confidence."""
NOT_AMONG_THEM = "<nan>"
"""The reply for an answer that matches none of those of people, in lower case."""
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


class PaperPrompt(Struct, frozen=True, kw_only=True):
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


PROMPT_PRESET, NO_PRESET = "prompt_preset", "none"
"""The option that names a printed prompt, and its value for none."""


def prompt_option(name: str, slots: Sequence[str], about: str = "") -> OptionDefinition:
    """Return the option that holds a user's own prompt."""
    return JudgeOption(
        name=name,
        meaning=f"Own prompt of the judge{about}.",
        details=f"The text has the marks {marks_of(slots)}.",
        file=True,
    )


def preset_option(*names: str) -> OptionDefinition:
    """Return the option that names a prompt that the metric's paper prints."""
    return JudgeOption(
        name=PROMPT_PRESET,
        choices=(NO_PRESET, *names),
        meaning="Prompt that the paper prints.",
        details="Its own form of reply is read; none: our prompt.",
    )


def preset_in(options: Mapping[str, str]) -> str:
    """Return the preset that options name; empty without one."""
    return options.get(PROMPT_PRESET, NO_PRESET).replace(NO_PRESET, "")

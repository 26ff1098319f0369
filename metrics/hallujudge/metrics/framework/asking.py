"""How a benchmark's questions are put to a model: prompts, steps, and what the model is shown.

A benchmark declares its protocols; a command sends the questions and writes an archive that
the benchmark's reader reads. Prompts have slots such as ``{{question}}``; they are our own words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256

from msgspec import Struct

ANSWER = "answer"
"""The step whose reply is the response."""
YES_OR_NO = "{{question}}\nAnswer with yes or no."
"""The prompt of a question with yes or no as answer."""
CHOOSE_ONE = "{{options}}\nAnswer with the letter of the right option only."
"""What follows a question with options."""
ONE_LETTER = "{{question}}\n" + CHOOSE_ONE
"""The prompt of a question with options."""
QUESTION_OR_CHOICE = "{{question}}{{choosing}}"
"""The prompt of questions of which some have options."""
CHOOSING = "choosing"
"""The slot with the options of a record and how to choose one; empty for a record without any."""


class AskingStep(Struct, frozen=True, kw_only=True):
    """One call of the model."""

    name: str = ANSWER
    """What the reply is: the slot of later steps that it fills; the last step is ``answer``."""
    prompt: str
    """The prompt with slots: ``question``, ``options``, those of the benchmark, earlier steps."""
    shows: bool = True
    """Whether the model is shown the image or the frames."""


class AskingProtocol(Struct, frozen=True, kw_only=True):
    """A way to ask: one call for each question, or several in order."""

    name: str = "plain"
    """Name of the protocol, for signatures."""
    meaning: str = "One call for each question."
    """Noun phrase or sentence that names it."""
    steps: tuple[AskingStep, ...]
    """The calls; the last reply is the response."""
    pairs: bool = False
    """Whether the order of options is found by questions about two of them at a time. The
    slot ``options`` then has the two."""
    ends: bool = False
    """Whether the first and the last option of that order are asked about too, if they were not:
    the answer may contradict the order, which stays."""

    @property
    def prompt_hashes(self) -> str:
        """Return the beginning of each prompt's SHA-256, in the order of the steps."""
        return "+".join(prompt_hash(step.prompt) for step in self.steps)


def prompt_hash(prompt: str) -> str:
    """Return the first 12 hexadecimal digits of a prompt's SHA-256."""
    # 48 bits tell prompts apart, and fit into a signature.
    return sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def is_prompt_text(prompt: str) -> bool:
    """Return whether a declared prompt is a text; otherwise it is the name of one that we have."""
    return "{{" in prompt or "\n" in prompt


def plain(prompt: str) -> tuple[AskingProtocol, ...]:
    """Return the protocol of one call for each question."""
    return (AskingProtocol(steps=(AskingStep(prompt=prompt),)),)


class Shown(Struct, frozen=True, kw_only=True):
    """What a model is shown of a record besides its question."""

    slots: Mapping[str, str] = {}
    """Further slots of the prompts."""
    options: Mapping[str, str] | None = None
    """The options, letter -> text; None for those under the declaration's keys."""
    media: tuple[str, ...] | None = ()
    """Keys of the image or video, before those of the declaration; ids come last. None for a
    question without image and video."""
    sound: str = ""
    """Name of an audio file, or of a video whose sound is sent next to its frames."""


def _nothing_more(_record: Mapping[str, object]) -> Shown:
    return Shown()


def name_under(record: Mapping[str, object], keys: Iterable[str]) -> str:
    """Return the first name of a file, or the first number, under some keys; empty without one."""
    return next((_as_text(value) for key in keys if is_name(value := record.get(key))), "")


def _as_text(value: object) -> str:
    # A column of a table whose cells may be empty holds 7 as 7.0.
    return f"{value:.0f}" if isinstance(value, float) else str(value)


def is_name(value: object) -> bool:
    """Return whether a value may name a file: a text, or a whole number."""
    if isinstance(value, float):
        return value.is_integer()
    return (isinstance(value, str) and bool(value.strip())) or (
        isinstance(value, int) and not isinstance(value, bool)
    )


class OwnAsking(Struct, frozen=True, kw_only=True):
    """What asking needs where responses are longer than an answer to a closed question."""

    protocols: tuple[AskingProtocol, ...] = ()
    """The ways to ask, the default first; empty for one call with a prompt by the labels."""
    shown: Callable[[Mapping[str, object]], Shown] = _nothing_more
    """Returns what a model is shown of a record besides its question."""
    response: str = ""
    """Key of the response in the archive; empty for the first of the declaration."""
    max_tokens: int = 512
    """Tokens of a response at most; a longer one is cut off, and then unscored."""
    question: tuple[str, ...] = ()
    """Further keys of the question."""
    id: tuple[str, ...] = ()
    """Keys of the id."""
    inside: str = ""
    """Key of the list of questions that a record holds; each becomes a record of the archive."""
    kept: tuple[str, ...] | None = None
    """Keys of records that the archive keeps besides id and question; None for all."""
    of_media: bool = False
    """Whether there is one question for each image, so that a folder of images is enough."""

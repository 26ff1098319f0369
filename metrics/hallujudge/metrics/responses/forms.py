r"""The forms in which models tell their thoughts and answers apart: marks, boxes and objects.

``docs/how-to/models-that-think.md`` has the model families of each form, and its public source.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Form:
    """A form in which models mark thoughts or answers."""

    opening: str
    """The opening mark. Letters match in upper and lower case."""
    closing: str
    """The closing mark; empty for the end of the text."""
    alone: bool = True
    """Whether the closing mark of a thought counts without the opening one."""
    after_thought: bool = False
    """Whether the marks of an answer count after a thought only, as plain texts may hold them."""
    cut: bool = False
    """Whether the opening mark of an answer counts without the closing one, wherever it is."""

    @property
    def name(self) -> str:
        """The name in notes: the opening mark."""
        return self.opening.strip()


FORMS = (
    Form("<think>", "</think>"),
    Form("<thinking>", "</thinking>"),
    Form("<reasoning>", "</reasoning>"),
    Form("<reason>", "</reason>"),
    Form("<analysis>", "</analysis>"),
    Form("<thought>", "</thought>"),
    Form("<thoughts>", "</thoughts>"),
    Form("<scratchpad>", "</scratchpad>"),
    Form("<reflection>", "</reflection>", alone=False),
    Form("[THINK]", "[/THINK]"),
    Form("◁think▷", "◁/think▷"),
    Form("<seed:think>", "</seed:think>"),
    Form("<|channel>thought", "<channel|>"),
    Form("<unused94>thought", "<unused95>"),
    Form("<mm:think>", "</mm:think>"),
    Form("<longcat_think>", "</longcat_think>"),
    Form("<|START_THINKING|>", "<|END_THINKING|>"),
    Form("<|begin_of_thought|>", "<|end_of_thought|>"),
    Form("<|inner_prefix|>", "<|inner_suffix|>"),
    Form("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    # The end of a message ends answers too; after a thought another message begins.
    Form("<|content_thinking|>", "<|end_message|><|message_model|>"),
    Form("to=self<|message|>", "<|eom|><|start|>assistant"),
    Form("<|think|>", "<|end|><|begin|>assistant"),
    Form("<|think:start|>", "<|think:end|>"),
    Form("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),
    Form("<ifm|think>", "</ifm|think>"),
    Form("<ifm|think_fast>", "</ifm|think_fast>"),
    Form("<ifm|think_faster>", "</ifm|think_faster>"),
    Form("[unused16]", "[unused17]"),
    # Calls of tools, and what these gave back, are not meant for the reader either.
    Form("<tool_call>", "</tool_call>"),
    Form("<tool_response>", "</tool_response>"),
    # What "ollama run" prints around a thought.
    Form("Thinking...", "...done thinking.", alone=False),
    Form("Here is my thought process:", "Here is my response:", alone=False),
    Form("Here's my thought process:", "Here's my response:", alone=False),
)
"""The marks of thoughts. gpt-oss's channels have rules of their own."""

CHANNELS = "<|channel|>"
"""The name of gpt-oss's form: channels ``analysis``, ``commentary`` and ``final``."""
KIMI = "<|open|>think<|sep|>"
"""The name of Kimi-K3's form."""
BOXED = r"\boxed{}"
"""The name of the form ``\\boxed{…}``."""

JSON = '{"answer"}'
"""The name of the form of an object with a thought and an answer."""
ANSWER_KEYS = ("answer", "final_answer", "finalanswer", "choice", "option", "caption", "response")
"""Keys of the answer in such an object, in lower case and with ``_`` for spaces."""
THOUGHT_WORDS = (
    *("think", "thought", "reason", "rationale", "explanation", "explain", "justification"),
    *("analysis", "evidence", "observation", "step", "why", "confidence", "probability", "score"),
)
"""Words in the other keys: an only key without any of them is that of the answer."""

ANSWER_MARKS = (
    Form("<answer>", "</answer>"),
    Form("<|begin_of_box|>", "<|end_of_box|>"),
    Form("<response>", "</response>"),
    Form("<conclusion>", "</conclusion>"),
    Form("<final_answer>", "</final_answer>"),
    Form("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    Form("<|begin_of_solution|>", "<|end_of_solution|>"),
    Form("[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]", cut=True),
    Form("<output>", "</output>", after_thought=True),
    Form("<|START_TEXT|>", "<|END_TEXT|>", cut=True),
    Form("<|open|>response<|sep|>", "<|close|>response<|sep|>", cut=True),
    Form("<|content_text|>", "<|end_message|>", cut=True),
    Form("to=user<|message|>", "<|eot|>"),
    Form("<|content|>", "<|end|>", cut=True),
)
r"""The marks of answers; ``\boxed{…}`` and objects have the rules below."""


def own_forms(text: str) -> tuple[Form, ...]:
    """Return the forms that a user names: a line of an opening and a closing mark each.

    Raises:
        ValueError: A line does not have two marks.
    """
    forms = []
    for line in filter(None, map(str.strip, text.splitlines())):
        marks = line.split()
        if len(marks) != 2:
            raise ValueError(
                f"{line!r:.80} is not an opening and a closing mark separated by a space"
            )
        forms.append(Form(opening=marks[0], closing=marks[1]))
    return tuple(forms)


class Enclosed(NamedTuple):
    """An answer and what is around it."""

    answer: str
    """The answer, without what encloses it."""
    around: str
    """The text before and after it, or the other values of its object."""


# A hostile text may have any number of braces.
_MOST_OPENINGS = 8
# A key of one word is a name: {"object": "dog", "answer": "yes"} has no thought.
_FEWEST_WORDS = 3
# Python's parser takes more time and memory than that of JSON.
_LONGEST_LITERAL = 20_000


def answer_in_object(text: str) -> Enclosed | None:
    """Return the answer of an object that a text ends with; None without a thought in it.

    A few words may follow the object: a closing remark after a fence, or on a line of its own.
    """
    end = text.rstrip("` \t\r\n")
    remark = ""
    # Most texts have none.
    if not end.endswith("}"):
        if (last := end.rfind("}")) < 0 or not _REMARK.match(end, last + 1):
            return None
        end, remark = end[: last + 1], end[last + 1 :].strip("` \t\r\n")
    if (found := _object_at_end(end)) is None:
        return None
    start, held = found
    known = {str(key).lower().replace(" ", "_"): value for key, value in held.items()}
    if (key := _key_of_answer(known)) is None or (answer := _text_of(known.pop(key))) is None:
        return None
    before = text[:start].rstrip("` \t\r\n").removesuffix("```json").strip()
    thought = "\n".join(filter(None, [before, *map(_text_of, known.values())]))
    if len(thought.split()) < _FEWEST_WORDS:
        return None
    return Enclosed(answer, "\n".join(filter(None, [thought, remark])))


# The end of a fence or of a line, and then a text without further objects.
_REMARK = re.compile(r"\s*?(?:\n\s*```|```|\n)[^{}]*\Z")


def _key_of_answer(known: dict[str, object]) -> str | None:
    """Return the usual key of an answer, or else the only one beside keys of thoughts."""
    if usual := next((key for key in ANSWER_KEYS if key in known), None):
        return usual
    others = [key for key in known if not any(word in key for word in THOUGHT_WORDS)]
    return others[0] if len(others) == 1 < len(known) else None


def _object_at_end(text: str) -> tuple[int, dict[object, object]] | None:
    """Return where the object begins that a text ends with, and the object."""
    starts = [found.start() for found in re.finditer(r"\{", text)]
    # The outermost one begins first, unless the text before it has braces of its own.
    for start in dict.fromkeys([*starts[:_MOST_OPENINGS], *starts[: -_MOST_OPENINGS - 1 : -1]]):
        if (held := _loaded(text[start:])) is not None:
            return start, held
    return None


def _loaded(text: str) -> dict[object, object] | None:
    """Return an object as JSON has it, or as Python prints it; None for another text."""
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        # Escapes that Python does not know would be warnings.
        if text[1:].lstrip()[:1] != "'" or "\\" in text or len(text) > _LONGEST_LITERAL:
            return None
        try:
            held = ast.literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return None
    return held if isinstance(held, dict) else None


def _text_of(value: object) -> str | None:
    """Return the text of a value of an object: a yes for true, and lists by lines."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return "\n".join(filter(None, map(_text_of, value)))
    return str(value) if isinstance(value, (str, int, float)) else None


# Boxes that are one answer: an order such as \boxed{A}, \boxed{C}, \boxed{B}.
_BETWEEN_BOXES = re.compile(r"[\s,;>&$]*+(?:and|then|->|→)?+[\s,;>&$]*+")
_BOX = re.compile(r"\\boxed\s*+\{")


def boxed_answer(text: str, *, opened: bool) -> Enclosed | None:
    r"""Return what the last ``\boxed{…}`` encloses, with the boxes that it follows directly.

    Args:
        text: The text.
        opened: Whether the text is an answer after a thought, so that a box that a token limit cut
            off is one too. So is one at the beginning.
    """
    boxes = list(_boxes(text, opened=opened))
    if not boxes:
        return None
    first = len(boxes) - 1
    while first and _BETWEEN_BOXES.fullmatch(text[boxes[first - 1][3] : boxes[first][0]]):
        first -= 1
    inner = ", ".join(_plain_box(text[begun:end]) for _, begun, end, _ in boxes[first:])
    around = [part.strip(" \n\t$") for part in (text[: boxes[first][0]], text[boxes[-1][3] :])]
    return Enclosed(inner, "\n".join(filter(None, around)))


def _boxes(text: str, *, opened: bool) -> Iterator[tuple[int, int, int, int]]:
    """Yield where each box begins, and its content; where the content ends, and the box does."""
    at = 0
    while found := _BOX.search(text, at):
        depth, at = 1, found.end()
        while at < len(text) and depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        if not depth:
            yield found.start(), found.end(), at - 1, at
        elif opened or not text[: found.start()].strip(" \n\t$"):
            yield found.start(), found.end(), at, at


# Models style letters in a box: \boxed{\text{B}} is the answer B.
# The brace of a box that was cut off is not closed.
_STYLE = re.compile(
    r"\\(?:text\w*|math(?:bf|it|rm|sf|tt|bb|cal|frak|normal)?|operatorname\*?|[mhf]box|emph|"
    r"underline|boldsymbol)\s*\{([^{}]*)(?:\}|$)"
)
_SPACING = re.compile(
    r"\\(?:[,;:!]|(?:q?quad|large|Large|small|normalsize|displaystyle|bf|it|rm|sf|tt)\b) *"
)
_ESCAPED = re.compile(r"\\([%$&#_])")
_BRACED = re.compile(r"\{([^{}\\]*)\}|\\\{([^{}\\]*)\\\}")
# Commands within commands that are looked for.
_MOST_NESTED = 4


def _plain_box(text: str) -> str:
    """Return the content of a box without commands for its style."""
    for _ in range(_MOST_NESTED):
        text = _STYLE.sub(r"\1", text)
    text = _ESCAPED.sub(r"\1", _SPACING.sub("", text)).strip()
    braced = _BRACED.fullmatch(text)
    return text if braced is None else (braced[1] or braced[2] or "").strip()

r"""Division of responses into a thought and an answer.

A model that reasons writes its thought before its answer, between marks that depend on its family;
:mod:`.forms` lists them.

The rules, in order:

1. A thought stands at the beginning. More thoughts may follow it.
2. A closing mark without an opening one ends a thought too: many chat templates write the opening
   mark into the prompt. The last such mark counts.
3. A thought without an end is not an answer, unless marks of an answer follow. After an answer, it
   ends the answer: models that go on after their answer begin to think again.
4. In what remains, ``<answer>…</answer>``, ``\boxed{…}`` and the other marks of answers enclose the
   answer; the text around them belongs to the thought. So does the rest of a JSON object with an
   ``answer`` that a response ends with, if it has several words. After a thought, an element of any
   other name that encloses all that follows, such as ``<solution>``, encloses the answer.

A mark that the text only cites is text: one in quotes, or in the middle of a sentence. A response
without marks is an answer as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .forms import (
    ANSWER_MARKS,
    BOXED,
    CHANNELS,
    FORMS,
    JSON,
    KIMI,
    Form,
    answer_in_object,
    boxed_answer,
)


class Said(NamedTuple):
    """A response, divided into its thought and its answer."""

    answer: str
    """What the model says; empty for a thought without an end."""
    thought: str = ""
    """What it thinks first, without marks; empty without a thought."""
    form: str = ""
    """The form of the first mark, such as ``<think>``; empty without marks: the answer is the text
    as it is."""
    finished: bool = True
    """Whether there is an answer; false for a thought without an end."""


# The possessive quantifiers keep the search linear in texts of many half-written marks.
_CHANNEL = re.compile(
    r"(?:<\|start\|>[^<]*+)?<\|channel\|>\s*+(\w++)[^<]*+(?:<\|constrain\|>[^<]*+)?<\|message\|>"
)
_CHANNEL_END = re.compile(r"<\|(?:end|return|call|start)\|>")
# What a tokenizer leaves of the marks that skips special tokens.
# The thought follows the channel's name without a space, as in "analysisWe see". Without a thought,
# or without an end of it, there is one of the two names only.
_BARE_THOUGHT = r"(?:assistant)?analysis(?=[A-Z\"'*(])"
_BARE_CHANNELS = re.compile(rf"(?:{_BARE_THOUGHT}(.*))?assistantfinal(.*)", re.DOTALL)
_BARE_AGAIN = re.compile(r"assistantanalysis(?=[A-Z\"'*(])")
_BARE_UNFINISHED = re.compile(rf"{_BARE_THOUGHT}(.*)", re.DOTALL)

# As well of Kimi-K3's, whose names of channels are words between special tokens.
# A word of their letters has a space before it.
_BARE_KIMI = re.compile(r"\s*(?:think)?(.*)(?<! )thinkresponse(.*)", re.DOTALL)

# Hunyuan 3 and 4 write a suffix of their checkpoint: <think:opensource>.
_SUFFIX = re.compile(r"<(/?think):[^\s<>]++>")
# Prompts of reasoning tasks have names of their own: <thought_process>, <think step="1">.
_NAMED = re.compile(
    r"<(/?)(?!think key)(?=[\w-]*(?:think|thought|reason))([a-z]\w*(?:-\w+)*)(?:\s[^<>]*)?>",
    re.IGNORECASE,
)

_KEY_OPENING = re.compile(r'<think key="([\w.]+)">')
_KEY_CLOSING = "</think key>"
_QUOTES = "\"'`“”‘’«»„"
_SENTENCE_END = ".!?…。！？:;)]}>*"
# Marks within marks that are looked for; a hostile text may have any number.
_MOST_NESTED = 4


def with_thought(thought: str, answer: str | None, key: str) -> str:
    """Return the response whose thought an archive holds under a key of its own.

    Args:
        thought: The thought.
        answer: The answer; None if the model never came to one.
        key: The key of the thought, such as ``reasoning_content``; it names the form.
    """
    # A thought that holds the closing mark could otherwise end itself.
    opening = f'<think key="{key}">{thought.replace(_KEY_CLOSING, "")}'
    return opening if answer is None else f"{opening}{_KEY_CLOSING}{answer}"


def without_keyed_thought(text: str) -> str | None:
    """Return the text that the model server gave as content; None if it gave only a thought."""
    if (found := _KEY_OPENING.match(text)) is None:
        return text
    _, closing, answer = text[found.end() :].partition(_KEY_CLOSING)
    return answer if closing else None


def opening_at_end(prompt: str) -> str:
    """Return the opening mark of a thought that a prompt ends with; empty without one."""
    end = prompt.rstrip()
    return next((form.opening for form in FORMS if end.endswith(form.opening)), "")


def divided(text: str, own: Sequence[Form] = (), kept: frozenset[str] = frozenset()) -> Said:
    r"""Return the thought and the answer of a response.

    Args:
        text: The response.
        own: Further forms of thoughts, tried first.
        kept: Names of forms of answers, such as ``\boxed{}``, that stay in the answer.
    """
    keyed = _of_key(text)
    whole = text if keyed is None else keyed.answer
    # The server gave no content beside the thought, so that there are no further marks.
    if keyed is not None and not keyed.finished:
        return keyed
    if "think:" in whole:
        whole = _SUFFIX.sub(r"<\1>", whole)
    if "<" in whole:
        whole = _NAMED.sub(_under_a_known_name, whole)
    said = _of_channels(whole) or _of_kimi(whole) or _of_marks(whole, (*own, *FORMS))
    if said.finished:
        marked = _marked_answer(said.answer, kept, after_thought=bool(said.form))
    else:
        marked = _forgotten_end(said.thought)
    parts = [] if keyed is None else [keyed.thought]
    if marked is None:
        parts.append(said.thought)
        answer, form, finished = said.answer, said.form, said.finished
    else:
        parts += [said.thought, marked.thought] if said.finished else [marked.thought]
        answer, form, finished = marked.answer, said.form or marked.form, True
    # The key is the form that was certain; marks in the content come after it.
    form = keyed.form if keyed is not None else form
    if not form:
        return Said(text)
    return Said(answer.strip(), "\n".join(filter(None, map(str.strip, parts))), form, finished)


def _under_a_known_name(mark: re.Match[str]) -> str:
    """Return a mark of thoughts with the name of a listed one."""
    name = mark[2].lower()
    return f"<{mark[1]}{name if f'<{name}>' in _OPENINGS else 'thought'}>"


_OPENINGS = frozenset(form.opening.lower() for form in FORMS)


def _of_key(text: str) -> Said | None:
    if (found := _KEY_OPENING.match(text)) is None:
        return None
    thought, closing, answer = text[found.end() :].partition(_KEY_CLOSING)
    return Said(answer, thought.strip(), f"key {found[1]}", bool(closing))


def _of_channels(text: str) -> Said | None:
    """Return a response of gpt-oss (openai-harmony); None for another one."""
    bare = text.lstrip()
    if found := _BARE_CHANNELS.match(bare):
        answer, *again = _BARE_AGAIN.split(found[2], 1)
        return Said(answer, "\n".join([(found[1] or "").strip(), *again]).strip(), CHANNELS)
    if found := _BARE_UNFINISHED.match(bare):
        return Said("", found[1].strip(), CHANNELS, finished=False)
    heads = list(_CHANNEL.finditer(bare)) if "<|channel|>" in bare else []
    if not heads:
        return None
    before = _CHANNEL_END.split(bare[: heads[0].start()])
    # A channel that a text cites follows no message.
    if not bare.startswith(("<|channel|>", "<|start|>")) and len(before) < 2:
        return None
    ends = [head.start() for head in heads[1:]] + [len(bare)]
    thoughts: list[str] = []
    finals: list[str] = []
    # The prompt opened the first channel: that of the answer, unless another one has it.
    has_final = any(head[1].lower() == "final" for head in heads)
    (thoughts if has_final else finals).extend(filter(None, [before[0].strip()]))
    for head, end in zip(heads, ends, strict=True):
        content = _CHANNEL_END.split(bare[head.end() : end])[0].strip()
        # The other channels, "analysis" and "commentary", are not meant for the reader.
        (finals if head[1].lower() == "final" else thoughts).append(content)
    return Said("\n".join(finals), "\n".join(thoughts), CHANNELS, bool(finals))


def _of_kimi(text: str) -> Said | None:
    """Return a response of Kimi-K3 without special tokens; None for another one."""
    found = _BARE_KIMI.match(text) if "thinkresponse" in text else None
    if found is None:
        return None
    answer = found[2].removesuffix("message").removesuffix("response")
    return Said(answer, found[1].strip(), KIMI)


def _of_marks(text: str, forms: Sequence[Form]) -> Said:
    """Return the parts of a response whose thought stands between two marks."""
    lowered = text.lower()
    # Lower-casing may change the length of a few letters of other scripts.
    lower = lowered if len(lowered) == len(text) else text
    thoughts: list[str] = []
    at, first = _skip_space(text, 0), ""
    while (form := _opened(lower, at, forms)) is not None:
        start = at + len(form.opening)
        end = lower.find(form.closing.lower(), start)
        if end < 0 and not form.alone:
            # Plain words are marks only where both are there.
            break
        first = first or form.name
        if end < 0:
            rest = text[start:].strip()
            return Said("", "\n".join([*thoughts, rest]), first, finished=False)
        thoughts.append(text[start:end].strip())
        at = _skip_space(text, end + len(form.closing))
    rest = text[at:] if first else text
    rest, again, name = _without_open(rest, forms)
    first = first or name
    # A search in one lowered text takes less time than a call for each form.
    for form in [form for form in forms if form.closing.lower() in lowered]:
        rest, more, name = _without_later(rest, form)
        first = first or name
        thoughts += more
    return Said(rest, "\n".join(filter(None, [*thoughts, again])), first)


def _opened(lower: str, at: int, forms: Sequence[Form]) -> Form | None:
    return next((form for form in forms if lower.startswith(form.opening.lower(), at)), None)


# A byte order mark, and characters without a width, which some models begin with.
_INVISIBLE = "\ufeff\u200b\u200c\u200d\u200e\u200f\u2060"


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and (text[at].isspace() or text[at] in _INVISIBLE):
        at += 1
    return at


def _without_open(text: str, forms: Sequence[Form]) -> tuple[str, str, str]:
    """Return an answer without a thought after it that has no end, the thought, and its mark."""
    lower = text.lower()
    if len(lower) != len(text):
        return text, "", ""
    places = [(at, form) for form in forms if (at := _open_place(text, lower, form)) > 0]
    if not places:
        return text, "", ""
    start, form = min(places, key=lambda place: place[0])
    answer, thought = text[:start].rstrip(), text[start + len(form.opening) :].strip()
    # What is before the mark is no answer where one follows, in marks, or where nothing is before.
    if not answer or _forgotten_end(thought) is not None:
        return text, "", ""
    return answer, thought, form.name


def _open_place(text: str, lower: str, form: Form) -> int:
    """Return where a thought of a form begins that has no end; -1 without one."""
    opening, closing = form.opening.lower(), form.closing.lower()
    # Plain words are marks only where both are there.
    start = lower.find(opening) if form.alone else -1
    if start >= 0 and (last := lower.rfind(closing)) > start:
        start = lower.find(opening, last + len(closing))
    while start >= 0 and not _opens(text, start, 0, start + len(opening)):
        start = lower.find(opening, start + len(opening))
    return start


def _opens(text: str, start: int, kept: int, end: int) -> bool:
    """Return whether the mark at a place begins a thought; one that is cited does not.

    That has a quote before it, or a blank in a sentence that goes on.
    """
    if _begins_a_sentence(text, start, kept):
        # An empty thought after a colon is what a sign reads.
        return _skip_space(text, end) < len(text) or not text[:start].rstrip().endswith(":")
    if text[end : end + 1] == "\n":
        while text[start - 1] in " \t":
            start -= 1
    return text[start - 1].isalnum()


def _without_later(text: str, form: Form) -> tuple[str, list[str], str]:
    """Return a text without the thoughts of a form that come later.

    Returns:
        The text, the thoughts, and how they are marked; empty without one.
    """
    lower, found = text.lower(), list[str]()
    if len(lower) != len(text) or form.closing.lower() not in lower:
        return text, found, ""
    parts: list[str] = []
    at = kept = 0
    while (start := lower.find(form.opening.lower(), at)) >= 0:
        at = start + len(form.opening)
        if (end := lower.find(form.closing.lower(), at)) < 0:
            break
        if _opens(text, start, kept, at):
            found.append(text[at:end].strip())
            parts.append(text[kept:start].rstrip())
            at = kept = end + len(form.closing)
    rest = "\n".join(filter(None, [*parts, text[kept:].lstrip()])) if parts else text
    before, rest = _beginning(rest, form)
    name = form.name if found else "" if before is None else f"{form.closing} alone"
    return rest, found if before is None else [*found, before], name


def _beginning(text: str, form: Form) -> tuple[str | None, str]:
    """Return what comes before the last closing mark without an opening one, and what follows."""
    lower = text.lower()
    if form.alone and form.opening.lower() not in lower:
        # A thought may cite the mark, so that the last place that is not a citation counts.
        for start in reversed(_places(lower, form)):
            end = start + len(form.closing)
            if not _is_cited(text, start, end):
                # Closing marks before the last one end nothing, and are not words of the thought.
                thought = re.sub(re.escape(form.closing), " ", text[:start], flags=re.IGNORECASE)
                return thought.strip(), text[end:]
    return None, text


def _places(lower: str, form: Form) -> list[int]:
    return [found.start() for found in re.finditer(re.escape(form.closing.lower()), lower)]


def _begins_a_sentence(text: str, at: int, start: int) -> bool:
    """Return whether a place is the start, or follows a line or a sentence."""
    while at > start and text[at - 1] in " \t":
        at -= 1
    return at == start or text[at - 1] == "\n" or text[at - 1] in _SENTENCE_END


def _is_cited(text: str, start: int, end: int) -> bool:
    """Return whether a text only cites the mark at a place, as in ``a sign with </b> on it``."""
    if start and text[start - 1] in _QUOTES and text[end : end + 1] in _QUOTES:
        return True
    if not start or text[start - 1] not in " \t" or _begins_a_sentence(text, start, 0):
        return False
    # A word, a space, the mark, and the sentence goes on.
    while text[end : end + 1] in (" ", "\t"):
        end += 1
    goes_on = text[end : end + 1]
    return goes_on not in ("", "\n") and not goes_on.isupper() and not goes_on.isdigit()


def _marked_answer(text: str, kept: frozenset[str], *, after_thought: bool) -> Said | None:
    """Return the answer between marks of answers; None without such marks.

    Args:
        text: What follows the thought.
        kept: Names of forms that stay in the answer.
        after_thought: Whether a thought came before.
    """
    found: Said | None = None
    around: list[str] = []
    # Marks may enclose each other: a box within <answer>.
    for _ in range(_MOST_NESTED):
        inner = _innermost(text, kept, opened=after_thought or found is not None)
        if inner is None:
            break
        text, form = inner.answer, found.form if found is not None else inner.form
        around.append(inner.thought)
        found = Said(text, "\n".join(filter(None, around)), form)
    return found


# These end any message of their families, thoughts too.
_MESSAGE_ENDS = ("<|end|>", "<|eot|>", "<|end_message|>")
_CLOSINGS = tuple(
    form.closing.lower()
    for form in ANSWER_MARKS
    if form.closing not in _MESSAGE_ENDS and not form.after_thought
)
_LONGEST_CLOSING = max(map(len, _CLOSINGS))


def _forgotten_end(thought: str) -> Said | None:
    """Return the answer of a thought without an end that closes with a marked answer."""
    if not thought[-_LONGEST_CLOSING:].lower().endswith(_CLOSINGS):
        return None
    # A box within a thought may be a draft.
    return _marked_answer(thought, frozenset({BOXED}), after_thought=False)


def _innermost(text: str, kept: frozenset[str], *, opened: bool) -> Said | None:
    lower = text.lower()
    if len(lower) == len(text):
        for form in ANSWER_MARKS:
            if form.opening.lower() not in lower or form.name in kept:
                continue
            if form.after_thought and not opened:
                continue
            if (found := _enclosed(text, lower, form, opened=opened)) is not None:
                return found
    if BOXED not in kept and (box := boxed_answer(text, opened=opened)):
        return Said(box.answer, box.around, BOXED)
    if JSON not in kept and (held := answer_in_object(text)):
        return Said(held.answer, held.around, JSON)
    return _in_element(text) if opened else None


_ELEMENT = re.compile(r"\s*<([a-z]\w*)>(.*)</\1>\s*", re.DOTALL | re.IGNORECASE)


def _in_element(text: str) -> Said | None:
    """Return what an element of any name encloses, if it is all that follows a thought."""
    found = _ELEMENT.fullmatch(text)
    if found is None or f"<{found[1]}>" in found[2]:
        return None
    return Said(found[2].strip(), "", f"<{found[1]}>")


def _enclosed(text: str, lower: str, form: Form, *, opened: bool) -> Said | None:
    """Return what the last pair of marks of a form encloses; a cut answer may lack the last one."""
    # A draft may come before the answer, in the same marks.
    start = lower.rfind(form.opening.lower())
    inside = start + len(form.opening)
    end = lower.find(form.closing.lower(), inside)
    if end < 0:
        # After a thought, or at the beginning, the opening mark is not part of a text.
        cut = opened or not text[:start].strip()
        cut = cut or (form.cut and not _is_cited(text, start, inside))
        return Said(text[inside:].strip(), text[:start].strip(), form.name) if cut else None
    past = end + len(form.closing)
    if _is_cited(text, start, inside) and _is_cited(text, end, past):
        return None
    if start > 1 and text[start - 1] in _QUOTES and text[past : past + 1] in (*_QUOTES,):
        # A text may cite both marks with what they enclose.
        return None
    around = "\n".join(filter(None, [text[:start].strip(), text[past:].strip()]))
    return Said(text[inside:end].strip(), around, form.name)


Division = Callable[[str], Said]
"""A rule that divides a response into its thought and its answer."""


def keyed_division(text: str) -> Said:
    """Return the content beside a thought under a key of its own; any other text as it is."""
    return _of_key(text) or Said(text)


_LMMS_EVAL_TAGS = (("<think>", "</think>"), ("<analysis>", "</analysis>"))


def lmms_eval_division(text: str) -> Said:
    """Return the answer that lmms-eval 0.7.3 scores, by its default ``--reasoning_tags``.

    As ``lmms_eval.api.reasoning.strip_reasoning_tags``: each pair is cut from its first opening to
    the next closing mark; of a text with closing marks only, what follows the last one is left. A
    thought without an end stays in the text.
    """
    # An archive may hold the thought under a key of its own, as the tool's logs do since 0.7.
    keyed = keyed_division(text)
    if not keyed.finished:
        return keyed
    answer, first = keyed.answer, keyed.form
    thoughts = [keyed.thought] if keyed.thought else []
    for opening, closing in _LMMS_EVAL_TAGS:
        while opening in answer and closing in answer:
            before, _, rest = answer.partition(opening)
            thought, closed, after = rest.partition(closing)
            if not closed:
                break
            answer, first = before + after, first or opening
            thoughts.append(thought.strip())
        if closing in answer and opening not in answer:
            thought, _, answer = answer.rpartition(closing)
            first = first or opening
            thoughts.append(thought.strip())
    if not first:
        return Said(text)
    return Said(answer.strip(), "\n".join(filter(None, thoughts)), first)

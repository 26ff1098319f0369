"""What a response holds that is not the model's words, and what of it is not a description.

Tokens of chat templates and repeated prompts are left out. Refusals and sentences that a token
limit cut off are the model's own; they are found so that a report can count them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

BARE_END = "responsemessage"
"""The end of each response of Kimi-K3 without special tokens."""

# What begins a text that a trainer or a harness decodes with its special tokens.
_STARTS = (
    "<s>",
    "<bos>",
    "<pad>",
    "[BOS]",
    "[PAD]",
    "<|begin_of_text|>",
    "<｜begin▁of▁sentence｜>",
    "<|startoftext|>",
    "<|endoftext|>",
    "<unk>",
    # What a tokenizer leaves of Gemma 4's empty thought that skips special tokens.
    "thought\n",
)
# What models end a response with, and tokenizers fill it up with.
_ENDS = (
    "</s>",
    "<eos>",
    "<pad>",
    "<unk>",
    "[EOS]",
    "[PAD]",
    "<|im_end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|end_of_sentence|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|eot|>",
    "<|end|>",
    "<|return|>",
    "<|user|>",
    "<|observation|>",
    "<end_of_turn>",
    "<turn|>",
    "<end_of_utterance>",
    "<｜end▁of▁sentence｜>",
    "<|END_OF_TURN_TOKEN|>",
    "<|assistant_end|>",
    "<|im:end|>",
    "<|plamo:tag|>",
    "[unused10]",
    "<|end_message|>",
    "<|content_model_end_sampling|>",
    "<|close|>response<|sep|>",
    "<|close|>message<|sep|>",
    "<|end_of_msg|>",
    # What a tokenizer leaves of Kimi-K3's ends of a response and a message.
    BARE_END,
)
# Within a text too, these are of no language; "</s>" may be HTML, others are marks of thoughts, or
# what a picture of code may show.
_AT_THE_END = ("</s>", "<|end|>", "<|return|>", "<|end_message|>", "[unused10]", BARE_END)
_WITHIN = re.compile("|".join(re.escape(token) for token in _ENDS if token not in _AT_THE_END))
_SPACE = " \t\r\n\u00a0"

_CHANNELS = ("<|channel|>", "<|start|>")
# A model that is not stopped writes the next turn of the user too.
_NEXT_TURN = re.compile(
    r"(?:<\|im_end\|>|<\|eot_id\|>|<end_of_turn>|</s>)\s*+"
    r"(?:<\|im_start\|>|<\|start_header_id\|>|<start_of_turn>|\[INST\]|USER:)"
)

# The roles before a prompt and before its answer, in the forms of chat templates. A text that
# begins with the first one, or with a system prompt and then the first one, repeats its prompt.
_TURNS = (
    # Vicuna and LLaVA-1.5, whose system prompt speaks of a chat.
    (re.compile(r"(?:A chat between a .{0,400}?)?USER:", re.DOTALL), "ASSISTANT:"),
    (re.compile(r"(?:A chat between a .{0,400}?)?(?:### ?)?Human:", re.DOTALL), "Assistant:"),
    (re.compile(r"\[INST\]"), "[/INST]"),
    (re.compile(r"<\|im_start\|>(?:system|user)\b"), "<|im_start|>assistant"),
    (re.compile(r"<\|start_header_id\|>"), "<|start_header_id|>assistant<|end_header_id|>"),
    (re.compile(r"<start_of_turn>user\b"), "<start_of_turn>model"),
    (re.compile(r"<\|(?:system|user)\|>"), "<|assistant|>"),
    # What a tokenizer leaves of Qwen's template that skips special tokens.
    (re.compile(r"(?:system\n.{0,400}?\n)?user\n", re.DOTALL), "\nassistant\n"),
)
# A response may begin with the role that the prompt asks for.
_ROLES = (
    "ASSISTANT:",
    "<|im_start|>assistant",
    "<|start_header_id|>assistant<|end_header_id|>",
    "<start_of_turn>model",
    "<|assistant|>",
)


class Cleaned(NamedTuple):
    """A response without what is not the model's."""

    text: str
    """The model's words."""
    tokens: bool = False
    """Whether tokens of a template were left out."""
    prompt: bool = False
    """Whether a repeated prompt was left out."""


def cleaned(text: str) -> Cleaned:
    """Return a response without tokens of templates and without a repeated prompt."""
    bare = _without_starts(text)
    if bare.startswith(_CHANNELS):
        # Its tokens are marks of thought and answer.
        return Cleaned(text)
    answer = without_prompt(bare)
    prompt = answer is not bare
    # After a repeated prompt the answer may begin with tokens of its own.
    answer = _without_starts(answer)
    if turn := _NEXT_TURN.search(answer):
        answer = answer[: turn.start()]
    answer = without_ends(answer)
    if _WITHIN.search(answer):
        # A blank in its place, or the words on both sides would become one.
        answer = _WITHIN.sub(" ", answer)
    if not prompt and answer == text.rstrip(_SPACE):
        return Cleaned(text)
    return Cleaned(answer.strip(_SPACE), tokens=not prompt or bare is not text, prompt=prompt)


def _without_starts(text: str) -> str:
    at = _past_space(text, 0)
    start = at
    while text.startswith(_STARTS, at):
        at = _past_space(text, at + len(next(t for t in _STARTS if text.startswith(t, at))))
    return text[at:] if at > start else text


def _past_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def without_ends(text: str) -> str:
    """Return a text without the tokens at its end, and without white space before them."""
    # An index, because a text of tokens alone would be copied once for each of them.
    end = _before_space(text, len(text))
    while text.endswith(_ENDS, 0, end):
        token = next(token for token in _ENDS if text.endswith(token, 0, end))
        end = _before_space(text, end - len(token))
    return text[:end]


def _before_space(text: str, end: int) -> int:
    while end and text[end - 1] in _SPACE:
        end -= 1
    return end


def without_prompt(text: str) -> str:
    """Return the answer of a text that repeats its prompt in a chat template; else the text."""
    begun = text.lstrip(_SPACE)
    for asked, answered in _TURNS:
        # The last one: a prompt of several turns holds earlier answers.
        if asked.match(begun) and (at := begun.rfind(answered)) >= 0:
            return begun[at + len(answered) :].lstrip(_SPACE + ":")
    role = next((role for role in _ROLES if begun.startswith(role)), None)
    return text if role is None else begun[len(role) :].lstrip(_SPACE)


def response_in(query: str, prompt: str) -> str:
    """Return the response of a query: what follows the prompt, without marks of the end.

    A tokenizer may write a mark before the prompt. A query that does not hold the prompt as it was
    given is a response as a whole.
    """
    text = query.partition(prompt)[2] if prompt and prompt in query else query
    return without_ends(text)


# What may follow the end of a sentence: quotes, brackets, marks of emphasis.
_AFTER = "\"'”’»)]}*_`"
# A number and a full stop begin an item of a list.
_LAST_SENTENCE = re.compile(rf"(?s:.*)(?<=[.!?…。！？])(?<!\d\.)[{re.escape(_AFTER)}]*+")
_LIST_ITEM = re.compile(r"\s*(?:[-*•]|\d+[.)])\s")
# Items of lists with more words are sentences.
_ITEM_WORDS = 4


def is_cut(text: str) -> bool:
    """Return whether a text with sentences ends without an end of sentence.

    A text without any, such as ``a cat on a mat`` or a list of words, is whole.
    """
    if text[-1:] == ".":
        return False
    end = _before_space(text, len(text))
    if not end or not (text[end - 1].isalnum() or text[end - 1] == ","):
        return False
    # A list of things ends without a full stop, whole as it is.
    line = text[text.rfind("\n", 0, end) + 1 : end]
    if _LIST_ITEM.match(line) and len(line.split()) <= _ITEM_WORDS + 1:
        return False
    return _LAST_SENTENCE.match(text, 0, end) is not None


def without_cut_sentence(text: str) -> str:
    """Return a text without its unfinished last sentence."""
    found = _LAST_SENTENCE.match(text) if is_cut(text) else None
    return text if found is None else found[0].rstrip(_SPACE)


_REFUSAL = re.compile(
    r"""(?:(?:i'?m|i\ am)\ (?:so\ |very\ |really\ )?sorry\b|sorry\b|i\ apologi[sz]e\b
      |unfortunately\b)?
    [\s,.;:!-]*(?:but\ |however,?\ )?
    (?:
      as\ an\ ai\b.{0,60}?\b(?:can(?:'t|not)|unable|do\ not|don't|am\ not\ able)
      | (?:i|we)\ (?:can(?:'t|not|\ not)|am\ unable\ to|am\ not\ able\ to|won't|will\ not
          |must\ decline|do\ not\ have\ the\ ability|don't\ have\ the\ ability)\ ?
        (?:to\ )?(?:help|assist|identify|provide|describe|comply|answer|view|see|process|analy[sz]e
          |comment|discuss|fulfil|engage|continue|recogni[sz]e|determine|access|interpret|do\ that)
      | i'm\ (?:unable|not\ able)\ to\ \w+
      | n/?a\.?$ | not\ applicable\.?$ | no\ (?:answer|response|caption)\.?$
      | (?:no\ image\ (?:was|is|has\ been)\ (?:provided|attached))
    )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
# A refusal begins the response; a bound keeps the pattern quick on long ones.
_REFUSAL_CHARS = 200
# How refusals begin, in lower case; captions begin otherwise.
REFUSALS_BEGIN = frozenset(
    [
        *("i ca", "i'm ", "i’m ", "i am", "i ap", "i wo", "i wi", "i mu", "i do", "we c", "we a"),
        *("sorr", "unfo", "as a", "n/a", "n/a.", "na", "na.", "not ", "no a", "no r", "no c"),
        "no i",
    ]
)
_MARKUP = _SPACE + "\"'*"


def is_refusal(text: str) -> bool:
    """Return whether a model declines to answer, or says that there is nothing to describe."""
    if text[:1] in _MARKUP:
        text = text.lstrip(_MARKUP)
    if text[:4].lower() not in REFUSALS_BEGIN:
        return False
    return _REFUSAL.match(text[:_REFUSAL_CHARS].replace("’", "'")) is not None

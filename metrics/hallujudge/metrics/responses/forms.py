"""The marks by which models tell their thoughts and answers apart.

``docs/how-to/models-that-think.md`` has the model families of each form, and its public source.
"""

from __future__ import annotations

from dataclasses import dataclass


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
r"""The marks of answers; ``\boxed{…}`` and objects have rules of their own."""


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

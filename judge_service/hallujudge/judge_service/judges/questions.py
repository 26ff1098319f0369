"""Questions of the judge: what goes into one call, and the prompt of the call.

The calls of an image share their beginning, which a server with a prefix cache reads once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from hallujudge.metrics.answers.answer_text import folded, texts_in
from hallujudge.metrics.framework.claims import ClaimParts, Part, Sentence
from hallujudge.metrics.framework.results import Picture

from ..llm.chat import ChatImage
from ..llm.prompt_templates import (
    NOT_AMONG_THEM,
    Message,
    Template,
    as_line,
    fenced,
    load_template,
    object_schema,
)
from . import JudgeRequestItem

VERDICT_KEY = "verdict"
"""The key of a single choice in an answer that is an object."""


WRONG_PARTS: Mapping[str, Part] = {
    "object1": Part.SUBJECT,
    "object2": Part.OBJECT,
    "relation": Part.RELATION,
}
"""The wrong part that a choice names; the words are those of the published prompt."""
TRIPLET_CHOICES = ("supported", *WRONG_PARTS)
"""The choices for a triplet."""
SENTENCE_CHOICES = ("supported", "not_supported")
"""The choices for a sentence, which has no parts that could be wrong."""
WORDINGS = ("reworded_1", "reworded_2", "reworded_3")
"""Equivalent prompts for single triplets, with which a judge's report card asks again."""


class Question(Struct, frozen=True, kw_only=True):
    """One call: its messages, and the claims that it asks about."""

    template: Template
    """The template that made the messages."""
    messages: list[Message]
    """What is sent."""
    claims: tuple[int, ...]
    """Indices of the item's claims, in the order asked."""
    choices: tuple[str, ...]
    """What may be answered; empty if the answer is a text."""
    keyed: bool
    """Whether the answer is an object with one entry for each claim, rather than one choice."""
    envelope: tuple[str, str] = ("", "")
    """The text before and after the choice, in replies of a model with its own format."""
    extra: Mapping[str, object] = {}
    """More parameters of the request, such as values for the model's chat template."""
    parts: tuple[str, ...] = ()
    """What each claim adds to the messages, where each is judged by itself in a joint call."""
    pictures: tuple[Picture, ...] = ()
    """What the last message begins with, for a judge that sees."""
    affinity: str = ""
    """A text that is equal for all questions about an image; empty if unknown."""
    payer: str = ""
    """The item that asks, from :func:`payer_of`; the reply does not depend on it."""
    first: tuple[Question, Callable[[str], Question]] | None = None
    """What the same model is asked before, whose reply is a text, and what makes this question of
    that text; None if nothing is asked before."""

    @property
    def images(self) -> tuple[ChatImage, ...]:
        """The pictures as they are sent, with their bytes as they are."""
        return tuple(
            ChatImage(data=p.data, media_type=p.media_type, width=p.width, height=p.height)
            for p in self.pictures
        )

    def schema(self) -> dict[str, object] | None:
        """Return the JSON schema of the answer, in which every claim's number is a required key."""
        if not self.choices:
            return None
        numbers = [str(number) for number in range(1, len(self.claims) + 1)]
        keys = numbers if self.keyed else [VERDICT_KEY]
        choice = {"type": "string", "enum": list(self.choices)}
        return object_schema(dict.fromkeys(keys, choice))

    def pattern(self) -> str:
        """Return the schema as a regular expression without white space."""
        choice = f'"({"|".join(self.choices)})"'
        if not self.keyed:
            return rf'\{{"{VERDICT_KEY}":{choice}\}}'
        entries = (f'"{number}":{choice}' for number in range(1, len(self.claims) + 1))
        return rf"\{{{','.join(entries)}\}}"


def questions_of(
    item: JudgeRequestItem, *, claims_per_call: int, wording: str = "", together: int = 0
) -> list[Question]:
    """Return the calls that an item's claims need.

    The scene graph comes first and depends on the image alone, so that all calls of an image begin
    with the same text and a server with a prefix cache reads it once. Neither the question nor the
    response is in the prompt, as in the paper's: they cannot sway the judge, and a claim that
    comes up under two questions is asked about once.

    Args:
        item: Claims and references.
        claims_per_call: Maximum claims in one call; with 1 the reply is a choice, as published.
        wording: One of :data:`WORDINGS` for single triplets; empty for the usual prompt.
        together: Claims in one call at most that judges each by itself; 0 for calls of chat.
    """
    # Without repeats, which would only add tokens.
    scene = fenced("SCENE", dict.fromkeys(map(as_line, item.reference_triplets)))
    objects = fenced("OBJECTS", [as_line(dict.fromkeys(item.reference_objects))])
    triplets = [i for i, claim in enumerate(item.claims) if not isinstance(claim, Sentence)]
    sentences = [i for i, claim in enumerate(item.claims) if isinstance(claim, Sentence)]
    single = f"judge_claim_{wording}" if wording else "judge_claim"
    if together:
        joint = [*in_chunks(triplets, together), *in_chunks(sentences, together)]
        asked = [_joint_question(item.claims, call, (scene, objects), single) for call in joint]
    else:
        # One at a time: the prompt of several claims is written for triplets.
        calls = [*in_chunks(triplets, claims_per_call), *((index,) for index in sentences)]
        asked = [_question(item.claims, call, (scene, objects), single) for call in calls]
    return [replace(question, payer=item.payer) for question in asked]


def each_alone(question: Question, item: JudgeRequestItem, *, wording: str) -> Iterator[Question]:
    """Yield a question about each claim alone, with the item's place of the claim.

    Args:
        question: A question about one or several of the item's claims.
        item: Claims and references.
        wording: One of :data:`WORDINGS` for single triplets; empty for the usual prompt.
    """
    for index in question.claims:
        alone = question
        if question.keyed:
            [alone] = questions_of(item.picked([index], ()), claims_per_call=1, wording=wording)
        yield replace(alone, claims=(index,))


def in_chunks(indices: Sequence[int], size: int) -> list[tuple[int, ...]]:
    """Return chunks of nearly equal length: 21 claims at 20 a call are 11 and 10, not 20 and 1."""
    count = -(-len(indices) // size) or 1
    bounds = [len(indices) * number // count for number in range(count + 1)]
    chunks = (tuple(indices[a:b]) for a, b in pairwise(bounds))
    return [chunk for chunk in chunks if chunk]


def _block(claim: ClaimParts) -> str:
    if isinstance(claim, Sentence):
        return fenced("SENTENCE", [as_line(claim.text)])
    return fenced("CLAIM", [as_line(claim)])


def _question(
    claims: Sequence[ClaimParts], call: tuple[int, ...], image: tuple[str, str], single: str
) -> Question:
    (scene, objects), first = image, claims[call[0]]
    keyed = len(call) > 1
    name, block = single, _block(first)
    if isinstance(first, Sentence):
        name = "judge_sentence"
    elif keyed:
        lines = (as_line([str(n), *claims[i]]) for n, i in enumerate(call, start=1))
        name, block = "judge_claims", fenced("CLAIMS", lines)
    template = load_template(name)
    return Question(
        template=template,
        messages=template.messages({"scene": scene, "objects": objects, "claims": block}),
        claims=call,
        choices=_choices_of(first),
        keyed=keyed,
        affinity=f"{scene}\n{objects}",
    )


def _joint_question(
    claims: Sequence[ClaimParts], call: tuple[int, ...], image: tuple[str, str], single: str
) -> Question:
    """The same prompt for each claim, whose end is kept apart."""
    (scene, objects), first = image, claims[call[0]]
    template = load_template("judge_sentence" if isinstance(first, Sentence) else single)
    *before, last = template.messages({"scene": scene, "objects": objects, "claims": ""})
    return Question(
        template=template,
        # Each part follows directly, where the template has a blank line for the claims.
        messages=[*before, {**last, "content": last["content"].rstrip("\n")}],
        parts=tuple(_block(claims[index]) for index in call),
        claims=call,
        choices=_choices_of(first),
        keyed=False,
        affinity=f"{scene}\n{objects}",
    )


def _choices_of(claim: ClaimParts) -> tuple[str, ...]:
    return SENTENCE_CHOICES if isinstance(claim, Sentence) else TRIPLET_CHOICES


def choice_question(
    template: Template, values: Mapping[str, str | Sequence[str]], choices: Sequence[str]
) -> Question:
    """Return a question whose texts are fenced, each as one line of data.

    Args:
        template: The prompt, with a slot for each text.
        values: Slot -> text, or list of texts, that can't be trusted.
        choices: What may be answered.
    """
    blocks = {slot: fenced(slot.upper(), [as_line(text)]) for slot, text in values.items()}
    return Question(
        template=template,
        messages=template.messages(blocks),
        claims=(0,),
        choices=tuple(choices),
        keyed=False,
    )


def printed_question(template: Template, response: str, slot: str, people: str) -> Question:
    """Return POPE's printed question, whose reply is an answer of people, or ``<NAN>``.

    Args:
        template: The printed prompt.
        response: The student's answer.
        slot: Slot of the answers of people.
        people: These answers, as a field holds them.
    """
    answers = texts_in(people)
    # People give the same answer in several spellings.
    choices = dict.fromkeys([*map(folded, answers), NOT_AMONG_THEM])
    return choice_question(template, {slot: answers, "response": response}, tuple(choices))

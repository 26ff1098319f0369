"""Tri-HE's questions: images with enough relations, questions with triplets, and their checks.

Wu et al., 2024, section 4. Images come with scene graphs, as GQA has them. A vision language model
writes questions that need common sense, answers, and the triplets behind them; the three criteria
of the paper's annotators are then asked as yes/no questions. The prompts are in our own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from hallujudge.judge_service.llm.chat import ChatImage
from hallujudge.sdk.archives.joins import read_mapping
from hallujudge.sdk.errors import ArchiveError, InvalidInputError
from hallujudge.sdk.media.media_files import MediaError, MediaFolder, read_image

from .replies import NoReplyError
from .text_calls import TextModel, listed

_ASK = """Look at the image. Its scene graph has these triplets:
{triplets}

Write {count} questions about the image that need common sense, and not only naming what can be \
seen. Give each an answer in one sentence, and the triplets (subject, relation, object) from which \
the answer follows. Triplets name only what the image shows.

Reply with a JSON list of objects:
{{"question": "…", "answer": "…", "triplets": [["subject", "relation", "object"]]}}"""
_CHECKS = (
    "Look at the image. Is this a valid question that common sense can answer from the image?\n"
    "Question: {question}",
    "Look at the image. Does this answer suit the question, by common sense?\n"
    "Question: {question}\nAnswer: {answer}",
)
_CHECK_TRIPLET = (
    "Look at the image. Does this triplet describe the answer correctly, and does it name only "
    "objects that the image shows?\nQuestion: {question}\nAnswer: {answer}\nTriplet: {triplet}"
)
# A part with one of these can't be written as "(subject, relation, object)".
_MARKS = re.compile(r"[,()]")
# Room for ten questions with their answers and triplets, as JSON.
_MOST_TOKENS = 4096

Parts = tuple[str, str, str]
"""Subject, relation and object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """An image and its scene graph."""

    image: str
    objects: tuple[str, ...]
    """Names of its objects; several may have one name."""
    relations: tuple[Parts, ...]
    """Relations between two objects."""
    attributes: tuple[Parts, ...]
    """Attributes, as (laptop, is, black)."""


@dataclass(slots=True, kw_only=True)
class TriHeBuild:
    """What a model wrote."""

    images: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Image -> its record, in the form of the released file."""
    failed: dict[str, str] = field(default_factory=dict)
    """Image -> why it has no questions."""
    rejected_questions: int = 0
    """Questions that failed a check."""
    rejected_triplets: int = 0
    """Triplets that failed theirs."""


def read_scenes(path: Path, *, least_relations: int = 5) -> list[Scene]:
    """Return the scenes with enough relations, between more than two objects.

    Args:
        path: GQA's scene graphs: image -> its objects with their relations and attributes.
        least_relations: Fewest relations of an image; the paper has five.

    Raises:
        ArchiveError: The file has another form, or no image has enough relations.
    """
    scenes = []
    for image, value in read_mapping(path, "scene graphs").items():
        with ArchiveError.of_content(
            f"{path}: the scene graph of image {image!r:.60} is not in GQA's form",
            'give {"objects": {id: {"name": …, "relations": [{"name": …, "object": id}]}}}',
        ):
            scene = _scene(image, value)
        # Section 4 of the paper: at least five relations, and more than two related objects.
        related = {name for subject, _, other in scene.relations for name in (subject, other)}
        if len(scene.relations) >= least_relations and len(related) > 2:
            scenes.append(scene)
    if not scenes:
        raise ArchiveError(
            f"{path}: no image has {least_relations} relations between more than two objects; "
            "lower --least-relations"
        )
    return scenes


def _scene(image: str, value: Any) -> Scene:
    objects: Mapping[str, Any] = value["objects"]
    names = {key: str(entry["name"]) for key, entry in objects.items()}
    return Scene(
        image=image,
        objects=tuple(names.values()),
        relations=tuple(
            (names[key], str(relation["name"]), names[str(relation["object"])])
            for key, entry in objects.items()
            for relation in entry.get("relations") or ()
        ),
        attributes=tuple(
            (names[key], "is", str(attribute))
            for key, entry in objects.items()
            for attribute in entry.get("attributes") or ()
        ),
    )


def drawn(scenes: Sequence[Scene], count: int | None, seed: int) -> list[Scene]:
    """Return a number of scenes, drawn at random, in their order.

    Raises:
        InvalidInputError: There are fewer.
    """
    if count is None:
        return list(scenes)
    if count > len(scenes):
        raise InvalidInputError(
            f"--count {count}: only {len(scenes)} images have enough relations; lower one of both"
        )
    chosen = Random(seed).sample(range(len(scenes)), count)  # noqa: S311 - no secret
    return [scenes[place] for place in sorted(chosen)]


async def write_questions(
    scenes: Sequence[Scene],
    folder: MediaFolder,
    model: TextModel,
    *,
    count: int,
    checked: bool,
) -> TriHeBuild:
    """Return Tri-HE's file: each image with its questions, answers and triplets.

    Args:
        scenes: The images.
        folder: Where they are.
        model: Writes and checks.
        count: Questions of an image; the paper has 10.
        checked: Whether the model checks them.
    """
    built = TriHeBuild()
    records: dict[str, dict[str, Any]] = {}

    async def work(scene: Scene) -> bool:
        try:
            image = (read_image(folder.find(scene.image).files[0]),)
            known = "\n".join(map(_shown, _own(scene)))
            prompt = _ASK.format(triplets=known, count=count)
            reply = await model.reply(prompt, max_tokens=_MOST_TOKENS, images=image)
            written = _read(reply)
            if checked:
                written = [
                    found
                    for each in written
                    if (found := await _check(each, image, model, built)) is not None
                ]
            if not written:
                raise NoReplyError("REPLY_UNPARSED", "no question is left")
            records[scene.image] = _record(scene, written)
        # An image that can't be read, or a useless reply, must not end the work on the others.
        except (NoReplyError, MediaError) as err:
            built.failed[scene.image] = str(err)
        return scene.image in records

    await model.run(scenes, work)
    # In the order of the file: replies come in any.
    built.images = {s.image: records[s.image] for s in scenes if s.image in records}
    return built


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """A question that a model wrote."""

    question: str
    answer: str
    triplets: tuple[Parts, ...]


def _read(reply: str) -> list[_Written]:
    """Return the questions of a reply.

    Raises:
        NoReplyError: The reply is not a list of questions with answers.
    """
    written = [
        _Written(
            question=value["question"].strip(),
            answer=value["answer"].strip(),
            triplets=tuple(_triplets(value.get("triplets"))),
        )
        for value in listed(reply) or ()
        if isinstance(value, Mapping)
        and all(isinstance(value.get(k), str) and value[k].strip() for k in ("question", "answer"))
    ]
    if not written:
        detail = f"the reply is not a JSON list of questions and answers: {reply[:80]!r}"
        raise NoReplyError("REPLY_UNPARSED", detail)
    return written


def _triplets(value: object) -> Iterator[Parts]:
    """Yield the triplets that have three parts, each of which fits into a written triplet."""
    for parts in value if isinstance(value, list) else ():
        if isinstance(parts, list) and len(parts) == 3:
            first, relation, other = (str(part).strip() for part in parts)
            if all((first, relation, other)) and not _MARKS.search(first + relation + other):
                yield first, relation, other


async def _check(
    written: _Written, image: tuple[ChatImage, ...], model: TextModel, built: TriHeBuild
) -> _Written | None:
    """Return a question with the triplets that hold; None if it fails a check."""
    values = {"question": written.question, "answer": written.answer}
    for check in _CHECKS:
        # An unclear reply is a no, so that nothing slips in.
        if await model.yes_or_no(check.format(**values), image) != "yes":
            built.rejected_questions += 1
            return None
    kept = []
    for triplet in written.triplets:
        prompt = _CHECK_TRIPLET.format(**values, triplet=_shown(triplet))
        if await model.yes_or_no(prompt, image) == "yes":
            kept.append(triplet)
        else:
            built.rejected_triplets += 1
    return _Written(question=written.question, answer=written.answer, triplets=tuple(kept))


def _own(scene: Scene) -> list[Parts]:
    """Return the triplets of a scene graph that can be written, each once."""
    # Objects may share a name, so that several of their relations become one triplet.
    known = (*scene.attributes, *scene.relations)
    return list(dict.fromkeys(parts for parts in known if not _MARKS.search("".join(parts))))


def _record(scene: Scene, written: Sequence[_Written]) -> dict[str, Any]:
    """Return an image's record, with the keys of the released file."""
    added = [triplet for each in written for triplet in each.triplets]
    every = list(dict.fromkeys([*_own(scene), *added]))
    return {
        "instance": [
            {
                "question": each.question,
                "answer": each.answer,
                "triplet": [_shown(triplet) for triplet in each.triplets],
            }
            for each in written
        ],
        "triplets": [_shown(triplet) for triplet in every],
        "all_object": list(scene.objects),
        "object": sorted({name for parts in every for name in _named(*parts)}),
    }


def _named(first: str, how: str, other: str) -> tuple[str, ...]:
    """Return the objects of a triplet; an attribute is none."""
    return (first,) if how == "is" else (first, other)


def _shown(triplet: Parts) -> str:
    return f"({', '.join(triplet)})"

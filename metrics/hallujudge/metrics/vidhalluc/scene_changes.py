"""VidHalluc's scene changes: whether a video changes its scene, and from where to where.

Li et al., 2024; released script ``eval_sth.py``. An item is a video.

* ``mcc``: Matthews correlation of the answers with the labels; 0 where a side is constant
* ``classification_score`` = ((``mcc`` + 1) / 2)²
* ``description_score`` = points / places, over videos that change and answers that say so. A place
  with the similarity s to its reference has (σ(s) - σ(0.5)) / (σ(1) - σ(0.5)) points, σ being the
  logistic function, and none up to 0.5. The score is 0 without such videos.
* ``overall_score`` = 0.6 x ``classification_score`` + 0.4 x ``description_score``
* ``unparsed_rate`` = answers that are neither yes nor no / videos

``published`` reproduces the script, including its known bugs:

* The text is cut once at ", Locations: ". Of what is before, the part from the first ": " to the
  next comma is the answer, and all but yes is no ("Yes." too). Videos without an answer do not
  count.
* Places are read where answer and reference begin with "from X to Y."; they end at the first " to "
  and the first full stop ("a room in St"). Where one does not, both places have no points.

``corrected`` reads the first yes or no, after "Scene change" if it is there, and places up to the
last " to ". Missing and unreadable answers are wrong.

Similarities are given, or those of a sentence encoder (the script's is SimCSE). Places whose
similarity is not known do not count, equal ones included, and a note says so.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from msgspec import structs

from ..answers.answer_scores import (
    Bundle,
    ReadAnswer,
    combined,
    count,
    credit,
    named,
    unparsed_rate,
)
from ..answers.answers_metric import AnswersMetric
from ..answers.closed_questions import (
    Answer,
    AnswersEvidence,
    AnswersItem,
    AnswerVariant,
    ClosedQuestions,
    InputTable,
    Keys,
    Parsed,
    compared_by,
)
from ..answers.yes_no import first_yes_no, matthews_correlation
from ..framework.arrays import FloatArray, np
from ..framework.asking import plain
from ..framework.metric import OptionDefinition
from ..framework.results import ScoredItem

GIVEN = "given"
"""The encoder that is none: similarities come from a file."""
SIDES = ("from", "to")
"""Names of the two places."""
# The script's threshold: no points up to it, and more the nearer the similarity is to 1.
_LEAST = 0.5


class Place(NamedTuple):
    """A place that an answer names, and that of the reference."""

    said: str
    """The answer's."""
    true: str
    """The reference's."""


_FIRST_FROM = re.compile(r"from (.+?) to (.+?)\.", re.IGNORECASE)
_LAST_FROM = re.compile(r"\bfrom\s+(\S.*)\s+to\s+(\S.*)", re.IGNORECASE)
# Models vary the marks of ", Locations: ", at which the script cuts.
_LOCATIONS = re.compile(r"\blocations?\W*:\s*", re.IGNORECASE)
_CHANGE = re.compile(r"\bscene change\W{0,8}(yes|no)\b", re.IGNORECASE)


def _cut(text: str) -> tuple[str, str]:
    """Return the answer and the locations as the released script cuts them."""
    said, _, locations = text.partition(", Locations: ")
    before, mark, after = said.partition(": ")
    return (after if mark else before).partition(",")[0].strip().lower(), locations


def _published(answer: Answer) -> Parsed:
    said, _ = _cut(answer.response or "")
    return Parsed(
        said if said in ("yes", "no") else None, (said == "yes") == (answer.label == "yes"), "cut"
    )


def _stated_change(text: str) -> str | None:
    found = _CHANGE.search(text)
    return found[1].lower() if found else first_yes_no(text)


def _first_places(text: str, true: str) -> list[Place]:
    return _paired(_FIRST_FROM.match(_cut(text)[1]), _FIRST_FROM.match(true))


def _last_places(text: str, true: str) -> list[Place]:
    said = _LOCATIONS.split(text)[-1]
    # The pattern takes all that follows the last " to ", marks of the sentence's end too.
    lines = [(each.strip().splitlines() or [""])[0].rstrip(" .*\"'") for each in (said, true)]
    return _paired(*map(_LAST_FROM.search, lines))


def _paired(ours: re.Match[str] | None, theirs: re.Match[str] | None) -> list[Place]:
    if ours is None or theirs is None:
        return []
    return list(map(Place, ours.groups(), theirs.groups()))


_PLACES = {"published": _first_places, "corrected": _last_places}


def places_of(answer: Answer, variant: str) -> Sequence[Place]:
    """Return where the scene changes from and to; empty if a text does not say so."""
    return _PLACES[variant](answer.response or "", answer.fields.get("locations", ""))


@lru_cache(maxsize=1 << 15)
def _all_places(text: str, true: str) -> Sequence[Place]:
    # Of both variants: archives are read before anybody knows which one scores them.
    return list(dict.fromkeys(place for find in _PLACES.values() for place in find(text, true)))


def with_similarities(answer: Answer, known: Mapping[tuple[str, str], float]) -> Answer:
    """Return an answer with the similarities of its places, those that a variant looks at.

    Args:
        answer: The answer.
        known: What was said, and the reference -> similarity.
    """
    places = _all_places(answer.response or "", answer.fields.get("locations", ""))
    found = [[*place, known[place]] for place in places if place in known]
    # Fields of answers are texts, as on the wire.
    fields = {**answer.fields, "similarities": json.dumps(found)}
    return structs.replace(answer, fields=fields)


def _completed(answer: Answer, record: Mapping[str, object]) -> Answer:
    """Return an answer with its similarities.

    Raises:
        ValueError: The scene changes, and the reference does not say where from and to.
    """
    # Without its places a change could have no points, whatever the model says.
    if answer.label == "yes" and not answer.fields.get("locations", "").strip():
        raise ValueError(
            "scenes change in videos without Locations",
            "Write them as 'From X to Y.', or 'None' where they are not known, which has no points",
        )
    table = record.get("similarities")
    return with_similarities(answer, table) if isinstance(table, dict) else answer


def points(similarity: float) -> float:
    """Return the points of a place, from 0 to 1."""
    if similarity <= _LEAST:
        return 0.0
    least, most = _logistic(_LEAST), _logistic(1.0)
    return (_logistic(similarity) - least) / (most - least)


def _logistic(number: float) -> float:
    return 1.0 / (1.0 + math.exp(-number))


def _read_places(answer: Answer, variant: str) -> Sequence[ReadAnswer]:
    """Return the two places of a change that the video has, and that the answer states."""
    if not (found := places_of(answer, variant)):
        return [ReadAnswer(side, None, "", False, "no place") for side in SIDES]
    known = _similarities(answer.fields.get("similarities") or "[]")
    return [_place(side, each, known.get(each)) for side, each in zip(SIDES, found, strict=True)]


def _similarities(text: str) -> Mapping[tuple[str, str], float]:
    """Return the similarities that a field holds; a caller of a server may write anything there."""
    try:
        known = {(said, true): float(number) for said, true, number in json.loads(text)}
    except (ValueError, TypeError, OverflowError, RecursionError):
        return {}
    return known if all(map(math.isfinite, known.values())) else {}


def _place(side: str, place: Place, similarity: float | None) -> ReadAnswer:
    if similarity is None:
        how = "no similarity"
        return ReadAnswer(side, *place, False, how, counted=False, unparsed="unscored")
    right, how = similarity > _LEAST, f"similarity {similarity:.6g}"
    return ReadAnswer(side, *place, right, how, probability=points(similarity))


def _notes(totals: Mapping[str, float]) -> Iterator[str]:
    """Yield how many places have no similarity."""
    if unknown := int(totals["unknown_places"]):
        yield (
            f"{unknown} of {unknown + int(totals['places'])} places have no known similarity and "
            "do not count in description_score; give InputOptions(own=dict(similarities=…)) with "
            "them, or set the option encoder"
        )


MCC = matthews_correlation(
    "Matthews correlation of stated and true changes",
    meanings=(
        "changes that the answer states",
        "changes that it does not state",
        "stated changes that are none",
        "videos without a change, as stated",
    ),
    among=named(""),
)
_PLACE_COUNTS = (
    count("points", "points of places", lambda a: credit(a) if a.name else 0, integral=False),
    count("places", "places that count", lambda a: bool(a.name)),
    count("compared", "places with a similarity", lambda a: a.probability is not None),
    count(
        "unknown_places",
        "places without a similarity",
        lambda a: bool(a.name and a.unparsed),
        unread=True,
    ),
)


def _described(
    credits: FloatArray,
    places: FloatArray,
    compared: FloatArray,
    unknown: FloatArray,
    *cells: FloatArray,
) -> FloatArray:
    # As released, 0 without a place; undefined where no place has the similarity that it needs.
    known = (unknown == 0) | (compared > 0)
    found = np.where(places, credits / np.where(places, places, 1), 0.0)
    return np.where(known & (sum(cells) > 0), found, np.nan)


DESCRIPTION = combined(
    "description_score",
    "points of the places / places, of stated true changes",
    _described,
    (*_PLACE_COUNTS, *MCC.counts),
    n=_PLACE_COUNTS[1],
    bounded=False,
)
CLASSIFICATION = combined(
    "classification_score",
    "((mcc + 1) / 2) squared",
    lambda mcc: ((mcc + 1) / 2) ** 2,
    (MCC,),
    bounded=False,
)
OVERALL = combined(
    "overall_score",
    "0.6 x classification_score + 0.4 x description_score",
    lambda classified, described: 0.6 * classified + 0.4 * described,
    (CLASSIFICATION, DESCRIPTION),
    bounded=False,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places(AnswersMetric):
    """Answers with places, which a sentence encoder may compare."""

    @classmethod
    def own_table(cls, records: Iterable[Mapping[str, object]]) -> Mapping[tuple[str, str], float]:
        """Return the similarity of each pair of places.

        Raises:
            ValueError: A record has other values, or another similarity of its pair.
        """
        found: dict[tuple[str, str], float] = {}
        for each in records:
            match each:
                case {
                    "model": str(model),
                    "truth": str(truth),
                    "similarity": int() | float() as value,
                } if type(value) is not bool and math.isfinite(value):
                    pair = model, truth
                case _:
                    raise ValueError(
                        "model and truth must be texts, and similarity a number; found "
                        f"{each!r:.80}",
                        "Correct it",
                    )
            if found.setdefault(pair, value) != value:
                raise ValueError(f"{each!r:.80} has another similarity before", "Keep one")
        return found

    @classmethod
    def loads_models(cls, options: Mapping[str, str]) -> bool:
        """Return whether an encoder compares places; otherwise their similarities are given."""
        return options.get("encoder") not in (None, "", GIVEN)

    def score_answers(self, answers: Sequence[Answer]) -> ScoredItem[AnswersEvidence]:
        """Return the statistics of an answer and of the places that it states."""
        change = self.read(answers[0])
        # As in the script, places count only where answer and label say that there is a change.
        stated = change.label == change.value == "yes"
        places = _read_places(answers[0], self.variant) if stated else ()
        return self.scored_once((change, *places))

    def counts_bundle(self, bundle: Bundle) -> bool:
        """Return whether an answer counts, whatever its places."""
        return bundle[0].counted


BENCHMARK = ClosedQuestions(
    name="vidhalluc-sth",
    base=_Places,
    title="VidHalluc: changes of the scene, and the places before and after them.",
    unit="videos",
    keys=Keys(
        response=("response", "prediction", "answer"),
        label=("Scene change", "label"),
        id=("video", "id"),
        media=("video",),
        fields={"locations": ("Locations", "locations")},
    ),
    seen=("locations", "similarities"),
    question_files="scene_changes.json",
    asking=plain(
        "Does the scene change in this video? If it does, answer in the form: Scene change: "
        "Yes, Locations: from (the first place) to (the last place). If not, answer: Scene "
        "change: No, Locations: None."
    ),
    tables=(
        InputTable(
            name="similarities",
            meaning="Similarities of places: model, truth, similarity.",
            form="own",
        ),
    ),
    complete=_completed,
    variants=(
        AnswerVariant(
            name="published",
            meaning="The released script; all but yes is no.",
            parse=_published,
            missing="wrong in part",
            notes=_notes,
        ),
        AnswerVariant(
            name="corrected",
            meaning="Reads the first yes or no and whole places; missing answers are wrong.",
            parse=compared_by(_stated_change, "first yes or no"),
            missing="wrong",
            notes=_notes,
        ),
    ),
    options=(
        OptionDefinition(
            name="encoder",
            default=GIVEN,
            meaning="Encoder: given, minilm, mpnet, a model id or a folder.",
            details="given uses the similarities of the file.",
        ),
    ),
    scores=(
        OVERALL,
        MCC,
        CLASSIFICATION,
        DESCRIPTION,
        unparsed_rate("videos_asked", "videos that count", among=named("")),
    ),
    ranked_by=("overall_score",),
    trial=AnswersItem(
        id="1",
        answers=(
            with_similarities(
                Answer(
                    response="Scene change: Yes, Locations: from a hall to a garden.",
                    label="yes",
                    fields={"locations": "From a hall to a garden."},
                ),
                {(place, place): 1.0 for place in ("a hall", "a garden")},
            ),
        ),
    ),
)
"""The declaration."""

"""POPE questions made from the objects of images (section 5.1 of the paper)."""

from __future__ import annotations

import random
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from msgspec import Struct, structs

from ..errors import OptionError
from ..framework.results import JsonValue

SAMPLINGS = ("random", "popular", "adversarial", "adversarial-pooled")
"""Ways to choose absent objects: those of the released script, then one in the paper's words."""

TEMPLATES = (
    "Is there {a} {object} in the image?",
    "Does the image contain {a} {object}?",
    "Have you noticed {a} {object} in the image?",
    "Can you see {a} {object} in the image?",
)
"""The questions of the paper's Table 4, the default first."""


class PopeQuestion(Struct, frozen=True, kw_only=True):
    """A question about one object of one image."""

    question_id: int
    """Number of the question, from 1."""
    image: str
    text: str
    """The question."""
    label: str
    """``yes`` or ``no``."""
    object: str
    """The object in question."""
    category: str
    """The sampling of absent objects."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the line of a question file."""
        return structs.asdict(self)


class PopeBuild(Struct, frozen=True, kw_only=True):
    """Questions, and the images without questions."""

    questions: tuple[PopeQuestion, ...]
    """The questions; for every image, half have the label yes and half the label no."""
    skipped: Mapping[str, str]
    """Image -> why it has no questions."""


class ObjectCounts(Struct, frozen=True, kw_only=True):
    """How often images show objects, alone and together."""

    images: Mapping[str, int]
    """Object -> images that show it."""
    together: Mapping[str, Mapping[str, int]]
    """Object -> other object -> images that show both."""

    def by_frequency(self) -> tuple[str, ...]:
        """Return objects, the most frequent first; ties by name."""
        return tuple(sorted(self.images, key=lambda name: (-self.images[name], name)))

    def by_company(self, objects: Iterable[str]) -> tuple[str, ...]:
        """Return objects by how often they occur with the given ones, in total; ties by name."""
        totals: Counter[str] = Counter()
        for name in objects:
            totals.update(self.together.get(name, {}))
        return tuple(sorted(self.images, key=lambda name: (-totals[name], name)))


def count_objects(objects: Mapping[str, Iterable[str]]) -> ObjectCounts:
    """Count objects over images; a duplicate object of an image counts once."""
    images: Counter[str] = Counter()
    together: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for names in objects.values():
        # Sorted, so that equally common companions are met in the order of their names.
        unique = sorted(set(names))
        images.update(unique)
        for first, second in combinations(unique, 2):
            together[first][second] += 1
            together[second][first] += 1
    return ObjectCounts(images=images, together=dict(together))


# The article before the object, "a", "an" or "a/an", which is chosen for each object.
_ARTICLE_AND_NAME = re.compile(r"\b([Aa])(?:/an|n)?\s+(?:<object>|\{object\})")

# With a silent h.
_AN_DESPITE_SPELLING = re.compile(r"hour|honest|hono(?:u)?r|heir")
# With the sound of "you" or of "one"; "unimportant", "unanchored" and "onerous" begin otherwise.
_A_DESPITE_SPELLING = re.compile(
    r"uni(?!n|m|d)|unanim|u(?:bi|fo|k[eru]|ra[nl]|rin|rol|sa[bg]|sb|se|su|t[eio]|v)|eu|ewe|ouija"
    r"|on(?:e|ce)(?!rous)"
)
# Spelt letter by letter: SUV, HDTV, x-ray. Longer capitals with vowels are words.
# So is the first letter of "eBook" and "iPad".
_INITIALS = re.compile(
    r"(?:[A-Z]{2,3}|[B-DF-HJ-NP-TV-Z]{4,})s?\b|[A-Za-z](?![A-Za-z'])|[ei](?=[A-Z])"
)
_SPELT_WITH_AN = frozenset("AEFHILMNORSX")
# Eight, eleven and eighteen, also as thousands.
_NUMBER_WITH_AN = re.compile(r"8|11(?!\d)|18(?!\d)|1[18](?:\d{3})+(?!\d)")


def article_of(name: str) -> str:
    """Return ``a`` or ``an``, by sound: an umbrella, a unicycle, an hourglass, an X-ray."""
    # Only the first sound matters, so accents and quotes are removed.
    bare = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    bare = bare.lstrip(" \"'`([")
    if bare[:1].isdigit():
        return "an" if _NUMBER_WITH_AN.match(bare) else "a"
    if _INITIALS.match(bare):
        return "an" if bare[0].upper() in _SPELT_WITH_AN else "a"
    word = bare.casefold()
    if _AN_DESPITE_SPELLING.match(word):
        return "an"
    if _A_DESPITE_SPELLING.match(word):
        return "a"
    return "an" if word[:1] in ("a", "e", "i", "o", "u") else "a"


def build_pope(
    objects: Mapping[str, Iterable[str]],
    *,
    sampling: str,
    questions_per_image: int = 6,
    seed: int = 0,
    template: str = TEMPLATES[0],
    images: int | None = None,
    min_objects: int | None = None,
    counts: ObjectCounts | None = None,
) -> PopeBuild:
    """Return balanced questions: half about objects that an image shows, half about others.

    For each image, ``questions_per_image / 2`` of its objects are drawn at random, and as many
    absent ones. ``random`` draws these too. ``popular`` uses the most frequent objects.
    ``adversarial`` uses, for each drawn object in turn, the absent one that occurs most often with
    it, as the released script does; one is drawn if there is none. ``adversarial-pooled`` uses
    those that occur most often with all objects of the image, in total, as the paper words it.
    Ties are broken by name.

    The draw depends only on the seed and the image. Therefore the three samplings ask about the
    same present objects, and adding an image does not change the questions of the others.

    Args:
        objects: Image -> the objects that it shows.
        sampling: One of :data:`SAMPLINGS`.
        questions_per_image: Even; the paper has 6.
        seed: Seed of the draw.
        template: ``{object}`` (or ``<object>``) is the name and ``{a}`` its article; ``a`` or
            ``a/an`` before the name is corrected too.
        images: Number of images to draw, of those with enough objects. By default, all of them.
        min_objects: Fewest objects of an image. By default, as many as there are questions about
            present objects. The paper requires more than 3 for its six questions.
        counts: Frequencies. By default, those of ``objects``, over all images.

    Returns:
        The questions in the order of the images, alternating between present and absent objects;
        and the images without enough objects.

    Raises:
        OptionError: The sampling is unknown, the template has no object, the number of questions is
            odd, or too few images have enough objects.
    """
    template = _ARTICLE_AND_NAME.sub(r"{\1} {object}", template).replace("<object>", "{object}")
    half = _checked_half(sampling, questions_per_image, template)
    least = max(half, min_objects or 0)
    counts = counts or count_objects(objects)
    shown = {image: tuple(sorted(set(names))) for image, names in objects.items()}
    skipped = {
        image: f"{len(names)} objects, fewer than {least}"
        for image, names in shown.items()
        if len(names) < least
    }
    chosen = [image for image in shown if image not in skipped]
    if images is not None:
        chosen = _drawn_images(chosen, images, seed)
    ranked = counts.by_frequency()
    questions: list[PopeQuestion] = []
    for image in chosen:
        # No image name has this character, so that each pair of seed and image is another text.
        rng = random.Random(f"{seed}\0{image}")  # noqa: S311 - a seeded draw, no secret
        present = rng.sample(shown[image], half)
        absent = _absent(sampling, shown[image], present, ranked, counts, rng)
        if len(absent) < half:
            skipped[image] = f"{len(absent)} absent objects are known, fewer than {half}"
            continue
        for yes, no in zip(present, absent, strict=True):
            for name, label in ((yes, "yes"), (no, "no")):
                questions.append(
                    PopeQuestion(
                        question_id=len(questions) + 1,
                        image=image,
                        text=_asked(template, name),
                        label=label,
                        object=name,
                        category=sampling,
                    )
                )
    return PopeBuild(questions=tuple(questions), skipped=skipped)


def _checked_half(sampling: str, questions_per_image: int, template: str) -> int:
    if sampling not in SAMPLINGS:
        raise OptionError("pope", "sampling", f"{sampling!r} is not one of {', '.join(SAMPLINGS)}")
    if questions_per_image < 2 or questions_per_image % 2:
        raise OptionError(
            "pope", "questions_per_image", f"{questions_per_image} is not an even number from 2"
        )
    try:
        # A name that no template holds shows whether the object's name is in the question.
        filled = _asked(template, "\0")
    except (KeyError, IndexError, ValueError, AttributeError) as err:
        problem = f"{template!r} may only hold {{a}} and {{object}}"
        raise OptionError("pope", "template", problem) from err
    if "\0" not in filled:
        raise OptionError("pope", "template", f"{template!r} has no {{object}}")
    return questions_per_image // 2


def questions_about(name: str) -> tuple[str, ...]:
    """Return the paper's questions about an object, with either article.

    The authors' files have "a" before every object, or the right article.
    """
    return tuple(
        template.format(a=article, object=name) for template in TEMPLATES for article in ("a", "an")
    )


def _asked(template: str, name: str) -> str:
    article = article_of(name)
    return template.format(a=article, A=article.title(), object=name)


def _drawn_images(chosen: Sequence[str], images: int, seed: int) -> list[str]:
    if images < 0:
        raise OptionError("pope", "images", f"{images} is negative; give 1 or more")
    if images > len(chosen):
        problem = f"{images} are requested, but only {len(chosen)} have enough objects"
        raise OptionError("pope", "images", problem)
    # From the sorted names, so that the order of the file does not decide which images are drawn.
    kept = set(random.Random(f"{seed}\0images").sample(sorted(chosen), images))  # noqa: S311
    return [image for image in chosen if image in kept]


def _absent(
    sampling: str,
    shown: Sequence[str],
    present: Sequence[str],
    ranked: Sequence[str],
    counts: ObjectCounts,
    rng: random.Random,
) -> list[str]:
    if sampling == "adversarial-pooled":
        ranked = counts.by_company(shown)
    here = set(shown)
    absent = [name for name in ranked if name not in here]
    # With too few the image is skipped, so that none need be drawn.
    if len(absent) < len(present) or sampling in ("popular", "adversarial-pooled"):
        return absent[: len(present)]
    if sampling == "random":
        return rng.sample(sorted(absent), len(present))
    # By name, since of equally common ones max() takes the first.
    return _companions(present, sorted(absent), counts, rng)


def _companions(
    present: Sequence[str], absent: list[str], counts: ObjectCounts, rng: random.Random
) -> list[str]:
    chosen: list[str] = []
    for name in present:
        times = counts.together.get(name, {})
        left = [each for each in absent if each not in chosen]
        best = max(left, key=lambda each: times.get(each, 0))
        chosen.append(best if times.get(best, 0) else rng.choice(left))
    return chosen

"""Archive layouts of other tools: the built-in readers and those that other packages register."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache

from hallujudge.judge_service.entry_points import guarded, loaded, registered
from hallujudge.metrics.answers.closed_questions import ClosedQuestions
from hallujudge.metrics.families import benchmarks_of, families, metric_names

from ...errors import ArchiveError
from ..json_files import named
from ..question_files import label_of
from . import benchmarks, closed_questions, harnesses, toolkits
from .archive_reader import ArchiveReader, mapping_at

_ENTRY_POINTS = "hallujudge.archive_readers"
_JUDGED_FIELDS = 3
# The most specific layouts come first: several layouts share keys, and the first match counts.
LMMS_EVAL_READERS = (
    *harnesses.LMMS_EVAL_READERS,
    *closed_questions.LMMS_EVAL_READERS,
    *harnesses.OTHER_LMMS_EVAL_READERS,
)
"""What lmms-eval writes."""
VLMEVALKIT_READERS = (
    *toolkits.VLMEVALKIT_READERS,
    *closed_questions.VLMEVALKIT_READERS,
    *toolkits.OTHER_VLMEVALKIT_READERS,
)
"""What VLMEvalKit writes."""
_BUILT_IN = (
    *LMMS_EVAL_READERS,
    *harnesses.RESULTS_READERS,
    *harnesses.LM_EVAL_READERS,
    *harnesses.INSPECT_AI_READERS,
    *toolkits.EVALSCOPE_READERS,
    *toolkits.OPENCOMPASS_READERS,
    *toolkits.BATCH_READERS,
    *VLMEVALKIT_READERS,
    *benchmarks.CHAIR_SCRIPT_READERS,
    *closed_questions.READERS,
    *benchmarks.READERS,
)


@cache
def archive_readers() -> tuple[ArchiveReader, ...]:
    """Return all archive readers in the order in which they are tried.

    Raises:
        ArchiveError: A registered reader can't be loaded.
    """
    # Registered ones first, so that a package can replace a built-in reader.
    return (*_registered(), *_BUILT_IN)


def _registered() -> Iterator[ArchiveReader]:
    # By name, since the order in which packages were installed must not decide.
    for entry in sorted(registered(_ENTRY_POINTS), key=lambda entry: entry.name):
        found = loaded(entry, "archive reader", ArchiveError)
        with guarded(entry, "archive reader", ArchiveError):
            readers = list(found) if isinstance(found, Iterable) else [found]
        yield from _readers_of(readers, entry.name)


def _readers_of(readers: Iterable[object], name: str) -> Iterator[ArchiveReader]:
    for reader in readers:
        if not isinstance(reader, ArchiveReader):
            raise ArchiveError(
                f"the archive reader {name} is {type(reader).__name__}, not an ArchiveReader or a "
                "list of them; correct the entry point"
            )
        yield reader


def recognised(values: Mapping[str, object], metric: str = "") -> ArchiveReader | None:
    """Return the reader of a record; None if its layout is not known.

    Args:
        values: The record's values.
        metric: The metric that scores it; empty to try all layouts. Other families' layouts that
            have no keys are not tried then, unless their records are converted: the metric finds no
            keys of its own in them, and all are tried again to explain why they are refused.

    Raises:
        ArchiveError: The reader of another package fails.
    """
    if "asked" in values and (own := _asked_for(mapping_at(values, "asked").get("benchmark"))):
        return own
    for reader in archive_readers():
        if metric and not reader.keys and not reader.convert and _is_of_others(reader, metric):
            continue
        try:
            if reader.recognises(values):
                return reader
        # A function of another package may raise anything.
        except Exception as err:
            problem = f"{type(err).__name__}: {err}".rstrip(": ")
            raise ArchiveError(
                f"the archive reader of {reader.name} failed to look at a record with the keys "
                f"{named(sorted(values))} ({problem:.200}). Correct its function matches, or "
                "uninstall the package that registers it"
            ) from err
    return None


def _is_of_others(reader: ArchiveReader, metric: str) -> bool:
    """Return whether a layout is of other families of metrics, or stands beside responses."""
    families = {name.partition("-")[0] for name in reader.metrics}
    return metric.partition("-")[0] not in families and (
        bool(families) or reader.role == "companion"
    )


# Files of references that hold more than questions, so that no archive of answers repeats them.
_NOT_ASKED_ABOUT = {
    "chair": "-R objects.json",
    "mementos": "-R gt_description.csv",
    "tri-he": "-R scene_graphs.json",
    "vidhal-mcqa": "-R annotations.json --options options.json",
    "vidhal-ordering": "-R annotations.json --options options.json",
}


@lru_cache(64)
def _asked_for(benchmark: object) -> ArchiveReader | None:
    """Return the reader of archives that ``hallujudge ask`` wrote, which say their benchmark."""
    if not isinstance(benchmark, str) or benchmark not in metric_names():
        return None
    return ArchiveReader(
        name="an archive that hallujudge ask wrote",
        keys=("asked",),
        metrics=(benchmark,),
        arguments=_NOT_ASKED_ABOUT.get(benchmark, ""),
        model_key="asked.model",
    )


def declared_layout(values: Mapping[str, object]) -> ArchiveReader | None:
    """Return the reader of plain records whose keys are those of one declared benchmark.

    Yes/no labels alone are POPE's, so a benchmark is known by its fields or by other labels. One
    without labels, whose answers are judged, is known where no other one is.
    """
    benchmarks = (each for family in families() for each in benchmarks_of(family))
    found = [reader for each in benchmarks if (reader := _plain_records(each, values))]
    labelled = [reader for reader in found if "label" in reader.fields] or found
    return labelled[0] if len(labelled) == 1 else None


def _may_be(declared: ClosedQuestions, field: str, values: Mapping[str, object]) -> bool:
    """Return whether a record's value of a field is a text that the benchmark has, or no text."""
    texts = (values.get(key) for key in declared.keys.fields.get(field, ()))
    known = {*declared.places[field], *declared.keys.values.get(field, ())}
    given = next((text.strip().casefold() for text in texts if isinstance(text, str)), None)
    return given is None or given in map(str.casefold, known)


def _is_anyones(
    declared: ClosedQuestions, needed: Sequence[Sequence[str]], values: Mapping[str, object]
) -> bool:
    """Return whether a yes/no question has one field that any other benchmark may have.

    A question about an ``object`` is DASH-B's only if the record has no text of the question, as
    in its lists of images.
    """
    keys = declared.keys
    usual = {*keys.label, *keys.media, *keys.id, "question_id", "image", "image_id"}
    own = [names for names in needed if usual.isdisjoint(names)]
    asks = any(key in values for key in keys.question)
    return asks and len(own) == 1 and not declared.limits


def _plain_records(declared: ClosedQuestions, values: Mapping[str, object]) -> ArchiveReader | None:
    """Return the reader of a benchmark's plain records; None if a record lacks one of its keys."""
    keys, labels = declared.keys, {*declared.labels}
    needed = [names for field, names in keys.fields.items() if field not in keys.optional]
    has_own_labels = bool(labels) and not labels <= {"yes", "no"}
    texts = {
        key: str(values[key]).strip() for key in (*keys.label, *keys.response) if key in values
    }
    label = next(
        (k for k in keys.label if k in texts and label_of(declared, texts[k])),
        None,
    )
    response = next((key for key in keys.response if key in texts and key != label), None)
    # Without a label, fewer fields may be those of any other benchmark.
    known = label is not None if keys.label else len(needed) >= _JUDGED_FIELDS
    if not known or response is None or not (needed or has_own_labels):
        return None
    found = {"response": response} | ({"label": label} if label else {})
    if not all(any(key in values for key in names) for names in needed):
        return None
    if not all(_may_be(declared, field, values) for field in declared.limits):
        return None
    if not has_own_labels and _is_anyones(declared, needed, values):
        return None
    return ArchiveReader(
        name=f"records of {declared.name}",
        keys=(*found.values(), *(next(k for k in names if k in values) for names in needed)),
        metrics=(declared.name,),
        fields={"id": next((key for key in keys.id if key in values), ""), **found},
    )

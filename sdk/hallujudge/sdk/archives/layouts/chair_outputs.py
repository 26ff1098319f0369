"""Captions and outputs of the CHAIR scripts (Maxlinn, OPERA, LisaAnne, HALC)."""

from __future__ import annotations

from collections.abc import Mapping

from .reader import ArchiveReader, converting

__all__ = ["READERS"]


def _sentence(values: Mapping[str, object]) -> Mapping[str, object]:
    """Return a caption of a script's output, with the objects that it was compared with."""
    return {
        "id": values.get("image_id"),
        "image_id": values.get("image_id"),
        "response": values.get("caption"),
        "reference_objects": values.get("mscoco_gt_words"),
    }


def _has_caption_scores(values: Mapping[str, object]) -> bool:
    return bool({"CIDEr", "METEOR", "SPICE", "ROUGE_L", "Bleu_1"} & values.keys())


READERS = (
    ArchiveReader(
        name="an output of a CHAIR script, with captions and reference objects",
        keys=("image_id", "caption", "mscoco_gt_words"),
        metrics=("chair",),
        convert=converting(_sentence),
    ),
    ArchiveReader(
        name="an output of a CHAIR script, with captions but without reference objects",
        keys=("image_id", "caption", "mscoco_hallucinated_words"),
        metrics=("chair",),
        convert=converting(_sentence),
        arguments="-R objects.json",
    ),
    ArchiveReader(
        name="captions with scores of a caption metric (imgToEval)",
        keys=("image_id", "caption"),
        matches=_has_caption_scores,
        metrics=("chair",),
        fields={"id": "image_id", "response": "caption"},
        arguments="-R objects.json",
    ),
)

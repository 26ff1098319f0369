"""Logs of Inspect AI: ``.eval`` files, which are zip files, and ``.json`` files."""

from __future__ import annotations

from collections.abc import Mapping

from .reader import ArchiveReader, converting, first_text, mapping_at, yes_or_no

__all__ = ["READERS"]


_ATTACHMENT = "attachment://"


def _text(content: object) -> str | None:
    """Return a message's text: a plain one, or the text parts of a list of contents."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    parts = [part for part in content if isinstance(part, Mapping) and part.get("type") == "text"]
    return "".join(str(part.get("text", "")) for part in parts) if parts else None


def _response(output: Mapping[str, object]) -> object:
    if isinstance(completion := output.get("completion"), str) and completion:
        return completion
    choice = first_text(output.get("choices"))
    message = mapping_at(choice, "message") if isinstance(choice, Mapping) else {}
    return _text(message.get("content"))


def _question(given: object) -> str | None:
    """Return the text of the last message of the user."""
    if not isinstance(given, list):
        return _text(given)
    asked = [m for m in given if isinstance(m, Mapping) and m.get("role", "user") == "user"]
    return _text(asked[-1].get("content")) if asked else None


def _image(given: object) -> str | None:
    """Return the name of the first image; images in the log itself have none."""
    for message in given if isinstance(given, list) else ():
        content = message.get("content") if isinstance(message, Mapping) else None
        for part in content if isinstance(content, list) else ():
            name = part.get("image") if isinstance(part, Mapping) else None
            if isinstance(name, str) and not name.startswith("data:"):
                return name
    return None


def _attached(text: str | None, values: Mapping[str, object]) -> str | None:
    """Return a text; the log keeps long ones apart and refers to them."""
    if text is None or not text.startswith(_ATTACHMENT):
        return text
    found = mapping_at(values, "attachments").get(text.removeprefix(_ATTACHMENT))
    return found if isinstance(found, str) and not found.startswith("data:") else None


def _sample(values: Mapping[str, object]) -> Mapping[str, object]:
    metadata, given = mapping_at(values, "metadata"), values.get("input")
    identifier, epoch = values.get("id"), values.get("epoch")
    failed = values.get("error")
    return {
        "image": _attached(_image(given), values),
        **metadata,
        "id": identifier if epoch in (None, 1) else f"{identifier}, epoch {epoch}",
        # A sample whose run failed has no answer, whatever it got to before.
        "response": None if failed else _response(mapping_at(values, "output")),
        "label": first_text(values.get("target")),
        "question": _attached(_question(given), values),
    }


def _label(values: Mapping[str, object]) -> object:
    return first_text(values.get("target"))


_KEYS = ("id", "epoch", "input", "target")


def _reader(kind: str, matches: object, *metrics: str, remedy: str = "") -> ArchiveReader:
    return ArchiveReader(
        name=f"an Inspect AI log{kind}",
        keys=_KEYS,
        matches=matches,  # type: ignore[arg-type]  # functions of this module
        metrics=metrics,
        any_metric=True,
        only_labels="pope" in metrics,
        convert=converting(_sample),
        model_key="output.model",
        remedy=remedy,
    )


READERS = (
    _reader(" with yes/no labels", lambda values: yes_or_no(_label(values)), "pope"),
    _reader(
        " with objects of images",
        lambda values: bool(
            {"reference_objects", "objects", "gt_objects"} & mapping_at(values, "metadata").keys()
        ),
        "chair",
    ),
    _reader(
        "",
        lambda _values: True,
        remedy="name a metric that scores its answers, and give its references with references=…",
    ),
    ArchiveReader(
        name="an Inspect AI log without samples",
        keys=("version", "status", "eval", "plan"),
        matches=lambda values: not values.get("samples"),
        role="companion",
        remedy="give a log of a run that finished a sample",
    ),
)

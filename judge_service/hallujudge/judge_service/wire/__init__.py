"""Conversion between values and messages. Public: the SDK uses it too.

The types of items and evidence that messages can carry are named here and imported when they are
needed, so that a run imports its own family only. Importing this loads no protobuf.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from hallujudge.metrics import Item

_METRICS = "hallujudge.metrics."
# Written out, since asking the metrics would import all of them.
_ITEMS = {
    "chair": "chair.ChairItem",
    "answers": "answers.answer_items.AnswersItem",
    "tri_he": "tri_he.TriHeItem",
    "mementos": "mementos.MementosItem",
    "amber": "amber.descriptions.AmberItem",
    "argus": "argus.ArgusItem",
    "open_objects": "open_objects.OpenObjectsItem",
    "object_halbench": "object_halbench.ObjectHalBenchItem",
    "seen_claims": "seen_claims.SeenClaimsItem",
}
"""The items of each task; a family with its own item adds a line here."""
# Object HalBench scores captions with CHAIR's evidence.
_SHARING = ("object_halbench",)
"""The tasks that use another family's evidence; all others define theirs beside their items."""
_EVIDENCE = tuple(
    home.removesuffix("Item") + "Evidence" for task, home in _ITEMS.items() if task not in _SHARING
)
_HOMES = {home.rpartition(".")[2]: home for home in (*_ITEMS.values(), *_EVIDENCE)}


@cache
def item_types() -> Mapping[str, type[Item]]:
    """Return the type of each task's items."""
    return {task: _imported(home) for task, home in _ITEMS.items()}


def task_of(item_type: type[Item]) -> str:
    """Return the task of a type of items."""
    return next(task for task, known in item_types().items() if known is item_type)


@cache
def evidence_types() -> tuple[type, ...]:
    """Return the types of evidence of all families."""
    return tuple(map(_imported, _EVIDENCE))


@cache
def type_named(name: str) -> type:
    """Return the type of items or evidence with a name, such as ``ChairItem``.

    Raises:
        KeyError: There is no such type.
    """
    return _imported(_HOMES[name])


@cache
def has_messages(kind: type[Item]) -> bool:
    """Return whether items of a type can be sent; those of a family without a .proto can't."""
    # A family from outside has types of its own, which no message of ours can carry.
    return f"{kind.__module__}.{kind.__name__}".removeprefix(_METRICS) in _ITEMS.values()


def _imported(home: str) -> type:
    module, _, name = home.rpartition(".")
    found: type = getattr(import_module(_METRICS + module), name)
    return found

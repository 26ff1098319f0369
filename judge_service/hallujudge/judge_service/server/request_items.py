"""The items of a request: all that are not valid are named, and ids may not repeat."""

from __future__ import annotations

from collections.abc import Sequence

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.metrics import Item

from ..errors import InvalidInputError
from ..wire.convert import TASK_OF, read_item
from ..wire.fields import MalformedError, invalid

# In UTF-8.
_MAX_ID_BYTES = 1 << 16


def items_from_proto(
    messages: Sequence[pb.Item], item_type: type[Item] = Item, *, within: str = "items"
) -> list[Item]:
    """Return the items of messages.

    Args:
        messages: The messages.
        item_type: The type of the metric's items.
        within: The field of the request that holds the messages.

    Raises:
        InvalidInputError: Some messages are not valid; each has a violation.
    """
    return items_of([item_of(message, item_type) for message in messages], within=within)


def item_of(message: pb.Item, item_type: type[Item]) -> Item | MalformedError:
    """Return the item of a message, or its error, for :func:`items_of`."""
    try:
        return _checked(read_item(message), item_type)
    except MalformedError as err:
        return err


def items_of(read: Sequence[Item | MalformedError], *, within: str) -> list[Item]:
    """Return items that were read one by one.

    Raises:
        InvalidInputError: Some are not valid; each has a violation.
    """
    items = [item for item in read if isinstance(item, Item)]
    if len(items) < len(read):
        # All problems at once, so that a client can fix its items in one pass.
        problems = [
            problem.within(f"{within}[{index}]")
            for index, problem in enumerate(read)
            if isinstance(problem, MalformedError)
        ]
        raise _all_invalid(problems, len(read))
    return items


def check_unique(items: Sequence[Item]) -> None:
    """Refuse items of one message with equal ids.

    Raises:
        InvalidInputError: Two items have the same id.
    """
    first: dict[str, int] = {}
    for index, item in enumerate(items):
        known = first.setdefault(item.id, index)
        if known != index:
            problem = f"{item.id!r} is also the id of items[{known}]; ids must be unique"
            raise invalid(MalformedError(problem, f"items[{index}].id"))


def _checked(item: Item, item_type: type[Item]) -> Item:
    if not item.id:
        raise MalformedError("is empty; give each item an id", "id")
    # Ids are repeated in results and errors. A text of fewer characters may have more bytes.
    if len(item.id) * 4 > _MAX_ID_BYTES and (size := len(item.id.encode())) > _MAX_ID_BYTES:
        raise MalformedError(f"has {size} bytes; give an id of at most {_MAX_ID_BYTES}", "id")
    if not isinstance(item, item_type):
        raise MalformedError(f"the metric needs a {TASK_OF[item_type]!r} task", TASK_OF[type(item)])
    return item


def _all_invalid(problems: Sequence[MalformedError], count: int) -> InvalidInputError:
    errors = [invalid(problem) for problem in problems]
    more = f" ({len(errors)} of {count} items are not valid)" if len(errors) > 1 else ""
    return InvalidInputError(
        f"{errors[0].message}{more}",
        violations=tuple(violation for error in errors for violation in error.violations),
    )

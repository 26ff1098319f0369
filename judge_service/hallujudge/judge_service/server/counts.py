"""The limit of what one message may hold."""

from __future__ import annotations

from ..errors import InvalidInputError, Violation

__all__ = ["check_count"]


def check_count(limit: int, count: int, field: str) -> None:
    """Refuse a message with too many elements.

    Args:
        limit: The setting ``max_batch_items``.
        count: Number of elements.
        field: The field that holds them.

    Raises:
        InvalidInputError: There are more elements than the limit.
    """
    if count > limit:
        problem = f"has {count} elements; send at most {limit} in one message"
        raise InvalidInputError(
            f"{field}: {problem}",
            metadata={"count": str(count), "limit": str(limit)},
            violations=(Violation(field=field, description=problem),),
        )

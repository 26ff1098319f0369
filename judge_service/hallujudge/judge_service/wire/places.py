"""Where in a message something is wrong."""

from __future__ import annotations

from ..errors import InvalidInputError, Violation

__all__ = ["MalformedError", "invalid"]


class MalformedError(ValueError):
    """A message, or a value to send, with invalid content.

    Args:
        problem: What is wrong and what to do.
        place: The field, as a path below the message that is converted. Converters of the messages
            around it put their own field in front.
    """

    def __init__(self, problem: str, place: str = "") -> None:
        super().__init__(f"{place}: {problem}" if place else problem)
        self.problem = problem
        self.place = place

    def within(self, place: str) -> MalformedError:
        """Return the same error as the message around it sees it."""
        joint = "." if self.place and not self.place.startswith("[") else ""
        return MalformedError(self.problem, f"{place}{joint}{self.place}")


def invalid(error: MalformedError, within: str = "") -> InvalidInputError:
    """Return the error that callers see.

    Args:
        error: What is wrong.
        within: The field of the request that holds the message, such as ``items[3]``.
    """
    if within:
        error = error.within(within)
    violation = Violation(field=error.place, description=error.problem)
    return InvalidInputError(str(error), violations=(violation,) if error.place else ())

"""What callers of a server may name: models and devices of its matchers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..errors import InvalidInputError, NotFoundError

__all__ = ["Offers"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """The models and devices that callers of a server may name; nothing else is looked for."""

    models: tuple[str, ...] = ()
    """Models of matchers."""
    vectors: tuple[str, ...] = ()
    """spaCy models."""
    pipelines: tuple[str, ...] = ()
    """spaCy pipelines of the extractor ``spacy``."""
    devices: tuple[str, ...] = ("cpu",)
    """Devices of matchers."""

    def check(self, option: str, value: str, offered: tuple[str, ...]) -> None:
        """Refuse what is not offered. A name that is not given is the server's default.

        Raises:
            NotFoundError: The value is not offered.
        """
        if value and value not in offered:
            raise self._error(option, offered)

    @contextmanager
    def opening(self, option: str, offered: tuple[str, ...]) -> Iterator[None]:
        """Answer in the same way if a model that is offered is not on this machine.

        Raises:
            NotFoundError: The block did not find a model, or can't use it.
        """
        try:
            yield
        except (NotFoundError, InvalidInputError) as err:
            if "model" not in err.metadata or err.reason.startswith("JUDGE_"):
                raise
            _LOG.warning("a model that is offered can't be used: %s", err)
            raise self._error(option, offered) from None

    def _error(self, option: str, offered: tuple[str, ...]) -> NotFoundError:
        return NotFoundError(
            f"the option {option} names something that this server does not offer; it offers "
            f"{', '.join(offered) or 'nothing'}",
            reason="MODEL_NOT_OFFERED",
            metadata={"option": option},
        )

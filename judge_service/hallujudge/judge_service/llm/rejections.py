"""What ends a run whose judge never answered: a rejected key, an unknown model, other settings."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from ..access.caller import current_caller
from ..errors import InvalidInputError
from .circuits import MAX_CALLERS
from .failures import CallFailedError, FailureKind

_REJECTED_SECONDS = 30.0
"""How long a caller's rejected key or model is remembered, while nothing was ever answered."""


class Rejections:
    """The callers whose calls a server rejected for the settings, and why.

    Each caller finds out for itself, because an odd prompt of one must not end the others' calls.

    Args:
        clock: Seconds on a clock that never goes back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._rejected: OrderedDict[str, tuple[CallFailedError, float]] = OrderedDict()

    def add(self, failure: CallFailedError) -> None:
        """Remember why the running task's caller was rejected, for half a minute."""
        until = self._clock() + _REJECTED_SECONDS
        self._rejected.setdefault(current_caller().id, (failure, until))
        while len(self._rejected) > MAX_CALLERS:
            self._rejected.popitem(last=False)

    def mine(self) -> CallFailedError | None:
        """Return why the running task's caller was rejected; None if it may try."""
        failure, until = self._rejected.get(current_caller().id, (None, 0.0))
        if failure is None:
            return None
        if self._clock() < until:
            # A copy: an error keeps the frames of every call that it was raised in.
            return failure.with_detail(failure.detail)
        self.forget()
        return None

    def forget(self) -> None:
        """Let the running task's caller try again."""
        self._rejected.pop(current_caller().id, None)


def unusable(failure: CallFailedError, *, role: str, place: str, model: str) -> InvalidInputError:
    """Return the error of a judge that cannot be used as it is configured.

    Args:
        failure: What its server said.
        role: What messages call it.
        place: Where it is.
        model: Its model.
    """
    return InvalidInputError(
        f"the {role} at {place} cannot be used: {failure.detail}; "
        f"{_advice(failure.kind, role, model)}",
        reason=failure.kind.value,
        metadata={"url": place, "model": model},
    )


def _advice(kind: FailureKind, role: str, model: str) -> str:
    if kind is FailureKind.AUTH:
        return (
            f"set the right key in the environment: HALLUJUDGE_LLM_API_KEY is the {role}'s, "
            "HALLUJUDGE_FALLBACK_API_KEY the fallback's; for OpenAI's and Azure's addresses "
            "OPENAI_API_KEY and AZURE_OPENAI_API_KEY are read too"
        )
    if kind is FailureKind.OTHER_MODEL:
        return (
            "set llm_model (fallback_model) to the model that you want, or llm_reply_models "
            "(fallback_reply_models) to the names that its replies carry"
        )
    if kind is FailureKind.REFUSED_REQUEST:
        return (
            "it refused another question with the same words; check the key and the model name "
            f"{model!r}, set llm_dialect (vllm, openai or plain) to what the server knows, or "
            "llm_omit to the parameters that it refuses"
        )
    return f"check the address and the model name {model!r}"

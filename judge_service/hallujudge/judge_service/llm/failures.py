"""What can go wrong with a call, and what follows from it."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping

__all__ = ["CallFailedError", "FailureKind", "failure_of_status", "retry_after_seconds"]

_SHOWN_CHARS = 300


class FailureKind(enum.Enum):
    """Kinds of failure; the value is the reason that a claim without verdict carries."""

    AUTH = "JUDGE_AUTH_FAILED"
    """The key is refused: every further call would be too."""
    MODEL = "JUDGE_MODEL_UNKNOWN"
    """The endpoint or the model isn't there: every further call would fail too."""
    QUOTA = "JUDGE_QUOTA_EXHAUSTED"
    """The account has nothing left; waiting won't help."""
    RATE = "JUDGE_RATE_LIMITED"
    """Too many calls for now."""
    SERVER = "JUDGE_SERVER_ERROR"
    """The server failed."""
    CONNECTION = "JUDGE_UNREACHABLE"
    """No connection, or one that broke."""
    TIMEOUT = "JUDGE_TIMEOUT"
    """No whole answer in time."""
    BAD_REPLY = "JUDGE_BAD_REPLY"
    """An answer that isn't a chat completion."""
    TOO_LONG = "PROMPT_TOO_LONG"
    """The model can't hold the prompt."""
    REFUSED_REQUEST = "JUDGE_REQUEST_REFUSED"
    """The server won't take this request, however often it is sent."""
    CIRCUIT = "JUDGE_CIRCUIT_OPEN"
    """It failed so often that it isn't asked for a while."""
    BUDGET = "JUDGE_BUDGET_EXHAUSTED"
    """The budget doesn't hold another call."""

    @property
    def is_transient(self) -> bool:
        """Whether the same call may succeed later."""
        return self in _TRANSIENT

    @property
    def is_fatal(self) -> bool:
        """Whether every further call would fail alike."""
        return self in (FailureKind.AUTH, FailureKind.MODEL)

    @property
    def trips_circuit(self) -> bool:
        """Whether it says that the server, rather than this request, is in trouble."""
        return self in (
            FailureKind.SERVER,
            FailureKind.CONNECTION,
            FailureKind.TIMEOUT,
            FailureKind.QUOTA,
        )

    @property
    def may_be_billed(self) -> bool:
        """Whether the answer may have been made, and so be charged for, though it never came."""
        return self in (FailureKind.CONNECTION, FailureKind.TIMEOUT, FailureKind.BAD_REPLY)


_TRANSIENT = frozenset(
    {
        FailureKind.RATE,
        FailureKind.SERVER,
        FailureKind.CONNECTION,
        FailureKind.TIMEOUT,
        FailureKind.BAD_REPLY,
    }
)


class CallFailedError(Exception):
    """A call that gave no answer.

    Attributes:
        kind: What went wrong.
        detail: The same in words, for people.
        retry_after: Seconds that the server asked us to wait; None where it didn't.
    """

    def __init__(self, kind: FailureKind, detail: str, *, retry_after: float | None = None) -> None:
        # Servers may quote half a character, which neither a file nor a message can hold.
        detail = detail.encode("utf-8", "replace").decode()
        super().__init__(f"{kind.value}: {detail}")
        self.kind = kind
        self.detail = detail
        self.retry_after = retry_after


_BY_STATUS = {
    401: FailureKind.AUTH,
    403: FailureKind.AUTH,
    404: FailureKind.MODEL,
    408: FailureKind.TIMEOUT,
    409: FailureKind.SERVER,
    413: FailureKind.TOO_LONG,
    429: FailureKind.RATE,
}
_QUOTA_CODES = ("insufficient_quota", "billing_hard_limit_reached")
_LENGTH_CODES = ("context_length_exceeded", "string_above_max_length")
_LENGTH_WORDS = ("maximum context length", "max_model_len", "context window", "too long")


def failure_of_status(
    status: int, headers: Mapping[str, str], body: bytes, *, now: float
) -> CallFailedError:
    """The failure that an HTTP status other than 200 stands for.

    Args:
        status: The HTTP status.
        headers: The reply's headers, looked up without regard to case.
        body: The reply's body, or its beginning.
        now: Seconds since the epoch, for a Retry-After that is a date.
    """
    code, message = _error_of(body)
    kind = _BY_STATUS.get(status)
    if kind is None:
        kind = FailureKind.SERVER if status >= 500 else FailureKind.REFUSED_REQUEST
    if kind is FailureKind.RATE and code in _QUOTA_CODES:
        kind = FailureKind.QUOTA
    if status in (400, 422) and (
        code in _LENGTH_CODES or any(words in message.lower() for words in _LENGTH_WORDS)
    ):
        kind = FailureKind.TOO_LONG
    return CallFailedError(
        kind,
        f"HTTP {status}{': ' + message if message else ''}",
        retry_after=retry_after_seconds(headers.get("Retry-After"), now=now),
    )


def _error_of(body: bytes) -> tuple[str, str]:
    """Code and message of an error body, in OpenAI's layout or whatever else stands there."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return "", body[:_SHOWN_CHARS].decode("utf-8", "replace").strip()
    error = content.get("error", content) if isinstance(content, dict) else content
    if not isinstance(error, dict):
        return "", str(error)[:_SHOWN_CHARS]
    code = error.get("code") or error.get("type") or ""
    message = error.get("message") or error.get("detail") or ""
    return str(code), str(message)[:_SHOWN_CHARS]


def retry_after_seconds(value: str | None, *, now: float) -> float | None:
    """What a Retry-After header says: seconds, or a date; None where it can't be read."""
    from email.utils import parsedate_to_datetime

    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - now
        except ValueError:
            return None
    # NaN and infinity are floats too.
    return max(0.0, seconds) if seconds == seconds and seconds < 1e9 else None

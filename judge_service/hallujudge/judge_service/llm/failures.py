"""What can go wrong with a call, and what follows from it."""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import NamedTuple, Self

from ..errors import InvalidInputError

# Enough for a server's message; error pages are longer.
_SHOWN_CHARS = 300
# Quotas of a month are renewed within this.
_MOST_RETRY_SECONDS = 32 * 86_400.0
# Gateways quote keys of their own.
_KEY_LIKE = re.compile(
    r"((?:\bsk-|\bBearer\s+|\bapi[_-]?key\b[\s=:\"']+))[\w.-]{12,}", re.IGNORECASE
)


# What follows from kinds of failure; see the attributes of the same names.
_SETTINGS, _OUTAGE, _TRANSIENT, _ONE_CALL, _LOST = range(5)


class FailureKind(enum.Enum):
    """Kinds of failure; the value is the reason that a claim without verdict carries."""

    AUTH = "JUDGE_AUTH_FAILED", _SETTINGS, _OUTAGE, _TRANSIENT
    """The key is rejected (HTTP 401)."""
    MODEL = "JUDGE_MODEL_UNKNOWN", _SETTINGS, _OUTAGE, _TRANSIENT
    """The address, its route or the model does not exist (HTTP 404, 405, 410, 421, 501 or a
    redirect)."""
    OTHER_MODEL = "JUDGE_OTHER_MODEL", _SETTINGS, _OUTAGE, _TRANSIENT
    """The reply names another model than the one that was asked for."""
    REFUSED = "JUDGE_REFUSED"
    """The server refuses this prompt (HTTP 403, or a content filter)."""
    # Credit does not come back while a run waits.
    QUOTA = "JUDGE_QUOTA_EXHAUSTED", _OUTAGE
    """The account has no credit left; waiting does not help."""
    RATE = "JUDGE_RATE_LIMITED", _OUTAGE, _TRANSIENT
    """Too many calls for now (HTTP 429)."""
    SERVER = "JUDGE_SERVER_ERROR", _OUTAGE, _TRANSIENT, _ONE_CALL
    """The server, or what is in front of it, failed (HTTP 5xx, 407, 409, 425 or 499)."""
    CONNECTION = "JUDGE_UNREACHABLE", _OUTAGE, _TRANSIENT, _ONE_CALL, _LOST
    """There is no connection, or it broke."""
    TIMEOUT = "JUDGE_TIMEOUT", _OUTAGE, _TRANSIENT, _ONE_CALL, _LOST
    """The reply was not complete in time (also HTTP 408, 504 or 524)."""
    NOT_THE_API = "JUDGE_NOT_THE_API", _OUTAGE, _TRANSIENT, _ONE_CALL, _LOST
    """The reply is not of the chat API at all, such as a web page."""
    TRUNCATED = "REPLY_TRUNCATED"
    """The reply was not complete in time, because of its thought: the server answers others."""
    # An unreadable reply may be fine the next time.
    BAD_REPLY = "JUDGE_BAD_REPLY", _TRANSIENT, _LOST
    """The reply is of the chat API, but holds no answer."""
    TOO_LONG = "PROMPT_TOO_LONG"
    """The prompt is longer than the model reads."""
    REFUSED_REQUEST = "JUDGE_REQUEST_REFUSED"
    """The server does not accept this request, however often it is sent."""
    CIRCUIT = "JUDGE_CIRCUIT_OPEN"
    """Not sent: the calls before it failed, and the judge is not called for a while."""
    NO_REPLY = "JUDGE_NO_REPLY"
    """The judge is run offline, and its replies have none to this call."""
    BUDGET = "JUDGE_BUDGET_EXHAUSTED"
    """Not sent: the budget does not hold another call."""

    def __new__(cls, reason: str, *_traits: int) -> Self:
        """Make a member whose value is the reason alone."""
        made = object.__new__(cls)
        made._value_ = reason
        return made

    def __init__(self, _reason: str, *traits: int) -> None:
        # A judge that has answered rejects keys and models while its key is exchanged or its
        # gateway restarts: that is an outage.
        self.is_configuration = _SETTINGS in traits
        """Whether the settings are wrong, if the judge has never answered; else it is an outage."""
        self.is_outage = _OUTAGE in traits
        """Whether the server, rather than this request, may be in trouble."""
        self.is_transient = _TRANSIENT in traits
        """Whether the same call may succeed later."""
        self.is_of_one_call = _ONE_CALL in traits
        """Whether a single prompt may cause it, again and again, at a server that works."""
        self.may_be_billed = _LOST in traits
        """Whether the reply may have been generated, and so be charged for, though it was lost."""


CONFIGURATION_REASONS = frozenset(kind.value for kind in FailureKind if kind.is_configuration)
"""The reasons of errors that end a run whose judge has never answered."""


class CallFailedError(Exception):
    """A call without a usable reply.

    Attributes:
        kind: What went wrong.
        detail: The same in words, with the status code and message of the server.
        retry_after: Seconds that the server asked to wait; None if it did not.
        may_be_the_key: Whether a refused prompt may in truth be a refused key.
    """

    def __init__(
        self,
        kind: FailureKind,
        detail: str,
        *,
        retry_after: float | None = None,
        may_be_the_key: bool = False,
    ) -> None:
        # Servers may quote half a character, which neither a file nor a message can hold.
        detail = detail.encode("utf-8", "replace").decode()
        super().__init__(f"{kind.value}: {detail}")
        self.kind = kind
        self.detail = detail
        self.retry_after = retry_after
        self.may_be_the_key = may_be_the_key

    def with_detail(self, detail: str) -> CallFailedError:
        """Return the same failure in other words."""
        return CallFailedError(self.kind, detail, retry_after=self.retry_after)

    def as_rejected_key(self) -> CallFailedError:
        """Return the failure of the key that a refusal of every prompt is."""
        return CallFailedError(FailureKind.AUTH, self.detail, retry_after=self.retry_after)


_BY_STATUS = {
    401: FailureKind.AUTH,
    402: FailureKind.QUOTA,
    403: FailureKind.REFUSED,
    404: FailureKind.MODEL,
    # Proxies send the page of a server that restarts by GET alone, or send it elsewhere.
    405: FailureKind.MODEL,
    407: FailureKind.SERVER,
    408: FailureKind.TIMEOUT,
    409: FailureKind.SERVER,
    410: FailureKind.MODEL,
    421: FailureKind.MODEL,
    425: FailureKind.SERVER,
    499: FailureKind.SERVER,
    # vLLM has routes for every model, and says so where a model lacks what they need.
    501: FailureKind.MODEL,
    # Proxies that stopped waiting: nginx and others, and Cloudflare.
    504: FailureKind.TIMEOUT,
    524: FailureKind.TIMEOUT,
}
# Codes, types and words of OpenAI, Azure, vLLM and llama.cpp: they use one status for different
# failures. LiteLLM replaces codes by the status and keeps the words, after the names of its errors.
_QUOTA_CODES = ("insufficient_quota", "billing_hard_limit_reached")
_QUOTA_WORDS = ("exceeded your current quota",)
# Google says the same of a limit of calls in a minute, and when to try again.
_QUOTA_OF_NOW = re.compile(r"(?:try again|retry) (?:in|after) ", re.IGNORECASE)
_FILTER_WORDS = (
    "content_filter",
    "content_policy_violation",
    "responsibleaipolicyviolation",
    "contentpolicyviolationerror",
    "content management policy",
)
_LENGTH_WORDS = (
    "context_length_exceeded",
    "string_above_max_length",
    "exceed_context_size_error",
    "contextwindowexceedederror",
    "maximum context length",
    "max_model_len",
    "context window",
    "available context size",
    "too long",
)
# llama.cpp answers what a model can't read as if it had failed.
_NO_SIGHT_WORDS = ("image input is not supported",)
_UNREADABLE_WORDS = (*_NO_SIGHT_WORDS, "audio input is not supported")
SERVE_SIGHT = (
    "serve a vision model, with the part that sees where it is a file of its own (mmproj of "
    "llama-server), or name another judge"
)
"""What to do where a judge can't be shown pictures."""
# llama.cpp's own reader of replies; it fails at the same prompt each time.
_UNREAD_REPLY = "does not match the expected peg-native format"
_BODY_LIMIT = (
    "the server, or a proxy in front of it, does not take a request of this size; raise its limit, "
    "such as client_max_body_size of nginx"
)
# LiteLLM hands on a provider's headers under names of its own.
_RETRY_HEADERS = ("Retry-After", "llm_provider-retry-after")


def failure_of_status(
    status: int, headers: Mapping[str, str], body: bytes, *, now: float
) -> CallFailedError:
    """Return the failure that an HTTP status other than 200 means.

    Args:
        status: The HTTP status.
        headers: The reply's headers, looked up without regard to case.
        body: The reply's body, or its beginning.
        now: Seconds since the epoch, for a Retry-After that is a date.
    """
    error = _error_of(body)
    retry_after = _asked_wait(headers, now=now)
    kind = _kind_of(status, error, retry_after)
    told = f"HTTP {status}{': ' + error.message if error.message else ''}"
    if status == 413 and kind is FailureKind.REFUSED_REQUEST:
        # First, because messages show the beginning, and proxies send a page.
        told = f"HTTP 413: {_BODY_LIMIT}{f' ({error.message})' if error.message else ''}"
    if error.has(_NO_SIGHT_WORDS):
        told = f"image input is not supported: {SERVE_SIGHT} ({told})"
    return CallFailedError(
        kind,
        told,
        retry_after=retry_after,
        # A content filter names itself.
        may_be_the_key=status == 403 and not error.has(_FILTER_WORDS),
    )


def failure_in_reply(body: bytes) -> CallFailedError | None:
    """Return the failure in a reply of HTTP status 200, as gateways send it; None if it has none.

    Args:
        body: The whole reply.
    """
    # Looked for in the bytes, because nearly all replies are good and would be parsed twice.
    if b'"error"' not in body or b'"choices"' in body:
        return None
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or not content.get("error"):
        return None
    error = _error_of(body)
    # Gateways put the provider's HTTP status into the code of the error.
    status = int(error.code) if error.code in map(str, range(400, 600)) else 200
    if error.has(_QUOTA_CODES):
        status = 429
    kind = FailureKind.NOT_THE_API if status == 200 else _kind_of(status, error, None)
    told = error.message or error.code or "no message"
    return CallFailedError(kind, f"an error in place of a reply: {told}")


def shown_text(text: str) -> str:
    """Return a server's text as messages show it: one short line without keys."""
    line = "".join(letter if letter.isprintable() else " " for letter in text[: 8 * _SHOWN_CHARS])
    return _KEY_LIKE.sub(r"\1***", " ".join(line.split()))[:_SHOWN_CHARS]


class _Error(NamedTuple):
    """An error as a server describes it."""

    code: str
    """Its code; else its type."""
    message: str
    """The message, as it is shown."""
    words: str
    """Code, type and message, for words that tell the kind."""

    def has(self, words: Iterable[str]) -> bool:
        """Whether it has one of some words."""
        return any(each in self.words for each in words)


def _kind_of(status: int, error: _Error, retry_after: float | None) -> FailureKind:
    if status in (400, 413, 422):
        if error.has(_FILTER_WORDS):
            return FailureKind.REFUSED
        return FailureKind.TOO_LONG if error.has(_LENGTH_WORDS) else FailureKind.REFUSED_REQUEST
    if status == 429:
        of_now = retry_after is not None or _QUOTA_OF_NOW.search(error.message)
        used_up = error.has(_QUOTA_CODES) or (error.has(_QUOTA_WORDS) and not of_now)
        return FailureKind.QUOTA if used_up else FailureKind.RATE
    if status == 500 and error.has(_UNREADABLE_WORDS):
        return FailureKind.REFUSED_REQUEST
    if status == 500 and error.has((_UNREAD_REPLY,)):
        return FailureKind.BAD_REPLY
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status < 400:  # no reply and no error of the API: a redirect is not followed
        return FailureKind.MODEL if status >= 300 else FailureKind.NOT_THE_API
    return FailureKind.SERVER if status >= 500 else FailureKind.REFUSED_REQUEST


def _error_of(body: bytes) -> _Error:
    """The error in a body, in OpenAI's layout or any other."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return _plain_error(body[: 8 * _SHOWN_CHARS].decode("utf-8", "replace"))
    error = content.get("error", content) if isinstance(content, dict) else content
    if not isinstance(error, dict):
        return _plain_error(str(error))
    code, kind = error.get("code") or "", error.get("type") or ""
    message = shown_text(str(error.get("message") or error.get("detail") or ""))
    return _Error(str(code or kind), message, f"{code} {kind} {message}".casefold())


def _plain_error(text: str) -> _Error:
    message = shown_text(text)
    return _Error("", message, message.casefold())


def _asked_wait(headers: Mapping[str, str], *, now: float) -> float | None:
    """The seconds that a server asked to wait."""
    waits = (retry_after_seconds(headers.get(name), now=now) for name in _RETRY_HEADERS)
    return next((seconds for seconds in waits if seconds is not None), None)


def retry_after_seconds(value: str | None, *, now: float) -> float | None:
    """Return the seconds that a Retry-After header names; None if it cannot be read."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - now
        except ValueError:
            return None
    # A value that no server can mean is not an answer: times in the past, years, NaN and infinity.
    return seconds if 0.0 <= seconds <= _MOST_RETRY_SECONDS else None


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
            "set llm.model (fallback.model) to the model that you want, or llm.reply_models "
            "(fallback.reply_models) to the names that its replies carry"
        )
    if kind is FailureKind.REFUSED_REQUEST:
        # Nothing constrains a model's own answers.
        known = "llm.dialect" if role == "model" else "llm.dialect and llm.constraint"
        return (
            "it refused another question with the same words; check the key and the model name "
            f"{model!r}, set {known} to what the server knows, which "
            "`hallujudge doctor` finds out, or llm.omit to the parameters that it refuses"
        )
    return f"check the address and the model name {model!r}"

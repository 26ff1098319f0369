"""Scores over HTTP in the forms of other programs: OpenRLHF's rewards and OpenAI's completions.

Each such call becomes a call of ``Score``, with its callers, limits, budgets and records.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from google.protobuf.struct_pb2 import Struct
from google.rpc import error_details_pb2, status_pb2

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.metrics import Outcome
from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.framework.columns_and_scores import ScoreDefinition
from hallujudge.metrics.responses.leftovers import response_in

from ...access import call_memory
from ...engine.registry import metric_entry
from ...errors import InvalidInputError, Violation
from ...wire import task_of
from ...wire.convert import report_from_proto, result_from_proto
from ..request_checks import check_count
from ..request_reader import counted
from .exchange import JSON, detail_of, name_of
from .json_messages import JsonForm, to_json, worked

OPENRLHF = "/rewards/openrlhf"
"""The path of rewards."""

_LISTS = ("query", "prompts", "labels")
# The field of a task that a label is, if it is a list.
_REFERENCES = {"chair": "referenceObjects", "tri_he": "referenceTriplets"}
_TRIPLET = ("subject", "relation", "object")
CHAT = "/v1/chat/completions"
"""The path of a completion."""
MODELS = "/v1/models"
"""The path of the list of models."""
OPENAI = "/v1/"
"""What paths begin with whose errors have OpenAI's form."""

_OWNER = "hallujudge"
_EVENTS = "text/event-stream"
# Reasons whose name in OpenAI's errors programs look for.
_CODES: Mapping[str, str] = {
    "METRIC_UNKNOWN": "model_not_found",
    "KEY_MISSING": "invalid_api_key",
    "KEY_INVALID": "invalid_api_key",
}
_TYPES: Mapping[str, str] = {
    "UNAUTHENTICATED": "authentication_error",
    "PERMISSION_DENIED": "permission_error",
    "RESOURCE_EXHAUSTED": "rate_limit_error",
    "INTERNAL": "server_error",
    "UNKNOWN": "server_error",
    "UNAVAILABLE": "server_error",
    "DEADLINE_EXCEEDED": "server_error",
}


class RewardCall:
    """One call for rewards, as OpenRLHF's trainers make them.

    ``{"query": […], "prompts": […], "labels": […]}`` becomes ``{"rewards": […], "scores": […],
    "extra_logs": {…}}``. The query of the address says what is scored:
    ``/rewards/openrlhf?metric=chair&score=chair_i``.

    Args:
        address: The query of the address: ``metric``, ``score``, and perhaps ``variant``,
            ``unscored`` (the reward of a response without a score, 0 by default) and options of the
            metric.
        most: The most responses of a call.
    """

    kind = JSON
    """The content type of the response."""

    def __init__(self, address: str, most: int) -> None:
        self._address = address
        self._most = most

    async def requests(self, raws: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        """Yield the request of ``Score``. It is made when the call is admitted.

        Raises:
            InvalidInputError: The address or the body is wrong.
            NotFoundError: The metric is unknown.
        """
        options = dict(parse_qsl(self._address, keep_blank_values=True))
        if not (metric := options.pop("metric", "")):
            raise InvalidInputError(
                f"the address names no metric; call {OPENRLHF}?metric=chair&score=chair_i"
            )
        self._score = _score_of(metric, options.pop("score", ""))
        self._unscored = _number(options.pop("unscored", "0"))
        spec = {"metric": metric, "variant": options.pop("variant", ""), "options": options}
        async for raw in raws:
            call_memory().take(counted(raw, _FORM))
            yield await worked(partial(self._request, raw, spec), len(raw))

    def _request(self, raw: bytes, spec: Mapping[str, object]) -> bytes:
        texts = _texts_of(raw)
        check_count(self._most, len(texts), "query")
        kind = task_of(metric_entry(str(spec["metric"])).item_type)
        items = [
            {"id": str(at), kind: item_task(kind, text, label)}
            for at, (text, label) in enumerate(texts)
        ]
        request = {"spec": spec, "items": items, "scores": [self._score.name]}
        return json.dumps(request).encode()

    async def answer(self, response: pb.ScoreResponse) -> bytes:
        """Return the rewards: from 0 for the worst end of the score's range to 1 for the best."""
        values = response.columns[0].values
        rewards = [self._unscored if math.isnan(v) else self._score.share(v) for v in values]
        found = Struct()
        unscored = {"unscored": list(map(float, map(math.isnan, values)))}
        found.update({"rewards": rewards, "scores": rewards, "extra_logs": unscored})
        return await to_json(found)


_FORM = JsonForm(pb.ScoreRequest.FromString)


def _score_of(metric: str, name: str) -> ScoreDefinition:
    """Return a score that can be a reward.

    Raises:
        InvalidInputError: The metric has no such score.
    """
    known = {
        score.name: score
        for score in metric_entry(metric).metric.score_definitions
        if score.direction != "neither" and math.isfinite(score.high - score.low)
    }
    if name not in known:
        raise InvalidInputError(
            f"{metric} has no score {name!r:.80} with a range and a better end; the address may "
            f"name {', '.join(known)}"
        )
    return known[name]


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InvalidInputError(f"unscored={text!r:.80} in the address is not a number")
    return value


def _texts_of(raw: bytes) -> list[tuple[str, Any]]:
    """Return responses and labels.

    Raises:
        InvalidInputError: The body has another form.
    """
    given = parsed_json(raw)
    if not isinstance(given, dict) or not all(isinstance(given.get(n), list) for n in _LISTS):
        found = ", ".join(map(repr, given)) if isinstance(given, dict) else type(given).__name__
        raise InvalidInputError(
            f"the body must be an object with the lists {', '.join(_LISTS)}; found {found:.200}"
        )
    lists: list[list[Any]] = [given[name] for name in _LISTS]
    if len({*map(len, lists)}) != 1:
        counts = ", ".join(f"{len(one)} {name}" for name, one in zip(_LISTS, lists, strict=True))
        raise InvalidInputError(f"the lists differ in length: {counts}; give one of each")
    rows = zip(*lists, strict=True)
    return [(response_in(str(query), str(prompt)), label) for query, prompt, label in rows]


def parsed_json(text: bytes | str, what: str = "the body") -> Any:
    """Return the value of a text.

    Raises:
        InvalidInputError: It is not JSON.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise InvalidInputError(f"{what} is nested too deeply") from None
    except ValueError as err:
        raise InvalidInputError(f"{what} is not JSON: {err}") from None


def item_task(kind: str, response: str, label: Any) -> Mapping[str, object]:
    """Return the task of an item.

    A label is the reference as a list or a text, a task of its kind, or either as JSON. Without
    one, the item is unscored.
    """
    if isinstance(label, str) and label.lstrip()[:1] in ("[", "{"):
        label = parsed_json(label, f"the label {label!r:.80}")
    if kind == "answers":
        answer = label if isinstance(label, dict) else {"label": label}
        return {"answers": [{**answer, "response": response}]}
    if isinstance(label, list) and kind in _REFERENCES:
        label = {_REFERENCES[kind]: {"values": list(map(_listed, label))}}
    if label is not None and not isinstance(label, dict):
        raise InvalidInputError(
            f"the label {label!r:.80} is no reference of {kind}; give a list of objects for CHAIR, "
            "of triplets for Tri-HE, or a task as /openapi.json describes it"
        )
    return {**(label or {}), "response": response}


def _listed(one: Any) -> Any:
    return dict(zip(_TRIPLET, one, strict=False)) if isinstance(one, list) else one


class ChatCall:
    """One completion, for harnesses that take the address of a judge model.

    The model is a metric, ``hallujudge/chair`` or ``hallujudge/chair/corrected``; options of the
    metric follow a question mark. The last message is the item as JSON, and the reply is its scores
    and evidence as JSON.

    Args:
        address: The query of the address, which has no meaning here.
        most: The most items of a call; a completion has one.
    """

    def __init__(self, address: str, most: int) -> None:
        del address, most
        self._model: object = ""
        self._score, self._stream = "", False

    @property
    def kind(self) -> str:
        """The content type of the reply."""
        return _EVENTS if self._stream else JSON

    async def requests(self, raws: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        """Yield the request of ``Score``. It is made when the call is admitted.

        Raises:
            InvalidInputError: The body or the item is wrong.
            NotFoundError: The metric is unknown.
        """
        async for raw in raws:
            call_memory().take(counted(raw, _FORM))
            yield await worked(partial(self._request, raw), len(raw))

    def _request(self, raw: bytes) -> bytes:
        body = parsed_json(raw)
        if not isinstance(body, dict):
            raise _invalid(
                "body", f"is {type(body).__name__}, not an object", "send model and messages"
            )
        self._model = body.get("model")
        spec = _spec_of(self._model)
        self._score = spec["options"].pop("score", "")
        if body.get("n") not in (None, 1):
            raise _invalid("n", f"is {body['n']!r:.80}", "scores do not vary; leave it out")
        self._stream = bool(body.get("stream"))
        self._metric = metric_entry(spec["metric"])
        known = [score.name for score in self._metric.metric.score_definitions]
        if self._score and self._score not in known:
            problem = f"names the score {self._score!r:.80}"
            raise _invalid("model", problem, choose_from(self._score, known))
        task = task_of(self._metric.item_type)
        item = _item_of(task, _last_text(body.get("messages")))
        return json.dumps({"spec": spec, "items": [item]}).encode()

    async def answer(self, response: pb.ScoreResponse) -> bytes:
        """Return the completion, or the events of a streamed one."""
        return await worked(partial(self._completion, response), 3 * response.ByteSize())

    def _completion(self, response: pb.ScoreResponse) -> bytes:
        found = _content(self._score, self._metric.metric.ranked_by, response)
        content = json.dumps(found, ensure_ascii=False)
        head = {"id": f"chatcmpl-{time.time_ns():x}", "created": int(time.time())}
        head |= {"model": self._model}
        said = {"role": "assistant", "content": content}
        if not self._stream:
            choice = {"index": 0, "message": said, "finish_reason": "stop"}
            whole = {**head, "object": "chat.completion", "choices": [choice]}
            return json.dumps(whole | {"usage": _usage(response)}, ensure_ascii=False).encode()
        choice = {"index": 0, "delta": said, "finish_reason": "stop"}
        chunk = {**head, "object": "chat.completion.chunk", "choices": [choice]}
        return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\ndata: [DONE]\n\n".encode()


def models_body(response: pb.ListMetricsResponse) -> bytes:
    """Return the list of models: each metric, and each of its variants."""
    names = [
        f"{_OWNER}/{name}"
        for metric in response.metrics
        for name in (metric.name, *(f"{metric.name}/{one.name}" for one in metric.variants))
    ]
    models = [{"id": name, "object": "model", "created": 0, "owned_by": _OWNER} for name in names]
    return json.dumps({"object": "list", "data": models}).encode()


def openai_error(status: status_pb2.Status) -> bytes:
    """Return an error in OpenAI's form."""
    reason = detail_of(status, error_details_pb2.ErrorInfo()).reason
    violations = detail_of(status, error_details_pb2.BadRequest()).field_violations
    error = {
        "message": status.message,
        "type": _TYPES.get(name_of(status), "invalid_request_error"),
        "param": violations[0].field if violations else None,
        "code": _CODES.get(reason, reason.lower() or name_of(status).lower()),
    }
    return json.dumps({"error": error}, ensure_ascii=False).encode()


def _invalid(field: str, problem: str, remedy: str) -> InvalidInputError:
    violation = Violation(field=field, description=problem)
    return InvalidInputError(f"{field} {problem}; {remedy}", violations=(violation,))


def _spec_of(model: object) -> dict[str, Any]:
    """Return what a model's name says of the metric.

    Raises:
        InvalidInputError: It is not ``hallujudge/METRIC``.
    """
    path, _, options = str(model).partition("?")
    owner, _, rest = path.partition("/")
    if owner != _OWNER or not rest:
        raise _invalid(
            "model", f"is {model!r:.80}", f"give {_OWNER}/METRIC; {MODELS} lists all of them"
        )
    metric, _, variant = rest.partition("/")
    given = dict(parse_qsl(options, keep_blank_values=True))
    return {"metric": metric, "variant": variant, "options": given}


def _last_text(messages: object) -> str:
    """Return the text of the last message.

    Raises:
        InvalidInputError: There is none.
    """
    last = messages[-1] if isinstance(messages, list) and messages else None
    content = last.get("content") if isinstance(last, dict) else None
    if isinstance(content, list):
        parts = (each.get("text", "") for each in content if isinstance(each, dict))
        content = "".join(map(str, parts))
    if not isinstance(content, str):
        raise _invalid("messages", "has no last message with a text", "send the item as JSON in it")
    return content


def _item_of(task: str, text: str) -> dict[str, Any]:
    """Return the item in the text of a message.

    Raises:
        InvalidInputError: The text is not an item as JSON.
    """
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise _invalid(
            "messages",
            f"ends with {text!r:.80}, which is not an item as JSON",
            'send an object such as {"response": "A cat and a dog.", "reference": ["cat"]}',
        )
    item = {"id": str(given.pop("id", "1"))}
    if isinstance(given.get(task), dict):
        return item | {task: given[task]}
    if task == "answers" and "answers" not in given:
        answer = dict(given)
        # As a file of answers may name them.
        for name, other in (("answer", "response"), ("reference", "label")):
            if name in answer:
                answer[other] = answer.pop(name)
        return item | {task: {"answers": [answer]}}
    response, reference = given.pop("response", None), given.pop("reference", None)
    if task == "answers":
        return item | {task: given}
    return item | {task: given | dict(item_task(task, response, reference))}


def _content(score: str, ranked_by: Sequence[str], response: pb.ScoreResponse) -> dict[str, Any]:
    """Return what the reply says of the item.

    Args:
        score: Name of the score that the model names; empty for the item's own.
        ranked_by: The scores that rank models.
        response: The scores.
    """
    result, report = result_from_proto(response.results[0]), report_from_proto(response.report)
    # A score that an item does not have by itself is that of the report over it alone.
    own = dict(result.scores)
    scores = {name: each.value for name, each in report.scores.items()} | own
    main = score or next((name for name in (*ranked_by, *own) if name in own), ranked_by[-1])
    evidence = {} if result.evidence is None else result.evidence.to_json()
    found = {"name": main, "outcome": result.outcome.value, "signature": report.signature}
    if result.outcome is Outcome.SCORED:
        return found | {"score": scores.get(main), "scores": scores, "evidence": evidence}
    unscored = {"score": None, "reason": str(result.reason), "detail": result.detail}
    return found | unscored | {"evidence": evidence}


def _usage(response: pb.ScoreResponse) -> dict[str, int]:
    """Return the tokens of the judges behind the score; none for a metric without one."""
    shares = response.report.judging
    prompt = sum(share.prompt_tokens for share in shares)
    completion = sum(share.completion_tokens for share in shares)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }

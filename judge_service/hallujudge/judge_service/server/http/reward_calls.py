"""Rewards over HTTP, as OpenRLHF's trainers ask for them.

``{"query": […], "prompts": […], "labels": […]}`` becomes a call of ``Score`` that names one score,
with its callers, limits, errors and records, and its values become
``{"rewards": […], "scores": […], "extra_logs": {…}}``. The query of the address says what is
scored: ``/rewards/openrlhf?metric=chair&score=chair_i``.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from google.protobuf.struct_pb2 import Struct

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.metrics.framework.columns_and_scores import ScoreDefinition
from hallujudge.metrics.responses.leftovers import response_in

from ...access.caller import call_memory
from ...engine.registry import metric_entry
from ...errors import InvalidInputError
from ...wire import task_of
from ..request_checks import check_count
from ..request_reader import counted
from .exchange import JSON
from .json_messages import JsonForm, to_json, worked

OPENRLHF = "/rewards/openrlhf"
"""The path."""

_LISTS = ("query", "prompts", "labels")
# The field of a task that a label is, if it is a list.
_REFERENCES = {"chair": "referenceObjects", "tri_he": "referenceTriplets"}
_TRIPLET = ("subject", "relation", "object")


class RewardCall:
    """One call for rewards.

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


def parsed_json(raw: bytes) -> Any:
    """Return the value of a body.

    Raises:
        InvalidInputError: It is not JSON.
    """
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as err:
        raise InvalidInputError(f"the body is not JSON: {err}") from None


def item_task(kind: str, response: str, label: Any) -> Mapping[str, object]:
    """Return the task of an item.

    A label is the reference as a list or a text, a task of its kind, or either as JSON. Without
    one, the item is unscored.
    """
    if isinstance(label, str) and label.lstrip()[:1] in ("[", "{"):
        label = _parsed(label)
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


def _parsed(label: str) -> Any:
    try:
        return json.loads(label)
    except (ValueError, RecursionError) as err:
        raise InvalidInputError(f"the label {label!r:.80} is not JSON: {err}") from None


def _listed(one: Any) -> Any:
    return dict(zip(_TRIPLET, one, strict=False)) if isinstance(one, list) else one

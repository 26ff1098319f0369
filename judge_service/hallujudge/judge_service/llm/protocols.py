"""Protocols of asking for a choice: chat writes it, the others report probabilities without text.

``scoring`` is vLLM's ``/generative_scoring``, for any causal language model. A request has the
tokens of a shared beginning (``query``), of several endings (``items``) and of labels; the reply
has for each ending the probability that the *first* label comes next. So there is one request for
each choice, each about all claims. Shapes and rules: vllm 0.33.0,
``entrypoints/generate/generative_scoring/serving.py``; the chat template and the tokens of a text
come from ``/tokenize`` (``entrypoints/serve/tokenize/protocol.py``). The endpoint cuts prompts that
are too long without a word, so their length is checked here.

``decisions`` is OpenAI's endpoint for questions about one input; vLLM 0.33.0 has it for some models
(``entrypoints/openai/decisions/protocol.py``). Shapes: openai 3.57.0,
``types/decision_create_params.py`` and ``types/decision.py``.

``classify`` and ``score`` are vLLM's endpoints for classifiers: the classes of texts, and one
number for each pair of texts. Shapes: vllm 0.33.0, ``entrypoints/pooling/classify/protocol.py`` and
``entrypoints/pooling/scoring/protocol.py``. Several texts are parts of a document that is too long;
the part that supports the claim the most counts.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from ..errors import InvalidInputError, fault_of
from .chat import LETTERS, ChatRequest, Dialect, Sampling, payload_of
from .chat_replies import TIED, ChatReply, Stated, content_of, parse_reply, usage_of
from .failures import CallFailedError, FailureKind
from .http import Sender
from .prompt_templates import Message

Exchange: TypeAlias = Callable[[Sender], Awaitable[ChatReply]]
"""Sends a request, and reads its reply."""
MOST_TOGETHER = {"scoring": 32, "decisions": 200}
"""Questions in one request at most; OpenAI takes 400, and vLLM 200 decisions."""
_SCORING = "/generative_scoring"
_DECISIONS = "decisions"
_TOKENS = "/tokenize"
_GENERATES = "which vLLM has for models that generate text; set llm.api to chat for others"
_NEEDS = {
    _SCORING: _GENERATES,
    _TOKENS: _GENERATES,
    "/classify": "which vLLM has for models that classify",
    "/score": "which vLLM has for models that classify",
    _DECISIONS: "which OpenAI and vLLM have for some models; set llm.api to chat for others",
}
# A model that gives all letters together less than this would write something else.
_LEAST_SHARE = 0.01
# Servers sum floating-point numbers.
_ROUNDING = 1e-3


class Exchanges:
    """The exchanges of one model, by its requests' protocols.

    Args:
        model: The model's name at its server.
        sampling: How written answers are drawn.
        dialect: Whose extensions the server understands.
        constraint: How written answers are constrained.
    """

    def __init__(self, model: str, sampling: Sampling, dialect: Dialect, constraint: str) -> None:
        self._model = model
        self._written = (sampling, dialect, constraint)
        self._letters: list[int] = []

    def of(self, request: ChatRequest) -> Exchange:
        """Return how a request is sent and its reply read."""
        if request.api == "scoring":
            return partial(self._score, request)
        if request.api in ("classify", "score"):
            return partial(_classified, request, _pooling_body(request, self._model))
        if request.api == "decisions":
            return partial(_decide, request, decisions_body(request, self._model))
        body = payload_of(request, self._model, *self._written)

        async def chat(sender: Sender) -> ChatReply:
            reply = await _posted(sender, "chat/completions", body)
            return parse_reply(reply, constrained=request.is_constrained)

        return chat

    async def letters(self, sender: Sender, count: int) -> list[int]:
        """Return the tokens of the first letters.

        Raises:
            InvalidInputError: A letter is not one token of its own.
            CallFailedError: The server does not say.
        """
        while len(self._letters) < count:
            letter = LETTERS[len(self._letters)]
            body = {"model": self._model, "prompt": letter, "add_special_tokens": False}
            tokens = (await _tokenized(sender, body))[0]
            if len(tokens) != 1 or tokens[0] in self._letters:
                raise InvalidInputError(
                    f"the answer {letter!r} is not one token of its own for {self._model!r} "
                    f"(tokens {tokens[:5]}), which scoring needs; set llm.api to chat"
                )
            self._letters.append(tokens[0])
        return self._letters[:count]

    async def _score(self, request: ChatRequest, sender: Sender) -> ChatReply:
        letters = await self.letters(sender, len(request.choices))
        found = await _all(self._tokens(sender, prompt) for prompt in request.prompts)
        fitting = [tokens for tokens, most in found if len(tokens) < most]
        replies: list[tuple[list[float], dict[str, Any]]] = []
        if fitting:
            shared = _shared_length(fitting)
            common = {
                "model": self._model,
                "query": fitting[0][:shared],
                "items": [tokens[shared:] for tokens in fitting],
                "apply_softmax": False,
            }
            replies = await _all(
                # One request for each letter: a request's label is that of all its items.
                _scores(sender, {**common, "label_token_ids": [letter]})
                for letter in letters
            )
        scored = iter(zip(*(scores for scores, _ in replies), strict=True))
        stated = [
            _most_likely(next(scored), request.choices)
            if len(tokens) < most
            else _too_long(len(tokens), most)
            for tokens, most in found
        ]
        return _reply(stated, [content for _, content in replies])

    async def _tokens(self, sender: Sender, messages: list[Message]) -> tuple[list[int], int]:
        """A prompt's tokens with the model's chat template, and how many the model reads."""
        return await _tokenized(sender, {"model": self._model, "messages": messages})


def _reply(stated: Iterable[Stated], contents: Sequence[Mapping[str, object]]) -> ChatReply:
    """Return answers without text as a reply, with what all requests for them took."""
    usages = [usage_of(content.get("usage")) for content in contents]
    prompt, cached, completion = map(sum, zip(*usages, strict=True)) if usages else (0, 0, 0)
    return ChatReply(
        content="",
        stated=tuple(stated),
        prompt_tokens=prompt,
        cached_tokens=cached,
        completion_tokens=completion,
        model=str(contents[0].get("model") or "") if contents else "",
    )


def _shared_length(prompts: Sequence[list[int]]) -> int:
    """The length of the prompts' common beginning; each has an ending of one token at least."""
    most = min(map(len, prompts)) - 1
    # What the first and the last in order have in common, those between have too.
    first, last = min(prompts), max(prompts)
    return next((n for n in range(most) if first[n] != last[n]), most)


async def _all(calls: Any) -> list[Any]:
    """Wait for all calls, and raise the first failure only then, so that none is left behind."""
    done = await asyncio.gather(*calls, return_exceptions=True)
    for one in done:
        if isinstance(one, BaseException):
            raise one
    return done


async def _tokenized(sender: Sender, body: Mapping[str, object]) -> tuple[list[int], int]:
    content = content_of(await _posted(sender, _TOKENS, body), "tokens")
    if "max_model_len" not in content:
        # llama-server has a route of this name for other requests.
        detail = _with_needs("the reply is not vLLM's: it has no 'max_model_len'", _TOKENS)
        raise CallFailedError(FailureKind.MODEL, detail)
    try:
        tokens, most = content["tokens"], content["max_model_len"]
        if not isinstance(tokens, list) or not isinstance(most, int) or not tokens:
            raise ValueError("it has no tokens")
        return [int(token) for token in tokens], most
    except (LookupError, TypeError, ValueError) as err:
        raise _bad_reply(_TOKENS, err) from err


async def _scores(sender: Sender, body: Mapping[str, Any]) -> tuple[list[float], dict[str, object]]:
    """The probability of the label after each item, and the whole reply."""
    content = content_of(await _posted(sender, _SCORING, body), "data")
    try:
        entries: Any = content["data"]
        by_index = {int(entry["index"]): _probability(entry["score"]) for entry in entries}
        # One that is missing would shift the verdicts of all claims after it.
        if sorted(by_index) != list(range(len(body["items"]))):
            raise ValueError(f"{len(by_index)} scores of {len(body['items'])} items")
        return [by_index[index] for index in sorted(by_index)], content
    except (LookupError, TypeError, ValueError) as err:
        raise _bad_reply(_SCORING, err) from err


async def _posted(sender: Sender, path: str, body: Mapping[str, object]) -> bytes:
    try:
        return await sender.post(path, body)
    except CallFailedError as failure:
        if failure.kind is not FailureKind.MODEL:
            raise
        raise failure.with_detail(_with_needs(failure.detail, path)) from failure


def _with_needs(detail: str, path: str) -> str:
    """Return what failed at a route, with the route and who has it."""
    needs = f", {_NEEDS[path]}" if path in _NEEDS else ""
    return f"{detail} (POST {path}{needs})"


def _most_likely(probabilities: tuple[float, ...], choices: Sequence[str]) -> Stated:
    share = math.fsum(probabilities)
    if share < _LEAST_SHARE:
        detail = f"the choices have {share:.2g} of the probability: the model would not choose"
        return Stated("", probabilities, "REPLY_OUT_OF_CHOICE", detail, share)
    likeliest = choices[probabilities.index(max(probabilities))]
    return _untied(likeliest, probabilities, choices)._replace(share=min(1.0, share))


def _untied(chosen: str, probabilities: tuple[float, ...], choices: Sequence[str]) -> Stated:
    """Return a choice, unless another one is exactly as likely."""
    # Equal ones are not rare: logits in bfloat16 have steps of 0.06.
    most = probabilities[choices.index(chosen)]
    same = [choice for choice, each in zip(choices, probabilities, strict=True) if each == most]
    if len(same) == 1:
        return Stated(chosen, probabilities)
    return Stated("", probabilities, TIED, f"{' and '.join(same)} are equally likely")


def _too_long(tokens: int, most: int) -> Stated:
    detail = f"the prompt has {tokens} tokens, and the model reads {most - 1}"
    return Stated("", (), FailureKind.TOO_LONG.value, detail)


def _pooling_body(request: ChatRequest, model: str) -> dict[str, object]:
    """Return the body about a claim, which the message holds, and the parts of its document."""
    if request.api == "classify":
        return {"model": model, "input": list(request.parts)}
    claim = request.messages[-1]["content"]
    pairs = {"text_1": list(request.parts), "text_2": [claim] * len(request.parts)}
    return {"model": model, **pairs}


async def _classified(
    request: ChatRequest, body: Mapping[str, object], sender: Sender
) -> ChatReply:
    path = f"/{request.api}"
    content = content_of(await _posted(sender, path, body), "data")
    try:
        entries: Any = content["data"]
        if len(entries) != len(request.parts):
            raise ValueError(f"{len(entries)} results of {len(request.parts)} texts")
        # The best part of the document counts, as in MiniCheck.
        best = max(map(_supported, entries))
    except (LookupError, TypeError, ValueError) as err:
        raise _bad_reply(path, err) from err
    supported, unsupported = request.choices
    stated = Stated(supported if best > 0.5 else unsupported, (best, max(0.0, 1 - best)))
    return _reply([stated], [content])


def _supported(entry: Mapping[str, Any]) -> float:
    """The probability of the second of two classes, or of the only number."""
    if "score" in entry:
        return _probability(entry["score"])
    if len(entry["probs"]) != 2:
        raise ValueError(f"{len(entry['probs'])} classes; a small judge has 2")
    return _probability(entry["probs"][1])


def decisions_body(request: ChatRequest, model: str) -> dict[str, object]:
    """Return the body of a Decisions request: one input, and a choice for each question."""
    choices = [{"value": choice} for choice in request.choices]
    about = "Choose the answer for this, by the rules that the input begins with"
    instructions = [f"{about}:\n{part}" for part in request.parts]
    return {
        "model": model,
        "input": "\n\n".join(message["content"] for message in request.messages),
        "questions": [
            {"type": "choice", "name": str(number), "instructions": text, "choices": choices}
            for number, text in enumerate(instructions or [f"{about}."], start=1)
        ],
    }


async def _decide(request: ChatRequest, body: Mapping[str, object], sender: Sender) -> ChatReply:
    content = content_of(await _posted(sender, _DECISIONS, body), "answers")
    try:
        answers: Any = content["answers"]
        asked: Any = body["questions"]
        if len(answers) != len(asked):
            raise ValueError(f"{len(answers)} answers to {len(asked)} questions")
        stated = [
            _decided(answer, question["name"], request.choices)
            for answer, question in zip(answers, asked, strict=True)
        ]
    except (LookupError, TypeError, ValueError, AttributeError) as err:
        raise _bad_reply(_DECISIONS, err) from err
    return _reply(stated, [content])


def _decided(answer: Mapping[str, Any], name: str, choices: Sequence[str]) -> Stated:
    """The answer to one question; answers come in the questions' order and repeat their names."""
    if answer.get("name") not in (None, name):
        raise ValueError(f"the answer to question {name} is named {answer['name']!r:.40}")
    kind = answer["type"]
    if kind == "refusal":
        return Stated("", (), FailureKind.REFUSED.value, "the model declined to answer")
    chosen = answer["choice"] if kind == "choice" else None
    if not isinstance(chosen, str) or chosen not in choices:
        detail = f"{json.dumps(chosen)[:40]} ({kind!r:.20}) is not one of {', '.join(choices)}"
        return Stated("", (), "REPLY_OUT_OF_CHOICE", detail)
    reported = {one["value"]: _probability(one["probability"]) for one in answer["probabilities"]}
    return _untied(chosen, tuple(reported[choice] for choice in choices), choices)


def _probability(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"the probability {value!r:.40}")
    if not 0 <= value <= 1 + _ROUNDING:
        raise ValueError(f"the probability {value!r:.40}")
    return float(value)


def _bad_reply(path: str, err: Exception) -> CallFailedError:
    return CallFailedError(
        FailureKind.BAD_REPLY, f"the reply of {path} has another layout: {fault_of(err)}"
    )

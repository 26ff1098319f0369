"""Endpoints that report probabilities, with the shapes of the released servers.

Every endpoint decides by a share of "supported" that the test gives, so that a test knows the
probabilities. A tokenizer of words replaces the model's; its chat template is Llama 3's.

Shapes, as read in the packages:

* ``/tokenize``: vllm 0.33.0, ``entrypoints/serve/tokenize/protocol.py`` (``TokenizeResponse``)
* ``/generative_scoring``: vllm 0.33.0, ``entrypoints/generate/generative_scoring/serving.py``
  (``GenerativeScoringRequest``, ``GenerativeScoringResponse``; the score is the first label's)
* ``/v1/decisions``: openai 3.57.0, ``types/decision_create_params.py``, ``types/decision.py``;
  limits and ``extra="forbid"`` of vllm 0.33.0, ``entrypoints/openai/decisions/protocol.py``
* ``/classify``: vllm 0.33.0, ``entrypoints/pooling/classify/protocol.py`` (``input`` of
  ``ClassificationCompletionRequest``, ``ClassificationResponse``)
* ``/score``: vllm 0.33.0, ``entrypoints/pooling/scoring/protocol.py`` (``ScoreTextRequest``,
  ``ScoreResponse``)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from support import scripted_llm as llm

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_LETTER = re.compile(r"([A-Z]) = (\w+)")
Shares = Callable[[str], Sequence[float]]
"""The claim's prompt -> the probability of each choice."""


def by_scene(text: str) -> Sequence[float]:
    """Return 0.8 for the verdict that the scene graph gives, and less for the others.

    Of a prompt without claims it is 0.8 for the first choice.
    """
    if "<<<CLAIM" not in text:
        return [0.8, *[0.004] * 25]
    claim = llm.claims_of({"messages": [{"content": text}]})[-1]
    scene = llm.scene_of({"messages": [{"content": text}]})
    objects = {part for fact in scene for part in (fact[0], fact[2])}
    right = 0
    if claim not in scene:
        right = 1 if claim[0] not in objects else 3 if claim[2] in objects else 2
    return [0.8 if place == right else 0.04 for place in range(4)]


class WordTokens:
    """A tokenizer: each word, sign or run of spaces is a token."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self._ids: dict[str, int] = {}

    def ids(self, text: str) -> list[int]:
        found = []
        for word in _WORDS.findall(text):
            if word not in self._ids:
                self._ids[word] = len(self.words)
                self.words.append(word)
            found.append(self._ids[word])
        return found

    def text(self, ids: Sequence[int]) -> str:
        return "".join(self.words[token] for token in ids)


def rendered(messages: Sequence[dict[str, str]]) -> str:
    """Llama 3's chat template, with the generation prompt."""
    turns = [f"<|{one['role']}|>\n\n{one['content']}<|eot_id|>" for one in messages]
    return "".join([*turns, "<|assistant|>\n\n"])


class ScoringServer(llm.ScriptedLlm):
    """A vLLM server of a model that generates.

    Args:
        shares: The probabilities of the choices in their order, by prompt.
        most: What the model reads at most, in tokens.
        letters: The tokens of a letter, if they are not what the tokenizer makes of it.
    """

    def __init__(
        self, shares: Shares, *, most: int = 8192, letters: dict[str, list[int]] | None = None
    ) -> None:
        super().__init__(version="0.33.0")
        self.tokens = WordTokens()
        self.prompts: list[str] = []
        self._shares, self._most, self._odd = shares, most, letters or {}
        self.probabilities = {"tokenize": self._tokenize, "generative_scoring": self._score}

    def _tokenize(self, _number: int, body: llm.Body) -> llm.Reply:
        messages = body.get("messages")
        text = rendered(messages) if messages else body["prompt"]
        tokens = self._odd.get(text) or self.tokens.ids(text)
        reply = {"count": len(tokens), "max_model_len": self._most, "tokens": tokens}
        return llm.as_json({**reply, "token_strs": None})

    def _score(self, _number: int, body: llm.Body) -> llm.Reply:
        assert body["apply_softmax"] is False
        data = []
        for index, item in enumerate(body["items"]):
            prompt = self.tokens.text([*body["query"], *item])
            assert len(body["query"]) + len(item) < self._most, "vLLM would cut this prompt"
            self.prompts.append(prompt)
            letters = [letter for letter, _ in _LETTER.findall(prompt.partition("<|user|>")[0])]
            label = self.tokens.words[body["label_token_ids"][0]]
            share = self._shares(prompt)[letters.index(label)]
            data.append({"index": index, "object": "score", "score": share})
        prompt_tokens = sum(len(body["query"]) + len(item) for item in body["items"])
        usage = {
            "prompt_tokens": prompt_tokens,
            "total_tokens": prompt_tokens + len(data),
            "completion_tokens": len(data),
            "prompt_tokens_details": None,
        }
        reply = {"id": "generative-scoring-1", "object": "list", "created": 1, "model": "m"}
        return llm.as_json({**reply, "data": data, "usage": usage})


def decisions(shares: Shares, refuses: Callable[[str], bool] = lambda _text: False) -> llm.Step:
    """Return a step that answers like the Decisions endpoint."""

    def answer(question: dict[str, Any], text: str) -> dict[str, Any]:
        name = question.get("name")
        if refuses(question["instructions"]):
            return {"type": "refusal", "name": name}
        values = [choice["value"] for choice in question["choices"]]
        found = shares(f"{text}\n{question['instructions']}")[: len(values)]
        best = max(range(len(values)), key=lambda place: found[place])
        return {
            "type": "choice",
            "name": name,
            "choice": values[best],
            "confidence": found[best],
            "probabilities": [
                {"value": value, "probability": share}
                for value, share in zip(values, found, strict=True)
            ],
        }

    def step(_number: int, body: llm.Body) -> llm.Reply:
        assert body.keys() == {"model", "input", "questions"}
        assert 1 <= len(body["questions"]) <= 200
        assert all(
            q.keys() <= {"type", "name", "instructions", "choices"} for q in body["questions"]
        )
        answers = [answer(question, body["input"]) for question in body["questions"]]
        usage = {
            "input_tokens": 300,
            "input_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 0},
            "output_tokens": len(answers),
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 300 + len(answers),
        }
        return llm.as_json({"model": "m", "answers": answers, "usage": usage})

    return step


def classifier(supported: Callable[[str], float]) -> dict[str, llm.Step]:
    """Return the endpoints of a classifier, by the probability that a text is supported."""

    def reply(data: list[dict[str, Any]], texts: Sequence[str]) -> llm.Reply:
        words = sum(len(text.split()) for text in texts)
        usage = {"prompt_tokens": words, "total_tokens": words, "completion_tokens": 0}
        head = {"id": "classify-1", "object": "list", "created": 1, "model": "m"}
        return llm.as_json({**head, "data": data, "usage": usage})

    def classify(_number: int, body: llm.Body) -> llm.Reply:
        assert body.keys() == {"model", "input"}
        shares = [[1 - supported(text), supported(text)] for text in body["input"]]
        found = [
            {"index": n, "label": f"LABEL_{int(p[1] > 0.5)}", "probs": p, "num_classes": 2}
            for n, p in enumerate(shares)
        ]
        return reply(found, body["input"])

    def score(_number: int, body: llm.Body) -> llm.Reply:
        assert body.keys() == {"model", "text_1", "text_2"}
        pairs = zip(body["text_1"], body["text_2"], strict=True)
        texts = [f"{premise}|{claim}" for premise, claim in pairs]
        found = [
            {"index": n, "object": "score", "score": supported(text)}
            for n, text in enumerate(texts)
        ]
        return reply(found, texts)

    return {"classify": classify, "score": score}

"""Scorers for Inspect AI, which finds them by the entry point group ``inspect_ai``.

    inspect score LOG --scorer hallujudge/chair -S reference=objects

scores the responses of a log again, and ``inspect eval`` uses them as ``hallujudge/chair`` too. A
sample's reference is in its metadata under ``reference``, or is its target. The evidence is in the
score's metadata. ``mean`` is the mean over samples; ``corpus`` is the score over all samples
together, as Hallujudge's report has it.

Importing this module needs the package ``inspect_ai``.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    get_model,
)
from inspect_ai.scorer import Metric, Score, mean, metric, scorer, stderr

from hallujudge.sdk.scorer import Scorer

from ..harness_scores import corpus_score, explanation, scored_records

METRICS = ("chair", "pope", "tri-he", "mementos")
"""Metrics whose items are single responses."""
_KEY = "hallujudge"


@metric(name="corpus")  # type: ignore[untyped-decorator]  # inspect_ai may be absent
def corpus() -> Metric:
    """Return the metric that computes a score from the statistics of all samples together."""

    def value(scores: list[Any]) -> float:
        kept = [one.score.metadata or {} for one in scores]
        return corpus_score([metadata[_KEY] for metadata in kept if _KEY in metadata])

    return value


def _scorer_of(name: str) -> Callable[..., Any]:
    @scorer(metrics=[mean(), stderr(), corpus()], name=name)  # type: ignore[untyped-decorator]
    def made(
        score: str = "",
        reference: str = "",
        variant: str = "",
        server: str = "",
        options: Mapping[str, object] | None = None,
        judge: str = "",
    ) -> Any:
        """Score responses.

        Args:
            score: The score's name; empty for the main score.
            reference: Key of the reference in the metadata of a sample; empty for the target.
            variant: The metric's variant.
            server: A server's host and port; empty to score in this process.
            options: The metric's options.
            judge: A model of Inspect AI that judges claims, such as ``openai/gpt-4o``; see
                :func:`inspect_judge`.
        """
        scored = Scorer(
            name,
            scores=[score] if score else (),
            variant=variant,
            server=server,
            options={**({"judge": "llm"} if judge else {}), **(options or {})},
            settings=inspect_judge(judge) if judge else None,
            on_failure="none",
        )

        async def of(state: Any, target: Any) -> Score:
            given = state.metadata.get(reference) if reference else target.text
            answer, group = state.output.completion, str(state.sample_id)
            [record] = (
                await asyncio.to_thread(scored_records, scored, answer, given, group=group)
            ).values()
            item = record["item"]
            # Once, beside the record: the evidence may be long, and Inspect's viewer unfolds it
            # there.
            metadata = {_KEY: record, "evidence": item.pop("evidence")}
            if "score" in record:
                why = explanation(record["name"], record["score"], metadata["evidence"])
                return Score(
                    value=record["score"], answer=answer, explanation=why, metadata=metadata
                )
            reason = f"{item['reason'] or 'UNDEFINED'}: {item.get('detail', '')}"
            return Score.unscored(
                reason=reason, answer=answer, explanation=reason, metadata=metadata
            )

        return of

    return made  # type: ignore[no-any-return]


chair, pope, tri_he, mementos = map(_scorer_of, METRICS)


def inspect_judge(model: str | Model) -> dict[str, object]:
    """Return settings with which a model of Inspect AI judges claims in this process.

    They are for ``Client.embedded(settings)`` and ``Scorer(settings=…)``. Calls go to a thread of
    this process, over an address that no other user can guess. Replies have no probabilities of
    tokens.

    Args:
        model: The model, or its name as for ``get_model``.
    """
    # A model is bound to the event loop that first calls it, so this one is not the evaluation's.
    called = get_model(model, memoize=False)
    loop = asyncio.new_event_loop()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Completions)
    # Calls that are under way must not keep an evaluation from ending.
    server.daemon_threads = True
    # Other users of the machine could otherwise spend the model's money.
    path = f"/{secrets.token_urlsafe()}/v1"
    server.answer = lambda body: asyncio.run_coroutine_threadsafe(  # type: ignore[attr-defined]
        _completion(called, body), loop
    ).result()
    server.path = path  # type: ignore[attr-defined]
    for run in (loop.run_forever, server.serve_forever):
        threading.Thread(target=run, name="hallujudge-inspect-judge", daemon=True).start()
    return {
        "llm.url": f"http://127.0.0.1:{server.server_port}{path}",
        "llm.model": str(called),
        # Inspect AI has one interface for all models, without their grammars and log probabilities.
        "llm.dialect": "plain",
        "llm.constraint": "none",
    }


_MESSAGES = {
    "system": ChatMessageSystem,
    "user": ChatMessageUser,
    "assistant": ChatMessageAssistant,
}


async def _completion(model: Model, body: Mapping[str, Any]) -> dict[str, object]:
    """Return the chat completion to a request."""
    messages = [_MESSAGES[one["role"]](content=one["content"]) for one in body["messages"]]
    names = ("temperature", "top_p", "max_tokens", "seed", "stop_seqs")
    config = GenerateConfig(**{name: body[name] for name in names if name in body})
    output = await model.generate(messages, config=config)
    usage = output.usage
    return {
        "model": body["model"],
        "choices": [
            {
                "message": {"role": "assistant", "content": output.completion},
                "finish_reason": "length" if output.stop_reason == "max_tokens" else "stop",
            }
        ],
        "usage": {
            "prompt_tokens": usage.input_tokens if usage else 0,
            "completion_tokens": usage.output_tokens if usage else 0,
        },
    }


class _Completions(BaseHTTPRequestHandler):
    """Answers requests for chat completions."""

    def do_POST(self) -> None:
        """Answer a request."""
        server: Any = self.server
        if self.path != f"{server.path}/chat/completions":
            self.send_error(404)
            return
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            status, reply = 200, server.answer(body)
        except Exception as err:
            # Inspect AI has made its own attempts; what remains is up to the judge's retries.
            status, reply = 500, {"error": {"message": f"{type(err).__name__}: {err}"}}
        content = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the judge's client logs failures."""

"""Try the server as a judge model with LiteLLM and verifiers, the real packages.

    python -m venv tool-env
    tool-env/bin/pip install '.[http]' litellm
    tool-env/bin/python tools/try_judge_model.py litellm

A server is started here, and asked by the tool as it asks any OpenAI-compatible address.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hallujudge.judge_service.server.server import start
from hallujudge.judge_service.settings.server_settings import HttpSettings, ServerSettings

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "call-over-http.md"
ITEM = json.dumps({"response": "A cat and a dog.", "reference": ["cat"]})


@contextmanager
def serving() -> Iterator[str]:
    """Run a server in a thread of its own, and return its base address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    server = run(start(ServerSettings(port=0, http=HttpSettings(port=0))))
    try:
        yield f"http://{server.http_address}/v1"
    finally:
        run(server.stop(0))
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def try_litellm(url: str) -> None:
    """Complete, complete in a stream, and fail as with OpenAI."""
    import litellm

    called: dict[str, Any] = {
        "model": "openai/hallujudge/chair",
        "api_base": url,
        "api_key": "none",
        "messages": [{"role": "user", "content": ITEM}],
    }
    found = json.loads(litellm.completion(**called).choices[0].message.content)
    assert found["score"] == 0.5, found
    print(found)
    parts = [
        one.choices[0].delta.content or "" for one in litellm.completion(**called, stream=True)
    ]
    assert json.loads("".join(parts)) == found
    try:
        litellm.completion(**called | {"model": "openai/hallujudge/chiar"})
    except litellm.NotFoundError as err:
        print(err)
    else:
        raise AssertionError("an unknown metric was found")


def try_verifiers(url: str) -> None:
    """Let the judge of the page score a response, and read what verifiers records of the call."""
    block = next(one for one in _blocks() if "vf.Judge" in one)
    found: dict[str, Any] = {"__name__": "example"}
    exec(compile(block.replace("http://localhost:8080/v1", url), PAGE.name, "exec"), found)  # noqa: S102
    judge = found["judge"]
    said = asyncio.run(judge.evaluate(response="A cat and a dog.", reference=["cat"]))
    assert said.parsed == 0.5, said
    print(said)
    try:
        asyncio.run(judge.evaluate(response=None, reference=["cat"]))
    except ValueError as err:
        print(f"an unscored response is no reward: {err}")
    else:
        raise AssertionError("an unscored response has a reward")


def _blocks() -> list[str]:
    """Return the indented blocks of the page, each without its indentation."""
    text = PAGE.read_text("utf-8")
    return [textwrap.dedent(one) for one in re.findall(r"(?:^    .*\n|^\n)+", text, re.MULTILINE)]


SECTIONS: dict[str, Callable[[str], None]] = {"litellm": try_litellm, "verifiers": try_verifiers}


def main() -> None:
    """Run a section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", choices=SECTIONS)
    tool = parser.parse_args().tool
    with serving() as url:
        SECTIONS[tool](url)
    print(f"{tool} {version(tool)}: passed")


if __name__ == "__main__":
    main()

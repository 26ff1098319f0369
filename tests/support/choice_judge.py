"""A scripted judge of answers and descriptions, which fails where a text says so."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support import scripted_llm as llm
from support.qa_running import bytes_of
from support.running import ServerProcess, here

__all__ = ["blocks_of", "judged_here_and_there", "scripted", "step"]

_MARKS = re.compile(r"<\||\[/?INST\]|</?s>")


def blocks_of(body: llm.Body) -> dict[str, str]:
    """Return the fenced texts by name; anything that stands outside of a fence fails."""
    prompt = llm.prompt_of(body)
    found = re.findall(r"<<<([A-Z]+)\n([^\n]*)\n\1>>>", prompt)
    assert "\n".join(f"<<<{name}\n{line}\n{name}>>>" for name, line in found) == prompt
    assert not _MARKS.search(prompt)
    return {name: json.loads(line) for name, line in found}


def step(answers: Mapping[str, str], text_block: str) -> llm.Step:
    """Return a step that answers by the first of some words in a block.

    Args:
        answers: Word -> the reply.
        text_block: The block that holds the judged text.
    """

    def reply(_number: int, body: llm.Body) -> llm.Reply:
        text = blocks_of(body)[text_block]
        failures = {
            "REFUSE": llm.completion(None, refusal="I'd rather not."),
            "DOWN": llm.error(500, "no memory"),
            "CHAT": llm.completion("Well, it depends."),
            "CUT": llm.completion("un", finish="length"),
        }
        replies = failures | {word: llm.completion(said) for word, said in answers.items()}
        return next(replies[word] for word in replies if word in text)

    return reply


@contextmanager
def scripted(*steps: llm.Step, model: str = "tiny") -> Iterator[llm.ScriptedLlm]:
    """A scripted server in a thread."""
    server = llm.ScriptedLlm(*steps, model=model)
    stop = server.in_thread()
    try:
        yield server
    finally:
        stop()


def judged_here_and_there(
    metric: str, given: tuple[str | Path, ...], judge: llm.Step, folder: Path
) -> tuple[list[llm.Body], int]:
    """Score in this process and at a server, which share a verdict cache, into the same bytes.

    Some items have no verdict. The run of this process is in ``here``.

    Args:
        metric: The metric's name.
        given: The options that name archives and ask for the judge.
        judge: What the judge answers.
        folder: The folder of both runs.

    Returns:
        The requests of the first run, and how many the second one added.
    """
    with scripted(judge) as server:
        cache = ("--verdict-cache", str(folder / "verdicts.sqlite"))
        flags = ("--llm-url", server.url, "--llm-model", "tiny", *cache)
        run = here("score", metric, *given, *flags, "--out", folder / "here")
        assert run.returncode == 3, run.stderr
        asked = list(server.requests)
        remote = ServerProcess(*flags, "--data-folder", str(folder / "data"))
        try:
            there = ("--server", remote.address, "--out", folder / "there")
            assert here("score", metric, *given, *there).returncode == 3
        finally:
            remote.stop()
        more = server.chats - len(asked)
    assert bytes_of(folder / "here") == bytes_of(folder / "there")
    return asked, more

"""Real judge servers, each from an environment of its own that `make test-servers` installs.

Models have random weights, so that verdicts mean nothing: what counts is that a verdict is the one
that the server's reply to the same request says, and what servers enforce, report and refuse.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.pictures import png
from support.qa_samples import write_lines
from support.running import here, read_rows
from support.tri_he_samples import report_of, score

_FOLDER = "JUDGE_SERVERS"
SCRIPTS = Path(__file__).parent
# Programs of a machine that others use too.
FEW_THREADS = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
# vLLM needs some minutes on a busy machine of two cores.
_START_SECONDS = 900

SUBJECTS = ("man", "woman", "dog", "cat", "horse", "boy")
RELATIONS = ("riding", "holding", "next to", "looking at")


def environment(name: str) -> Path:
    """Return the folder of programs of an environment; skip where it is not installed."""
    folder = Path(os.environ.get(_FOLDER, "")) / name / "bin"
    if not os.environ.get(_FOLDER) or not folder.is_dir():
        pytest.skip(f"no real judge server: the environment {name} is not installed")
    return folder


def figure(server: str, text: str) -> None:
    """Keep a line for the end of `make test-servers`."""
    with (Path(os.environ[_FOLDER]) / "figures.txt").open("a", encoding="utf-8") as file:
        file.write(f"{server}: {text}\n")


def tiny_llama(
    python: Path, folder: Path, *, says: str = "", thinks: int = 0, even: bool = False
) -> Path:
    """Save a tiny model, see make_tiny_llama.py."""
    given = ("--says", says, "--thinks", str(thinks)) if says else ("--even",) * even
    run(python, SCRIPTS / "make_tiny_llama.py", folder, *given)
    return folder


def tiny_gguf(python: Path, model: Path, file: Path) -> Path:
    """Write the same model for llama.cpp."""
    run(python, SCRIPTS / "make_tiny_gguf.py", model, file)
    return file


def run(*command: str | Path) -> str:
    """Run a program of an environment and return what it printed."""
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=_variables(), check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def _variables(**more: str) -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, **FEW_THREADS, **more}


def free_port() -> int:
    """Return a port that no program uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a server answered to a request."""

    status: int
    """The HTTP status."""
    text: str
    """The body."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """The headers, by names in small letters."""

    @property
    def content(self) -> str:
        """The content of a chat completion."""
        return str(json.loads(self.text)["choices"][0]["message"]["content"])

    @property
    def logprobs(self) -> list[dict[str, Any]]:
        """The tokens of a chat completion with their log-probabilities; empty without any."""
        found = json.loads(self.text)["choices"][0].get("logprobs") or {}
        return list(found.get("content") or ())

    def is_like(self, recorded: llm.Reply) -> bool:
        """Whether it is what the scripted server sends, but for numbers and quoted names."""
        return (self.status, _shape(self.text)) == (
            recorded.status,
            _shape(recorded.body.decode()),
        )


def _shape(text: str) -> object:
    """Return an error without its numbers and names."""
    error = json.loads(text)
    error = error.get("error", error)
    words = re.sub(r"\d+|'[^']*'|model=\S+", "#", str(error.get("message") or error.get("detail")))
    return words, str(error.get("code", "")), error.get("type") or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RealServer:
    """A server that runs."""

    url: str
    """The base address of its API."""
    model: str = "tiny"
    """The model's name there."""
    key: str = ""
    """Its key."""
    log: Path
    """What it wrote."""
    flags: tuple[str, ...] = field(init=False)
    """The options of a judge there."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "flags", self.asked_for(self.model))

    def asked_for(self, model: str) -> tuple[str, ...]:
        """Return the options of a judge at this server."""
        return ("--judge", "llm", "--llm-url", self.url, "--llm-model", model)

    def post(self, path: str, body: object, key: str | None = None) -> Reply:
        """Send JSON, and return what is answered."""
        sent = self.key if key is None else key
        headers = {"Content-Type": "application/json"}
        if sent:
            headers["Authorization"] = f"Bearer {sent}"
        address = path if path.startswith("http") else f"{self.url}/{path}"
        request = urllib.request.Request(address, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return Reply(status=response.status, text=response.read().decode())
        except urllib.error.HTTPError as err:
            with err:
                headers = {name.lower(): text for name, text in err.headers.items()}
                return Reply(status=err.code, text=err.read().decode(), headers=headers)

    def chat(self, prompt: str = "Which city is the capital of France?", **more: Any) -> Reply:
        """Ask for a chat completion."""
        messages = [{"role": "user", "content": prompt}]
        given = {"model": self.model, "messages": messages, "max_tokens": 8, "temperature": 0}
        return self.post("chat/completions", given | more)


@contextmanager
def started(
    command: Sequence[str | Path],
    log: Path,
    port: int,
    *,
    health: str = "/v1/models",
    model: str = "tiny",
    key: str = "",
    **variables: str,
) -> Iterator[RealServer]:
    """Start a server, wait until it answers, and end all its processes afterwards."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            list(map(str, command)),
            cwd=log.parent,
            env=_variables(**variables),
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    headers = {"Authorization": f"Bearer {key}"} if key else {}

    def answers() -> bool:
        assert process.poll() is None, log.read_text(errors="replace")[-3000:]
        address = urllib.request.Request(f"http://127.0.0.1:{port}{health}", headers=headers)
        try:
            with urllib.request.urlopen(address, timeout=10):
                return True
        except OSError:
            return False

    try:
        _wait_for(answers, log)
        yield RealServer(url=f"http://127.0.0.1:{port}/v1", model=model, key=key, log=log)
    finally:
        with contextlib.suppress(ProcessLookupError):  # its end was said above
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)


def _wait_for(answers: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not answers():
        assert time.monotonic() < deadline, log.read_text(errors="replace")[-3000:]
        time.sleep(0.2)


def claims(images: int = 4) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return answers about images with six claims each, and their scene graphs."""
    answers, graphs = [], []
    for number in range(images):
        image, thing = f"image-{number}", f"thing {number}"
        each = [[s, RELATIONS[(number + n) % 4], thing] for n, s in enumerate(SUBJECTS)]
        answers.append({"image_id": image, "question": "What is seen?", "claims": each})
        graphs.append({"image_id": image, "triplets": each[::2]})
    return answers, graphs


def judged(
    folder: Path, *options: str | Path, scene: Sequence[Any] | None = None
) -> subprocess.CompletedProcess[str]:
    """Score six claims about an image.

    Args:
        folder: Folder for files.
        options: Options of the command.
        scene: The scene graph, if it is another one.
    """
    answers, graphs = claims(1)
    graphs[0]["triplets"] = graphs[0]["triplets"] if scene is None else scene
    return score(folder, answers, *options, graphs=graphs)


def asked(server: RealServer, folder: Path) -> subprocess.CompletedProcess[str]:
    """Ask a question of POPE about an image."""
    images = folder / "images"
    images.mkdir()
    (images / "a.jpg").write_bytes(png(1))
    question = {"question_id": 1, "image": "a.jpg", "text": "Is there a cat in the image?"}
    questions = write_lines(folder / "questions.jsonl", [question | {"label": "yes"}])
    return here(
        *("ask", "pope", "--references", questions, "--images", images),
        *("--out", folder / "answers.jsonl", "--url", server.url, "--model", server.model),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A run beside the replies to the same requests, sent without our client."""

    returncode: int
    """The command's exit code."""
    said: str
    """What it printed."""
    report: dict[str, Any]
    """The report."""
    claims: list[dict[str, Any]]
    """Each claim with its verdict."""
    replies: list[Reply]
    """The replies to own requests."""
    equal: int
    """Claims whose verdict is that of the own request."""

    @property
    def agreement(self) -> str:
        """The agreement in words."""
        return f"{self.equal} of {len(self.claims)} verdicts equal to own requests"

    @property
    def reasons(self) -> set[str]:
        """Why claims have no verdict."""
        return {claim["reason"] for claim in self.claims if claim["verdict"] == "unscored"}


def scored(server: RealServer, folder: Path, *options: str) -> Scored:
    """Score claims at a server, and send the same requests to it as an own program would.

    Args:
        server: The server.
        folder: Folder for files.
        options: Options for both; the dialect and constraint that the run finds by itself are
            given, because files of requests are written without a server.
    """
    answers, graphs = claims()
    requests = exported(folder, server.model, answers, graphs, *options)
    done = score(folder, answers, *server.flags, graphs=graphs)
    out = folder / "out"
    found = [c for row in read_rows(out / "items.jsonl") for c in row["evidence"]["claims"]]
    replies = [server.post("chat/completions", body) for body in requests]
    return Scored(
        returncode=done.returncode,
        said=done.stdout + done.stderr,
        report=report_of(out),
        claims=found,
        replies=replies,
        equal=equal_choices(out, zip(requests, replies, strict=True)),
    )


_PARTS = {"subject": "object1", "relation": "relation", "object": "object2"}


def exported(
    folder: Path,
    model: str,
    answers: Sequence[Any],
    graphs: Sequence[Any],
    *options: str,
) -> list[dict[str, Any]]:
    """Return the bodies of the requests about claims, which need no server."""
    claims = write_lines(folder / "answers.jsonl", answers)
    return requests_of(
        folder, model, claims, write_lines(folder / "graphs.jsonl", graphs), *options
    )


def requests_of(
    folder: Path, model: str, claims: Path, graphs: Path, *options: str
) -> list[dict[str, Any]]:
    """Return the bodies of the requests about the claims of a file."""
    requests = folder / "requests.jsonl"
    scored: tuple[str | Path, ...] = ("score", "tri-he", "--judge", "llm", "--llm-model", model)
    files = {"--claims": claims, "--references": graphs, "--out": folder / "exported"}
    given = (part for pair in files.items() for part in pair)
    done = here("batch", "export", requests, *scored, *given, *options)
    assert done.returncode == 0, done.stderr
    return [row["body"] for row in read_rows(requests)]


def equal_choices(out: Path, own: Iterable[tuple[dict[str, Any], Reply]]) -> int:
    """Return how many own requests have the choice of a run for the same claim.

    Images may have the same claim with other verdicts; each image asks for one.

    Args:
        out: The run's folder.
        own: The bodies of own requests, with their replies.
    """
    rows = read_rows(out / "items.jsonl")
    each = {
        (row["group_id"], *claim["triplet"]): _said_by_run(claim)
        for row in rows
        for claim in row["evidence"]["claims"]
    }
    run = Counter((*claim, choice) for (_, *claim), choice in each.items())
    asked = Counter((*llm.claims_of(body)[0], said_by(reply)) for body, reply in own)
    return (run & asked).total()


def _said_by_run(claim: dict[str, Any]) -> str:
    """Return the choice that a claim's verdict comes from; empty without a verdict."""
    if claim["verdict"] == "not_supported":
        return _PARTS[claim["part"]]
    return "supported" if claim["verdict"] == "supported" else ""


def said_by(reply: Reply) -> str:
    """Return the choice in a reply; empty if it has none."""
    if reply.status != 200:
        return ""
    text = reply.content.strip()
    if text.startswith("{"):
        try:
            text = json.loads(text)["verdict"]
        except (ValueError, KeyError):
            return ""
    return text if text in ("supported", *_PARTS.values()) else ""


def doctor(server: RealServer, *options: str) -> dict[str, str]:
    """Return what ``hallujudge doctor`` says of the judge, by check."""
    done = here("doctor", "--llm-url", server.url, "--llm-model", server.model, *options)
    lines = [line.partition("llm judge, ")[2] for line in done.stdout.splitlines()]
    marks = [line.split()[0] for line in done.stdout.splitlines() if line.strip()]
    pairs = zip(marks, lines, strict=False)
    found = {
        line.partition(": ")[0]: f"{mark} {line.partition(': ')[2]}" for mark, line in pairs if line
    }
    assert "Traceback" not in done.stderr
    return found

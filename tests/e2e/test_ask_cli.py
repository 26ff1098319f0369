"""``hallujudge ask``, against a scripted vision server over real HTTP."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import pytest
from support import scripted_llm as llm
from support.pictures import png
from support.qa_samples import write_lines
from support.running import BIN, cli, here
from support.threads import eventually
from support.toll import Toll, verdicts

QUESTIONS, IMAGES = 3_000, 500


class Server(llm.ScriptedLlm):
    """A vision server that replies by a function of prompt and images."""

    def shown(self) -> list[tuple[str, list[bytes]]]:
        """Return the prompts and images so far."""
        return [(llm.prompt_of(body), llm.images_of(body)) for body in self.requests]


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(llm.saying("Yes."))
    stop = made.in_thread()
    yield made
    stop()


def ask(server: llm.ScriptedLlm, *arguments: object) -> tuple[str, ...]:
    given = ("ask", *map(str, arguments), "--url", server.url, "--model", "m")
    return tuple(given)


def folder_of(path: Path, names: Sequence[str]) -> Path:
    path.mkdir()
    for seed, name in enumerate(names):
        (path / name).write_bytes(png(seed))
    return path


def key_of(body: llm.Body) -> str:
    return llm.prompt_of(body) + sha256(b"".join(llm.images_of(body))).hexdigest()


def test_a_run_of_pope_that_is_killed_twice_asks_nothing_twice(tmp_path: Path) -> None:
    names = [f"COCO_val2014_{number:012}.jpg" for number in range(IMAGES)]
    images = folder_of(tmp_path / "images", names)
    objects = ("cat", "dog", "car", "cup", "bus", "tie")
    records = [
        {
            "question_id": number + 1,
            "image": names[number // 6],
            "text": f"Is there a {objects[number % 6]} in the image?",
            "label": "yes" if number % 2 else "no",
        }
        for number in range(QUESTIONS)
    ]
    questions = write_lines(tmp_path / "questions.jsonl", records)
    toll, at_once = Toll(llm.saying("Yes."), key_of), 8
    server = llm.ScriptedLlm(toll.step)
    stop = server.in_thread()
    out, kept = tmp_path / "answers.jsonl", "answers.replies.sqlite"
    command = (
        *ask(server, "pope", "-R", questions, "--images", images, "-o", out),
        *("--max-concurrency", str(at_once)),
    )
    try:
        for part in (900, 1_100):
            toll.allowed = part
            process = subprocess.Popen([BIN / "hallujudge", *command], stderr=subprocess.DEVNULL)
            assert eventually(lambda: len(toll.held) == at_once)
            assert eventually(lambda: verdicts(tmp_path, kept) == toll.paid.total())
            process.kill()
            assert process.wait() == -signal.SIGKILL
            toll.drop()
            assert not out.exists()
        toll.allowed = QUESTIONS
        run = cli(*command)
        assert run.returncode == 0, run.stderr
    finally:
        toll.drop()
        stop()
    assert toll.paid.total() == len(toll.paid) == QUESTIONS
    # Only the calls that were under way at a kill were sent again.
    assert server.chats <= QUESTIONS + 2 * at_once
    sent = {sha256(image).hexdigest() for body in server.requests for image in llm.images_of(body)}
    assert sent == {sha256((images / name).read_bytes()).hexdigest() for name in names}
    scored = here("score", "pope", "-r", out, "-o", tmp_path / "scores", "-f", "json")
    assert scored.returncode == 0, scored.stderr
    report = json.loads(scored.stdout)
    values = {name: score["value"] for name, score in report["scores"].items()}
    assert (values["accuracy"], values["yes_ratio"], report["coverage"]["items"]) == (0.5, 1, 3_000)
    assert "|prompts:" in report["signature"]
    assert "|asked:chat,plain,max=512|" in report["signature"]

"""Try one call of each kind, at a server with the client alone, or in this process.

    python tools/try_client.py ADDRESS RESULTS.json
    python tools/try_client.py embedded RESULTS.json

tools/small_environments.py runs it twice, in an environment of hallujudge-client and in one of
hallujudge, and compares the results. Needs nothing but the package that it tries.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hallujudge.sdk import Client, Report, example_archives, write_example
from hallujudge.sdk.errors import HallujudgeError, MissingExtraError, NotFoundError
from hallujudge.sdk.rewards import Reward, trl_reward

EMBEDDED = "embedded"
# What the client does without.
NOT_INSTALLED = ("numpy", "networkx", "nltk", "textblob", "rich", "click", "hallujudge.sdk.cli")
# They need the matcher's model.
NEED_MODELS = ("tri-he", "open-objects")
CAPTIONS = ["A cat sits on a red sofa.", "A dog and a cat.", "", "A man rides a horse."]
OBJECTS = [["cat", "couch"], ["dog"], ["cat"], ["person", "horse"]]
# More than a message holds, with more than one message's ids.
MANY = 300
# Each with the process's own start. The second is the measure of the machine: much of the first.
IMPORTS = ("from hallujudge.sdk import Client", "import asyncio")


def expect(holds: bool, what: str) -> None:
    """End with a message unless something holds."""
    if not holds:
        raise SystemExit(f"try_client: {what}")


def refused(call: Callable[[], object], kind: type[HallujudgeError], *said: str) -> None:
    """Expect an error of ours with some words."""
    try:
        call()
    except kind as err:
        expect(all(words in str(err) for words in said), f"{said} is not in {err}")
        return
    raise SystemExit(f"try_client: no {kind.__name__} that says {said}")


def plain_examples(folder: Path) -> Iterator[tuple[str, dict[str, Path]]]:
    """Yield each metric whose example is a file of responses, and perhaps one of references."""
    for metric, example in example_archives().items():
        words = shlex.split(example.command)
        options = dict(zip(words[3::2], words[4::2], strict=False))
        if metric in NEED_MODELS or options.keys() - {"--responses", "--references", "--out"}:
            continue
        write_example(metric, folder / metric)
        kept = {name.removeprefix("--"): path for name, path in options.items() if name != "--out"}
        yield metric, {name: folder / metric / path for name, path in kept.items()}


def content(report: Report) -> dict[str, Any]:
    """Return what a report says; notes on words need the synonym graph, which a server has."""
    found = report.to_json()
    return {name: found[name] for name in ("signature", "scores", "groups", "coverage")}


def many() -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return captions and objects of a run of several messages."""
    ids = [str(at) for at in range(MANY)]
    return (
        {name: CAPTIONS[at % len(CAPTIONS)] for at, name in enumerate(ids)},
        {name: OBJECTS[at % len(OBJECTS)] for at, name in enumerate(ids)},
    )


def calls(client: Client, address: str) -> dict[str, Any]:
    """Return what each kind of call gives."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as work:
        for metric, files in plain_examples(Path(work)):
            report = client.score(metric, **files)  # type: ignore[arg-type]  # paths by name
            found[f"score {metric}"] = content(report)
    responses, references = many()
    batches: list[int] = []
    streamed = client.score(
        "chair",
        responses=responses,
        references=references,
        on_batch=lambda batch: batches.append(len(batch.items)),
    )
    # Messages to a server are smaller than batches in this process.
    expect(sum(batches) == MANY and len(batches) > (address != EMBEDDED), f"batches of {batches}")
    expect(len(streamed.items) == MANY, f"the report holds {len(streamed.items)} items")
    found["stream"] = content(streamed)
    pairs = [(str(at), caption) for at, caption in enumerate(CAPTIONS)]
    each = client.score_each(
        "chair",
        pairs,
        {str(at): objects for at, objects in enumerate(OBJECTS)},
        scores=["chair_i", "recall"],
    )
    found["each"] = [[one.scores, str(one.outcome), one.reason, one.evidence] for one in each]
    found["reward"] = rewards("" if address == EMBEDDED else address)
    found["extract"] = [[str(one) for one in text] for text in client.extract("chair", CAPTIONS)]
    found["normalize"] = client.normalize(["sofa", "puppies"])
    return found


def rewards(server: str) -> list[float | None]:
    """Return rewards as TRL's trainer asks for them."""
    reward = Reward("chair", "chair_i", min_words=2, server=server)
    function = trl_reward(reward, references="objects")
    given = function(
        prompts=["Describe the image."] * len(CAPTIONS), completions=CAPTIONS, objects=OBJECTS
    )
    reward.scorer.close()
    return list(given)


def try_job(client: Client, expected: dict[str, Any]) -> None:
    """Submit a run as a job, and expect the report of the stream."""
    responses, references = many()
    job = client.submit("chair", responses=responses, references=references)
    done = client.wait_for_job(job.id)
    expect(done.state == "done", f"the job is {done.state}: {done.problem_detail}")
    expect(job.id in [one.id for one in client.jobs()], "the job is not listed")
    report = client.job_report(job.id)
    expect(content(report) == expected, f"the job's report differs: {content(report)}")
    client.delete_job(job.id)


def try_alone(client: Client) -> None:
    """Expect that the client is alone, and that it says what the rest needs."""
    there = [name for name in NOT_INSTALLED if _is_there(name)]
    expect(not there, f"installed beside the client: {', '.join(there)}")
    advice = ("needs the package hallujudge", "pip install hallujudge")
    refused(Client.embedded, MissingExtraError, "scoring in this process", *advice)
    one: dict[str, Any] = {"responses": {"1": "A cat."}, "references": {"1": ["cat"]}}
    into = {**one, "folder": "run"}
    refused(lambda: client.score("chair", **into), MissingExtraError, "folder", *advice)
    report = client.score("chair", **one)
    expect(report.signature in str(report), "print(report) has no signature")
    for use in (report.plot, report.wrong, lambda: report.save("run"), lambda: report.latex):
        refused(use, MissingExtraError, *advice)
    refused(_import_compare, MissingExtraError, "hallujudge.sdk.compare", *advice)
    refused(lambda: client.score("bleu", **one), NotFoundError, "bleu")


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _import_compare() -> object:
    from hallujudge.sdk import compare

    return compare


def import_ratio() -> float:
    """Return the processor time of importing Client, over that of importing asyncio alone.

    Each is the least of seven, in turns.
    """
    rounds = [[_seconds(statement) for statement in IMPORTS] for _ in range(7)]
    return min(client for client, _ in rounds) / min(asyncio for _, asyncio in rounds)


def _seconds(statement: str) -> float:
    command = f"import time; {statement}; print(time.process_time())"
    return float(subprocess.check_output((sys.executable, "-c", command), text=True))


def main() -> None:
    """Make the calls, and write what they gave."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("address", metavar="ADDRESS", help="the server's, or embedded")
    parser.add_argument("results", metavar="RESULTS", type=Path, help="where results go")
    options = parser.parse_args()
    is_embedded = options.address == EMBEDDED
    with Client.embedded() if is_embedded else Client(options.address) as client:
        found = calls(client, options.address)
        if not is_embedded:
            try_job(client, found["stream"])
            try_alone(client)
    options.results.write_text(json.dumps(found), encoding="utf-8")
    metrics = sum(name.startswith("score ") for name in found)
    print(f"{metrics} metrics scored, {len(found) - metrics} other calls")
    print(f"processor time of importing Client, over asyncio's alone: {import_ratio():.2f}")


if __name__ == "__main__":
    main()

"""Try what an installation with one light extra must be able to do, and what it must say.

    python tools/try_installation.py EXTRA

Runs in an environment without pytest; tools/small_environments.py makes it. Every command shows
its help, `doctor` passes, every family that needs no model is scored, a server serves where the
extra brings one, and whatever another extra brings ends with one sentence that says how to get it.
"""

from __future__ import annotations

import argparse
import io
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

from hallujudge.judge_service import EXTRA_MODULES, install_advice, missing_modules
from hallujudge.sdk import Client, RunReport, example_archives
from hallujudge.sdk.cli import command_tree, main
from hallujudge.sdk.errors import MissingExtraError
from hallujudge.synonym_graphs import GraphError, load_graph

# They need the matcher's model.
NEEDS_MODEL = {"tri-he": "matcher-onnx", "open-objects": "matcher-onnx"}
COMMAND = Path(sys.executable).with_name("hallujudge")
LIMIT_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A command that needs an extra."""

    extra: str
    """The extra."""
    command: str
    """Its arguments."""
    first: tuple[str, ...] = ()
    """Extras that the command needs before this one."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Environment variables."""


def needs() -> Iterator[Need]:
    """Yield a command for each extra, which fails where the extra is missing."""
    chair = "score chair -R objects.json -o"
    triplets = "score tri-he -r answers.json -R graphs.json -o"
    serve = "serve --port 0"
    yield Need(extra="server", command=serve)
    yield Need(extra="http", command=f"{serve} --http-port 0", first=("server",))
    traces = {"HALLUJUDGE_TRACE_ENDPOINT": "127.0.0.1:1"}
    yield Need(extra="otel", command=serve, first=("server",), settings=traces)
    judge = "--judge llm --llm-url http://127.0.0.1:1/v1 --llm-model m"
    yield Need(extra="llm", command=f"{triplets} o1 {judge}")
    hosted = "--judge llm --llm-url https://api.openai.com/v1 --llm-model m"
    yield Need(extra="openai", command=f"{triplets} o7 {hosted}")
    yield Need(extra="matcher-onnx", command=f"{triplets} o2")
    extractor = f"{triplets} o3 {judge} --extractor spacy"
    yield Need(extra="spacy", command=extractor, first=("llm",))
    yield Need(extra="draw", command="graph draw coco -o graph.png")
    yield Need(extra="tables", command=f"{chair} o4 -r captions.xlsx")
    yield Need(extra="zstd", command=f"{chair} o5 -r captions.jsonl.zst")
    yield Need(extra="remote", command=f"{chair} o6 -r s3://bucket/captions.jsonl")
    page = "report run --format html --images . --embed-images -o page.html"
    yield Need(extra="images", command=page)
    yield Need(extra="video", command="build infact clip.mp4 -o degraded")


def write_inputs() -> None:
    """Write the files that the commands name."""
    captions = '{"image_id": 1, "caption": "A cat."}\n'
    for name in ("captions.jsonl", "captions.xlsx"):
        Path(name).write_text(captions)
    Path("captions.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd000")
    Path("objects.json").write_text('{"1": ["cat"]}')
    Path("answers.json").write_text('[{"id": "1", "response": "A man rides a horse."}]')
    Path("graphs.json").write_text('{"1": [["man", "rides", "horse"]]}')


def run(*arguments: str) -> tuple[int, str]:
    """Run a command in this process; return its exit code and all that it printed."""
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        code = main(list(arguments))
    return code, printed.getvalue()


def expect(holds: bool, what: str) -> None:
    """End with a message unless something holds."""
    if not holds:
        raise SystemExit(f"try_installation: {what}")


def commands(group: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every command and group."""
    yield path
    for name, command in sorted(getattr(group, "commands", {}).items()):
        yield from commands(command, (*path, name))


def try_help() -> int:
    """Show every command's help; return how many there are."""
    paths = list(commands(command_tree()))
    for path in paths:
        code, printed = run(*path, "--help")
        expect(code == 0 and "Usage" in printed, f"{' '.join(path)} --help: {code}, {printed}")
    return len(paths)


def try_scores() -> int:
    """Score the example of every metric that needs no missing model; return how many."""
    scored = 0
    for metric, example in example_archives().items():
        extra = NEEDS_MODEL.get(metric)
        if extra is not None and missing_modules(extra):
            continue
        code, printed = run("new", metric, "-o", metric)
        expect(code == 0, f"new {metric}: {code}, {printed}")
        with chdir(metric):
            code, printed = run(*shlex.split(example.command)[1:])
            expect(code == 0, f"{example.command}: {code}, {printed}")
        scored += 1
    return scored


def score_example(client: Client) -> RunReport:
    """Score the example captions with a client."""
    paths = [Path("chair", name) for name in ("captions.jsonl", "objects.json")]
    report = client.score("chair", responses=paths[0], references=paths[1])
    expect(report.coverage.scored > 0, "nothing was scored")
    return report


def try_plot(report: RunReport) -> None:
    """Draw a report, or expect the advice where matplotlib is missing."""
    try:
        report.plot()
    except MissingExtraError as err:
        expect(bool(missing_modules("plots")), f"plot(): {err}")
        expect(install_advice("plots") in str(err), f"plot() gives no advice: {err}")


def try_graph() -> None:
    """Convert a graph by networkx, or expect the advice where it is missing."""
    try:
        load_graph("coco").to_networkx()
    except GraphError as err:
        expect("pip install networkx" in str(err), f"to_networkx() gives no advice: {err}")


def try_server() -> bool:
    """Serve and score once, where the server is installed; return whether it is."""
    if missing_modules("server"):
        return False
    served = subprocess.Popen(
        [COMMAND, "serve", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert served.stdout is not None
    address = served.stdout.readline().split()[-1]
    with Client(address) as client:
        score_example(client)
    served.send_signal(signal.SIGTERM)
    _, said = served.communicate(timeout=LIMIT_SECONDS)
    expect(served.returncode == 0, f"serve ended with {served.returncode}: {said}")
    expect("Traceback" not in said, f"serve printed a traceback: {said}")
    return True


def try_advice() -> int:
    """Run a command of each missing extra; return how many gave their advice."""
    given = 0
    for need in needs():
        if not missing_modules(need.extra):
            continue
        ended = subprocess.run(
            [COMMAND, *need.command.split()],
            env=os.environ | need.settings,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_SECONDS,
        )
        said = ended.stderr
        wanted = next(extra for extra in (*need.first, need.extra) if missing_modules(extra))
        advised = ended.returncode in (1, 2) and install_advice(wanted) in said
        expect(advised, f"{need.command}: {ended.returncode}, no advice for {wanted}: {said}")
        expect("Traceback" not in said, f"{need.command}: a traceback: {said}")
        given += 1
    return given


def try_installation(extra: str) -> None:
    """Try everything.

    Args:
        extra: The extra that is installed, or `base`.
    """
    if extra in EXTRA_MODULES:
        expect(not missing_modules(extra), f"{extra} lacks {', '.join(missing_modules(extra))}")
    write_inputs()
    helps = try_help()
    code, printed = run("doctor")
    expect(code == 0 and "FAILED" not in printed, f"doctor: {code}, {printed}")
    code, printed = run("demo", "-o", "demo")
    expect(code == 0 and "report.html" in printed, f"demo: {code}, {printed}")
    with Client.embedded() as client:
        metrics = try_scores()
        report = score_example(client)
    report.save("run")
    try_plot(report)
    try_graph()
    served, advice = try_server(), try_advice()
    print(f"{helps} helps, {metrics} metrics, server {'yes' if served else 'no'}, {advice} advices")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("extra", metavar="EXTRA", help="the extra that is installed")
    try_installation(parser.parse_args().extra)

"""Commands, options and files that README and docs/ name exist."""

from __future__ import annotations

import importlib
import re
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from support import documentation
from support.documentation import PAGES, ROOT
from support.scripted_llm import ScriptedLlm

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.metrics.families import metric_names
from hallujudge.metrics.infact.operators import OPERATORS
from hallujudge.sdk import AsyncClient

# Options of other programs.
FOREIGN = {
    "--api-key", "--array", "--build", "--build-constraints", "--calls", "--check", "--clean",
    "--clock", "--cov", "--data", "--dbname", "--detach", "--examples", "--export", "--format",
    "--generation-config", "--gpus", "--headless", "--help", "--large", "--load-format",
    "--log_samples", "--logprobs-mode", "--make-rshared", "--max-logprobs", "--max-num-seqs",
    "--minutes", "--no-deps", "--previous", "--profile", "--rounds", "--runner",
    "--served-model-name", "--skips", "--smoke", "--strict", "--structured-outputs-config",
    "--target", "--threads", "--tokenizer", "--uds",
}  # fmt: skip

# A benchmark that a page declares has the options of others of closed questions.
DECLARED = {"my-sides": "pope"}

SOURCE_ROOTS = (
    "metrics",
    "synonym_graphs",
    "judge_service",
    "sdk",
    "asking",
    "integrations",
    "labels",
    "studies",
)
PATH = re.compile(
    r"^(?:protos|tests|tools|examples|benchmarks|deploy|docs|"
    + "|".join(SOURCE_ROOTS)
    + r")/[\w./-]+$"
)


@pytest.fixture(scope="module")
def root() -> Any:
    """The click command behind ``hallujudge``."""
    from hallujudge.sdk.cli import command_tree

    return command_tree()


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each `hallujudge …` line in a literal block."""
    for words in documentation.commands(text):
        if words[1] == "batch" and "score" in words:
            # A score command follows the file.
            yield words[: words.index("score")]
            words = [words[0], *words[words.index("score") :]]
        if words[1] == "submit":
            # The metric and the options of its score command follow.
            yield words[:2]
            words = [words[0], "score", *words[2:]]
        yield words


def option_names(command: Any) -> set[str]:
    names = {name for parameter in command.params for name in parameter.opts}
    return names | {name for parameter in command.params for name in parameter.secondary_opts}


def all_option_names(command: Any) -> set[str]:
    children = getattr(command, "commands", {}).values()
    return option_names(command).union(*(all_option_names(child) for child in children))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_their_options_exist(root: Any, page: Path) -> None:
    for words in commands(page.read_text(encoding="utf-8")):
        command, rest = root, [word for word in words[1:] if word != "&"]
        while rest and (name := DECLARED.get(rest[0], rest[0])) in getattr(command, "commands", {}):
            command = command.commands[name]
            rest.pop(0)
        given = {word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
        known = option_names(command) | {"--help", "-h", "--benchmark"}
        assert given <= known, " ".join(words)
        assert not getattr(command, "commands", {}) or given, f"no such command: {words}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_options_named_in_sentences_exist(root: Any, page: Path) -> None:
    spans = re.findall(r"`([^`\n]*)`", page.read_text(encoding="utf-8"))
    named = {name for span in spans for name in re.findall(r"(?<![\w-])--[a-z][\w-]*", span)}
    assert named <= all_option_names(root) | FOREIGN


MADE_BY = ("table", "leaderboard", "analyze")
SCORED = sorted(
    page.name
    for page in (ROOT / "docs" / "how-to").glob("score-*.md")
    # Its table is the overview that scoring writes.
    if page.name != "score-archives-of-other-tools.md"
)


@pytest.mark.parametrize("page", SCORED)
def test_a_page_about_scoring_makes_the_papers_table_by_one_command(page: str) -> None:
    text = (ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8")
    made = [words for words in commands(text) if words[1] in MADE_BY]
    assert made
    metrics = (metric_entry(name).metric for name in metric_names())
    known = {score.name for metric in metrics for score in metric.score_definitions}
    for words in made:
        named = {words[at + 1] for at, word in enumerate(words) if word == "--score"}
        assert named <= known


def exists(path: str) -> bool:
    """Whether a path exists as written, or inside its source root as the pages abbreviate it."""
    root, _, rest = path.partition("/")
    inner = ROOT / root / "hallujudge" / root / rest
    return (ROOT / path).exists() or (root in SOURCE_ROOTS and inner.exists())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_named_in_sentences_exist(page: Path) -> None:
    spans = re.findall(r"`([^`\n]*)`", page.read_text(encoding="utf-8"))
    assert [span for span in spans if PATH.match(span) and not exists(span)] == []


def is_ours(name: str) -> bool:
    """Return whether a dotted name is a module of ours, or something in one."""
    module, _, rest = name.rpartition(".")
    # It is not imported: some modules need libraries that may be absent.
    with suppress(ModuleNotFoundError):
        if find_spec(name) is not None:
            return True
    # The package of a layer is always there, so that this ends.
    return is_ours(module) and hasattr(importlib.import_module(module), rest)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_modules_named_in_pages_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(rf"\bhallujudge\.(?:{'|'.join(SOURCE_ROOTS)})\b(?:\.\w+)*", text))
    # A page may leave out the package, as in `pope.question_builder`.
    short = set(re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)(?<!\.json)`", text))
    packages = {path.name for path in (ROOT / "metrics/hallujudge/metrics").iterdir()}
    named |= {f"hallujudge.metrics.{name}" for name in short if name.partition(".")[0] in packages}
    assert [name for name in sorted(named) if not is_ours(name)] == []


def test_the_install_page_lists_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs" / "start" / "install.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE))
    # Contributors' extras and the alias of `server` are not for users.
    assert listed == set(project["optional-dependencies"]) - {"ci", "dev", "service", "test"}


@pytest.mark.parametrize("folder", ["decisions", "explanation", "how-to", "reference"])
def test_an_index_lists_every_page_of_its_folder(folder: str) -> None:
    index = ROOT / "docs" / folder / "index.md"
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", index.read_text(encoding="utf-8")))
    assert {path.name for path in index.parent.glob("*.md")} - linked == {"index.md"}


def documented_names(target: str) -> set[str]:
    """Names that `::: target` shows: its own, or those of a module."""
    try:
        module = importlib.import_module(target)
    except ModuleNotFoundError:
        return {target.rpartition(".")[2]}
    defined = {name for name, value in vars(module).items() if _is_public(name, value, target)}
    return set(getattr(module, "__all__", defined))


def _is_public(name: str, value: object, module: str) -> bool:
    return not name.startswith("_") and getattr(value, "__module__", "") == module


def test_the_python_reference_has_every_name_that_the_sdk_exports() -> None:
    from hallujudge import sdk

    pages = (ROOT / "docs" / "reference" / "python").glob("*.md")
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    documented = set(re.findall(r"`(\w+)`", text))
    for target in re.findall(r"^::: (\S+)$", text, re.MULTILINE):
        documented |= documented_names(target)
    assert set(sdk.__all__) - documented == {"__version__", "errors"}


def test_the_operators_of_infact_are_on_their_page() -> None:
    page = (ROOT / "docs/how-to/score-questions.md").read_text(encoding="utf-8")
    for name, meaning in OPERATORS.items():
        assert f"| `{name}` | {meaning} |" in page


async def test_a_claim_takes_the_steps_of_the_architecture_page() -> None:
    page = (ROOT / "docs/explanation/architecture.md").read_text("utf-8")
    table = page.partition("### From the judge to the socket")[2].partition("\n## ")[0]
    steps = re.findall(r"^\| \d+ \| `([\w.]+)`", table, re.M)
    entered: dict[str, None] = {}

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_qualname in steps:
            entered[frame.f_code.co_qualname] = None

    async with ScriptedLlm() as llm:
        judges = {"llm.url": llm.url, "llm.model": llm.model}
        async with AsyncClient.embedded(judges) as client:
            sys.setprofile(note)
            try:
                report = await client.score(
                    "tri-he",
                    responses=[{"id": "1", "response": "A cat sits on a sofa."}],
                    references={"1": [["cat", "on", "sofa"]]},
                    options={"judge": "llm"},
                )
            finally:
                sys.setprofile(None)
    assert (len(llm.requests), report.coverage.scored) == (1, 1)
    assert list(entered) == steps

"""Examples in the README and in docs/ do what they say."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "README.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
)
# `make docs` generates these from the code.
GENERATED = ("cli.md", "settings.md", "wire.md")
REMOTE = 'Client("localhost:'
# Another test runs the block of docs/how-to/call-over-http.md at a real server.
OVER_HTTP = "http://localhost:8080"


def blocks(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def is_remote(block: str) -> bool:
    lines = block.splitlines()
    return OVER_HTTP in block or any(REMOTE in line.partition("#")[0] for line in lines)


# What examples for other tools import. tools/try_harness.py and tools/try_inspect.py run these;
# tools/try_trainers.py trains as the example of TRL does, with a model that is not downloaded.
TOOLS = re.compile(
    r"^(?:import|from) (evaluate|inspect_ai|lighteval|mlflow|torchmetrics|trl)\b", re.MULTILINE
)


def need(block: str) -> None:
    """Skip an example for a tool that is absent."""
    for tool in TOOLS.findall(block):
        if find_spec(tool) is None:
            pytest.skip(f"the tool {tool} is not installed")


def run(block: str, page: str) -> None:
    # Our own pages, so that what a reader copies is what was run.
    exec(compile(block, page, "exec"), {"__name__": "example"})


LOCAL = [(page, block) for page in PAGES for block in blocks(page) if not is_remote(block)]


@pytest.mark.parametrize(("page", "block"), LOCAL, ids=[page for page, _ in LOCAL])
def test_examples_run(page: str, block: str, capsys: pytest.CaptureFixture[str]) -> None:
    need(block)
    run(block, page)
    if page == "README.md":
        assert capsys.readouterr().out.startswith("0.3333333333333333 chair|var:published|")


def test_readme_quotes_the_signature_that_its_example_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    [block] = [block for page, block in LOCAL if page == "README.md"]
    run(block, "README.md")
    signature = capsys.readouterr().out.split()[-1]
    assert f"    {signature}\n" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_two_readme_examples_differ_in_the_client_alone() -> None:
    local, remote = (block.splitlines() for block in blocks("README.md"))
    assert len(local) == len(remote) == 5
    different = [pair for pair in zip(local, remote, strict=True) if pair[0] != pair[1]]
    assert different == [
        ("client = Client.embedded()", 'client = Client("localhost:50051")'),
    ]


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        targets = re.findall(r"\]\((?!https?:)([^)#]+)", text)
        wanted = [t for t in targets if Path(t).name not in GENERATED]
        assert [t for t in wanted if not ((ROOT / page).parent / t).exists()] == []

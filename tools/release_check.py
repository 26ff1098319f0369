"""Check everything about a release that needs no account: packages, promises, licences, upgrades.

    python tools/release_check.py [--tag v1.0.0] [STEP ...]

Without a step, all run. The packages and the SBOM are left in dist/.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Callable, Sequence
from email.parser import HeaderParser
from functools import partial
from pathlib import Path

from build_packages import wheels

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
SBOM = DIST / "sbom.cdx.json"
# What a server without a GPU has, and what a client adds.
EXTRAS = "http,otel,llm,openai,matcher-onnx,draw,plots,tables,remote,zstd,images,video"
# With every synonym graph, prompt and table; see docs/decisions/dependencies.md.
MOST_BYTES = 3 << 20
IN_WHEEL = {
    "hallujudge": ("LICENSE", "THIRD_PARTY.md", "LICENSE.wordnet", "app.js", "lexicon.txt.gz"),
    "hallujudge_client": ("LICENSE", "py.typed", "coco-published.json"),
}
# Files that quote the version, and how.
QUOTES = {
    "CITATION.cff": r"^version: (.+)$",
    "client/pyproject.toml": r'^version = "(.+)"$',
    "deploy/kubernetes/overlays/*/kustomization.yaml": r"newName: \S+/hallujudge, newTag: ([\w.]+)",
    "judge_service/hallujudge/judge_service/__init__.py": r'^__version__ = "(.+)"$',
}
# The names of licences that would oblige users of the package to publish their own code.
_COPYLEFT = re.compile(r"\b(A?GPL|GNU (Affero )?General Public)", re.IGNORECASE)
_LICENCES = """
import importlib.metadata as found
for package in found.distributions():
    about = package.metadata
    kinds = [each for each in about.get_all("Classifier") or () if each.startswith("License ::")]
    text = about.get("License-Expression") or " / ".join(kinds) or about.get("License") or ""
    print(about["Name"], text.splitlines()[0] if text else "", sep="\\t")
"""


class FailedError(Exception):
    """A step failed; the message says why."""


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a command and return what it prints.

    Raises:
        FailedError: It failed.
    """
    links = ",".join(os.environ.get("PIP_FIND_LINKS", "").split())
    environment = os.environ | ({"UV_FIND_LINKS": links} if links else {})
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = (done.stdout + done.stderr).strip()
        raise FailedError(f"{Path(command[0]).name} {command[1]}: {said[-2000:]}")
    return done.stdout


def tool(name: str, *arguments: str | Path, package: str = "") -> str:
    """Run a tool of a package that is installed for this alone."""
    # `uv tool` heeds no settings of a project.
    uv = (
        sys.executable,
        "-m",
        "uv",
        "tool",
        "run",
        "--system-certs",
        "-q",
        "--from",
        package or name,
    )
    return run(*uv, name, *arguments)


def version() -> str:
    """Return the version, as pyproject.toml has it; see ``QUOTES``."""
    content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return str(content["project"]["version"])


def last_tag() -> str:
    """Return the newest release's tag before this commit; empty if there is none."""
    command = ("git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def check_version(tag: str) -> str:
    """Check that the files which quote the version agree, and the tag if one is given."""
    now = version()
    for name, pattern in QUOTES.items():
        for path in [*ROOT.glob(name)] or [ROOT / name]:
            quoted = re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
            if quoted != [now]:
                raise FailedError(f"{path.relative_to(ROOT)} quotes {quoted}, not {now}")
    if tag and tag != f"v{now}":
        raise FailedError(f"the tag is {tag}, and pyproject.toml has {now}")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if tag and f"\n## [{now}]" not in changelog:
        raise FailedError(f"CHANGELOG.md has no heading [{now}]; rename [Unreleased]")
    return now


def build() -> str:
    """Build both packages from a clone that has committed files only."""
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as work:
        run("git", "clone", "-q", "--no-local", "--depth", "1", ROOT.as_uri(), Path(work, "clone"))
        clone = Path(work, "clone")
        run(sys.executable, clone / "tools" / "build_packages.py", DIST, cwd=clone)
    return ", ".join(f"{path.name} {path.stat().st_size:,}" for path in sorted(DIST.iterdir()))


def check_metadata() -> str:
    """Check the wheels: size, licences, marks of types, and what a package index shows."""
    whole, client = map(_checked_files, wheels(DIST))
    if shared := whole & client:
        raise FailedError(f"both wheels hold {', '.join(sorted(shared)[:5])}")
    tool("twine", "check", "--strict", *sorted(DIST.glob("hallujudge*")))
    return f"{len(whole)} and {len(client)} files"


def _checked_files(path: Path) -> set[str]:
    """Return the names of a wheel's files."""
    if path.stat().st_size > MOST_BYTES:
        raise FailedError(f"{path.name} has {path.stat().st_size:,} bytes")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        text = archive.read(next(n for n in names if n.endswith("dist-info/METADATA"))).decode()
    package = path.name.partition("-")[0]
    wanted = IN_WHEEL[package]
    lacking = [name for name in wanted if not any(n.endswith(f"/{name}") for n in names)]
    foreign = [n for n in names if not n.startswith(("hallujudge/", f"{package}-"))]
    about = HeaderParser().parsestr(text)
    if lacking or foreign or about["Version"] != version():
        said = f"lacking {lacking}, foreign {foreign[:5]}, version {about['Version']}"
        raise FailedError(f"{path.name}: {said}")
    return set(names)


def check_api() -> str:
    """Compare the public Python API with the last release."""
    tag = last_tag()
    if not tag:
        return "there is no release tag yet: nothing to compare with"
    tool("python", ROOT / "tools" / "public_api.py", "--since", tag, package="griffe")
    return f"nothing broke since {tag}"


def check_wire() -> str:
    """Compare the wire with the last release."""
    tag = last_tag()
    if not tag:
        return "there is no release tag yet: nothing to compare with"
    with tempfile.TemporaryDirectory() as work:
        archive = Path(work, "protos.zip")
        run("git", "archive", "-o", archive, tag, "protos", "buf.yaml")
        shutil.unpack_archive(archive, work)
        run(Path(sys.executable).with_name("buf"), "breaking", "--against", work)
    return f"nothing broke since {tag}"


def check_upgrades() -> str:
    """Read the files and databases of earlier releases."""
    if not (folder := ROOT / f"tests/data/upgrades/{'.'.join(version().split('.')[:2])}").is_dir():
        raise FailedError(f"{folder} is missing: run tools/write_upgrade_fixtures.py")
    said = run(sys.executable, "-m", "pytest", "-q", "tests/e2e/test_upgrades.py")
    return said.strip().splitlines()[-1]


def check_dependencies() -> str:
    """Test the lowest and the highest versions of what is required."""
    said = run(sys.executable, ROOT / "tools" / "dependency_ends.py")
    return "; ".join(line for line in said.splitlines() if " versions: " in line)


def check_licences() -> str:
    """Write the SBOM of an installation of the wheel, and refuse licences that bind users."""
    with tempfile.TemporaryDirectory() as work:
        python = Path(work, "env", "bin", "python")
        uv = (sys.executable, "-m", "uv")
        run(*uv, "venv", "-q", "--python", sys.executable, Path(work, "env"))
        whole, client = (path.as_uri() for path in wheels(DIST))
        wanted = (f"hallujudge[{EXTRAS}] @ {whole}", f"hallujudge-client @ {client}")
        pins = ("-c", ROOT / "constraints.txt")
        run(*uv, "pip", "install", "-q", "--python", python, *pins, *wanted)
        rows = [line.split("\t") for line in run(python, "-c", _LICENCES).splitlines()]
        sbom = ("environment", "--output-reproducible", "-o", SBOM, python)
        tool("cyclonedx-py", *sbom, package="cyclonedx-bom")
    binding = [f"{name} ({text})" for name, text in rows if _COPYLEFT.search(text)]
    if binding:
        raise FailedError(f"these licences bind users: {', '.join(binding)}")
    unknown = [name for name, text in rows if not text]
    note = f"; look up by hand: {', '.join(unknown)}" if unknown else ""
    return f"{len(rows)} packages in {SBOM.name}{note}"


STEPS: dict[str, Callable[[], str]] = {
    "build": build,
    "metadata": check_metadata,
    "api": check_api,
    "wire": check_wire,
    "upgrades": check_upgrades,
    "licences": check_licences,
    "dependencies": check_dependencies,
}


def check(steps: Sequence[str], tag: str) -> list[str]:
    """Run steps; print how each ends, and return those that failed."""
    failed = []
    checks: dict[str, Callable[[], str]] = {"version": partial(check_version, tag)}
    checks |= {name: STEPS[name] for name in steps}
    for name, step in checks.items():
        began = time.monotonic()
        try:
            mark, said = "ok", step()
        except FailedError as err:
            mark, said = "FAILED", str(err)
            failed.append(name)
        print(f"{name:<13}{mark:<7}{time.monotonic() - began:>5.0f} s  {said}", flush=True)
    return failed


def main() -> int:
    """Run the steps that the command line names, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", nargs="*", choices=[*STEPS, []], metavar="STEP")
    parser.add_argument("--tag", default="", help="the tag that this release gets")
    options = parser.parse_args()
    return 1 if check(options.steps or list(STEPS), options.tag) else 0


if __name__ == "__main__":
    sys.exit(main())

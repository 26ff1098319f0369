"""Score captions at a running server.

hallujudge serve --port 50051
python examples/at_a_server.py localhost:50051
"""

import argparse
import sys
import tempfile
from pathlib import Path

from hallujudge.sdk import Client, Timeouts, errors, write_example


def main(address: str) -> int:
    """Score the example captions at an address; return the exit code."""
    with (
        Client(address, timeouts=Timeouts(call_timeout=10)) as client,
        tempfile.TemporaryDirectory() as folder,
    ):
        write_example("chair", folder)
        try:
            report = client.score(
                "chair",
                responses=Path(folder) / "captions.jsonl",
                references=Path(folder) / "objects.json",
            )
        except errors.UnavailableError as err:
            print(f"no server at {address}: {err}", file=sys.stderr)
            return 1
    print(f"chair_i {report.chair_i:.4f}, chair_s {report.chair_s:.4f}")
    print(report.signature)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", nargs="?", default="localhost:50051")
    sys.exit(main(parser.parse_args().address))

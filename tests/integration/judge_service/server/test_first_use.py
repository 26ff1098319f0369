"""The first use of a metric by a server: its modules are loaded outside the event loop."""

from __future__ import annotations

import subprocess
import sys

_FIRST_USE = """
import asyncio, sys, threading
from hallujudge.judge.v1 import scoring_pb2
from hallujudge.judge_service.errors import NotFoundError
from hallujudge.judge_service.server import judge_servicer, jobs_servicer, offload
from hallujudge.judge_service.server.request_checks import admitted_spec

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("hallujudge."):
            assert threading.current_thread() is not threading.main_thread(), name

async def use(name):
    await admitted_spec(scoring_pb2.ScoreSpec(metric=name))

sys.meta_path.insert(0, Watch())
asyncio.run(use("mementos"))
assert "hallujudge.judge_service.engine.families.mementos" in sys.modules
try:
    asyncio.run(use("none-such"))
except NotFoundError:
    print("done")
"""


def test_the_first_use_of_a_metric_loads_its_modules_outside_the_event_loop() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FIRST_USE], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr

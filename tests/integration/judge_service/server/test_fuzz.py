"""Every RPC gets hostile bytes; ``HALLUJUDGE_FUZZ_SECONDS=600`` makes the run longer."""

from __future__ import annotations

import os
from pathlib import Path

from support.fuzz import Fuzz
from support.running import ServerProcess, peak_rss
from support.sizes import sized

from hallujudge.judge_service.access import Scope
from hallujudge.judge_service.access.key_store import create_key

_CALLS = sized(60, 300)
_SECONDS = float(os.environ.get("HALLUJUDGE_FUZZ_SECONDS", "0"))
_SEED = int(os.environ.get("HALLUJUDGE_FUZZ_SEED", "1"))
# The memory budget, and the libraries and models of whatever options a long run names.
_MAX_RSS = (1 << 30) + (512 << 20)


def test_whatever_is_sent_is_never_a_defect(tmp_path: Path) -> None:
    key = create_key(tmp_path / "keys.json", "fuzz", scopes=list(Scope))
    server = ServerProcess(
        *("--keys-file", str(tmp_path / "keys.json")), XDG_STATE_HOME=str(tmp_path)
    )
    try:
        tally = Fuzz(_SEED, key).run(server.address, calls=_CALLS, seconds=_SECONDS)
        peak = peak_rss(server.process.pid)
    finally:
        code, log = server.stop()
    print(f"{tally.calls} calls: {dict(tally.codes)}; peak RSS {peak >> 20} MiB; log {len(log)}")
    assert tally.defects == []
    assert tally.codes["OK"] > 0
    assert tally.codes["INVALID_ARGUMENT"] > 0
    assert peak < _MAX_RSS
    assert "Traceback" not in log, log[-3000:]
    assert max(map(len, log.splitlines()), default=0) < 3_000
    assert code == 0

"""Every path gets hostile requests; ``HALLUJUDGE_FUZZ_REQUESTS=50000`` makes the run longer."""

from __future__ import annotations

import os
from pathlib import Path

from support.http_fuzz import HttpFuzz
from support.running import ServerProcess, http_address, peak_rss
from support.sizes import sized

from hallujudge.judge_service.access import Scope
from hallujudge.judge_service.access.key_store import create_key

_REQUESTS = int(os.environ.get("HALLUJUDGE_FUZZ_REQUESTS") or sized(100, 300))
_SEED = int(os.environ.get("HALLUJUDGE_FUZZ_SEED", "1"))
_MAX_RSS = 1 << 30


def test_whatever_is_sent_is_never_a_defect(tmp_path: Path) -> None:
    key = create_key(tmp_path / "keys.json", "fuzz", scopes=list(Scope))
    server = ServerProcess(
        *("--keys-file", str(tmp_path / "keys.json"), "--http-port", "0"),
        XDG_STATE_HOME=str(tmp_path),
        # For bodies that never come.
        HALLUJUDGE_FIRST_MESSAGE_SECONDS="1",
        HALLUJUDGE_IDLE_SECONDS="2",
    )
    try:
        tally = HttpFuzz(_SEED, key).run(http_address(server), requests=_REQUESTS)
        peak = peak_rss(server.process.pid)
    finally:
        code, log = server.stop()
    print(f"{tally.requests} requests: {dict(tally.statuses)}; peak RSS {peak >> 20} MiB")
    assert tally.defects == []
    assert tally.statuses[200] > 0
    assert tally.statuses[400] > 0
    assert peak < _MAX_RSS
    assert "Traceback" not in log, log[-3000:]
    assert code == 0

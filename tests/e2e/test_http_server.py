"""A server process over HTTP: a job from beginning to end, and the end of the process."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from support.http_calls import JOBS, JUDGE, LINES, chair_request
from support.running import ServerProcess, http_address
from support.threads import PATIENCE

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge_service.access import Scope
from hallujudge.judge_service.access.key_store import create_key

_JSON = "application/json"


class Caller:
    """Calls a server process over HTTP."""

    def __init__(self, server: ServerProcess, key: str) -> None:
        self._address = http_address(server)
        self._key = {"authorization": f"Bearer {key}"}
        self._connections: list[http.client.HTTPConnection] = []

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def _connected(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(self._address, timeout=PATIENCE)
        self._connections.append(connection)
        return connection

    def open(
        self, path: str, body: bytes, kind: str = _JSON, accept: str = _JSON
    ) -> http.client.HTTPResponse:
        connection = self._connected()
        headers = {"content-type": kind, "accept": accept} | self._key
        connection.request("POST", path, body, headers)
        return connection.getresponse()

    def silent(self, path: str, line: bytes) -> http.client.HTTPResponse:
        """Send a line of a stream, and nothing more."""
        connection = self._connected()
        connection.putrequest("POST", path)
        connection.putheader("content-type", LINES)
        connection.putheader("transfer-encoding", "chunked")
        connection.endheaders(b"%x\r\n%s\r\n" % (len(line), line))
        return connection.getresponse()

    def call(self, path: str, message: object) -> Any:
        answer = self.open(path, json.dumps(message).encode())
        value = json.loads(answer.read())
        assert answer.status == 200, value
        return value

    def lines(self, path: str, message: object) -> list[Any]:
        answer = self.open(path, json.dumps(message).encode(), accept=LINES)
        return [json.loads(line) for line in answer.read().splitlines()]


def test_a_job_from_its_creation_to_its_results(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    key = create_key(keys, "ana", scopes=[Scope.SCORE])
    server = ServerProcess("--http-port", "0", "--keys-file", str(keys))
    captions = ["A dog and a cat.", "A dog.", "", "A man with a surfboard."]
    caller = Caller(server, key)
    try:
        request = chair_request(*captions) | {"requestId": "night-7"}
        job = caller.call(JOBS + "CreateJob", request)["job"]["id"]
        seen = caller.lines(JOBS + "WatchJob", {"jobId": job})
        assert seen[-1]["job"]["state"] == "JOB_STATE_DONE"
        *results, end = caller.lines(JOBS + "ListJobResults", {"jobId": job, "pageSize": 3})
        assert end == {"nextPosition": "4", "last": True}
        scored = caller.call(JUDGE + "Score", chair_request(*captions))
        assert [row["result"] for row in results] == scored["results"]
        assert _binary(caller, captions * 100) == caller.call(
            JUDGE + "Score", chair_request(*captions * 100)
        )
        report = caller.call(JOBS + "GetJobReport", {"jobId": job})["report"]
        assert report["scores"] == scored["report"]["scores"]
        assert caller.call(JOBS + "CancelJob", {"jobId": job})["job"]["state"] == "JOB_STATE_DONE"
        assert caller.call(JOBS + "DeleteJob", {"jobId": job}) == {}
        assert caller.open(JOBS + "GetJob", json.dumps({"jobId": job}).encode()).status == 404
    finally:
        caller.close()
        code, errors = server.stop()
    assert (code, "Traceback" in errors) == (0, False), errors


def _binary(caller: Caller, captions: list[str]) -> Any:
    """Return scores by messages in protobuf's own form, which worker processes read."""
    message = json_format.ParseDict(chair_request(*captions), pb.ScoreRequest())
    answer = caller.open(JUDGE + "Score", message.SerializeToString(), "application/proto")
    assert answer.status == 200
    return json_format.MessageToDict(pb.ScoreResponse.FromString(answer.read()))


def test_a_stopping_server_tells_a_stream_that_it_ends() -> None:
    server = ServerProcess("--http-port", "0", "--drain-seconds", "0.5")
    caller = Caller(server, "")
    stream = caller.silent(JUDGE + "ScoreStream", b'{"spec": {"metric": "chair"}}\n')
    assert "accepted" in json.loads(stream.readline())
    code, errors = server.stop(signal.SIGTERM)
    lines = stream.read().splitlines()
    caller.close()
    assert (code, "Traceback" in errors) == (0, False), errors
    assert json.loads(lines[-1])["error"]["code"] == "unavailable"


def test_the_page_calls_a_server_without_an_installation() -> None:
    """Isolated Python runs it, which has the standard library alone."""
    page = Path(__file__).resolve().parents[2] / "docs/how-to/call-over-http.md"
    (block,) = re.findall(
        r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert len(block.splitlines()) <= 40
    server = ServerProcess("--http-port", "0")
    code = block.replace("localhost:8080", http_address(server))
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )
    ended, errors = server.stop()
    assert done.returncode == 0, done.stderr
    assert (ended, "Traceback" in errors) == (0, False)
    scores, (rewards, signature) = done.stdout.splitlines()[:-2], done.stdout.splitlines()[-2:]
    assert scores[0] == "chair_i 0.5 None None"
    assert rewards == "rewards [0.5]"
    assert signature.startswith("chair|var:published|")

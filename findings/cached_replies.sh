#!/usr/bin/env bash
# The cache of litellm 1.110.2. A second judge of the same name on another server gets the first one's reply, and so does
# the first judge with thoughts turned off, or with choices: addresses and options that OpenAI lacks (extra_body,
# chat_template_kwargs) are no part of the key. Four questions to two servers make one request.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export LITELLM_LOCAL_MODEL_COST_MAP=True PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
# Its cache imports the last three without requiring them.
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  litellm==1.110.2 fastapi==0.165.0 orjson==3.13.0 soundfile==0.14.0
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

class Judge(BaseHTTPRequestHandler):
    """Replies with the number of its server."""

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        asked.append(self.server.server_port)
        message = {"role": "assistant", "content": f"judge {servers.index(self.server)}"}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "judge", "choices": [choice]}
        data = json.dumps({**reply, "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

asked, servers = [], [HTTPServer(("127.0.0.1", 0), Judge) for _ in range(2)]
for server in servers:
    threading.Thread(target=server.serve_forever, daemon=True).start()

import litellm
from litellm.caching import Cache

def ask(judge, **options):
    address = f"http://127.0.0.1:{servers[judge].server_port}/v1"
    messages = [{"role": "user", "content": "Is there a cat?"}]
    reply = litellm.completion("hosted_vllm/judge", messages, api_base=address, api_key="none", caching=True, **options)
    return reply.choices[0].message.content

litellm.cache = Cache()
found = [ask(0), ask(1), ask(0, chat_template_kwargs={"enable_thinking": False})]
found.append(ask(1, extra_body={"structured_outputs": {"choice": ["yes", "no"]}}))
count = len(asked)
found.append(ask(1, seed=1))
print("replies:", found, "requests of the first four:", count)
assert found == [*["judge 0"] * 4, "judge 1"] and count == 1
PYTHON

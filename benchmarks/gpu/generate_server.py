"""A chat server around `generate`, as an address for accept.py where vLLM is not installed.

    python benchmarks/gpu/generate_server.py --folder llama [--size 8b] [--device cuda]
    python benchmarks/gpu/accept.py --model llama --url http://127.0.0.1:8000/v1 --load-format dummy

Writes the config of a Llama into the folder, and answers chat completions, and nothing else, one at
a time, by random weights and a token for each byte. It measures the kit and its calls, not a judge:
replies mean nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

# Llama 3.1 8B (Grattafiori et al., 2024, table 3), and one that a CPU runs.
SIZES = {
    "8b": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32}
    | {"num_attention_heads": 32, "num_key_value_heads": 8},
    "tiny": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    | {"num_attention_heads": 4, "num_key_value_heads": 2},
}
BYTES = 256
MAX_NEW = 16


def model_of(folder: Path, size: str, device: str) -> Any:
    """Return a Llama of random weights in bf16; its config goes into the folder."""
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig

    config = LlamaConfig(vocab_size=BYTES, max_position_embeddings=8192, dtype="bfloat16")
    config.update(SIZES[size])
    config.save_pretrained(folder)
    torch.manual_seed(0)
    with torch.device(device):
        return AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()


def handler_of(model: Any, name: str) -> type[BaseHTTPRequestHandler]:
    """Return the class that answers requests with the model."""
    import torch

    one_at_a_time = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

        def answer(self, content: dict[str, Any], status: int = 200) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def refuse(self) -> None:
            said = f"{self.path} is not served here"
            self.answer({"error": {"message": said, "code": 404}}, 404)

        def do_GET(self) -> None:
            if self.path != "/v1/models":
                return self.refuse()
            self.answer({"object": "list", "data": [{"id": name, "object": "model"}]})

        def do_POST(self) -> None:
            # Read in any case: the connection goes on behind it.
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path != "/v1/chat/completions":
                return self.refuse()
            text = "\n".join(str(one["content"]) for one in asked["messages"])
            ids = torch.tensor([list(text.encode())[-8000:]], device=model.device)
            most = min(asked.get("max_tokens") or MAX_NEW, MAX_NEW)
            with one_at_a_time, torch.inference_mode():
                out = model.generate(ids, max_new_tokens=most, do_sample=False, pad_token_id=0)
            said = bytes(out[0, ids.shape[1] :].tolist()).decode("latin-1")
            message = {"role": "assistant", "content": said}
            counts = {"prompt_tokens": ids.shape[1], "completion_tokens": len(said)}
            self.answer(
                {
                    "id": "1",
                    "object": "chat.completion",
                    "model": name,
                    "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                    "usage": {**counts, "total_tokens": sum(counts.values())},
                }
            )

    return Handler


def main() -> int:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True, help="where the config is written")
    parser.add_argument("--size", choices=SIZES, default="8b")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    handler = handler_of(model_of(given.folder, given.size, given.device), str(given.folder))
    with ThreadingHTTPServer(("127.0.0.1", given.port), handler) as server:
        print(f"serving {given.folder} at http://127.0.0.1:{server.server_port}/v1", flush=True)
        server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())

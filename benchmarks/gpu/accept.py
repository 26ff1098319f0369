"""Accept a judge on this machine's GPUs: correctness, speed beside vLLM's own, and a crash.

    python benchmarks/gpu/accept.py --model FOLDER [--tensor-parallel-size 2] [--quantization fp8]

Starts vLLM as ``hallujudge serve --vllm`` does, and within --minutes: sizes the model, runs the
checks of ``doctor``, has about 600 claims of our own making judged by each protocol (and Tri-HE's
golden claims where they are at hand), counts claims a second at several numbers of concurrent calls
beside ``vllm bench serve`` on the same server with the same lengths, and kills vLLM once. Writes
report.md and report.json, which may be posted: they name no path and no key.

``--load-format dummy`` measures the speed of a model whose weights are absent: a folder with
config.json and the tokenizer is enough. ``--url`` measures a server that runs already.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import needs
from gpu.acceptance_report import markdown
from gpu.known_claims import CLAIMS_PER_SCENE, KnownClaim, Scene, scenes

from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.errors import HallujudgeError
from hallujudge.judge_service.judges import JudgedItem, JudgeRequestItem
from hallujudge.judge_service.judges.judge_checks import check_endpoint
from hallujudge.judge_service.judges.llm_judge import LlmJudge
from hallujudge.judge_service.llm.budget import Usage
from hallujudge.judge_service.llm.failures import CallFailedError
from hallujudge.judge_service.llm.http import Endpoint
from hallujudge.judge_service.llm.vllm import VllmServer, vllm_server
from hallujudge.judge_service.llm.vllm_serving import (
    local_gpus,
    local_verdict,
    model_shape,
    sizing_table,
)
from hallujudge.judge_service.settings.judge_settings import (
    APIS,
    JudgeKeys,
    JudgeSettings,
    LlmSettings,
    VllmSettings,
    load_judge_keys,
)
from hallujudge.metrics.framework.claims import Triplet, Verdict, reference_of

CONCURRENCY = (1, 8, 32, 128, 512)
Found = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the kit; return 0 if every check passed, 1 otherwise."""
    given = _parser().parse_args(arguments)
    try:
        report = asyncio.run(_Kit(given).run())
    except HallujudgeError as err:
        print(f"accept.py: {err}", file=sys.stderr)
        return 1
    given.out.mkdir(parents=True, exist_ok=True)
    text = markdown(report)
    (given.out / "report.md").write_text(text, encoding="utf-8")
    (given.out / "report.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(text)
    return 0 if report["passed"] else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_AS_WRITTEN)
    parser.add_argument("--model", required=True, help="model folder or id")
    parser.add_argument("--url", default="", help="server that runs already; nothing is started")
    parser.add_argument("--out", type=Path, default=Path("gpu-acceptance"), help="report's folder")
    parser.add_argument("--tensor-parallel-size", type=int, default=1)
    parser.add_argument("--max-model-len", type=int, default=0)
    parser.add_argument("--quantization", default="")
    parser.add_argument("--batch-invariant", action="store_true")
    parser.add_argument("--load-format", default="auto", help="dummy: random weights, speed only")
    parser.add_argument("--vllm-command", default="vllm")
    parser.add_argument("--vllm-arguments", default="")
    parser.add_argument("--protocols", type=lambda text: text.split(","), default=APIS)
    parser.add_argument("--claims", type=int, default=600)
    parser.add_argument("--concurrency", type=_numbers, default=CONCURRENCY)
    parser.add_argument("--level-seconds", type=float, default=12.0)
    parser.add_argument("--minutes", type=float, default=10.0, help="what the whole may take")
    parser.add_argument("--seed", type=int, default=0)
    return parser


_AS_WRITTEN = argparse.RawDescriptionHelpFormatter


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


@dataclass
class _Judged:
    """Claims with labels, their verdicts, and what these took."""

    known: list[KnownClaim] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    why: str = ""
    """Why a claim has no verdict."""
    usages: list[Usage] = field(default_factory=list)

    def add(self, scene: Scene, answer: JudgedItem) -> None:
        self.known += scene.known
        self.verdicts += (one.verdict for one in answer.verdicts)
        self.usages.append(Usage.total(asked.usage for asked in answer.asked))
        unscored = (f"{one.reason}: {one.detail}" for one in answer.verdicts if one.reason)
        self.why = self.why or next(unscored, "")

    def agreement(self) -> Found:
        """The share of labels that the verdicts agree with, by kind; unscored ones are apart."""
        right: Counter[str] = Counter()
        of: Counter[str] = Counter()
        for one, verdict in zip(self.known, self.verdicts, strict=True):
            if verdict is not Verdict.UNSCORED:
                of[one.kind] += 1
                right[one.kind] += (verdict is Verdict.SUPPORTED) == one.supported
        return {
            "claims": len(self.known),
            "calls": Usage.total(self.usages).calls,
            "unscored": self.verdicts.count(Verdict.UNSCORED),
            "why": self.why,
            "agreement": right.total() / of.total() if of else None,
            "kinds": {kind: [right[kind], of[kind]] for kind in sorted(of)},
        }

    def lengths(self) -> Found:
        """Tokens of a claim, and the share of the prompt that the server had already."""
        took = Usage.total(self.usages)
        claims = max(1, len(self.known))
        return {
            "prompt_tokens": took.prompt_tokens / claims,
            "completion_tokens": took.completion_tokens / claims,
            "cached_share": took.cached_tokens / max(1, took.prompt_tokens),
        }


class _Kit:
    """The stages, and the time that is left for them."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.ends = time.monotonic() + 60 * given.minutes
        self.folder = Path(tempfile.mkdtemp(prefix="hallujudge-accept-"))
        self.key = load_judge_keys(os.environ).llm

    @property
    def left(self) -> float:
        return float(self.ends - time.monotonic())

    @property
    def dummy(self) -> bool:
        return bool(self.given.load_format == "dummy")

    async def run(self) -> Found:
        """Run every stage and return the report."""
        began = time.monotonic()
        found: Found = {"machine": _machine(), "model": self.model_facts()}
        async with self.server(found) as (endpoint, server):
            found["server"] = await self.release(endpoint)
            found["protocols"] = [
                await self.protocol(name, endpoint) for name in self.given.protocols
            ]
            found["gpus_in_use"] = [gpu.used for gpu in local_gpus()]
            await self.bench(endpoint, found["protocols"][0])
            found["crash"] = await self.crash(endpoint, server, found.get("start_seconds", 0.0))
        found["minutes"] = (time.monotonic() - began) / 60
        found["passed"] = self.passed(found)
        return found

    def model_facts(self) -> Found:
        """What ``doctor --vllm`` says of the model."""
        name = Path(self.given.model).name
        shown: Found = {
            "name": name,
            "load_format": self.given.load_format,
            "quantization": self.given.quantization,
            "tensor_parallel_size": self.given.tensor_parallel_size,
            "batch_invariant": self.given.batch_invariant,
        }
        try:
            shape = model_shape(self.given.model)
        except HallujudgeError as err:
            return {**shown, "size": self.without_path(str(err))}
        precision = "FP8" if self.given.quantization else shape.precision
        gpus = local_gpus()
        fits = (
            local_verdict(shape, precision, self.given.tensor_parallel_size, gpus) if gpus else None
        )
        size = f"{shape.size}, {precision}"
        return {**shown, "size": size, "fits": fits and fits[1], "table": sizing_table(shape)}

    @asynccontextmanager
    async def server(self, found: Found) -> AsyncIterator[tuple[Endpoint, VllmServer | None]]:
        """Start vLLM as ``serve --vllm`` does, or use the one that runs."""
        if self.given.url:
            yield Endpoint(url=self.given.url, key=self.key), None
            return
        more = shlex.split(self.given.vllm_arguments)
        settings = JudgeSettings(
            vllm=VllmSettings(
                model=self.given.model,
                socket=0,
                command=self.given.vllm_command,
                tensor_parallel_size=self.given.tensor_parallel_size,
                max_model_len=self.given.max_model_len,
                quantization=self.given.quantization,
                batch_invariant=int(self.given.batch_invariant),
                arguments=shlex.join([*more, "--load-format", self.given.load_format]),
            )
        )
        server = vllm_server(
            settings, environ=os.environ, data_folder=self.folder, progress=_progress
        )
        began = time.monotonic()
        await server.start()
        found["start_seconds"] = time.monotonic() - began
        try:
            yield server.endpoint, server
        finally:
            await server.stop()

    async def release(self, endpoint: Endpoint) -> str:
        """Return the server's name and release."""
        judge = self.judge(endpoint, self.given.protocols[0], 1)
        try:
            await judge.prepare()
            return judge.identity.server
        finally:
            await judge.close()

    def judge(self, endpoint: Endpoint, api: str, concurrency: int, wait: float = 60) -> LlmJudge:
        """Return the judge as a run would use it, without a cache of verdicts."""
        settings = JudgeSettings(
            llm=LlmSettings(model=self.given.model, api=api, max_concurrency=concurrency),
            outage_seconds=wait,
            give_up_after=2 * wait,
        )
        return JudgeFactory(settings, JudgeKeys(), endpoint).llm()

    async def protocol(self, api: str, endpoint: Endpoint) -> Found:
        """Check, label and time one way of asking."""
        _progress(f"protocol {api}")
        # A protocol that the server does not know is given up soon.
        judge = self.judge(endpoint, api, 64, wait=15)
        try:
            checks = [
                {"name": one.name, "ok": one.ok, "detail": self.without_path(one.detail)}
                for one in await check_endpoint(judge)
            ]
            labelled = await self.labelled(judge)
        except (HallujudgeError, CallFailedError) as err:
            return {"api": api, "failed": self.without_path(str(err))}
        finally:
            await judge.close()
        # Unscored replies, as random weights give them, have a speed all the same.
        if not labelled["own"]["calls"]:
            return {"api": api, "checks": checks, "failed": labelled["own"]["why"], **labelled}
        levels = [await self.level(api, endpoint, number) for number in self.given.concurrency]
        return {"api": api, "checks": checks, **labelled, "levels": levels}

    def without_path(self, text: str) -> str:
        """Return a text in which the model has its name only: reports are posted."""
        return text.replace(self.given.model, Path(self.given.model).name)

    async def labelled(self, judge: LlmJudge) -> Found:
        """Agreement with known labels; the golden ones are verdicts of the released matcher."""
        number = max(1, round(self.given.claims / CLAIMS_PER_SCENE))
        found: Found = {}
        for name, all_scenes in (
            ("own", list(islice(scenes(f"labels-{self.given.seed}"), number))),
            ("golden", list(_golden_scenes(self.given.claims))),
        ):
            if not all_scenes or (name == "golden" and self.dummy):
                continue
            judged = _Judged()
            answers = await judge.judge([scene.item for scene in all_scenes])
            for scene, answer in zip(all_scenes, answers, strict=True):
                judged.add(scene, answer)
            judged.why = self.without_path(judged.why)
            found[name] = judged.agreement()
        return found

    async def level(self, api: str, endpoint: Endpoint, concurrency: int) -> Found:
        """Claims a second at a number of concurrent calls, on scenes that are new to the server."""
        if self.left < self.given.level_seconds:
            return {"concurrency": concurrency, "not_run": "no time left"}
        judge = self.judge(endpoint, api, concurrency)
        drawn = scenes(f"{api}-{concurrency}-{self.given.seed}")
        judged, began = _Judged(), time.perf_counter()
        ends = began + self.given.level_seconds

        async def work() -> None:
            while time.perf_counter() < ends:
                scene = next(drawn)
                (answer,) = await judge.judge([scene.item])
                judged.add(scene, answer)

        # Enough scenes at once that a call waits for a place, never a place for a call.
        workers = 1 + 2 * concurrency // CLAIMS_PER_SCENE
        try:
            await judge.prepare()
            began = time.perf_counter()
            await asyncio.gather(*(work() for _ in range(workers)))
            seconds = time.perf_counter() - began
        finally:
            await judge.close()
        claims = len(judged.known)
        found = {
            "concurrency": concurrency,
            "claims": claims,
            "seconds": seconds,
            "claims_per_second": claims / seconds,
            "unscored": judged.verdicts.count(Verdict.UNSCORED),
            **judged.lengths(),
        }
        _progress(f"{concurrency} calls at once: {found['claims_per_second']:.1f} claims/s")
        return found

    async def bench(self, endpoint: Endpoint, protocol: Found) -> None:
        """Add to each level what vLLM's own client reaches with prompts of the same lengths."""
        for level in protocol.get("levels", ()):
            if "claims" not in level:
                continue
            # Its start takes as long as a level or longer.
            if self.left < 3 * self.given.level_seconds:
                level["bench_not_run"] = "no time left"
                continue
            level |= await asyncio.to_thread(self.bench_level, endpoint, level)

    def bench_level(self, endpoint: Endpoint, level: Found) -> Found:
        number = max(2 * level["concurrency"], min(level["claims"], 4_000))
        shared = int(level["prompt_tokens"] * level["cached_share"])
        result = self.folder / f"bench-{level['concurrency']}.json"
        command = [
            *shlex.split(self.given.vllm_command),
            *("bench", "serve", "--backend", "openai", "--model", self.given.model),
            *("--base-url", endpoint.url.removesuffix("/v1"), "--disable-tqdm"),
            *("--dataset-name", "prefix_repetition"),
            *("--prefix-repetition-prefix-len", str(shared)),
            *("--prefix-repetition-suffix-len", str(max(1, int(level["prompt_tokens"]) - shared))),
            *("--prefix-repetition-num-prefixes", str(max(1, number // CLAIMS_PER_SCENE))),
            *("--prefix-repetition-output-len", str(max(1, round(level["completion_tokens"])))),
            *("--num-prompts", str(number), "--max-concurrency", str(level["concurrency"])),
            *("--seed", str(level["concurrency"]), "--ignore-eos", "--save-result"),
            *("--result-dir", str(self.folder), "--result-filename", result.name),
        ]
        keyed = {**os.environ, "OPENAI_API_KEY": endpoint.key.reveal(), "HF_HUB_OFFLINE": "1"}
        try:
            done = subprocess.run(
                command, env=keyed, check=False, capture_output=True, text=True, timeout=self.left
            )
            rate = json.loads(result.read_text(encoding="utf-8"))["request_throughput"]
        except subprocess.TimeoutExpired:
            return {"bench_not_run": "no time left"}
        except FileNotFoundError as err:
            absent = err.filename == command[0]
            why = "cannot be started" if absent else f"ended with status {done.returncode}"
            return {"bench_not_run": f"vllm bench serve {why}"}
        except (ValueError, KeyError) as err:
            return {"bench_not_run": f"the result of vllm bench serve cannot be read: {err!r}"}
        _progress(f"vllm bench serve, {level['concurrency']} at once: {rate:.1f} requests/s")
        return {"bench_requests_per_second": rate, "ratio": level["claims_per_second"] / rate}

    async def crash(
        self, endpoint: Endpoint, server: VllmServer | None, start_seconds: float
    ) -> Found:
        """Kill vLLM while claims are judged; every claim must have a verdict all the same."""
        if server is None or server.pid is None:
            return {"not_run": "the server was not started here"}
        if self.left < 1.5 * start_seconds:
            return {"not_run": f"no time left for another start of {start_seconds:.0f} s"}
        judge = self.judge(endpoint, self.given.protocols[0], 8, wait=max(60, self.left))
        drawn = islice(scenes(f"crash-{self.given.seed}"), 5)
        try:
            running = asyncio.ensure_future(judge.judge([scene.item for scene in drawn]))
            while judge.client.statistics.answered < CLAIMS_PER_SCENE and not running.done():
                await asyncio.sleep(0.01)
            os.kill(server.pid, signal.SIGKILL)
            began = time.monotonic()
            answers = await running
            seconds = time.monotonic() - began
        except (HallujudgeError, CallFailedError) as err:
            return {"failed": str(err)}
        finally:
            await judge.close()
        verdicts = [one.verdict for answer in answers for one in answer.verdicts]
        return {
            "claims": len(verdicts),
            "unscored": verdicts.count(Verdict.UNSCORED),
            "starts": server.starts,
            "seconds": seconds,
        }

    def passed(self, found: Found) -> bool:
        """Whether the checks passed, no claim is unscored, and vLLM came back."""
        crash = found["crash"]
        by_chat = found["protocols"][0]
        checks = all(check["ok"] is not False for check in by_chat.get("checks", ()))
        unscored = sum(level.get("unscored", 0) for level in by_chat.get("levels", ()))
        # Random weights have no reason to give three equal replies where two are equally likely.
        return (
            "failed" not in by_chat
            and (checks or self.dummy)
            and not unscored
            and "failed" not in crash
            and not crash.get("unscored")
        )


def _golden_scenes(most: int) -> Iterator[Scene]:
    """Yield Tri-HE's golden claims, labelled by the released matcher, where they are at hand."""
    folder = needs.goldens_or_none("tri_he")
    if folder is None:
        return
    images = json.loads((folder / "tri-he.json").read_text(encoding="utf-8"))
    left = most
    with (folder / "matcher_claims.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            left -= len(row["claims"])
            if left < 0:
                return
            image = images[row["image_id"]]
            known = tuple(
                KnownClaim(Triplet(*claim), "golden", verdict == "yes")
                for claim, verdict in zip(row["claims"], row["verdicts"], strict=True)
            )
            item = JudgeRequestItem(
                id=row["image_id"],
                claims=tuple(one.claim for one in known),
                reference_triplets=tuple(map(reference_of, image["triplets"])),
                reference_objects=tuple(image["all_object"]),
            )
            yield Scene(item, known)


def _machine() -> Found:
    gpus = local_gpus()
    return {
        "gpus": [{"name": gpu.name, "gib": gpu.total / 2**30, "used": gpu.used} for gpu in gpus],
        "processors": os.cpu_count(),
        "python": platform.python_version(),
    }


def _progress(line: str) -> None:
    with contextlib.suppress(BrokenPipeError):
        print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    # So that vLLM is stopped with the kit.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())

"""The report of the acceptance kit as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_AIM = 0.9


def markdown(report: Mapping[str, Any]) -> str:
    """Return the report as a page."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    model, machine = report["model"], report["machine"]
    gpus = ", ".join(f"{gpu['name']} ({gpu['gib']:.0f} GiB)" for gpu in machine["gpus"])
    used = ", ".join(f"{used / 2**30:.1f} GiB" for used in report["gpus_in_use"])
    start, dummy = report.get("start_seconds"), model["load_format"] == "dummy"
    yield f"# Acceptance of {model['name']}: {'passed' if report['passed'] else 'failed'}"
    yield ""
    rows: list[list[object]] = [
        ["GPUs", gpus or "none"],
        ["processors", machine["processors"]],
        ["model", model["size"] + (", random weights" if dummy else "")],
        ["fits", model.get("fits") or "not known without GPUs"],
        ["tensor parallel size", model["tensor_parallel_size"]],
        ["quantisation while loading", model["quantization"] or "none"],
        ["batch invariant", "yes" if model["batch_invariant"] else "no"],
        ["server", report["server"] or "not stated"],
        ["healthy after", "it ran already" if start is None else f"{start:.0f} s"],
        ["GPU memory in use", used or "no GPU"],
        ["minutes", f"{report['minutes']:.1f}"],
    ]
    yield from _table(["", ""], rows)
    for protocol in report["protocols"]:
        yield from _protocol(protocol)
    yield from _crash(report["crash"])


def _protocol(protocol: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", f"## Protocol {protocol['api']}", "")
    if "failed" in protocol:
        yield f"No verdicts: {protocol['failed']}"
        return
    marks = {True: "ok", False: "FAILED", None: "absent"}
    rows = [[one["name"], marks[one["ok"]], one["detail"]] for one in protocol["checks"]]
    yield from _table(["check", "", "found"], rows)
    yield ""
    labelled = [(name, protocol[name]) for name in ("own", "golden") if name in protocol]
    yield from _table(
        ["claims with labels", "number", "unscored", "agreement", "by kind", "why unscored"],
        [
            [
                *(name, one["claims"], one["unscored"]),
                *(_share(one["agreement"]), _kinds(one["kinds"]), one["why"]),
            ]
            for name, one in labelled
        ],
    )
    yield ""
    yield from _levels(protocol["levels"])


def _levels(levels: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    head = ["calls at once", "claims", "claims/s", "unscored", "prompt tokens a claim", "cached",
            "completion tokens a claim", "vllm bench serve, requests/s", "ratio"]  # fmt: skip
    yield from _table(head, [_level(level) for level in levels])
    ours = [level["claims_per_second"] for level in levels if "ratio" in level]
    theirs = [level["bench_requests_per_second"] for level in levels if "ratio" in level]
    if ours:
        ratio = max(ours) / max(theirs)
        yield ""
        yield (
            f"At most {max(ours):.1f} claims/s beside {max(theirs):.1f} requests/s of vllm bench "
            f"serve: {ratio:.2f}; the aim of {_AIM} is {'met' if ratio >= _AIM else 'not met'}."
        )


def _level(level: Mapping[str, Any]) -> list[object]:
    if "not_run" in level:
        return [level["concurrency"], level["not_run"], *[""] * 7]
    rate, ratio = level.get("bench_requests_per_second"), level.get("ratio")
    return [
        level["concurrency"],
        level["claims"],
        f"{level['claims_per_second']:.1f}",
        level["unscored"],
        f"{level['prompt_tokens']:.0f}",
        _share(level["cached_share"]),
        f"{level['completion_tokens']:.1f}",
        level.get("bench_not_run", "not run") if rate is None else f"{rate:.1f}",
        "" if ratio is None else f"{ratio:.2f}",
    ]


def _crash(crash: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", "## kill -9 of vLLM", "")
    if reason := crash.get("not_run") or crash.get("failed"):
        yield f"{'Not run' if 'not_run' in crash else 'Failed'}: {reason}."
        return
    yield (
        f"{crash['claims']} claims were judged when vLLM was killed: {crash['unscored']} unscored, "
        f"all verdicts after {crash['seconds']:.0f} s, starts of vLLM: {crash['starts']}."
    )


def _share(share: float | None) -> str:
    return "none scored" if share is None else f"{100 * share:.1f} %"


def _kinds(kinds: Mapping[str, Sequence[int]]) -> str:
    return ", ".join(f"{kind} {right}/{of}" for kind, (right, of) in kinds.items())


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(str(cell).replace('|', '/') for cell in row)} |"

"""A process that judges claims with a cache: ``judge_process.py URL CACHE CLAIMS [MAX_BYTES]``."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from collections import Counter
from collections.abc import Sequence

from hallujudge.judge_service.judges import JudgeRequestItem
from hallujudge.judge_service.judges.llm_judge import LlmJudge
from hallujudge.judge_service.llm.chat_settings import ChatSettings
from hallujudge.judge_service.llm.client import ChatClient
from hallujudge.judge_service.llm.http import Endpoint
from hallujudge.judge_service.llm.verdict_cache import VerdictCache
from hallujudge.metrics.framework.claims import Triplet


async def judge(url: str, cache_path: str, claims: int) -> dict[str, int]:
    """Return the number of claims by verdict."""
    cache = VerdictCache(cache_path)
    await cache.open()
    settings = ChatSettings(endpoint=Endpoint(url=url), model="m", max_concurrency=4)
    judged_by = LlmJudge("llm", ChatClient(settings), cache=cache)
    items = [
        JudgeRequestItem(
            id=str(number),
            claims=(Triplet("man", "has", f"hat {number}"),),
            reference_triplets=(Triplet("man", "riding", "horse"),),
        )
        for number in range(claims)
    ]
    results = await judged_by.judge(items)
    await judged_by.close()
    await cache.close()
    return Counter(v.verdict.value for result in results for v in result.verdicts)


def main(arguments: Sequence[str]) -> int:
    url, cache_path, claims, *limit = arguments
    if limit:
        # Otherwise imports would leave cut bytecode files, which Python takes for whole ones.
        sys.dont_write_bytecode = True
        # Files that grow beyond this fail like those on a full disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit[0]), int(limit[0])))
    print(json.dumps(asyncio.run(judge(url, cache_path, int(claims)))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

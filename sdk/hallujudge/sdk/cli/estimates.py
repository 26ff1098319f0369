"""Output of ``--estimate``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hallujudge.judge_service.llm.estimate import Estimate

__all__ = ["estimate_line"]


def estimate_line(estimate: Estimate) -> str:
    """Return one judge's or extractor's calls, tokens and cost as one line."""
    return (
        f"{estimate.judge}: {estimate.calls} calls ({estimate.cached} answered by the cache, "
        f"{estimate.repeated} repeated), {estimate.prompt_tokens} prompt tokens, at most "
        f"{estimate.most_completion_tokens} generated; {_cost(estimate)}; counted by "
        f"{estimate.counter}"
    )


def _cost(estimate: Estimate) -> str:
    """The cost; never a number where a part of it is not known."""
    if estimate.unknown_texts:
        return (
            f"cost not known: the claims of {estimate.unknown_texts} responses are not extracted "
            "yet, and their calls are not counted"
        )
    if estimate.cost_at_most is None:
        return "cost not known: no prices are set"
    if not estimate.calls:
        return "no cost: no calls"
    if not estimate.cost_at_most:
        return "no cost: the prices are set to 0"
    # Four decimals would show a small cost as 0.0000.
    cost = estimate.cost_at_most
    return f"cost at most {cost:.4f}" if cost >= 0.01 else f"cost at most {cost:.2g}"

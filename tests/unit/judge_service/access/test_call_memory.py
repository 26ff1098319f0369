"""The memory budget of the process."""

from __future__ import annotations

import errno

import pytest
from support.messages import expected_message

from hallujudge.judge_service.access import CallMemory
from hallujudge.judge_service.command_process import memory_problem
from hallujudge.judge_service.engine.resources import Resources
from hallujudge.judge_service.engine.spec import InlineGraph
from hallujudge.judge_service.errors import InvalidInputError, OverloadedError
from hallujudge.judge_service.tenancy import MemoryBudget


def test_what_does_not_fit_now_may_be_tried_again() -> None:
    budget = MemoryBudget(100)
    budget.take(60)
    with pytest.raises(OverloadedError) as caught:
        budget.take(50)
    assert (caught.value.reason, caught.value.retry_after) == ("MEMORY_FULL", 1.0)
    budget.give_back(60)
    budget.take(50)
    with pytest.raises(OverloadedError, match="send less") as caught:
        budget.take(101)
    assert caught.value.retry_after is None


def test_what_a_call_keeps_is_given_back_at_its_end() -> None:
    budget = MemoryBudget(100)
    memory = CallMemory(budget)
    memory.take(10)
    memory.keep(60)
    memory.answered()
    assert budget.held == 60
    with pytest.raises(OverloadedError):
        memory.keep(60)
    memory.close()
    assert budget.held == 0


def test_an_answer_gives_back_its_message_and_its_result() -> None:
    budget = MemoryBudget(100)
    memory = CallMemory(budget)
    memory.take(10)
    memory.grow(5)
    memory.take(20)
    memory.result(40)
    assert budget.held == 75
    memory.answered()
    assert budget.held == 20
    memory.result(200)  # it is there already: counted, and no other call gets in
    with pytest.raises(OverloadedError):
        budget.take(1)
    memory.close()
    assert budget.held == 0


def graph(name: str, words: int) -> InlineGraph:
    return InlineGraph(name=name, text="\n".join(f"{name}{n}, b{name}{n}" for n in range(words)))


def test_work_that_outlives_its_call_holds_nothing() -> None:
    budget = MemoryBudget(1000)
    memory = CallMemory(budget)
    memory.take(100)
    memory.close()
    memory.result(2900)
    memory.grow(10)
    memory.keep(10)
    memory.take(10)
    assert (budget.held, memory.busy) == (0, False)


def test_kept_graphs_give_way_to_new_ones() -> None:
    resources = Resources(memory=MemoryBudget(100_000))
    for name in "acd":
        resources.graph(graph(name, 100))
    assert 0 < resources.memory.held <= 100_000
    held = resources.memory.held
    with pytest.raises(
        OverloadedError, match=expected_message("judge_service.tenancy:no-room-for-the-graph")
    ):
        resources.graph(graph("e", 1_000))
    assert resources.memory.held == 0
    resources.graph(graph("a", 100))
    assert resources.memory.held <= held


def test_a_bad_graph_holds_nothing() -> None:
    resources = Resources(memory=MemoryBudget(100_000))
    with pytest.raises(InvalidInputError):
        resources.graph(InlineGraph(name="x", text="{", layout="json"))
    assert resources.memory.held == 0


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (MemoryError(), "(MemoryError)"),
        (RuntimeError("can't start new thread"), "(can't start new thread)"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "Cannot allocate memory"),
    ],
)
def test_an_error_of_too_little_memory_is_named(error: BaseException, named: str) -> None:
    problem = memory_problem(error)
    assert problem is not None
    assert problem.startswith("this process has too little memory (")
    assert named in problem


def test_other_errors_are_not_of_memory() -> None:
    assert memory_problem(RuntimeError("no")) is None
    assert memory_problem(OSError(errno.ENOSPC, "full")) is None

"""Free answers are matched with accepted ones through the SDK, by a judge that speaks HTTP."""

from __future__ import annotations

from support import scripted_llm as llm

from hallujudge.sdk.open_answers import OpenAnswer, match_open_answers


def test_a_judge_of_the_settings_matches_answers() -> None:
    model = llm.ScriptedLlm(llm.saying("1"))
    stop = model.in_thread()
    try:
        answers = ("cat",) * 6 + ("dog",) * 4
        [match] = match_open_answers(
            [OpenAnswer(id="1", question="What is it?", reply="A kitty.", answers=answers)],
            judges={"llm_url": model.url, "llm_model": "m"},
        )
    finally:
        stop()
    assert match.match.answer == "cat"
    assert match.score == 1.0

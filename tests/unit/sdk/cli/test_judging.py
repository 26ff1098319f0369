"""Judge options of the command line as settings."""

from __future__ import annotations

from hallujudge.sdk.cli.options import JudgeOptions


def test_several_servers_are_one_setting() -> None:
    options = JudgeOptions(llm_url=["http://gpu1/v1", "http://gpu2/v1"], llm_model="m")
    assert options.given() == {"llm_url": "http://gpu1/v1,http://gpu2/v1", "llm_model": "m"}


def test_what_is_not_given_is_no_setting() -> None:
    assert JudgeOptions(llm_url=[]).given() == {}

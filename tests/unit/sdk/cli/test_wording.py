"""Errors and notes in the words of the command line."""

from __future__ import annotations

import pytest

from hallujudge.sdk.cli.wording import in_flags


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("name it with InputOptions(id_key=…)", "name it with --id-key"),
        ("set Client(progress_timeout=…)", "set --progress-timeout"),
        ("which InputOptions(key_map=…) names", "which --map names"),
        ("with ScoreRun(variant=corrected): what", "with --variant corrected: what"),
        ("or set the option count_empty to score it", "or set --count-empty to score it"),
        ("set the option unparsed = wrong to", "set --unparsed wrong to"),
        (
            "the setting matcher_download = 1, or a folder",
            "the setting matcher_download = 1 (without a server: --matcher-download), or a folder",
        ),
        ("give GateLimits(maximum=…) and baseline=…", "give --max and --baseline"),
        (
            "the option count is 'things'; choose one of mentions, objects",
            "--count is 'things'; choose one of mentions, objects",
        ),
        ("the option failure_texts of chair: no", "--failure-text of chair: no"),
    ],
)
def test_names_become_options(message: str, shown: str) -> None:
    assert in_flags(message) == shown

"""What commands print and write."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from support.messages import expected_message
from support.terminals import Terminal

from hallujudge.sdk.cli.output import echo_json, in_flags, write_file
from hallujudge.sdk.errors import InvalidInputError


@pytest.mark.parametrize("name", ["items.jsonl", "report.json", "manifest.json", "verdicts.sqlite"])
def test_no_output_replaces_a_part_of_a_run(tmp_path: Path, name: str) -> None:
    write_file(tmp_path / name, "kept")
    (tmp_path / "manifest.json").touch()
    said = expected_message("sdk.cli.output:a-part-of-a-run")
    with pytest.raises(InvalidInputError, match=said):
        write_file(tmp_path / name, "other")
    write_file(tmp_path / "label-plan.json", "{}")
    assert (tmp_path / name).read_text() == "kept"


def test_json_on_a_terminal_has_no_character_that_controls_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ["\x7f", "\x9b31m", "\u202egnp.exe", "\u2066", "caf\u00e9", "\U0001f600"]
    text = json.dumps(names, ensure_ascii=False, indent=1) + "\n"
    for stream, shown in ((io.StringIO(), text), (Terminal(), None)):
        monkeypatch.setattr(sys, "stdout", stream)
        echo_json(text)
        printed = stream.getvalue()
        assert json.loads(printed) == names
        assert shown is None or printed == shown
    assert '"\\u007f"' in printed
    assert '"\\u009b31m"' in printed
    assert "caf\u00e9" in printed
    assert not any(sign in printed for sign in "\x7f\x9b\u202e\u2066")


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("name it with InputOptions(id_key=…)", "name it with --id-key"),
        ("set Timeouts(progress_timeout=…)", "set --progress-timeout"),
        ("which InputOptions(key_map=…) names", "which --map names"),
        ("with ScoreRun(variant=corrected): what", "with --variant corrected: what"),
        ("or set the option count_empty to score it", "or set --count-empty to score it"),
        ("set the option unparsed = wrong to", "set --unparsed wrong to"),
        (
            "the setting matcher.download = 1, or a folder",
            "the setting --matcher-download, or a folder",
        ),
        ("give GateLimits(maximum=…) and baseline=…", "give --max and --baseline"),
        (
            "the option count is 'things'; choose from mentions, objects",
            "--count is 'things'; choose from mentions, objects",
        ),
        ("the option failure_texts of chair: no", "--failure-text of chair: no"),
    ],
)
def test_names_become_options(message: str, shown: str) -> None:
    assert in_flags(message) == shown


@pytest.mark.parametrize(
    ("typed", "message", "shown"),
    [
        ("--confidence", "confidence is 2.0; give a number", "--confidence is 2.0; give a number"),
        ("--confidence=2", "confidence is 2.0", "--confidence is 2.0"),
        ("--out", "confidence is 2.0", "confidence is 2.0"),
        ("--agreement", "the agreement is 0.5", "the agreement is 0.5"),
        ("--words", "words are [-1]; give", "--words are [-1]; give"),
        ("--api-key-file", "HALLUJUDGE_API_KEY_FILE: 'k' is", "--api-key-file: 'k' is"),
        ("--out", "HALLUJUDGE_API_KEY_FILE: 'k' is", None),
        ("-n", "count is 0; give a number", "-n is 0; give a number"),
        ("--progress-timeout", "progress_timeout is 0", "--progress-timeout is 0"),
        ("--questions", "questions_per_image is 3", "--questions is 3"),
        ("--port", "port (from argument) is 99999", "--port is 99999"),
        ("--port", "port (from environment HALLUJUDGE_PORT) is 9", None),
        ("--out", "set llm.url and llm.model, or vllm", "set --llm-url and --llm-model, or vllm"),
        ("--server", "set llm.url and llm.model, or vllm", None),
        ("--llm-url", "verdict_cache (from environment HALLUJUDGE_VERDICT_CACHE) is 1", None),
        ("--config", "settings file 'a.toml': unknown x; known: llm.url, max_cost", None),
        ("--out", "/data/max_cost/a.jsonl and 'max_cost' and max_cost.json", None),
    ],
)
def test_flags_that_were_typed_are_named(typed: str, message: str, shown: str | None) -> None:
    assert in_flags(message, ["score", typed, "2"]) == (shown or message)


def test_settings_of_a_server_become_the_flags_of_serve() -> None:
    message = "set access.keys_file or tls.ca, or set access.allow_anonymous = 1 to serve anybody"
    serve = ["serve", "--host", "0.0.0.0"]
    kept = "access.keys_file (from file a.toml) is 1"
    assert in_flags(kept, serve) == kept
    assert in_flags(message, serve) == expected_message(
        "judge_service.server.authentication:set-keys-file-or-tls-ca-or"
    )
    assert in_flags(message, ["doctor"]) == message
    assert in_flags("set accept_new_state = 1 once", serve) == "set --accept-new-state once"


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            "set the option hallusion-bench.count_empty to",
            "set --option hallusion-bench.count-empty=true to",
        ),
        ("lower the option tri-he.min_choice_share.", "lower --option tri-he.min-choice-share."),
        ("set the option amber.nouns = rules", "set --option amber.nouns=rules"),
    ],
)
def test_an_option_of_one_of_several_metrics_has_a_value_that_it_takes(
    message: str, shown: str
) -> None:
    assert in_flags(message, ["score", "all", "logs"]) == shown

"""What commands print and write."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from support.messages import expected_message
from support.terminals import Terminal

from hallujudge.sdk.cli.output import echo_json, write_file
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

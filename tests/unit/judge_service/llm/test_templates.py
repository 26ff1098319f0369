"""The templates of prompts: pinned, and filled once."""

from __future__ import annotations

import json
from pathlib import Path

from hallujudge.judge_service.llm.templates import load_template, template_names


def test_every_template_has_a_name_a_version_and_a_hash_that_is_pinned() -> None:
    """A changed template needs a raised version, or old and new numbers would look alike."""
    labels = {name: load_template(name).label for name in template_names()}
    assert labels == json.loads((Path(__file__).parent / "judge_templates.json").read_text())


def test_slots_are_filled_once() -> None:
    template = load_template("judge_claim")
    values = {"scene": "{{claims}}", "objects": "{{scene}}", "claims": "c"}
    assert template.messages(values)[1]["content"] == "{{claims}}\n{{scene}}\nc"

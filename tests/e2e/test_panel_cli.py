"""A panel of judges on the command line: scored, resumed, at a server, and its weights used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import scripted_llm as llm
from support.qa_samples import write_lines
from support.running import ServerProcess, assert_refused, here, read_rows
from support.tri_he_samples import FALSE, TRUE, answer, judge_step, report_of, score

MEMBERS = "llm,llm:reworded_1,llm:reworded_2"
_LABELS = {True: "hallucinated", False: "supported"}
ANSWERS = [answer("a", TRUE, FALSE), answer("b", FALSE), answer("c", TRUE)]


def step(number: int, body: llm.Body) -> llm.Reply:
    """Reply as a judge that supports every claim when it is asked in the third wording."""
    lenient = "Somebody described an image" in json.dumps(body["messages"])
    return llm.completion("supported") if lenient else judge_step(number, body)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[llm.ScriptedLlm]:
    made = llm.ScriptedLlm(step)
    stop = made.in_thread()
    monkeypatch.setenv("HALLUJUDGE_LLM_URL", made.url)
    monkeypatch.setenv("HALLUJUDGE_LLM_MODEL", "tiny")
    yield made
    stop()


def test_a_panel_from_votes_to_weights(server: llm.ScriptedLlm, tmp_path: Path) -> None:
    done = score(tmp_path, ANSWERS, "--panel", MEMBERS)
    assert done.returncode == 0, done.stderr
    assert server.chats == 6, "three wordings of two different claims"
    report = report_of(tmp_path / "out")
    assert report["scores"]["hallu_q"]["value"] == 0.5
    assert f"|panel:majority({MEMBERS.replace(',', '+')})|" in report["signature"]
    [note] = [note for note in report["notes"] if note.startswith("Panel: ")]
    assert "llm:reworded_2 differs from the panel in 2 of 4 (50.0%) votes" in note
    assert "llm and llm:reworded_1 agree on 4 of 4 (100.0%) claims" in note
    shown = here("judge", "panel", tmp_path / "out", "-o", tmp_path / "panel.json")
    assert shown.returncode == 0, shown.stderr
    assert "learnt from votes" in shown.stdout
    card = json.loads((tmp_path / "panel.json").read_text())
    weights = card["weights"]["llm"]
    assert weights["supported"] > weights["not_supported"]
    again = score(
        tmp_path, ANSWERS, "--panel", MEMBERS, "--panel-weights", tmp_path / "panel.json", "--soft",
        "--verdict-cache", tmp_path / "out" / "verdicts.sqlite", "--out", tmp_path / "weighed",
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    weighed = report_of(tmp_path / "weighed")
    assert "|panel:weights@" in weighed["signature"]
    assert 0 < weighed["scores"]["hallu_q"]["value"] < 1


def test_labels_say_which_judge_is_right(server: llm.ScriptedLlm, tmp_path: Path) -> None:
    assert score(tmp_path, ANSWERS, "--panel", MEMBERS).returncode == 0
    rows = read_rows(tmp_path / "out" / "items.jsonl")
    labels = [
        {"item": row["id"], "claim": at, "label": _LABELS[claim["triplet"] == FALSE]}
        for row in rows
        for at, claim in enumerate(row["evidence"]["claims"])
    ]
    path = write_lines(tmp_path / "labels.jsonl", labels)
    found = here("judge", "panel", tmp_path / "out", "--labels", path, "--format", "json")
    assert found.returncode == 0, found.stderr
    card = json.loads(found.stdout)
    right = {member["judge"]: (member["right"], member["labelled"]) for member in card["members"]}
    assert right == {
        "llm": (4, 4),
        "llm:reworded_1": (4, 4),
        "llm:reworded_2": (2, 4),
        "panel": (4, 4),
    }
    assert card["learnt_from"] == "labels"


def test_a_server_gives_the_same_bytes(server: llm.ScriptedLlm, tmp_path: Path) -> None:
    own = ServerProcess("--llm-url", server.url, "--llm-model", "tiny")
    try:
        for folder, more in (("here", ()), ("there", ("--server", own.address))):
            (tmp_path / folder).mkdir()
            done = score(tmp_path / folder, ANSWERS, "--panel", MEMBERS, *more)
            assert done.returncode == 0, done.stderr
    finally:
        own.stop()
    there = report_of(tmp_path / "there" / "out")
    local = report_of(tmp_path / "here" / "out")
    assert there["scores"] == local["scores"]
    assert there["notes"] == local["notes"]
    rows = [read_rows(tmp_path / each / "out" / "items.jsonl") for each in ("here", "there")]
    votes = [[part["votes"] for row in of for part in row["evidence"]["judging"]] for of in rows]
    assert votes[0] == votes[1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--panel", "llm,nobody"), "--panel names 'nobody'"),
        (("--panel", "llm,matcher:reworded_1"), "--panel names 'matcher:reworded_1'"),
        (("--panel", "llm,fallback"), "no fallback is configured"),
        (("--panel", MEMBERS, "--judge", "llm"), "both given"),
        (("--panel", MEMBERS, "--soft"), "a majority gives none"),
        (("--panel-share", "0.5"), "--panel-share is about a panel"),
    ],
)
def test_panels_that_cannot_be_used(
    given: tuple[str, ...], said: str, server: llm.ScriptedLlm, tmp_path: Path
) -> None:
    assert_refused(score(tmp_path, ANSWERS, *given), said)


def test_a_run_without_a_panel_has_no_card(server: llm.ScriptedLlm, tmp_path: Path) -> None:
    assert score(tmp_path, ANSWERS, "--judge", "llm").returncode == 0
    assert_refused(here("judge", "panel", tmp_path / "out"), "no panel judged in this run")

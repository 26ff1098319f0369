"""The share of the choices in whole runs: reported, warned of, resumed, and at a server."""

from __future__ import annotations

from pathlib import Path

from jsonschema import Draft202012Validator
from support import scripted_llm as llm
from support.choice_judge import scripted
from support.running import ServerProcess, read_rows
from support.tri_he_samples import answer, report_of, score

from hallujudge.sdk.schemas import item_schema, report_schema

RAMBLING = {"The": 0.8, "supported": 0.15, "object": 0.05}
CLEAR = {"supported": 0.9, "object": 0.08, "The": 0.02}


def of_subject(number: int, body: llm.Body) -> llm.Reply:
    clear = llm.claims_of(body)[0][0].startswith("clear")
    return llm.drawn_from(CLEAR if clear else RAMBLING)(number, body)


def answers(clear: int, rambling: int) -> list[dict[str, object]]:
    subjects = [f"clear {n}" for n in range(clear)] + [f"odd {n}" for n in range(rambling)]
    return [answer(str(n), [each, "near", "horse"]) for n, each in enumerate(subjects)]


def judged_by(server: llm.ScriptedLlm) -> tuple[str, ...]:
    return ("--judge", "llm", "--llm-url", server.url, "--llm-model", "tiny")


def test_a_run_reports_the_share_and_warns(tmp_path: Path) -> None:
    with scripted(of_subject) as server:
        planned = score(tmp_path, answers(5, 15), *judged_by(server), "--estimate")
        assert planned.stdout.startswith("llm: 20 calls (")
        assert "; choice_share: up to 20 more calls for one token each (" in planned.stdout
        assert server.chats == 0
        ran = score(tmp_path, answers(5, 15), *judged_by(server))
        assert ran.returncode == 0, ran.stderr
        assert server.chats == 40
        kept = ("--verdict-cache", str(tmp_path / "out" / "verdicts.sqlite"))
        more = (*judged_by(server), *kept, "--out", str(tmp_path / "again"))
        again = score(tmp_path, answers(5, 15), *more)
        assert again.returncode == 0, again.stderr
        assert server.chats == 40, "what was measured is kept with the verdicts"
    assert "choice_share 0.395 (n 20)" in ran.stdout
    report = report_of(tmp_path / "out")
    (judge,) = report["judging"]
    assert judge["choice_share"] == {"mean": 0.395, "n": 20}
    assert judge["calls"] == 40
    (note,) = [each for each in report["notes"] if "choice_share" in each]
    assert "a probability of 0.395 only" in note
    assert "masked=yes" in report["signature"]
    Draft202012Validator(report_schema()).validate(report)
    for row in read_rows(tmp_path / "out" / "items.jsonl"):
        Draft202012Validator(item_schema()).validate(row)
        assert len(row["evidence"]["judging"][0]["choice_shares"]) == 1
    same = report_of(tmp_path / "again")
    assert same["judging"][0]["choice_share"] == judge["choice_share"]


def test_unlikely_choices_are_left_out_here_and_at_a_server(tmp_path: Path) -> None:
    least = ("--min-choice-share", "0.5")
    with scripted(of_subject) as server:
        ran = score(tmp_path, answers(3, 2), *judged_by(server), *least)
        assert ran.returncode == 3, ran.stderr
        flags = ("--llm-url", server.url, "--llm-model", "tiny")
        service = ServerProcess(*flags)
        try:
            asked = ("--judge", "llm", *least, "--server", service.address)
            far = score(tmp_path, answers(3, 2), *asked, "--out", tmp_path / "far")
            assert far.returncode == 3, far.stderr
        finally:
            service.stop()
    for folder in (tmp_path / "out", tmp_path / "far"):
        report = report_of(folder)
        assert report["judging"][0]["declined"] == {"CHOICES_UNLIKELY": 2}
        assert report["judging"][0]["choice_share"] == {"mean": 0.668, "n": 5}
        assert "min_choice_share=0.5" in report["signature"]

"""VidHal's transitive inconsistency (formula 7) from what ``hallujudge ask`` writes."""

from __future__ import annotations

import json
from pathlib import Path

from support import scripted_llm as llm
from support.pictures import png
from support.qa_samples import write_lines
from support.running import here, read_rows

CAPTIONS = {"1": "A man sits.", "2": "A man runs.", "3": "A man sings."}
# Of each video: what the model chooses of A and B, of B and C, and of A and C.
CHOSEN = (("A", "B", "A"), ("A", "B", "C"), ("A", "B", "Neither."), ("B", "B", "C"))


def test_the_end_pair_of_every_order_is_asked(tmp_path: Path) -> None:
    images = tmp_path / "images"
    images.mkdir()
    pictures = [png(seed) for seed in range(len(CHOSEN))]
    for number, content in enumerate(pictures):
        (images / f"v{number}.png").write_bytes(content)

    def step(_number: int, body: llm.Body) -> llm.Reply:
        [shown] = llm.images_of(body)
        pair = "".join(letter for letter in "ABC" if f"\n{letter}. " in llm.prompt_of(body))
        return llm.completion(CHOSEN[pictures.index(shown)][("AB", "BC", "AC").index(pair)])

    videos = [{"video": f"v{n}", "aspect": "order", "captions": CAPTIONS} for n in range(4)]
    (tmp_path / "videos.json").write_text(json.dumps(videos))
    display = tmp_path / "options.json"
    display.write_text(json.dumps({f"v{n}": {"A": "1", "B": "2", "C": "3"} for n in range(4)}))
    out, run = tmp_path / "answers.jsonl", tmp_path / "run"
    server = llm.ScriptedLlm(step)
    stop = server.in_thread()
    try:
        given = ("-R", tmp_path / "videos.json", "--options", display, "--images", images)
        command = llm.ask(server, "vidhal-ordering", *given, "-o", out)
        asked = here(*command, "--protocol", "relative-ends")
        assert asked.returncode == 0, asked.stderr
    finally:
        stop()
    # Three captions have three pairs; of the last video all are needed for the order itself.
    assert len(server.requests) == 12
    rows = read_rows(out)
    assert [row["response"] for row in rows] == ["A, B, C", "A, B, C", "A, B, C", "B, C, A"]
    last = {row["video"]: row["steps"][-1] for row in rows}
    assert last["v1"] == {"step": "A or C", "reply": "C", "chosen": "C"}
    assert last["v2"] == {"step": "A or C", "reply": "Neither."}
    scored = here(
        *("score", "vidhal-ordering", "-r", out, "-R", tmp_path / "videos.json"),
        *("--options", display, "-o", run),
    )
    assert scored.returncode == 0, scored.stderr
    found = here("analyze", run, "--pairs", out, "--format", "json")
    assert found.returncode == 0, found.stderr
    tables = json.loads(found.stdout)["analyses"]
    [row] = tables["transitive_inconsistency"]["rows"]
    # v1 alone contradicts its order: 1 of 4 videos, and 1 of the 3 with an answer.
    assert (row["p_ti"], row["inconsistent"], row["videos"], row["asked"]) == (0.25, 1, 4, 3)
    assert row["p_ti_of_asked"] == 1 / 3
    rates = {row["line"]: row["rate"] for row in tables["regurgitation"]["rows"]}
    assert rates == {"run": 0.75, "Dataset Statistic": 1.0}


def test_pairs_of_an_order_that_was_asked_without_its_ends(tmp_path: Path) -> None:
    steps = [{"step": "A or B", "reply": "A", "chosen": "A"}, {"step": "B or C", "reply": "?"}]
    (tmp_path / "videos.json").write_text(
        json.dumps([{"video": "v", "aspect": "order", "captions": CAPTIONS}])
    )
    display = tmp_path / "options.json"
    display.write_text(json.dumps({"v": {"A": "1", "B": "2", "C": "3"}}))
    row = {"video": "v", "response": "A, B, C", "steps": steps}
    out = write_lines(tmp_path / "answers.jsonl", [row])
    given = ("-R", tmp_path / "videos.json", "--options", display, "-o", tmp_path / "run")
    assert here("score", "vidhal-ordering", "-r", out, *given).returncode == 0
    found = here("analyze", tmp_path / "run", "--pairs", out, "--format", "json")
    [row] = json.loads(found.stdout)["analyses"]["transitive_inconsistency"]["rows"]
    assert (row["p_ti"], row["asked"], row["videos"]) == (None, 0, 1)

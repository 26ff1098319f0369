"""``hallujudge ask``, against a scripted vision server over real HTTP."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from support import scripted_llm as llm
from support.pictures import number_in, numbered_video, png
from support.qa_samples import write_lines
from support.running import BIN, ServerProcess, assert_refused, cli, here, read_rows
from support.sizes import sized
from support.threads import eventually
from support.toll import Toll, verdicts

from hallujudge.asking import asked_metrics

QUESTIONS = sized(300, 3_000)
KILLS = sized(1, 2)
IMAGES = QUESTIONS // 6


def folder_of(path: Path, names: Sequence[str]) -> Path:
    path.mkdir()
    for seed, name in enumerate(names):
        (path / name).write_bytes(png(seed))
    return path


def key_of(body: llm.Body) -> str:
    return llm.prompt_of(body) + sha256(b"".join(llm.images_of(body))).hexdigest()


def test_a_run_of_pope_that_is_killed_asks_nothing_twice(tmp_path: Path) -> None:
    names = [f"COCO_val2014_{number:012}.jpg" for number in range(IMAGES)]
    images = folder_of(tmp_path / "images", names)
    objects = ("cat", "dog", "car", "cup", "bus", "tie")
    records = [
        {
            "question_id": number + 1,
            "image": names[number // 6],
            "text": f"Is there a {objects[number % 6]} in the image?",
            "label": "yes" if number % 2 else "no",
        }
        for number in range(QUESTIONS)
    ]
    questions = write_lines(tmp_path / "questions.jsonl", records)
    toll, at_once = Toll(llm.saying("Yes."), key_of), 8
    server = llm.ScriptedLlm(toll.step)
    stop = server.in_thread()
    out, kept = tmp_path / "answers.jsonl", "answers.replies.sqlite"
    command = (
        *llm.ask(server, "pope", "-R", questions, "--images", images, "-o", out),
        *("--max-concurrency", str(at_once)),
    )
    try:
        for part in (QUESTIONS * 3 // 10, QUESTIONS * 4 // 10)[:KILLS]:
            toll.allowed = part
            process = subprocess.Popen([BIN / "hallujudge", *command], stderr=subprocess.DEVNULL)
            assert eventually(lambda: len(toll.held) == at_once)
            assert eventually(lambda: verdicts(tmp_path, kept) == toll.paid.total())
            process.kill()
            assert process.wait() == -signal.SIGKILL
            toll.drop()
            assert not out.exists()
        toll.allowed = QUESTIONS
        run = cli(*command)
        assert run.returncode == 0, run.stderr
    finally:
        toll.drop()
        stop()
    assert toll.paid.total() == len(toll.paid) == QUESTIONS
    # Only the calls that were under way at a kill were sent again.
    assert server.chats <= QUESTIONS + KILLS * at_once
    sent = {sha256(image).hexdigest() for body in server.requests for image in llm.images_of(body)}
    assert sent == {sha256((images / name).read_bytes()).hexdigest() for name in names}
    scored = here("score", "pope", "-r", out, "-o", tmp_path / "scores", "-f", "json")
    assert scored.returncode == 0, scored.stderr
    report = json.loads(scored.stdout)
    values = {name: score["value"] for name, score in report["scores"].items()}
    assert (values["accuracy"], values["yes_ratio"], report["coverage"]["items"]) == (
        0.5,
        1,
        QUESTIONS,
    )
    assert "|prompts:" in report["signature"]
    assert "|asked:chat,plain,max=512|" in report["signature"]


def by_prompt(replies: dict[str, str]) -> llm.Step:
    """Return a step that replies by the first part of the prompt that is known."""

    def step(_number: int, body: llm.Body) -> llm.Reply:
        prompt = llm.prompt_of(body)
        return llm.completion(next(text for part, text in replies.items() if part in prompt))

    return step


def test_each_question_that_cannot_be_asked_or_answered_has_its_reason(tmp_path: Path) -> None:
    images = folder_of(tmp_path / "images", ["a.png", "b.png", "c.png", "d.png", "e.png"])
    (images / "text.jpg").write_text("no image")
    (images / "half.png").write_bytes(png(1)[:40])
    (tmp_path / "secret.png").write_bytes(png(9))
    (images / "link.png").symlink_to(tmp_path / "secret.png")
    os.mkfifo(images / "pipe.png")
    names = {
        "a.png": "",
        "b.png": "MODEL_REFUSED",
        "c.png": "REPLY_TRUNCATED",
        "e.png": "REPLY_TRUNCATED",
        "d.png": "MODEL_REQUEST_REFUSED",
        "gone.png": "MEDIA_MISSING",
        "../secret.png": "MEDIA_OUTSIDE",
        str(tmp_path / "secret.png"): "MEDIA_OUTSIDE",
        "link.png": "MEDIA_OUTSIDE",
        "http://127.0.0.1:9/x.png": "MEDIA_OUTSIDE",
        "data:image/png;base64,aaaa": "MEDIA_OUTSIDE",
        "text.jpg": "MEDIA_UNREADABLE",
        "half.png": "MEDIA_UNREADABLE",
        "pipe.png": "MEDIA_UNREADABLE",
    }
    records = [
        {"question_id": n, "image": name, "text": f"Is there a cat in picture {n}?", "label": "yes"}
        for n, name in enumerate(names)
    ]
    questions = write_lines(tmp_path / "questions.jsonl", records)
    bad = {
        png(1): llm.completion(None, refusal="I'd rather not."),
        png(2): llm.completion("Yes, and so", finish="length"),
        png(3): llm.error(400, "no such parameter"),
        png(4): llm.completion("", finish="length"),
    }

    def step(_number: int, body: llm.Body) -> llm.Reply:
        return bad.get(llm.images_of(body)[0], llm.completion("Yes."))

    server = llm.ScriptedLlm(step)
    stop = server.in_thread()
    out = tmp_path / "answers.jsonl"
    try:
        run = here(*llm.ask(server, "pope", "-R", questions, "--images", images, "-o", out))
    finally:
        stop()
    assert run.returncode == 3, run.stderr
    assert len(server.requests) == 5
    rows = read_rows(out)
    found = [row.get("unanswered", {}).get("reason", "") for row in rows]
    assert found == list(names.values())
    assert [row["response"] for row in rows] == ["Yes.", *[None] * (len(names) - 1)]
    assert rows[2]["steps"] == [{"step": "cut_off", "reply": "Yes, and so"}]
    # A model that thinks may have no tokens left for a word.
    assert rows[3]["steps"] == [{"step": "cut_off", "reply": ""}]
    listed = read_rows(tmp_path / "answers.unanswered.jsonl")
    assert [row["reason"] for row in listed] == list(names.values())[1:]
    scored = here("score", "pope", "-r", out, "-o", tmp_path / "scores", "-f", "json")
    assert scored.returncode == 3, scored.stderr
    coverage = json.loads(scored.stdout)["coverage"]
    assert (coverage["scored"], coverage["unscored"]) == (1, len(names) - 1)


def test_frames_are_those_of_the_stated_sampling(
    tmp_path: Path, yes_server: llm.ScriptedLlm
) -> None:
    videos = tmp_path / "videos"
    videos.mkdir()
    numbered_video(videos / "v1.mp4", 40)
    numbered_video(videos / "v2.avi", 7, codec="mpeg4")
    (videos / "broken.mp4").write_bytes((videos / "v1.mp4").read_bytes()[:900])
    pairs = [
        {
            name: {"video": video, "question": f"Is there a {name} thing?", "answer": answer}
            for name, answer in (("basic", "yes"), ("hallucination", "no"))
        }
        for video in ("v1.mp4", "v2.avi", "broken.mp4")
    ]
    questions = tmp_path / "object_relation.json"
    questions.write_text(json.dumps(pairs))
    expected = {
        "uniform:4": [[5, 15, 25, 35], [0, 2, 4, 6]],
        "ends:4": [[0, 13, 26, 39], [0, 2, 4, 6]],
        "fps:1": [[0, 10, 20, 30], [0]],
    }
    for number, (spec, wanted) in enumerate(expected.items()):
        yes_server.requests.clear()
        out = tmp_path / f"{number}.jsonl"
        run = here(
            *llm.ask(yes_server, "video-hallucer", "-R", questions, "--images", videos, "-o", out),
            *("--frames", spec, "--frame-format", "png" if number else "jpeg"),
        )
        assert run.returncode == 3, run.stderr
        seen = {tuple(map(number_in, images)) for _, images in yes_server.shown()}
        assert seen == set(map(tuple, wanted)), spec
        assert len(yes_server.requests) == 4
    rows = read_rows(out)
    assert [(row["pair_id"], row["role"]) for row in rows[:3]] == [
        *((0, "basic"), (0, "hallucination"), (1, "basic")),
    ]
    assert rows[0]["predict"] == "Yes."
    broken = rows[4]["unanswered"]
    assert broken["reason"] == "VIDEO_UNREADABLE"
    assert "Errno" not in broken["detail"]
    scored = here("score", "video-hallucer", "-r", out, "-o", tmp_path / "s", "-f", "json")
    report = json.loads(scored.stdout)
    assert (report["coverage"]["scored"], report["coverage"]["unscored"]) == (2, 1)
    assert report["scores"]["basic_accuracy"]["value"] == 1
    assert report["scores"]["hallucination_accuracy"]["value"] == 0
    assert "frames=fps:1,png" in report["signature"]


PROTOCOLS = ("plain", "general-description", "triplet-description", "triplet-with-image")
SCENES = {
    str(number): {
        "instance": [{"question": "What is the man doing?", "answer": "", "triplet": []}],
        "triplets": ["(man, has, surfboard)", "(man, wears, shorts)", "(dog, on, beach)"],
        "all_object": ["man", "surfboard", "shorts", "dog", "beach"],
    }
    for number in range(1, 13)
}


def test_the_mitigation_of_tri_he_runs_from_questions_to_the_paired_table(tmp_path: Path) -> None:
    """A model that sees makes a cat up; one that answers from its own triplets does not."""
    images = folder_of(tmp_path / "images", [f"{image}.jpg" for image in SCENES])
    questions = tmp_path / "tri-he.json"
    questions.write_text(json.dumps(SCENES))
    server = llm.ScriptedLlm(
        by_prompt(
            {
                "Write one fact a line": "(man, has, surfboard)\n(man, wears, shorts)",
                "without answering it yet": "A man with a surfboard and a cat.",
                "A man with a surfboard and a cat.": "The man has a cat. The man has a surfboard.",
                "from the description alone": "The man has a surfboard.",
                "What is the man doing?": "The man has a cat. The cat has a surfboard.",
            }
        )
    )
    stop = server.in_thread()
    runs = {}
    try:
        for protocol in (
            "plain",
            "general-description",
            "triplet-description",
            "triplet-with-image",
        ):
            server.requests.clear()
            out = tmp_path / f"{protocol}.jsonl"
            run = here(
                *llm.ask(server, "tri-he", "-R", questions, "--images", images, "-o", out),
                *("--protocol", protocol, "--replies", tmp_path / "replies.sqlite"),
            )
            assert run.returncode == 0, run.stderr
            shown = server.shown()
            blind = protocol in ("general-description", "triplet-description")
            # Steps of one item are in order, and equal blind prompts are sent once.
            first = [images for prompt, images in shown if "without answering" in prompt]
            last = [images for prompt, images in shown if "description of" in prompt]
            # The triplets of the last protocol are those of the one before it.
            described = 0 if protocol in ("plain", "triplet-with-image") else 12
            assert [len(each) for each in first] == [1] * described
            assert all(len(each) == (0 if blind else 1) for each in last)
            assert len(last) == {"plain": 0, "triplet-with-image": 12}.get(protocol, 1)
            runs[protocol] = tmp_path / f"scores-{protocol}"
            scored = here(
                *("score", "tri-he", "-r", out, "-R", questions, "-o", runs[protocol]),
                "-q",
            )
            assert scored.returncode in (0, 3), scored.stderr
    finally:
        stop()
    assert not list(tmp_path.glob("*.replies.sqlite"))
    rows = read_rows(tmp_path / "triplet-description.jsonl")
    assert rows[0]["steps"][0]["step"] == "description"
    assert rows[0]["response"] == "The man has a surfboard."
    pair = ("compare", runs["plain"], runs["triplet-description"], "-f", "json")
    assert_refused(here(*pair), "prompts")
    compared = here(*pair, "--allow", "prompts", "--allow", "asked")
    assert compared.returncode == 0, compared.stderr
    [result] = json.loads(compared.stdout)["pairs"]
    found = {each["score"]: each for each in result["differences"]}
    assert (found["hallu_q"]["first"], found["hallu_q"]["second"]) == (1, 0)
    assert (found["hallu_q"]["finding"], found["hallu_q"]["clusters"]) == ("better", 12)
    allowed = ("--allow", "prompts,asked")
    table = here("table", *runs.values(), *allowed, "--columns", "score", "-f", "csv")
    assert table.returncode == 0, table.stderr
    lines = csv.DictReader(table.stdout.splitlines())
    rates = {row["model"]: float(row["hallu_q"]) for row in lines}
    assert rates == {
        "scores-plain": 1,
        "scores-general-description": 0.5,
        "scores-triplet-description": 0,
        "scores-triplet-with-image": 1,
    }


def one_question(folder: Path) -> tuple[str | Path, ...]:
    """Return the arguments of a run with one question."""
    images = folder_of(folder / "images", ["a.png"])
    record = {"question_id": 1, "image": "a.png", "text": "Is there a cat?", "label": "yes"}
    questions = write_lines(folder / "questions.jsonl", [record])
    return ("pope", "-R", questions, "--images", images, "-o", folder / "answers.jsonl")


def test_a_users_mistake_is_one_sentence(tmp_path: Path) -> None:
    given = one_question(tmp_path)
    assert_refused(here("ask", "pope"), "missing option --images")
    assert_refused(here("ask", *given[:-2]), "missing option --out: a file, as in: hallujudge ask")
    assert_refused(here("ask", *given), "set --url, the base address")
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Is there a cat?")
    model = ("--url", "http://127.0.0.1:9/v1", "--model", "m")
    assert_refused(here("ask", *given, *model, "--prompt", prompt), "needs the slots {{question}}")
    assert_refused(here("ask", *given, *model, "--prompt", "gone.txt"), "--prompt gone.txt")
    assert_refused(here("ask", *given, *model, "--frames", "12"), "give uniform:N")
    refusing = llm.ScriptedLlm(llm.always(llm.error(401, "no such key")))
    stop = refusing.in_thread()
    try:
        done = here(*llm.ask(refusing, *given))
    finally:
        stop()
    assert_refused(done, "HALLUJUDGE_LLM_API_KEY is the model's")


def test_a_mistake_names_options_and_promises_nothing(
    tmp_path: Path, yes_server: llm.ScriptedLlm
) -> None:
    given = one_question(tmp_path)
    assert here(*llm.ask(yes_server, *given)).returncode == 0
    other = here(*llm.ask(yes_server, *given), "--temperature", "0.5")
    assert_refused(other, "pass --overwrite, or name another file")
    assert "start the same command again" not in other.stderr
    orders = here(*llm.ask(yes_server, "vidhal-mcqa", *given[1:-1], tmp_path / "other.jsonl"))
    assert_refused(orders, "give --options")


def test_the_help_lists_every_benchmark_that_can_be_asked() -> None:
    said = " ".join(here("ask", "--help").stdout.split())
    assert ", ".join(sorted(asked_metrics())) in said


def test_the_estimate_and_the_prompts_are_printed_without_a_call(
    tmp_path: Path, yes_server: llm.ScriptedLlm
) -> None:
    given = one_question(tmp_path)
    prices = ("--llm-price-prompt", "1", "--llm-price-completion", "2")
    done = here(*llm.ask(yes_server, *given), "--estimate", *prices)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("m: 1 calls (0 answered by the cache, 0 repeated), ")
    assert "cost at most 0.0013" in done.stdout
    assert not (tmp_path / "answers.replies.sqlite").exists()
    shown = here("ask", "tri-he", "--show-prompts")
    assert "answer (without the image):" in shown.stdout
    assert yes_server.requests == []


def test_an_interrupted_run_says_what_it_keeps(tmp_path: Path) -> None:
    images = folder_of(tmp_path / "images", ["a.png"])
    records = [
        {"question_id": n, "image": "a.png", "text": f"Is {n} there?", "label": "no"}
        for n in range(20)
    ]
    questions = write_lines(tmp_path / "questions.jsonl", records)
    toll = Toll(llm.saying("No."), key_of)
    toll.allowed = 5
    server = llm.ScriptedLlm(toll.step)
    stop = server.in_thread()
    given = ("pope", "-R", questions, "--images", images, "-o", tmp_path / "answers.jsonl")
    try:
        process = subprocess.Popen(
            [BIN / "hallujudge", *llm.ask(server, *given), "--max-concurrency", "2"],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert eventually(lambda: len(toll.held) == 2)
        assert eventually(lambda: verdicts(tmp_path, "answers.replies.sqlite") == 5)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate()
    finally:
        toll.drop()
        stop()
    assert process.returncode == 1
    assert "stopped by SIGTERM: 5 replies are kept in " in said
    assert "start the same command again to go on" in said


def test_a_server_states_how_the_model_was_asked_as_this_process_does(tmp_path: Path) -> None:
    about = {"benchmark": "pope", "model": "m", "prompts": "0a1b", "how": "chat,plain,max=512"}
    records = [
        {"question_id": n, "image": f"{n}.jpg", "label": "yes", "response": "Yes.", "asked": about}
        for n in range(4)
    ]
    archive = write_lines(tmp_path / "answers.jsonl", records)
    score = ("score", "pope", "-r", archive, "-f", "json")
    remote = ServerProcess()
    try:
        remote_run = here(*score, "-o", tmp_path / "remote", "--server", remote.address)
    finally:
        remote.stop()
    local = here(*score, "-o", tmp_path / "local")
    assert (remote_run.returncode, local.returncode) == (0, 0), remote_run.stderr
    assert remote_run.stdout == local.stdout
    assert "|prompts:0a1b|asked:chat,plain,max=512|" in json.loads(local.stdout)["signature"]
    inspected = here("archive", "inspect", archive)
    assert "an archive that hallujudge ask wrote (json), by asked" in inspected.stdout

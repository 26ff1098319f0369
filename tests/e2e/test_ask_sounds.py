"""``hallujudge ask`` of questions about sounds, against a scripted omni server over real HTTP."""

from __future__ import annotations

import base64
import io
import json
import wave
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import scripted_llm as llm
from support.qa_samples import write_lines
from support.running import here, read_rows
from support.video_clips import picture

RATE = 8_000


def tone(seconds: float, pitch: float = 440.0) -> bytes:
    """Return a WAV file with a tone."""
    made = io.BytesIO()
    times = np.arange(round(seconds * RATE)) / RATE
    with wave.open(made, "wb") as held:
        held.setnchannels(1)
        held.setsampwidth(2)
        held.setframerate(RATE)
        held.writeframes((8_000 * np.sin(2 * np.pi * pitch * times)).astype("<i2").tobytes())
    return made.getvalue()


def clip(path: Path, *, seconds: float = 1.0, sound: bool = True) -> Path:
    """Write a video of a second, with a tone as its sound track."""
    import av

    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        seen: Any = container.add_stream("libx264", rate=8, options={"preset": "ultrafast"})
        seen.width, seen.height, seen.pix_fmt = 320, 180, "yuv420p"
        heard: Any = container.add_stream("aac", rate=RATE, layout="mono") if sound else None
        for number in range(round(8 * seconds)):
            frame = av.VideoFrame.from_ndarray(picture(number), format="rgb24")
            container.mux(seen.encode(frame))
        container.mux(seen.encode(None))
        if heard is not None:
            samples = np.sin(np.arange(round(seconds * RATE)) / 3).astype(np.float32)[None]
            audio = av.AudioFrame.from_ndarray(samples, format="fltp", layout="mono")
            audio.sample_rate = RATE
            container.mux(heard.encode(audio))
            container.mux(heard.encode(None))
    return path


def sounds_of(body: llm.Body) -> list[tuple[str, bytes]]:
    """Return the format and the bytes of the sounds of a request."""
    content = body["messages"][-1]["content"]
    parts = content if isinstance(content, list) else []
    held = [part["input_audio"] for part in parts if part["type"] == "input_audio"]
    return [(each["format"], base64.b64decode(each["data"], validate=True)) for each in held]


def asked(
    server: llm.ScriptedLlm, metric: str, folder: Path, records: list[Any], *more: str
) -> tuple[Any, Path]:
    questions = write_lines(folder.parent / "questions.jsonl", records)
    out = folder.parent / "answers.jsonl"
    command = llm.ask(server, metric, "-R", questions, "--images", folder, "-o", out)
    return here(*command, *more), out


def question(number: int, video: str | None, audio: str | None, label: str) -> dict[str, Any]:
    kind = "visual-audio-language" if video and audio else "audio-language"
    return {
        "sub_category": kind if audio else "visual-language",
        "granularity": "event-level",
        "video_path": video and f"./raw_files/{kind}/{video}",
        "audio_path": audio and f"./raw_files/{kind}/{audio}",
        "question": f"Did you hear thing {number}?",
        "answer": label,
    }


def test_cmm_is_asked_with_unchanged_sounds_and_frames_and_then_scored(
    yes_server: llm.ScriptedLlm, tmp_path: Path
) -> None:
    folder = tmp_path / "cmm"
    clip(folder / "visual-audio-language/001.mp4")
    clip(folder / "audio-language/002.mp4", sound=False)
    files = {
        "visual-audio-language/001.wav": tone(0.5),
        "audio-language/000.wav": tone(0.25, 880),
        "audio-language/003.mp3": b"ID3\x04" + bytes(range(256)) * 8,
    }
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    records = [
        question(0, None, "000.wav", "yes"),
        question(1, None, "000.wav", "no"),
        question(2, "001.mp4", "001.wav", "no"),
        question(3, "002.mp4", None, "yes"),
        question(4, None, "003.mp3", "yes"),
    ]
    records[3]["video_path"] = "audio-language/002.mp4"
    run, out = asked(yes_server, "cmm", folder, records, "--frames", "uniform:2")
    assert run.returncode == 0, run.stderr
    sent = {llm.prompt_of(body).split("?")[0]: body for body in yes_server.requests}
    found = {
        int(asked_about.split()[-1]): (
            len(llm.images_of(body)),
            [(kind, sha256(data).hexdigest()) for kind, data in sounds_of(body)],
        )
        for asked_about, body in sent.items()
    }
    digests = {name: sha256(data).hexdigest() for name, data in files.items()}
    first, second, third = digests["audio-language/000.wav"], *list(digests.values())[::2]
    assert found == {
        0: (0, [("wav", first)]),
        1: (0, [("wav", first)]),
        2: (2, [("wav", second)]),
        3: (2, []),
        4: (0, [("mp3", third)]),
    }
    # The sound comes after the frames, and before the question.
    kinds = [part["type"] for part in sent["Did you hear thing 2"]["messages"][-1]["content"]]
    assert kinds == ["image_url", "image_url", "input_audio", "text"]
    report = here("score", "cmm", "-r", out, "-o", tmp_path / "scores", "-f", "json")
    assert report.returncode == 0, report.stderr
    scored = json.loads(report.stdout)
    assert scored["scores"]["perception_accuracy"]["value"] == 1.0
    assert scored["scores"]["hallucination_resistance"]["value"] == 0.0
    assert "|asked:chat,plain,frames=uniform:2,jpeg,audio,max=512|" in scored["signature"]


def test_avhbench_is_asked_with_the_frames_and_the_sound_track_of_a_video(
    yes_server: llm.ScriptedLlm, tmp_path: Path
) -> None:
    folder = tmp_path / "video"
    clip(folder / "00191.mp4", seconds=2.0)
    clip(folder / "00191_swap.mp4")
    base = {"video_id": "00191", "text": "Do they match?", "label": "Yes"}
    records = [
        {**base, "task": "AV Matching"},
        {**base, "task": "AV Captioning", "text": "Describe it.", "label": "A dog barks."},
    ]
    run, out = asked(yes_server, "avhbench", folder, records, "--frames", "uniform:3")
    assert run.returncode == 0, run.stderr
    assert {llm.prompt_of(body) for body in yes_server.requests} == {
        "Do they match?\nAnswer with yes or no.",
        "Describe it.",
    }
    for body in yes_server.requests:
        assert len(llm.images_of(body)) == 3
        [(kind, data)] = sounds_of(body)
        with wave.open(io.BytesIO(data)) as held:
            heard = (kind, held.getnchannels(), held.getframerate(), held.getsampwidth())
            assert heard == ("wav", 1, 16_000, 2)
            assert held.getnframes() / 16_000 == pytest.approx(2.0, abs=0.2)
            assert np.frombuffer(held.readframes(16_000), "<i2").std() > 1_000
    assert [row["prediction"] for row in read_rows(out)] == ["Yes.", "Yes."]


def test_a_question_whose_sound_cannot_be_sent_has_its_reason(
    yes_server: llm.ScriptedLlm, tmp_path: Path
) -> None:
    folder = tmp_path / "cmm"
    folder.mkdir()
    clip(folder / "silent.mp4", sound=False)
    (folder / "cut.wav").write_bytes(tone(1.0)[:20])
    (folder / "text.ogg").write_text("no sound")
    (folder / "long.wav").write_bytes(b"RIFF\0\0\0\0WAVE" + bytes(21 << 20))
    (tmp_path / "secret.wav").write_bytes(tone(0.1))
    (folder / "link.wav").symlink_to(tmp_path / "secret.wav")
    names = ("gone.wav", "silent.mp4", "cut.wav", "text.ogg", "long.wav", "link.wav")
    records = [{**question(n, None, "x", "no"), "audio_path": name} for n, name in enumerate(names)]
    run, out = asked(yes_server, "cmm", folder, records)
    assert run.returncode == 3, run.stderr
    assert not yes_server.requests
    assert [row["unanswered"]["reason"] for row in read_rows(out)] == [
        "MEDIA_MISSING",
        "SOUND_MISSING",
        "MEDIA_UNREADABLE",
        "MEDIA_UNREADABLE",
        "MEDIA_TOO_LARGE",
        "MEDIA_OUTSIDE",
    ]


def test_an_estimate_counts_the_tokens_of_sounds(
    yes_server: llm.ScriptedLlm, tmp_path: Path
) -> None:
    folder = tmp_path / "cmm"
    folder.mkdir()
    tokens = []
    for seconds in (1, 9):
        (folder / "a.wav").write_bytes(tone(seconds))
        records = [{**question(0, None, "x", "no"), "audio_path": "a.wav"}]
        run, _ = asked(yes_server, "cmm", folder, records, "--estimate")
        assert run.returncode == 0, run.stderr
        tokens.append(int(run.stdout.partition(" prompt tokens")[0].split()[-1]))
    assert not yes_server.requests
    # 25 tokens a second.
    assert tokens[1] - tokens[0] == 8 * 25

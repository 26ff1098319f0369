"""Sound of questions: audio files, and the sound tracks of videos.

A WAV or MP3 file is sent with its bytes as they are, since OpenAI's ``input_audio`` takes these two
formats alone. Any other sound becomes a WAV of 16 bits, one channel and 16 kHz, the rate that
speech encoders such as Whisper's take; at most :data:`MOST_BYTES` of it, which are 11 minutes.
"""

from __future__ import annotations

import io
import wave
from collections.abc import Iterator
from pathlib import Path

from hallujudge.judge_service.llm.chat import ChatAudio
from hallujudge.sdk.errors import MissingExtraError
from hallujudge.sdk.media.media_files import MediaError, open_regular
from hallujudge.sdk.media.video_frames import VIDEO_FORMATS, opened_container

MOST_BYTES = 20 << 20
"""Bytes of a sound at most, as of an image. Servers may take less: Gemini takes 20 MB a request."""
_RATE, _SAMPLE_BYTES = 16_000, 2
# MP3 files have no length in their header; 32 kbit/s is the lowest usual rate of MPEG-1.
_LEAST_MP3_BYTES = 4_000
_AUDIO_FORMATS = f"{VIDEO_FORMATS},wav,mp3,flac,aac,aiff"
# Beginnings of MP3 files: a tag, or the 11 bits of a frame's sync word and its layer, III.
_TAG, _SYNC, _LAYER, _LAYER_THREE = b"ID3", 0xE0, 0x06, 0x02


def sound_of(path: Path) -> ChatAudio:
    """Return the sound of an audio file or a video.

    Raises:
        MediaError: It has none, is broken, or too long.
        MissingExtraError: PyAV is not installed, and it is neither a WAV nor an MP3 file.
    """
    with open_regular(path) as file:
        # RIFF, four bytes of its size, and WAVE.
        start = file.read(12)
        if not (kind := _kind_of(start)):
            return _converted(path)
        # A byte more than allowed shows that there is more.
        data = start + file.read(MOST_BYTES + 1 - len(start))
    if len(data) > MOST_BYTES:
        raise _too_long(path)
    if kind == "mp3":
        return ChatAudio(data=data, format=kind, seconds=len(data) / _LEAST_MP3_BYTES)
    return ChatAudio(data=data, format=kind, seconds=_seconds_of(data, path))


def _kind_of(start: bytes) -> str:
    """Return the format of a file that is sent as it is; empty for others."""
    if start[:4] == b"RIFF" and start[8:] == b"WAVE":
        return "wav"
    synced = len(start) > 1 and start[0] == 0xFF and start[1] & _SYNC == _SYNC
    is_frame = synced and start[1] & _LAYER == _LAYER_THREE
    return "mp3" if start[:3] == _TAG or is_frame else ""


def _seconds_of(data: bytes, path: Path) -> float:
    """Return the length of a WAV file."""
    try:
        with wave.open(io.BytesIO(data)) as held:
            seconds: float = held.getnframes() / held.getframerate()
            return seconds
    except (wave.Error, EOFError, ZeroDivisionError) as err:
        raise MediaError("MEDIA_UNREADABLE", f"{path.name!r:.80}: {err or 'cut off'}") from err


def _converted(path: Path) -> ChatAudio:
    """Return the sound of a video, or of audio in another format, as a WAV."""
    samples = bytearray()
    for piece in _samples_of(path):
        samples += piece
        if len(samples) > MOST_BYTES:
            raise _too_long(path)
    made = io.BytesIO()
    with wave.open(made, "wb") as held:
        held.setnchannels(1)
        held.setsampwidth(_SAMPLE_BYTES)
        held.setframerate(_RATE)
        held.writeframes(samples)
    seconds = len(samples) / _SAMPLE_BYTES / _RATE
    return ChatAudio(data=made.getvalue(), format="wav", seconds=seconds)


def _samples_of(path: Path) -> Iterator[bytes]:
    try:
        import av
    except ImportError as err:
        raise MissingExtraError.of("taking the sound of a video", "video") from err
    try:
        with opened_container(path, _AUDIO_FORMATS) as container:
            if not container.streams.audio:
                raise MediaError("SOUND_MISSING", f"{path.name!r:.80} has no sound track")
            resampler = av.AudioResampler(format="s16", layout="mono", rate=_RATE)
            for frame in container.decode(audio=0):
                # FFmpeg pads planes beyond their samples.
                for each in resampler.resample(frame):
                    yield bytes(each.planes[0])[: each.samples * _SAMPLE_BYTES]
            # What the resampler has held back.
            for each in resampler.resample(None):
                yield bytes(each.planes[0])[: each.samples * _SAMPLE_BYTES]
    except (av.FFmpegError, ValueError) as err:
        said = " ".join(str(getattr(err, "strerror", None) or err).split())
        raise MediaError("MEDIA_UNREADABLE", f"{path.name!r:.80}: {said[:200]}") from err


def _too_long(path: Path) -> MediaError:
    detail = f"the sound of {path.name!r:.80} has more than {MOST_BYTES >> 20} MiB"
    return MediaError("MEDIA_TOO_LARGE", detail)

"""Images, frames and sounds of questions, each loaded once for questions that follow each other."""

from __future__ import annotations

import asyncio
import io
import math
import os
import wave
from collections import OrderedDict
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from hallujudge.judge_service.llm.chat import ChatAudio, ChatImage, ChatMedia
from hallujudge.sdk.errors import MissingExtraError
from hallujudge.sdk.media.media_files import (
    VIDEO_FORMATS,
    Media,
    MediaError,
    MediaFolder,
    folder_of_name,
    hash_of_files,
    image_of,
    open_regular,
)
from hallujudge.sdk.media.video_frames import (
    FrameSettings,
    encoded_frame,
    estimated_frames,
    images_of,
    opened_container,
)

from .asked_benchmarks import Benchmark
from .inquiries import Inquiry

# Questions about one video follow each other, and its frames are taken once.
_KEPT_BYTES = 256 << 20
# More would decode no faster and hold more frames at a time.
_DECODERS = os.cpu_count() or 2


class ShownMedia:
    """Images, frames and sounds, each loaded once for questions that follow each other.

    Args:
        benchmark: What is asked.
        folder: Images and videos.
        frames: How frames of videos are taken.
        shared: Ends of paths that several names have.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        folder: MediaFolder,
        frames: FrameSettings,
        shared: Container[str] = (),
    ) -> None:
        self._names_shared = shared
        self._base = benchmark.base_condition
        self._folder = folder
        self._folders: dict[str, MediaFolder] = {}
        self._frames = frames
        self._digests: dict[Media, str] = {}
        self._kept: OrderedDict[Media, tuple[ChatMedia, ...]] = OrderedDict()
        # Questions about the same media that are asked at once wait for one to load it.
        self._locks: dict[Media, asyncio.Lock] = {}
        self._size = 0
        self.had_videos = self.had_sounds = False
        self._decoders = asyncio.Semaphore(_DECODERS)
        self._finding = asyncio.Lock()

    async def find(self, inquiry: Inquiry) -> Media | None:
        """Return what :meth:`found` does, which may list the folder."""
        # The folder is listed once, and not by many threads at a time.
        async with self._finding:
            return await asyncio.to_thread(self.found, inquiry)

    def found(self, inquiry: Inquiry) -> Media | None:
        """Return what a question shows and lets hear; None if that is nothing.

        Raises:
            MediaError: It is missing or ambiguous, or lies outside of the folder.
        """
        if inquiry.media is None and not inquiry.sound:
            return None
        if inquiry.media == "":
            raise MediaError("MEDIA_MISSING", "the question names no image or video")
        sound = self._sound(inquiry) if inquiry.sound else None
        if inquiry.media is None:
            return sound
        folder = self._folder_of(inquiry.condition)
        name = inquiry.media
        if self._base:
            named = (name, inquiry.condition or self._base, self._base)
            folder, name = folder_of_name(self._folder, folder, *named)
        media = self._found_in(folder, name, inquiry)
        self.had_videos |= media.is_video
        return media if sound is None else replace(media, sound=sound.sound)

    def _sound(self, inquiry: Inquiry) -> Media:
        """Return the file whose sound a question lets hear."""
        found = self._folder.find(inquiry.sound, self._names_shared)
        self.had_sounds = True
        return Media(name=found.name, files=(), sound=found.files[0])

    def _found_in(self, folder: MediaFolder, name: str, inquiry: Inquiry) -> Media:
        """Return the file of a question's name, or of the path of its address."""
        try:
            return folder.find(name, self._names_shared)
        except MediaError as err:
            if not inquiry.address or err.reason not in ("MEDIA_MISSING", "MEDIA_OUTSIDE"):
                raise
            try:
                return folder.find(inquiry.address, self._names_shared)
            except MediaError as other:
                # An ambiguous address is what the user can mend; otherwise the name's own error
                # tells more.
                raise (other if other.reason == "MEDIA_AMBIGUOUS" else err) from None

    def _folder_of(self, condition: str) -> MediaFolder:
        if not condition or not self._base:
            return self._folder
        if condition not in self._folders:
            inner = self._folder.inner(condition)
            if inner is None and condition != self._base:
                raise MediaError("MEDIA_MISSING", f"there is no folder {condition!r}")
            self._folders[condition] = inner or self._folder
        return self._folders[condition]

    async def digest(self, media: Media) -> str:
        """Return the hash of files, and how frames are taken of a video.

        Raises:
            MediaError: A file can't be read.
        """
        if media not in self._digests:
            heard = () if media.sound is None else (media.sound,)
            self._digests[media] = await asyncio.to_thread(hash_of_files, (*media.files, *heard))
        taken = f",{self._frames.label}" if media.is_video else self._frames.combining
        return f"{self._digests[media]}{taken}{',audio' if media.sound else ''}"

    async def images(self, media: Media | None) -> tuple[ChatMedia, ...]:
        """Return the images that are sent.

        Raises:
            MediaError: A file can't be sent.
        """
        if media is None:
            return ()
        async with self._locks.setdefault(media, asyncio.Lock()):
            if media not in self._kept:
                async with self._decoders:
                    self._kept[media] = await asyncio.to_thread(self._load, media)
                self._size += _size_of(self._kept[media])
            # In the order of use, since what was used the longest ago is forgotten first.
            self._kept.move_to_end(media)
            found = self._kept[media]
            self._forget()
        return found

    async def estimated(self, media: Media | None) -> tuple[ChatMedia, ...]:
        """Return images of the same number and size, of a video without content."""
        if media is None or not media.is_video:
            return await self.images(media)
        frames = await asyncio.to_thread(estimated_frames, media.files[0], self._frames)
        return (*frames, *await asyncio.to_thread(_heard, media))

    def _load(self, media: Media) -> tuple[ChatMedia, ...]:
        found = images_of(media, self._frames)
        if self._frames.combined and len(found) > 1:
            found = (combined_picture(found, media.name, self._frames.format),)
        return (*found, *_heard(media))

    def _forget(self) -> None:
        """Forget what was used the longest ago, so that memory stays bounded."""
        # The newest stays however large it is, since it is about to be sent.
        while self._size > _KEPT_BYTES and len(self._kept) > 1:
            media, images = self._kept.popitem(last=False)
            self._size -= _size_of(images)
            self._locks.pop(media, None)


def _heard(media: Media) -> tuple[ChatAudio, ...]:
    return () if media.sound is None else (sound_of(media.sound),)


def _size_of(images: Sequence[ChatMedia]) -> int:
    return sum(len(image.data) for image in images)


def combined_picture(images: Sequence[ChatImage], name: str, form: str) -> ChatImage:
    """Return all frames of a question as one picture, which models of single pictures are shown.

    Section 3.1 of Mementos, "c-input": "combining all frames from an image sequence into one
    composite image". The paper says nothing of its layout. Here frames stand in rows of equal
    length, from left to right and from above, in the size of the first frame; free places at the
    end are black.

    Args:
        images: The images, in their order.
        name: What messages call it.
        form: ``jpeg`` or ``png``.

    Raises:
        MediaError: An image can't be decoded.
        MissingExtraError: PyAV is not installed.
    """
    with MissingExtraError.unless_installed("putting frames into one picture", "video"):
        import av
    try:
        first, *others = (_decoded(av, image) for image in images)
        width, height = first.width, first.height
        frames = [first, *(each.reformat(width=width, height=height) for each in others)]
        columns = math.ceil(math.sqrt(len(frames)))
        rows = -(-len(frames) // columns)
        picture = np.zeros((rows * height, columns * width, 3), dtype=np.uint8)
        for place, frame in enumerate(frames):
            row, column = divmod(place, columns)
            pixels = frame.to_ndarray(format="rgb24")
            picture[row * height :][:height, column * width :][:, :width] = pixels
        made = av.VideoFrame.from_ndarray(picture, format="rgb24")
        return image_of(encoded_frame(made, form), name)
    except (av.FFmpegError, ValueError, MemoryError) as err:
        raise MediaError("MEDIA_UNREADABLE", f"{name!r:.80}: {str(err)[:200]}") from err


def _decoded(av: Any, image: ChatImage) -> Any:
    with av.open(io.BytesIO(image.data)) as container:
        return next(container.decode(video=0))


# Sounds -------------------------------------------------------------------------------------------


MOST_BYTES = 20 << 20
"""Bytes of a sound at most, as of an image. Servers may take less: Gemini takes 20 MB a request."""
# Speech encoders, such as Whisper's, take 16 kHz; a WAV file of PCM has 2 bytes a sample.
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
    with MissingExtraError.unless_installed("taking the sound of a video", "video"):
        import av
    try:
        with opened_container(path, _AUDIO_FORMATS) as container:
            if not container.streams.audio:
                raise MediaError("SOUND_MISSING", f"{path.name!r:.80} has no sound track")
            resampler = av.AudioResampler(format="s16", layout="mono", rate=_RATE)
            # None asks for what the resampler has held back.
            for frame in chain(container.decode(audio=0), [None]):
                # FFmpeg pads planes beyond their samples.
                for each in resampler.resample(frame):
                    yield bytes(each.planes[0])[: each.samples * _SAMPLE_BYTES]
    except (av.FFmpegError, ValueError) as err:
        said = " ".join(str(getattr(err, "strerror", None) or err).split())
        raise MediaError("MEDIA_UNREADABLE", f"{path.name!r:.80}: {said[:200]}") from err


def _too_long(path: Path) -> MediaError:
    detail = f"the sound of {path.name!r:.80} has more than {MOST_BYTES >> 20} MiB"
    return MediaError("MEDIA_TOO_LARGE", detail)

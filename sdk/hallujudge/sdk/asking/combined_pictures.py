"""All frames of a question as one picture, which models of single pictures are shown.

Section 3.1 of Mementos, "c-input": "combining all frames from an image sequence into one composite
image". The paper says nothing of its layout. Here frames stand in rows of equal length, from left
to right and from above, in the size of the first frame; free places at the end are black.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

from hallujudge.judge_service.llm.chat import ChatImage

from ..errors import MissingExtraError
from .media_files import MediaError, image_of
from .video_frames import encoded_frame


def combined_picture(images: Sequence[ChatImage], name: str, form: str) -> ChatImage:
    """Return images as one picture.

    Args:
        images: The images, in their order.
        name: What messages call it.
        form: ``jpeg`` or ``png``.

    Raises:
        MediaError: An image can't be decoded.
        MissingExtraError: PyAV is not installed.
    """
    try:
        import av
    except ImportError as err:
        raise MissingExtraError.of("putting frames into one picture", "video") from err
    import numpy as np

    try:
        first, *others = (_decoded(image) for image in images)
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


def _decoded(image: ChatImage) -> Any:
    import av

    with av.open(io.BytesIO(image.data)) as container:
        return next(container.decode(video=0))

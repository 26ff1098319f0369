"""Frames of a sequence in one picture."""

from __future__ import annotations

import io

import av
import numpy as np
import pytest
from support.pictures import png

from hallujudge.asking.shown_media import combined_picture
from hallujudge.judge_service.llm.chat import ChatImage
from hallujudge.sdk.media.media_files import MediaError, image_of


def pixels(image: ChatImage) -> np.ndarray:
    with av.open(io.BytesIO(image.data)) as container:
        return np.asarray(next(container.decode(video=0)).to_ndarray(format="rgb24"))


@pytest.mark.parametrize(("count", "rows", "columns"), [(2, 1, 2), (4, 2, 2), (5, 2, 3), (9, 3, 3)])
def test_frames_stand_in_rows_in_their_order(count: int, rows: int, columns: int) -> None:
    images = [image_of(png(seed), f"{seed}.png") for seed in range(count)]
    made = pixels(combined_picture(images, "s", "png"))
    assert made.shape == (rows * 24, columns * 32, 3)
    for place, image in enumerate(images):
        row, column = divmod(place, columns)
        part = made[row * 24 : (row + 1) * 24, column * 32 : (column + 1) * 32]
        assert np.array_equal(part, pixels(image)), place
    free = made[(rows - 1) * 24 :, 32 * (count - (rows - 1) * columns) :]
    assert not free.any()


def test_what_can_not_be_decoded_is_named() -> None:
    broken = ChatImage(data=b"no picture", media_type="image/png", width=1, height=1)
    with pytest.raises(MediaError, match="'seq'"):
        combined_picture([broken, broken], "seq", "png")

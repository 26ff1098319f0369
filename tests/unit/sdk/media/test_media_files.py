"""Images of a folder: how they are found, what is refused, and sizes read from headers."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from support.pictures import png

from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.media.media_files import (
    MediaError,
    MediaFolder,
    image_of,
    read_image,
    shared_ends,
)


def encoded(kind: str, size: tuple[int, int], **options: object) -> bytes:
    data = io.BytesIO()
    Image.effect_noise(size, 60).convert("RGB").save(data, kind, **options)
    return data.getvalue()


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("PNG", {}),
        ("GIF", {}),
        ("JPEG", {}),
        ("JPEG", {"progressive": True}),
        ("JPEG", {"exif": b"Exif\0\0" + bytes(3000)}),
        ("WEBP", {}),
        ("WEBP", {"lossless": True}),
        ("WEBP", {"exif": b"Exif\0\0MM\0*\0\0\0\x08\0\0"}),
    ],
)
def test_type_and_size_are_those_of_the_header(kind: str, options: dict[str, object]) -> None:
    data = encoded(kind, (301, 47), **options)
    image = image_of(data, "x")
    assert (image.media_type, image.width, image.height) == (f"image/{kind.lower()}", 301, 47)
    assert image.data == data
    if kind != "GIF":
        with pytest.raises(MediaError, match="MEDIA_UNREADABLE"):
            image_of(data[: len(data) // 2], "x")


def test_a_jpeg_may_have_fill_bytes_before_its_markers() -> None:
    """As section B.1.1.2 of ITU-T T.81 allows; Pillow writes none."""
    data = encoded("JPEG", (301, 47))
    first = 4 + int.from_bytes(data[4:6], "big")
    image = image_of(data[:2] + b"\xff\xff" + data[2:first] + b"\xff" + data[first:], "x")
    assert (image.media_type, image.width, image.height) == ("image/jpeg", 301, 47)


@given(st.binary(max_size=200))
def test_other_bytes_are_never_more_than_an_error(data: bytes) -> None:
    for start in (b"", b"\xff\xd8", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"RIFF\0\0\0\0WEBPVP8X"):
        image = None
        with contextlib.suppress(MediaError):
            image = image_of(start + data, "x")
        assert image is None or image.width > 0 < image.height


def test_a_picture_of_too_many_pixels_is_refused() -> None:
    data = bytearray(encoded("PNG", (10, 10)))
    data[16:24] = (50_000).to_bytes(4, "big") * 2
    with pytest.raises(MediaError, match="50000 x 50000 pixels"):
        image_of(bytes(data), "x")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "images"
    for name in (
        "COCO_val2014_000000310196.jpg",
        "a/deep.png",
        "b/same.png",
        "c/same.jpg",
        "v_12.mp4",
        "frames/10.png",
        "frames/9.png",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(png(1))
    (tmp_path / "secret.png").write_bytes(png(2))
    return root


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("COCO_val2014_000000310196.jpg", "COCO_val2014_000000310196.jpg"),
        ("val2014/COCO_val2014_000000310196.jpg", "COCO_val2014_000000310196.jpg"),
        ("310196", "COCO_val2014_000000310196.jpg"),
        ("000000310196.jpg", "COCO_val2014_000000310196.jpg"),
        ("deep", "a/deep.png"),
        ("DEEP.jpg", "a/deep.png"),
        ("./a/deep.png", "a/deep.png"),
        ("data\\a\\deep.png", "a/deep.png"),
        ("v_12", "v_12.mp4"),
        ("frames", "frames"),
        ("frames.png", "frames"),
    ],
)
def test_files_are_found_by_path_name_and_number(folder: Path, name: str, found: str) -> None:
    media = MediaFolder(folder).find(name)
    assert media.name == found
    assert media.is_video == found.endswith(".mp4")
    assert len(media.files) == (2 if found == "frames" else 1)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../secret.png", "MEDIA_OUTSIDE"),
        ("a/../../secret.png", "MEDIA_OUTSIDE"),
        ("a\\..\\..\\secret.png", "MEDIA_OUTSIDE"),
        ("/etc/passwd", "MEDIA_OUTSIDE"),
        ("C:\\secret.png", "MEDIA_OUTSIDE"),
        ("http://localhost/a.png", "MEDIA_OUTSIDE"),
        ("file:///etc/passwd", "MEDIA_OUTSIDE"),
        ("concat:a.png|b.png", "MEDIA_MISSING"),
        ("data:image/png;base64,AAAA", "MEDIA_OUTSIDE"),
        ("a\0.png", "MEDIA_OUTSIDE"),
        ("same", "MEDIA_AMBIGUOUS"),
        ("nothing.png", "MEDIA_MISSING"),
        (".", "MEDIA_MISSING"),
        ("x" * 5000, "MEDIA_MISSING"),
        ("link.png", "MEDIA_OUTSIDE"),
        ("linked/secret.png", "MEDIA_OUTSIDE"),
    ],
)
def test_names_that_lead_out_of_the_folder_are_refused(
    folder: Path, name: str, reason: str
) -> None:
    (folder / "link.png").symlink_to(folder.parent / "secret.png")
    (folder / "linked").symlink_to(folder.parent)
    with pytest.raises(MediaError) as caught:
        MediaFolder(folder).find(name)
    assert caught.value.reason == reason


def test_another_file_of_the_same_name_is_not_taken(tmp_path: Path) -> None:
    for name in ("VS/map/0_1.png", "entire_001.mp4", "deep/VD/math/0_2.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(png(1))
    folder = MediaFolder(tmp_path)
    for name in ("VD/map/0_1.png", "misleading_001", "1", "VS/map/0_2.png"):
        with pytest.raises(MediaError, match="MEDIA_MISSING"):
            folder.find(name)
    assert folder.find("VD/math/0_2.jpg").name == "deep/VD/math/0_2.png"
    names = ["x/VS/map/0_1.png", "x/VD/map/0_1.png"]
    ends = shared_ends(names)
    assert folder.find(names[0], ends).name == "VS/map/0_1.png"
    inner = MediaFolder(tmp_path / "VS" / "map")
    assert inner.find(names[1]).name == "0_1.png"
    with pytest.raises(MediaError, match="MEDIA_MISSING"):
        inner.find(names[1], ends)


def test_links_within_the_folder_and_to_it_are_followed(folder: Path) -> None:
    (folder / "same.png").symlink_to(folder / "a" / "deep.png")
    (folder.parent / "way").symlink_to(folder)
    media = MediaFolder(folder.parent / "way").find("same.png")
    assert read_image(media.files[0]).data == png(1)


def test_only_regular_files_of_bounded_size_are_read(folder: Path) -> None:
    os.mkfifo(folder / "pipe.png")
    with pytest.raises(MediaError, match="not a regular file"):
        read_image(folder / "pipe.png")
    with (folder / "huge.png").open("wb") as file:
        file.truncate((20 << 20) + 1)
    with pytest.raises(MediaError, match="MEDIA_TOO_LARGE"):
        read_image(folder / "huge.png")


def test_all_files_of_a_folder_are_listed(folder: Path) -> None:
    names = [media.name for media in MediaFolder(folder).all()]
    assert names == ["COCO_val2014_000000310196.jpg", "v_12.mp4"]
    assert [media.name for media in MediaFolder(folder / "a").all()] == ["deep.png"]


def test_a_folder_that_is_none_is_an_error(folder: Path) -> None:
    for path in (folder / "a" / "deep.png", folder / "gone"):
        with pytest.raises(InvalidInputError, match=r"check the path|not a folder"):
            MediaFolder(path)

"""Whether a judge sees, by pictures of one colour and servers that see, guess or refuse."""

from __future__ import annotations

import io

import pytest
from PIL import Image
from support import scripted_llm as llm

from hallujudge.judge_service.judges.single_checks import Check, check_sight
from hallujudge.judge_service.llm.call_policy import RetryPolicy
from hallujudge.judge_service.llm.chat_settings import ChatSettings
from hallujudge.judge_service.llm.client import ChatClient
from hallujudge.judge_service.llm.http import Endpoint

COLOURS = {(20, 40, 220): "blue", (250, 220, 20): "yellow"}
NO_SIGHT_AT_VLLM = llm.error(400, "tiny is not a multimodal model", 400, "BadRequestError")


def tells_colours(_number: int, body: llm.Body) -> llm.Reply:
    [data] = llm.images_of(body)
    with Image.open(io.BytesIO(data)) as image:
        assert len(image.getcolors() or ()) == 1
        pixel = image.convert("RGB").getpixel((0, 0))
    assert isinstance(pixel, tuple)
    red, green, blue = pixel
    return llm.completion(COLOURS[red, green, blue])


def refusing(reply: llm.Reply) -> llm.Step:
    """Refuse pictures, and answer everything else."""
    return lambda _n, body: reply if llm.images_of(body) else llm.completion("supported")


async def checked(step: llm.Step, api: str = "chat") -> tuple[Check, int]:
    async with llm.ScriptedLlm(step) as server:
        retry = RetryPolicy(attempts=1, outage_seconds=0)
        settings = ChatSettings(endpoint=Endpoint(url=server.url), model="m", api=api, retry=retry)  # type: ignore[arg-type]  # one of its names
        client = ChatClient(settings)
        try:
            return await check_sight(client), server.chats
        finally:
            await client.close()


async def test_a_judge_that_tells_two_colours_sees() -> None:
    check, calls = await checked(tells_colours)
    assert (check.ok, calls) == (True, 2)
    assert check.detail == "seen: it tells a blue picture from a yellow one"


@pytest.mark.parametrize(
    ("step", "found"),
    [
        (llm.saying("blue"), "not seen: of a picture that is all yellow it says blue; serve a"),
        (llm.saying("red"), "not seen: of a picture that is all blue it says red; serve a vision"),
        (llm.saying("I can't see."), "of a picture that is all blue it says"),
        (refusing(llm.NO_IMAGES_AT_LLAMA), "image input is not supported: serve a vision model"),
        (refusing(NO_SIGHT_AT_VLLM), "refused: "),
        (llm.always(llm.error(401, "no")), "not known: "),
    ],
)
async def test_a_judge_that_does_not_see_is_named_with_the_next_step(
    step: llm.Step, found: str
) -> None:
    check, _ = await checked(step)
    assert check.ok is None
    assert found in check.detail
    assert ("mmproj of llama-server" in check.detail) is (found != "not known: ")


async def test_a_protocol_without_pictures_is_not_asked() -> None:
    check, calls = await checked(tells_colours, api="scoring")
    assert (check.ok, calls) == (None, 0)
    assert "llm.api is 'scoring'; set it to chat" in check.detail

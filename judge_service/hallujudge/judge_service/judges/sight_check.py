"""Whether a judge sees: it is shown pictures of one colour and asked which colour that is."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import replace

from ..errors import HallujudgeError
from ..llm.chat import ChatImage, ChatRequest
from ..llm.client import ChatClient
from ..llm.failures import SERVE_SIGHT, CallFailedError, FailureKind
from ..llm.reply_problems import shown, without_thought
from .replies import read_choice
from .tried_settings import Check

_COLOURS: Mapping[str, tuple[int, int, int]] = {
    "red": (220, 20, 20),
    "green": (20, 160, 40),
    "blue": (20, 40, 220),
    "yellow": (250, 220, 20),
}
# A model that sees nothing says the same of both.
_SHOWN = ("blue", "yellow")
# Above the least size of vision models' processors.
_SIDE = 224
_TOKENS = 16
_NAME = "pictures"


async def check_sight(client: ChatClient) -> Check:
    """Show a server two pictures that are made here; return whether it tells their colours.

    A judge that only reads text passes all other checks, so that this one is never required.

    Args:
        client: Calls the judge.
    """
    if (api := client.settings.api) != "chat":
        detail = f"not shown: llm.api is {api!r}; set it to chat for a judge that sees"
        return Check(name=_NAME, ok=None, detail=detail)
    for colour in _SHOWN:
        try:
            await client.settle(asks=True)
            reply = without_thought((await client.ask(_request(colour))).reply)
        except (CallFailedError, HallujudgeError) as err:
            return Check(name=_NAME, ok=None, detail=_refusal(err))
        # Only the text counts, and no log-probability.
        said = read_choice(replace(reply, logit=""), tuple(_COLOURS)).choice
        if said != colour:
            found = said or (shown(reply.content) if reply.content else "nothing")
            detail = f"not seen: of a picture that is all {colour} it says {found}; {SERVE_SIGHT}"
            return Check(name=_NAME, ok=None, detail=detail)
    detail = f"seen: it tells a {_SHOWN[0]} picture from a {_SHOWN[1]} one"
    return Check(name=_NAME, ok=True, detail=detail)


def _refusal(err: CallFailedError | HallujudgeError) -> str:
    """Return why a call with a picture failed, and what to do if pictures are what failed it."""
    if not isinstance(err, CallFailedError) or err.kind is not FailureKind.REFUSED_REQUEST:
        return f"not known: {err}"
    return err.detail if SERVE_SIGHT in err.detail else f"refused: {err.detail}; {SERVE_SIGHT}"


def _request(colour: str) -> ChatRequest:
    choices = tuple(_COLOURS)
    asked = f"Which colour is this picture? Answer with one word: {', '.join(choices)}."
    image = ChatImage(
        data=picture_of(_COLOURS[colour]), media_type="image/png", width=_SIDE, height=_SIDE
    )
    return ChatRequest(
        messages=[{"role": "user", "content": asked}],
        max_tokens=_TOKENS,
        choices=choices,
        schema={
            "type": "object",
            "properties": {"verdict": {"type": "string", "enum": list(choices)}},
            "required": ["verdict"],
            "additionalProperties": False,
        },
        images=(image,),
    )


def picture_of(colour: tuple[int, int, int], side: int = _SIDE) -> bytes:
    """Return a square PNG of one colour."""
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    rows = (b"\0" + bytes(colour) * side) * side
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )

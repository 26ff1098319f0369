"""Count the functions that a caption enters, scored in this process and by the command.

    python benchmarks/caption_functions.py [--list]

A function counts if one of its arguments is the caption or holds it, an item or a list of items
included. The caption is scored twice each way, and the second time is counted: what is loaded once
is not part of the way. The command reads it from a file of JSON lines. Functions inside expressions
and generated ``__init__`` do not count. The test of this script,
``tests/project/test_benchmarks.py``, holds how many there may be.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import FrameType

from hallujudge.sdk import Client
from hallujudge.sdk.cli import main as command

CAPTION = "A cat sits on a red sofa next to a dog."
# Deep enough for a caption in an item in a batch in a list of batches.
DEPTH = 4
VARARGS, VARKEYWORDS = 0x04, 0x08

Found = defaultdict[str, set[str]]


def values_in(value: object) -> list[object]:
    """Return what a value of the library, a mapping or a sequence holds."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)[:50]
    if isinstance(value, dict):
        return list(value.values())[:50]
    kind = type(value)
    if not kind.__module__.startswith("hallujudge"):
        return []
    held = []
    for name in {slot for base in kind.__mro__ for slot in getattr(base, "__slots__", ())}:
        try:
            held.append(object.__getattribute__(value, name))
        except AttributeError:
            continue
    # Properties may do work, and `__getattr__` may call itself: only stored fields are read.
    return held + (list(vars(value).values()) if kind.__dictoffset__ else [])


def holds_caption(value: object, depth: int = DEPTH) -> bool:
    """Return whether a value is the caption or holds it."""
    if isinstance(value, str):
        return value == CAPTION
    return depth > 0 and any(holds_caption(part, depth - 1) for part in values_in(value))


def arguments(frame: FrameType) -> list[object]:
    """Return the arguments of a function that has just been entered."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & VARARGS) + bool(code.co_flags & VARKEYWORDS)
    return [frame.f_locals.get(name) for name in code.co_varnames[:count]]


class Watch:
    """Notes every function of the library that the caption enters."""

    def __init__(self) -> None:
        self.on = False
        self.found: Found = defaultdict(set)

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Note a function that is entered; called by the interpreter."""
        if not self.on or event != "call":
            return
        module = str(frame.f_globals.get("__name__", ""))
        name = frame.f_code.co_qualname
        counts = module.startswith("hallujudge.") and not name.endswith((">", "__init__"))
        if counts and any(map(holds_caption, arguments(frame))):
            self.found[module].add(name)


def functions_entered(score: Callable[[], object]) -> Found:
    """Return the functions that a caption enters, by module.

    Args:
        score: Scores the caption.
    """
    watch = Watch()
    threading.setprofile(watch)
    sys.setprofile(watch)
    for watch.on in (False, True):
        score()
    watch.on = False
    sys.setprofile(None)
    threading.setprofile(None)
    return watch.found


def in_process() -> Found:
    """Return what a caption enters that a client scores."""
    with Client.embedded() as client:
        return functions_entered(
            lambda: client.score(
                "chair", responses={"42": CAPTION}, references={"42": ["cat", "couch"]}
            )
        )


def by_command() -> Found:
    """Return what a caption enters that ``hallujudge score chair`` reads, scores and writes."""
    with tempfile.TemporaryDirectory() as name, redirect_stdout(StringIO()):
        captions, objects = Path(name, "captions.jsonl"), Path(name, "objects.json")
        captions.write_text(json.dumps({"image_id": "42", "caption": CAPTION}) + "\n")
        objects.write_text(json.dumps({"42": ["cat", "couch"]}))
        given = ("-r", captions, "-R", objects, "-o", Path(name, "run"), "-q", "--overwrite")
        return functions_entered(lambda: command(["score", "chair", *map(str, given)]))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the functions")
    options = parser.parse_args()
    for way, found in (("in this process", in_process()), ("by the command", by_command())):
        count = sum(map(len, found.values()))
        print(f"a caption enters {count} functions in {len(found)} modules {way}")
        for module, names in sorted(found.items()) if options.list else ():
            print(f"{module}: {', '.join(sorted(names))}")


if __name__ == "__main__":
    main()

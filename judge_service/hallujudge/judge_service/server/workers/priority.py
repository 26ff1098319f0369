"""The priority of worker processes: others go first where cores are short."""

from __future__ import annotations

import ctypes
import os
import struct
import sys

__all__ = ["SLICE_SECONDS", "give_way"]

SLICE_SECONDS = 0.1
"""The longest time slice that Linux gives."""

_NICE = 5
# sched_setattr(2), which no module of Python has: size, policy, flags, nice, priority, slice,
# deadline, period.
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")
_KEEP_POLICY = 8
_SET_ATTRIBUTES = {"x86_64": 314, "aarch64": 274}


def give_way() -> None:
    """Let other processes go first where cores are short, for this process and those it forks.

    A nice value gives others more processor time. It does not say when: Linux lets a process that
    runs go on until the next tick of its clock, 1 to 10 ms, before one that wakes up. A process
    that asks for a longer slice than others gets as much time as before, and is interrupted at
    once. Linux before 6.12 and other systems know no slices; there the nice value has to do.
    """
    nice = os.nice(_NICE)
    number = _SET_ATTRIBUTES.get(os.uname().machine)
    if sys.platform != "linux" or number is None:
        return
    nanoseconds = int(SLICE_SECONDS * 1e9)
    attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, 0, _KEEP_POLICY, nice, 0, nanoseconds, 0, 0)
    # A system that refuses leaves the nice value.
    ctypes.CDLL(None).syscall(number, 0, attributes, 0)

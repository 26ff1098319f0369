"""The process of a command: its memory, and its standard files, which may be closed or full.

The interpreter flushes standard output and error once more when it ends. What can't be written
then costs two lines and turns the exit code into 120, whatever the command was. So a command
flushes first, says what is wrong in its own words, and leads the file to the null device.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]  # checked where it is used

STANDARD_OUTPUT, STANDARD_ERROR = 1, 2
"""The numbers of their files."""
_FAILED = 1


def run_command(command: Callable[[], int]) -> int:
    """Run the command of this process, and write what is left of its output.

    Args:
        command: Returns the exit code, or raises SystemExit with it.

    Returns:
        The exit code: 1 if all went well but standard output can't be written.
    """
    # First, before anything is opened that would get one of their numbers.
    fill_standard_files()
    # NumPy starts a thread for each core when it is imported, which takes up to a tenth of a short
    # command's time; their number may change the last digit of a sum. Models have their own.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    before = sys.stderr
    sys.stderr = _Notes.to(before)
    try:
        return _ended(command)
    finally:
        sys.stderr = before


def _ended(command: Callable[[], int]) -> int:
    code: object = None
    try:
        code = command()
    except SystemExit as err:
        # Python writes such a text itself, and ends with 1.
        if isinstance(err.code, str):
            raise
        code = err.code
    finally:
        problem = _written(sys.stdout)
    if problem is None or code in (_FAILED, 2):  # such a command has said what is wrong
        return int(code or 0)
    if not isinstance(problem, BrokenPipeError):  # the reader wants no more, as `head` does
        sys.stderr.write(f"error: {output_problem(problem)}\n")
    return _FAILED


def output_problem(error: OSError) -> str:
    """Return a sentence for an error that may concern any file that is written."""
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{error.strerror or error}: check the disk and where output goes"


def fill_standard_files() -> None:
    """Open the null device in the place of each standard file that is closed.

    Otherwise a connection, a database or a file of scores would get its number, and what libraries
    and started processes write to standard error would be sent to a client or into that file.
    """
    # The system gives the lowest free number, so that closed files are filled in their order.
    while (number := os.open(os.devnull, os.O_RDWR)) <= STANDARD_ERROR:
        # Otherwise only this process would have them: Python hands down no file by itself.
        os.set_inheritable(number, True)
    os.close(number)


def _written(stream: TextIO | None) -> OSError | None:
    """Flush a stream; lead one that can't be written to the null device, and return why."""
    if stream is None or stream.closed:  # the shell or a library closed it
        return None
    try:
        stream.flush()
    except OSError as err:
        _lead_to_null(stream)
        return err
    return None


def _lead_to_null(stream: TextIO) -> None:
    with suppress(OSError):  # what is written goes nowhere already, as in a stream without a file
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


class _Notes(io.TextIOWrapper):
    """Standard error of a command: a note that can't be written stops no work, and is dropped."""

    @classmethod
    def to(cls, stream: TextIO | None) -> TextIO:
        """Return such a stream to the same file."""
        if stream is None:  # closed by the shell; `print` would take standard output in its place
            return cls(open(STANDARD_ERROR, "wb", buffering=0, closefd=False), write_through=True)
        return cls(
            stream.buffer, encoding=stream.encoding, errors=stream.errors, line_buffering=True
        )

    def write(self, text: str, /) -> int:
        """Write a text, or drop it."""
        try:
            return super().write(text)
        except OSError:
            _lead_to_null(self)
            return len(text)

    def flush(self) -> None:
        """Write what is buffered, or drop it."""
        try:
            super().flush()
        except OSError:
            _lead_to_null(self)

    def close(self) -> None:
        """Write what is buffered; the file stays open, since it is the process's."""
        self.flush()


def memory_problem(error: BaseException) -> str | None:
    """Return what an error of too little memory means; None for every other error."""
    # Python has no error of its own for it, so that only its text tells.
    is_thread = isinstance(error, RuntimeError) and "start new thread" in str(error)
    is_full = isinstance(error, OSError) and error.errno == errno.ENOMEM
    if not (isinstance(error, MemoryError) or is_thread or is_full):
        return None
    most = address_space()
    limit = f"it may use {most >> 20} MiB (ulimit -v); raise that" if most else "free some"
    found = str(error) or type(error).__name__
    return f"this process has too little memory ({found}): {limit}, and try again"


def address_space() -> int | None:
    """Return how many bytes ``ulimit -v`` lets this process use; None for no limit."""
    if resource is None:
        return None
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if most == resource.RLIM_INFINITY else most

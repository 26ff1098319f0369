"""Objects that take seconds to load, loaded once for all threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

__all__ = ["SharedLoads"]

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


class SharedLoads(Generic[_K, _V]):
    """What was loaded last, by key; safe to use from several threads.

    A caller that asks while a load runs waits for it and gets the same object, or the same error. A
    failed load is forgotten, so that a later caller tries again.

    Args:
        kept: Things kept at most; the one that was asked for the longest ago goes first.
    """

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._loads: OrderedDict[_K, Future[_V]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: _K, load: Callable[[], _V]) -> _V:
        """Return the object of a key, loaded in this thread unless it is loaded already.

        Args:
            key: Which thing.
            load: Loads it. No lock is held meanwhile: other keys do not wait for it.
        """
        with self._lock:
            future = self._loads.get(key)
            mine = future is None
            if future is None:
                future = self._loads[key] = Future()
            self._loads.move_to_end(key)
            while len(self._loads) > self._kept:
                self._loads.popitem(last=False)
        if mine:
            self._run(key, future, load)
        return future.result()

    def _run(self, key: _K, future: Future[_V], load: Callable[[], _V]) -> None:
        try:
            future.set_result(load())
        except BaseException as err:  # those who wait must hear of an interrupt as well
            with self._lock:
                if self._loads.get(key) is future:
                    del self._loads[key]
            future.set_exception(err)

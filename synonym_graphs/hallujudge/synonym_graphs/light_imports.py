"""Import the few modules of nltk and textblob that matching needs, and nothing else of them.

``import nltk`` imports scikit-learn, scipy and pandas where they are installed, which takes seconds
of processor time at the start of every command. The tokenisers and the singular rule need none of
them.
"""

from __future__ import annotations

import sys
import threading
from functools import cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

_PACKAGES = ("nltk", "nltk.tokenize")
_MODULES = ("nltk.tokenize.punkt", "nltk.tokenize.destructive")
_lock = threading.RLock()


class _LazyPackage(ModuleType):
    """A package whose own code has not run yet, although some of its modules are imported.

    ``import nltk`` elsewhere in this process keeps its meaning: the first use of a name that only
    nltk's own start defines, or of another of its modules, runs that start.
    """

    def __getattr__(self, name: str) -> Any:
        with _lock:
            if type(self) is not _LazyPackage:
                return getattr(self, name)
            if "__path__" in vars(self) and find_spec(f"{self.__name__}.{name}") is not None:
                # One of our modules asks for another one: ``from nltk import pathsec``.
                return import_module(f"{self.__name__}.{name}")
            # nltk's own start first: it runs those of its packages in an order of its own.
            for package in map(sys.modules.get, _PACKAGES):
                if type(package) is _LazyPackage and type(self) is _LazyPackage:
                    package._start()
        return getattr(self, name)

    def _start(self) -> None:
        spec = self.__spec__
        assert spec is not None, "module_from_spec sets it"
        assert spec.loader is not None, "packages have one"
        # From here on it is an ordinary package.
        self.__class__ = ModuleType  # type: ignore[assignment]  # its base, on purpose
        self.__path__ = list(spec.submodule_search_locations or ())
        spec.loader.exec_module(self)


def load_tokenizers() -> None:
    """Import nltk's tokenisers without running ``nltk/__init__.py`` and ``nltk/tokenize``'s.

    Where nltk is imported already, they are imported from there.
    """
    with _lock:
        packages = [_lazy(name) for name in _PACKAGES]
        for name in _MODULES:
            import_module(name)
        for package in packages:
            if type(package) is _LazyPackage:
                # Another module of nltk needs its start first. Without a path, the import system
                # looks for one, which runs the start.
                del package.__path__


def _lazy(name: str) -> ModuleType | None:
    """Return a package of nltk whose code has not run; None if it is imported or not installed."""
    parent, _, own = name.rpartition(".")
    started = parent and type(sys.modules.get(parent)) is not _LazyPackage
    spec = None if name in sys.modules or started else find_spec(name)
    if spec is None:
        return None
    package = module_from_spec(spec)
    package.__class__ = _LazyPackage
    sys.modules[name] = package
    if parent:
        setattr(sys.modules[parent], own, package)
    return package


@cache
def textblob_inflect() -> ModuleType:
    """Return textblob's ``en/inflect.py``, which imports nothing but the standard library.

    Raises:
        ModuleNotFoundError: textblob is not installed.
    """
    package = find_spec("textblob")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("No module named 'textblob'", name="textblob")
    file = Path(package.origin).parent / "en" / "inflect.py"
    spec = spec_from_file_location(f"{__name__}.inflect", file)
    assert spec is not None, "a .py file has one"
    assert spec.loader is not None, "a .py file has one"
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

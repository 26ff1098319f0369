"""The list of metric families, which every layer uses, and benchmarks from outside.

A family is a module or package of the same name in ``metrics``. One of closed questions names its
declaration ``BENCHMARK``, or lists several in ``BENCHMARKS``; another one also has a module in
``engine/families``, ``archives`` and ``cli``.

A benchmark from outside is declared in a file that the user names, or in an installed package that
registers it. It becomes a family of its own.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import format_exception
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import structs

from .errors import BenchmarkError
from .framework.signature import declarations, folders

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

    from .answers.closed_questions import Answer, AnswerParser, ClosedQuestions, Parsed
    from .framework.metric import Metric

    Source: TypeAlias = "str | Path | ClosedQuestions"

# What else is in the package.
_HOUSE = {"answers", "calibration", "errors", "families", "framework", "responses"}


def _shipped() -> list[str]:
    """Return the names of the families' modules and packages, sorted, without importing them."""
    found = Path(__file__).parent.glob("[a-z]*")
    names = {path.stem for path in found if path.suffix == ".py" or (path / "__init__.py").exists()}
    return sorted(names - _HOUSE)


FAMILIES = _shipped()
"""Names of the families, in the order of tables and listings."""
ENTRY_POINTS = "hallujudge.benchmarks"
"""The entry point group of packages that declare benchmarks."""
# 64 bits are enough to tell declarations apart.
_HASH_BYTES = 8
_NAME = re.compile("[a-z][a-z0-9]*(-[a-z0-9]+)*")
DECLARATION = "declaration"
"""The option by which a caller sends a server the hash of its declaration."""
OUTSIDE: dict[str, ClosedQuestions] = {}
"""Family -> a declaration from outside. What remembers metrics depends on it: a file that is added
again is another one."""
# Family -> what declares it.
_declared_in: dict[str, str] = {}
_sources: dict[str, None] = {}
# Names of the modules that declare them.
_modules: set[str] = set()
# Whether installed packages are still to be asked, and may be.
_waiting = [True]
_broken: dict[str, str] = {}


def families() -> list[str]:
    """Return the names of all families, with those of installed packages that can be used."""
    # Taken out first, since adding a benchmark asks for the families too.
    if _waiting.pop() if _waiting else False:
        for name in dict.fromkeys(entry.name for entry in _installed()):
            try:
                add_benchmarks([name])
            except BenchmarkError as err:
                # A package that is broken must not keep others from being scored.
                _broken[name] = str(err)
    return FAMILIES


def broken_benchmarks() -> Mapping[str, str]:
    """Return installed benchmarks that can't be used, by name, with the reason of each."""
    families()
    return _broken


def add_benchmarks(sources: Iterable[Source], *, alone: bool = False) -> None:
    """Add benchmarks from outside. One that was added before stays as it is.

    Args:
        sources: Declarations, Python files with one in ``BENCHMARK`` or several in
            ``BENCHMARKS``, which are run, or names of installed ones.
        alone: Whether this process is to know no other installed ones, as a server must not.

    Raises:
        BenchmarkError: A file or package can't be loaded, declares none, or a name is taken.
    """
    if alone:
        # Or a request that names an installed benchmark would run its package's code.
        _waiting.clear()
    for source in sources:
        if not isinstance(source, (str, Path)):
            _check(source, "the program")
            _add([source], "the program")
        elif (name := _full(source)) not in _sources:
            before = dict(folders)
            try:
                found, text = _declared(name)
                _add(
                    found, name, blake2b(text, digest_size=_HASH_BYTES).hexdigest() if text else ""
                )
            except BenchmarkError:
                # A paper beside a refused file is not that of a later declaration of the name.
                folders.clear()
                folders.update(before)
                raise
            _sources[name] = None


def declaration_hash(metric: str) -> str:
    """Return the hash of the file or module that declares a benchmark from outside, or empty."""
    return declarations.get(metric, "")


def benchmark_name_fault(name: str) -> str:
    """Return why a new benchmark can't have a name, and the next step; empty if it can."""
    if not _NAME.fullmatch(name):
        return f"{name!r} is no name of a benchmark; give small letters, digits and hyphens"
    if name.replace("-", "_") in families():
        return f"the name {name} is taken; give another one"
    return ""


def added_sources() -> tuple[str, ...]:
    """Return the files and names that were added, for other processes of the same run."""
    return tuple(_sources)


def declaring_line(error: BaseException) -> str:
    """Return the file and line of a benchmark from outside whose code raised an error, or empty."""
    files = [file for name in _modules if (file := getattr(sys.modules.get(name), "__file__", ""))]
    # An error of another process brings its frames as text.
    lines = "".join(format_exception(error)).splitlines()
    found = re.compile(rf' *File "({"|".join(map(re.escape, files))})", line (\d+)')
    # The last line is the nearest to the error.
    places = [match for line in reversed(lines) if files and (match := found.match(line))]
    return ":".join(places[0].groups()) if places else ""


def remove_benchmarks() -> None:
    """Forget all benchmarks from outside, so that a changed file can be added again."""
    for family in OUTSIDE:
        # The list itself is changed, since other modules have imported it.
        FAMILIES.remove(family)
    OUTSIDE.clear()
    declarations.clear()
    _declared_in.clear()
    _sources.clear()
    _modules.clear()
    _broken.clear()
    folders.clear()


def has_module(package: str | None, family: str) -> bool:
    """Return whether a package has a module of a family; benchmarks from outside have none."""
    return family not in OUTSIDE and find_spec(f"{package}.{family}") is not None


def _add(found: Iterable[ClosedQuestions], source: str, digest: str = "") -> None:
    # All are looked at first: of a refused file, none is known.
    for declared in [each for each in found if _is_new(each, source, digest)]:
        family = declared.name.replace("-", "_")
        if digest:
            # Variants with one parser have one parser then too.
            parsers = {v.parse: _guarded(declared.name, v.parse) for v in declared.variants}
            variants = tuple(structs.replace(v, parse=parsers[v.parse]) for v in declared.variants)
            declarations[declared.name] = digest
            OUTSIDE[family] = structs.replace(declared, variants=variants)
        else:
            OUTSIDE[family] = declared
        _declared_in[family] = source
        FAMILIES.append(family)


def _is_new(declared: ClosedQuestions, source: str, digest: str) -> bool:
    """Return whether a declaration is not known yet; refuse it if its name is taken."""
    family = declared.name.replace("-", "_")
    known = declaration_hash(declared.name)
    # Two paths may lead to one file, and a package and a file may hold the same text.
    if OUTSIDE.get(family) is declared or (digest and digest == known):
        return False
    if known:
        raise BenchmarkError(
            f"{source} declares {declared.name} in another way than {_declared_in[family]} does: "
            f"their hashes are {digest or 'unknown'} and {known}. Name one of the two, or rename "
            "one benchmark"
        )
    if not _NAME.fullmatch(declared.name) or family in FAMILIES:
        raise BenchmarkError(f"{source}: {benchmark_name_fault(declared.name)}")
    return True


def _guarded(name: str, parse: AnswerParser) -> AnswerParser:
    """Return a parser whose errors name its benchmark and the response."""

    def parse_answer(answer: Answer) -> Parsed:
        try:
            return parse(answer)
        # A parser that ends its process would end the command without a word.
        except (Exception, SystemExit) as err:
            raise BenchmarkError(
                f"the parser of {name} raised {type(err).__name__} ({err}) for the response "
                f"{answer.response!r:.60}"
            ) from err

    return parse_answer


def _check(declared: ClosedQuestions, source: str) -> None:
    """Refuse a declaration that can't be scored by."""
    from .answers.declaration_check import declaration_fault

    if fault := declaration_fault(declared):
        raise BenchmarkError(f"{source}: the benchmark {declared.name!r:.60}: {fault}")


def _full(source: str | Path) -> str:
    """Return a file's whole path; a name as it is."""
    path = Path(source)
    return str(path.resolve()) if path.suffix == ".py" else str(source)


def _declared(source: str) -> tuple[list[ClosedQuestions], bytes]:
    """Return the benchmarks of a source, and its text, on which every number depends."""
    from .answers.closed_questions import ClosedQuestions
    from .answers.declaration_check import loading_fault

    try:
        found, module = _loaded(source)
    except BenchmarkError:
        raise
    # A file that ends its process would end the command without a word.
    except (Exception, SystemExit) as err:
        raise BenchmarkError(
            f"the benchmark {source} can't be loaded: {loading_fault(err)}"
        ) from err
    listed = list(found) if isinstance(found, (list, tuple)) else [found]
    declared = list(dict.fromkeys(each for each in listed if isinstance(each, ClosedQuestions)))
    if not declared or not all(isinstance(each, ClosedQuestions) for each in listed):
        raise BenchmarkError(
            f"{source} declares no benchmark; name a ClosedQuestions BENCHMARK, or list several in "
            "BENCHMARKS"
        )
    _modules.add(module.__name__)
    file = Path(module.__file__ or "")
    for each in declared:
        # Where the file of its paper is.
        folders[each.name] = file.parent
        _check(each, source)
    names = [each.name for each in declared]
    if repeated := next((name for name in names if names.count(name) > 1), ""):
        raise BenchmarkError(f"{source} declares {repeated} twice; rename one benchmark")
    # By lines, so that a file checked out with other line ends is the same declaration.
    return declared, b"\n".join(file.read_bytes().splitlines()) if file.is_file() else b""


class _TextOfNow(SourceFileLoader):
    """Runs the text that the signature is of, and leaves no files beside it.

    Python's own cache knows a text by its size and the second of its last change: an edit within
    one second that keeps the size would run the text before it.
    """

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - Python passes it
        return self.source_to_code(self.get_data(self.path), self.path)


def _loaded(source: str) -> tuple[object, ModuleType]:
    """Return what a file declares, or what an entry point names, and its module."""
    if source.endswith(".py"):
        if not Path(source).is_file():
            raise BenchmarkError(f"{source}: no such file; name a Python file with a BENCHMARK")
        # Functions of the module find it by its name.
        name = f"hallujudge_benchmark_{len(_sources)}"
        spec = spec_from_file_location(name, source, loader=_TextOfNow(name, source))
        assert spec is not None, "a file with a loader has a spec"
        assert spec.loader is not None, "its loader is the one above"
        module = sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(module)
        return _listed_in(module), module
    installed = _installed()
    for entry in installed.select(name=source):
        found = entry.load()
        return _listed_in(found, found), import_module(entry.module)
    known = ", ".join(sorted(installed.names)) or "none"
    raise BenchmarkError(
        f"no installed benchmark is named {source!r}; installed: {known}. A file's name ends in .py"
    )


def _installed() -> EntryPoints:
    """Return the benchmarks that installed packages register."""
    # It brings a parser of mails, and a client needs no list of the metrics.
    from importlib.metadata import entry_points

    return entry_points(group=ENTRY_POINTS)


def benchmarks_of(family: str) -> tuple[ClosedQuestions, ...]:
    """Return the benchmarks that a family declares; empty if it is not one of closed questions."""
    if family in OUTSIDE:
        return (OUTSIDE[family],)
    found: Any = _listed_in(import_module(f".{family}", __package__))
    return found if isinstance(found, tuple) else (found,)


def _listed_in(module: object, otherwise: object = ()) -> object:
    """Return what a module lists in ``BENCHMARKS``, or else its one ``BENCHMARK``."""
    return getattr(module, "BENCHMARKS", getattr(module, "BENCHMARK", otherwise))


def benchmark_named(metric: str) -> ClosedQuestions | None:
    """Return the declaration of a metric; None if the metric is not one of closed questions."""
    own = _begun_by(metric, FAMILIES)
    declared = (found for family in own or families() for found in benchmarks_of(family))
    return next((found for found in declared if found.name == metric), None)


def family_of(metric: str) -> str:
    """Return the family that has a metric; empty if none has."""
    own = _begun_by(metric, FAMILIES)
    return next((f for f in own if metric in [found.name for found in metrics_of(f)]), "")


def metric_named(name: str) -> type[Metric] | None:
    """Return a metric; None if there is none of this name."""
    return _metric_named(name, (*FAMILIES, *OUTSIDE.values())) or next(
        (found for family in families() for found in metrics_of(family) if found.name == name), None
    )


# Callers choose names, so that only the last ones are kept.
@lru_cache(64)
def _metric_named(name: str, _known: tuple[object, ...]) -> type[Metric] | None:
    # Only the cache looks at _known: a benchmark that is added later changes its key.
    own = _begun_by(name, FAMILIES)
    return next((f for family in own for f in metrics_of(family) if f.name == name), None)


def _begun_by(metric: str, known: Iterable[str]) -> list[str]:
    """Return the families that may have a metric, so that no other one is imported."""
    return [family for family in known if metric.startswith(family.replace("_", "-"))]


def metrics_of(family: str) -> tuple[type[Metric], ...]:
    """Return the metrics of a family: those of its declarations, or those that its module has."""
    # Imported here, since metrics name families.
    from .answers.declared_metrics import metric_of
    from .framework.metric import Metric

    if declared := benchmarks_of(family):
        return tuple(map(metric_of, declared))
    module = import_module(f".{family}", __package__)
    classes = [found for found in vars(module).values() if isinstance(found, type)]
    own = (found for found in classes if found.__module__ == module.__name__)
    return tuple(found for found in own if issubclass(found, Metric))


def __getattr__(name: str) -> type[Metric]:
    """Return the class of a declared benchmark's metric, by which pickle finds it."""
    # Each import from here asks for names such as __path__, and must load no benchmarks for them.
    if not name.endswith("Metric"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .answers.declared_metrics import class_name

    for family in families():
        # The names of a family's benchmarks begin with its own. Others need not be loaded.
        if name.startswith(class_name(family.replace("_", "-")).removesuffix("Metric")):
            for metric in metrics_of(family):
                if class_name(metric.name) == name:
                    return metric
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def metric_names() -> tuple[str, ...]:
    """Return the names of all metrics, in the order of tables and listings."""
    return tuple(found.name for family in families() for found in metrics_of(family))

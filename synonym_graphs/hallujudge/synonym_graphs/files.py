"""Graph files: loading by name or path, and released ``.pkl`` graphs, read without unpickling."""

from __future__ import annotations

import os
import pickletools
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .graph import (
    MAX_BYTES,
    MAX_FORMS,
    GraphFormatError,
    GraphInvalidError,
    GraphNotFoundError,
    SynonymGraph,
    validate_graph,
)
from .graph_parser import Layout, parse_graph
from .json_layouts import released_graph

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_KindT = TypeVar("_KindT")
_SUFFIX: Final = ".json"
_PICKLES: Final = (".pkl", ".pickle")


@cache
def _data() -> Traversable:
    """Return the folder of the graphs that come with the package."""
    from importlib import resources

    return resources.files("hallujudge.synonym_graphs") / "data"


@cache
def shipped_graphs() -> tuple[str, ...]:
    """Return the names of the graphs that come with the package, sorted."""
    return tuple(
        sorted(
            entry.name.removesuffix(_SUFFIX)
            for entry in _data().iterdir()
            if entry.name.endswith(_SUFFIX)
        )
    )


def load_graph(name_or_path: str | os.PathLike[str]) -> SynonymGraph:
    """Load a shipped graph by its name, or any graph file by its path, and validate it.

    Text that equals the name of a shipped graph loads that graph. Any other text, and every path
    object, is a path.

    Raises:
        GraphNotFoundError: No shipped graph and no file has this name.
        GraphFormatError: The file cannot be read as a graph.
        GraphInvalidError: The graph contradicts itself.
    """
    value = os.fspath(name_or_path)
    if isinstance(name_or_path, str) and value in shipped_graphs():
        return _shipped(value)
    if not value:
        raise GraphNotFoundError(value, shipped=shipped_graphs())
    return graph_from_bytes(_read(Path(value), value), name=Path(value).stem or value, source=value)


def graph_from_bytes(data: bytes, *, name: str, source: str) -> SynonymGraph:
    """Parse and validate the content of a graph file: text of any layout, or a released pickle.

    Args:
        data: The content. It is untrusted: nothing in it is executed, and its size is limited.
        name: The name of a released graph in error messages.
        source: The name of the content in error messages.

    Raises:
        GraphFormatError: The content cannot be read as a graph.
        GraphInvalidError: The graph contradicts itself.
    """
    if is_pickle(data) or source.endswith(_PICKLES):
        words = read_released_pickle(data, source=source)
        return _checked(released_graph(words, name=name))
    # Any text is a valid table, so the suffix keeps a broken JSON file from being read as one.
    layout: Layout = "json" if source.lower().endswith(_SUFFIX) else "auto"
    return _checked(parse_graph(_decoded(data, source), layout=layout, name=name))


@lru_cache(maxsize=32)
def _shipped(name: str) -> SynonymGraph:
    text = (_data() / f"{name}{_SUFFIX}").read_text("utf-8")
    return _checked(parse_graph(text, layout="json", name=name))


def _checked(graph: SynonymGraph) -> SynonymGraph:
    problems = validate_graph(graph)
    if problems:
        raise GraphInvalidError(problems, name=graph.name)
    return graph


def _read(path: Path, shown: str) -> bytes:
    """Return the content of a file, and refuse one that is larger than the limit."""
    try:
        with path.open("rb") as file:
            # A device that is named by mistake has no end.
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError) as err:
        raise GraphNotFoundError(shown, shipped=shipped_graphs()) from err
    except IsADirectoryError as err:
        raise GraphFormatError("is a directory; give a graph file in it", source=shown) from err
    except (OSError, ValueError) as err:
        # A path with a null character or of excessive length cannot name a file.
        if isinstance(err, ValueError) or not path.is_absolute():
            raise GraphNotFoundError(shown, shipped=shipped_graphs()) from err
        raise GraphFormatError(f"cannot be read ({err.strerror})", source=shown) from err
    if len(data) > MAX_BYTES:
        raise GraphFormatError(
            f"more than {MAX_BYTES} bytes; check that it is a graph, or split it", source=shown
        )
    return data


def _decoded(data: bytes, source: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        line = data.count(b"\n", 0, err.start) + 1
        raise GraphFormatError(
            f"not UTF-8 (byte {data[err.start]:#04x}); save it as UTF-8",
            source=source,
            place=f"line {line}",
        ) from err


# The two classes that released files name.
_PLACEHOLDERS: Final = frozenset({("__main__", "ObjectGraph"), ("__main__", "ActionGraph")})
# Room for MAX_FORMS forms at about eight opcodes each.
_MAX_OPCODES: Final = 4_000_000
# Opcodes by what they do: push a text, write and read the memo, nothing.
_TEXTS: Final = frozenset({"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE"})
_PUTS: Final = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})
_GETS: Final = frozenset({"GET", "BINGET", "LONG_BINGET"})
_SILENT: Final = frozenset({"PROTO", "FRAME"})
_MARK: Final = object()


class _Instance:
    """A placeholder for the released graph object: it has a state and no behaviour."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state: object = None


class _ClassName:
    """A placeholder for a named class; it cannot be called."""

    __slots__ = ()


def is_pickle(data: bytes) -> bool:
    """Return whether bytes are a pickle of any protocol; nothing in them is executed.

    From protocol 2 on, the first byte identifies a pickle. Older pickles are text, which could be
    mistaken for a table. They are recognised by being opcodes up to the final full stop.
    """
    return data[:1] == b"\x80" or _is_old_pickle(data.rstrip())


def read_released_pickle(data: bytes, *, source: str) -> dict[str, dict[str, list[str]]]:
    """Return the content of a released graph: ``{word: {second word or '': [roots]}}``.

    Args:
        data: The file's bytes; nothing in them is executed.
        source: The name of the file in error messages.

    Raises:
        GraphFormatError: The file is not such a graph, is too large, or names a class or function.
    """
    if len(data) > MAX_BYTES:
        raise GraphFormatError(
            f"more than {MAX_BYTES} bytes; a released graph is smaller", source=source
        )
    value = _Machine(source).run(data)
    if isinstance(value, _Instance):
        state = value.state
        # The release pickled an object whose one attribute is the graph.
        value = state.get("graph") if isinstance(state, dict) else None
    return _plain_words(value, source)


def _plain_words(value: object, source: str) -> dict[str, dict[str, list[str]]]:
    """Return a copy of the graph that has only dicts, lists and strings and a limited size.

    A few bytes of a pickle can refer to one list a million times.
    """
    plain: dict[str, dict[str, list[str]]] = {}
    count = 0
    if not isinstance(value, dict):
        raise GraphFormatError("is not a graph: expected a dict of words", source=source)
    for word, ways in value.items():
        if not isinstance(ways, dict):
            raise GraphFormatError(f"{word!r:.60} has no dict of roots", source=source)
        for second, roots in ways.items():
            if not isinstance(roots, list) or not all(isinstance(root, str) for root in roots):
                raise GraphFormatError(f"{word!r:.60} has no list of roots", source=source)
            count += 1 + len(roots)
            if count > MAX_FORMS:
                raise GraphFormatError(f"more than {MAX_FORMS} entries", source=source)
            plain.setdefault(word, {})[second] = list(roots)
    return plain


class _Machine:
    """Interprets the opcodes that a graph of dicts, lists and strings needs.

    A pickle is a program, and unpickling an untrusted file executes untrusted code. Only the
    opcodes that occur in the released graphs are interpreted. They build dicts, lists and strings,
    and one inert placeholder for the class that the release pickled. Every other opcode and every
    other name is refused before it has an effect.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._stack: list[Any] = []
        self._memo: dict[int, object] = {}

    def run(self, data: bytes) -> object:
        try:
            for count, (name, argument, place) in enumerate(_opcodes(data)):
                if count > _MAX_OPCODES:
                    raise self._error(f"more than {_MAX_OPCODES} steps", place)
                if name == "STOP":
                    return self._stack.pop()
                self._step(name, argument, place)
        # It is a ValueError too, which the next clause would wrap in another message.
        except GraphFormatError:
            raise
        except (ValueError, IndexError, KeyError, TypeError, AttributeError) as err:
            raise GraphFormatError(
                "cannot be read as a pickle: it is another file, damaged or cut off; download it "
                "again, or give the graph as JSON",
                source=self._source,
            ) from err
        raise GraphFormatError("the pickle has no end; download it again", source=self._source)

    def _step(self, name: str, argument: Any, place: int) -> None:
        stack = self._stack
        if name in _SILENT:
            return
        if name in _TEXTS:
            stack.append(str(argument))
        elif name in _PUTS:
            self._memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = stack[-1]
        elif name in _GETS:
            stack.append(self._memo[argument])
        elif name in _MAKE:
            stack.append(_MAKE[name]())
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            self._name(name, argument, place)
        elif name in _FILL:
            _FILL[name](self)
        else:
            raise self._error(
                f"the opcode {name} builds something other than dicts, lists and strings", place
            )

    def _name(self, opcode: str, argument: Any, place: int) -> None:
        """Push a placeholder for a released class, and refuse every other class or function."""
        if opcode == "GLOBAL":
            module, _, name = str(argument).partition(" ")
        else:
            name, module = self._stack.pop(), self._stack.pop()
        if (module, name) not in _PLACEHOLDERS:
            raise self._error(
                f"names {module}.{name}, which is refused: a graph needs no class or function. "
                "Nothing was executed",
                place,
            )
        self._stack.append(_ClassName())

    def _new(self) -> None:
        arguments, cls = self._stack.pop(), self._stack.pop()
        if arguments != () or not isinstance(cls, _ClassName):
            raise ValueError("an object is not of the released class")
        self._stack.append(_Instance())

    def _build(self) -> None:
        state = self._stack.pop()
        target = self._stack[-1]
        if not isinstance(target, _Instance):
            raise ValueError("a state is set on a value that is not an object")  # noqa: TRY004  # of the file
        target.state = state

    def _set_item(self) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        _of_kind(dict, self._stack[-1])[_of_kind(str, key)] = value

    def _set_items(self) -> None:
        values = self._behind_mark()
        target = _of_kind(dict, self._stack[-1])
        for key, value in zip(values[::2], values[1::2], strict=True):
            target[_of_kind(str, key)] = value

    def _append(self) -> None:
        value = self._stack.pop()
        _of_kind(list, self._stack[-1]).append(value)

    def _appends(self) -> None:
        values = self._behind_mark()
        _of_kind(list, self._stack[-1]).extend(values)

    def _make_dict(self) -> None:
        values = self._behind_mark()
        pairs = zip(values[::2], values[1::2], strict=True)
        self._stack.append({_of_kind(str, key): value for key, value in pairs})

    def _make_list(self) -> None:
        self._stack.append(self._behind_mark())

    def _behind_mark(self) -> list[object]:
        values = []
        while (value := self._stack.pop()) is not _MARK:
            values.append(value)
        return values[::-1]

    def _error(self, problem: str, place: int) -> GraphFormatError:
        return GraphFormatError(problem, source=self._source, place=f"byte {place}")


_MAKE: Final[Mapping[str, Callable[[], object]]] = {
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "MARK": lambda: _MARK,
}
_FILL: Final = {
    "NEWOBJ": _Machine._new,
    "BUILD": _Machine._build,
    "SETITEM": _Machine._set_item,
    "SETITEMS": _Machine._set_items,
    "APPEND": _Machine._append,
    "APPENDS": _Machine._appends,
    "DICT": _Machine._make_dict,
    "LIST": _Machine._make_list,
}


def _opcodes(data: bytes) -> Iterator[tuple[str, Any, int]]:
    for opcode, argument, place in pickletools.genops(data):
        # genops knows no place in streams that can't tell it; bytes always can.
        yield opcode.name, argument, place or 0


def _is_old_pickle(data: bytes) -> bool:
    if not data.endswith(b".") or len(data) > MAX_BYTES:
        return False
    try:
        *_, (name, _, place) = _opcodes(data)
    except ValueError:
        return False
    return name == "STOP" and place == len(data) - 1


def _of_kind(kind: type[_KindT], value: object) -> _KindT:
    """Return a value that an opcode needs to be a dict, a list or a string."""
    if not isinstance(value, kind):
        raise ValueError(f"a value is not a {kind.__name__}")  # noqa: TRY004  # of the file
    return value

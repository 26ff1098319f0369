"""Reading of WordNet's database files: the senses of a word, and their hypernyms.

The layout is that of ``wndb(5)``: an index with one line for each lemma, a data file with one line
for each synset at the byte offset that identifies it, and a list of irregular forms. The package
does not contain or download a database. It uses a folder that is given, the folder of Debian's
``wordnet-base``, or nltk's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from ..errors import GraphFormatError

__all__ = ["Synset", "WordNet", "find_wordnet", "open_wordnet"]

_POS: Final = {"objects": "noun", "behaviors": "verb"}
_PLACES: Final = ("/usr/share/wordnet", "/usr/local/share/wordnet", "/opt/local/share/WordNet-3.0")
_MAX_BYTES: Final = 64 << 20
_MAX_SENSES: Final = 64
_HYPERNYM: Final = ("@", "@i")
_ENDINGS: Final = {
    "noun": (("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"),
             ("men", "man"), ("ies", "y")),
    "verb": (("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""),
             ("ing", "e"), ("ing", "")),
}  # fmt: skip
"""The detachment rules of morphy(7): an ending, and its replacement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Synset:
    """A set of synonyms."""

    offset: int
    """The byte offset in the data file, which identifies the synset."""
    words: tuple[str, ...]
    """The words in lower case, with blanks."""
    hypernyms: tuple[int, ...]
    """The offsets of its hypernyms."""


class _Part:
    """The files of one part of speech."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name

    def offsets(self, lemma: str) -> tuple[int, ...]:
        """Return the offsets of a lemma's synsets, the commonest sense first; empty if unknown."""
        if not lemma:
            return ()
        key = b"\n" + lemma.replace(" ", "_").encode("ascii", "replace") + b" "
        at = self._index.find(key)
        if at < 0:
            return ()
        line = self._index[at + 1 : self._index.find(b"\n", at + 1)]
        # lemma pos synset_count pointer_count pointers… sense_count tagged_count offsets…
        fields = line.decode("latin-1").split()
        try:
            count, pointers = int(fields[2]), int(fields[3])
            found = [int(field) for field in fields[6 + pointers :][:_MAX_SENSES]]
        except (IndexError, ValueError) as err:
            raise self._broken("index", f"of {lemma!r}") from err
        if len(found) != min(count, _MAX_SENSES):
            raise self._broken("index", f"of {lemma!r}")
        return tuple(found)

    def synset(self, offset: int) -> Synset:
        """Return the synset at an offset."""
        line = self._data[offset : self._data.find(b"\n", offset)]
        # offset file type word_count(hex) (word id)… pointer_count (sign offset pos words)… | gloss
        fields = line.partition(b"|")[0].decode("latin-1").split()
        try:
            if int(fields[0]) != offset:
                raise ValueError("the line has another offset")
            end = 4 + 2 * int(fields[3], 16)
            pointers = [fields[i : i + 2] for i in range(end + 1, len(fields), 4)]
            return Synset(
                offset=offset,
                words=tuple(word.replace("_", " ").lower() for word in fields[4:end:2]),
                hypernyms=tuple(int(to) for sign, to in pointers[: int(fields[end])]
                                if sign in _HYPERNYM),
            )  # fmt: skip
        except (IndexError, ValueError) as err:
            raise self._broken("data", f"at byte {offset}") from err

    def bases(self, form: str) -> Iterator[str]:
        """Yield the form itself and its possible base forms."""
        yield form
        yield from self._irregular.get(form, ())
        for ending, instead in _ENDINGS[self._name]:
            if form.endswith(ending) and len(form) > len(ending):
                yield form.removesuffix(ending) + instead

    def _broken(self, file: str, place: str) -> GraphFormatError:
        return GraphFormatError(
            "is not a WordNet database file, or is damaged; give the folder of an intact database",
            source=str(self._folder / f"{file}.{self._name}"),
            place=place,
        )

    @cached_property
    def _index(self) -> bytes:
        return b"\n" + _bytes_of(self._folder / f"index.{self._name}")

    @cached_property
    def _data(self) -> bytes:
        return _bytes_of(self._folder / f"data.{self._name}")

    @cached_property
    def _irregular(self) -> dict[str, tuple[str, ...]]:
        path = self._folder / f"{self._name}.exc"
        text = _bytes_of(path).decode("latin-1") if path.is_file() else ""
        lines = (line.replace("_", " ").split() for line in text.splitlines())
        return {line[0]: tuple(line[1:]) for line in lines if line}


class WordNet:
    """A WordNet database.

    Args:
        folder: The folder with ``index.noun``, ``data.noun`` and the files for verbs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._parts = {kind: _Part(folder, name) for kind, name in _POS.items()}

    def senses(self, word: str, kind: str) -> list[Synset]:
        """Return the senses of a word, or else of its base form; the commonest comes first.

        Args:
            word: The word, with blanks.
            kind: ``objects`` (nouns) or ``behaviors`` (verbs).

        Raises:
            GraphFormatError: A file is missing or damaged.
        """
        part = self._parts[kind]
        found = next((offsets for base in part.bases(word) if (offsets := part.offsets(base))), ())
        return [part.synset(offset) for offset in found]

    def rank(self, word: str, synset: Synset, kind: str) -> int:
        """Return how many senses of a synset's word are commoner than the synset.

        Raises:
            GraphFormatError: A file is missing or damaged.
        """
        offsets = self._parts[kind].offsets(word)
        return offsets.index(synset.offset) if synset.offset in offsets else len(offsets)

    def kinds_of(self, synset: Synset, kind: str) -> list[Synset]:
        """Return the hypernyms of a synset, one step up."""
        return [self._parts[kind].synset(offset) for offset in synset.hypernyms]


def open_wordnet(folder: Path) -> WordNet:
    """Return the database in a folder.

    Raises:
        GraphFormatError: The folder has no WordNet database.
    """
    if not _is_database(folder):
        raise GraphFormatError(
            "has no WordNet database; give a folder with index.noun and data.noun",
            source=str(folder),
        )
    return WordNet(folder)


def find_wordnet() -> WordNet | None:
    """Return the WordNet database of this machine, or None.

    It looks in the usual system folders and then in nltk's.
    """
    found = next((path for path in map(Path, _PLACES) if _is_database(path)), None)
    if found is None:
        from nltk import data

        places = (Path(path) / "corpora" / "wordnet" for path in data.path)
        found = next((path for path in places if _is_database(path)), None)
    return None if found is None else WordNet(found)


def _is_database(folder: Path) -> bool:
    return all((folder / name).is_file() for name in ("index.noun", "data.noun"))


def _bytes_of(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
    except OSError as err:
        raise GraphFormatError(
            f"cannot be read ({err.strerror or err}); check its permissions", source=str(path)
        ) from err
    if len(data) > _MAX_BYTES:
        raise GraphFormatError(
            f"is larger than {_MAX_BYTES} bytes, so it is not a WordNet file", source=str(path)
        )
    return data

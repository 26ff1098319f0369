"""Suggestions of roots for keywords that a graph does not know, also from WordNet."""

from __future__ import annotations

import difflib
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final, TypeAlias

from hallujudge.synonym_graphs.graph import GraphFormatError, SynonymGraph
from hallujudge.synonym_graphs.word_forms import SMALL_WORDS, clean_word, singular

from .editing import Candidate

Similarity = Callable[[Sequence[str], Sequence[str]], Sequence[Sequence[float]]]
"""(texts, other texts) -> their similarity in meaning, one row for each of ``texts``."""

RootChooser = Callable[[Mapping[str, Sequence[str]]], Mapping[str, str]]
"""Words with candidate roots -> the chosen root of each word that belongs to a candidate."""

_SOURCES: Final = ("spelling", "words", "wordnet", "llm", "embedding")

# The scores and thresholds below are set by hand. They only order candidates for a person to decide
# on, and docs/how-to/grow-a-synonym-graph.md states how often they were wrong.
_SIMILAR_SPELLING: Final = 0.88
"""Least spelling similarity: one wrong letter of ten passes, "body" and "boy" (0.86) do not."""
_SIMILAR_MEANING: Final = 0.45
"""Least cosine similarity of embeddings; forms below it are rarely related."""
_SYNONYM: Final = 0.95
"""Score of a WordNet synonym."""
_KIND: Final = 0.8
"""Score of a word's hypernym, one step up."""
_STEP: Final = 0.92
"""Factor for each further step up."""
_RARER: Final = 0.9
"""Factor for each commoner sense of the word: "arm" rarely means a sleeve."""
_WEAKEST: Final = 0.4
"""Least score of a WordNet candidate; those below it come from rare senses."""
_PART: Final = 0.85
"""Factor for a phrase with a known main word and unknown others."""
_CHOSEN: Final = 0.88
"""Score of a language model's choice: below 0.9, so that ``--accept-above 0.9`` excludes it."""
_STEPS_UP: Final = {"objects": 6, "behaviors": 2}
"""Steps up from a sense. Verbs have fewer, since most soon lead to "move" or "act"."""
_SENSES: Final = 3
"""How many senses of a word are considered, the commonest first."""
_CHOICES: Final = 20
"""How many roots a language model chooses from."""


def suggest_roots(
    graph: SynonymGraph,
    words: Sequence[str],
    *,
    similarity: Similarity | None = None,
    wordnet: WordNet | None = None,
    choose: RootChooser | None = None,
    kind: str = "objects",
    limit: int = 5,
) -> dict[str, tuple[Candidate, ...]]:
    """Return ranked candidate roots for every word.

    A root that several sources propose has the best score and names all sources.

    Args:
        graph: The graph that lacks the words.
        words: The words.
        similarity: Compares meanings, for example by embeddings.
        wordnet: WordNet's database.
        choose: Chooses among the nearest roots, for example with a language model.
        kind: ``objects`` (nouns) or ``behaviors`` (verbs).
        limit: The maximum number of roots for each word.

    Raises:
        GraphFormatError: WordNet's files are damaged.
    """
    forms = dict(graph.edges)
    index = _word_index(forms)
    found: dict[str, list[Candidate]] = {
        word: [*_by_spelling(word, graph, forms), *_by_shared_word(word, forms, index, kind)]
        for word in words
    }
    if wordnet is not None:
        for word, candidates in wordnet_candidates(graph, words, wordnet, kind=kind).items():
            found[word] += candidates
    near: dict[str, list[Candidate]] = {}
    if similarity is not None and words and forms:
        near = _by_meaning(words, forms, similarity)
        for word, candidates in near.items():
            found[word] += (c for c in candidates if c.score >= _SIMILAR_MEANING)
    if choose is not None and words and forms:
        for word, candidate in _by_choice(graph, found, near, choose).items():
            found[word].append(candidate)
    return {word: _ranked(candidates)[:limit] for word, candidates in found.items()}


def _ranked(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    by_root: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        by_root.setdefault(candidate.root, []).append(candidate)
    ranked = [_joined(same) for same in by_root.values()]
    # Of equal scores, the root that more sources propose comes first; then by name.
    ranked.sort(key=lambda c: (-c.score, -c.source.count("+"), c.root))
    return tuple(ranked)


def _joined(same: Sequence[Candidate]) -> Candidate:
    """Return one candidate for several of the same root: the best one, with every source."""
    best = max(same, key=lambda c: (c.score, -_SOURCES.index(c.source)))
    sources = {candidate.source for candidate in same}
    named = "+".join(name for name in _SOURCES if name in sources)
    return replace(best, source=named)


def _by_spelling(
    word: str, graph: SynonymGraph, forms: Mapping[str, tuple[str, ...]]
) -> Iterator[Candidate]:
    """Return the roots of forms with a similar spelling."""
    plain = clean_word(word)
    for root in graph.roots_of(plain):
        yield Candidate(root=root, score=1.0, source="spelling", form=plain)
    for form in difflib.get_close_matches(plain, forms, n=3, cutoff=_SIMILAR_SPELLING):
        # The factor ranks spelling below meaning: "seat" and "eat" are spelt alike.
        score = 0.8 * difflib.SequenceMatcher(None, plain, form).ratio()
        for root in forms[form]:
            yield Candidate(root=root, score=score, source="spelling", form=form)


def _word_index(forms: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    index: dict[str, list[str]] = {}
    for form in forms:
        for part in set(form.split()) - SMALL_WORDS:
            index.setdefault(part, []).append(form)
    return index


def _content(word: str, kind: str) -> list[str]:
    """Return the content words of a phrase, its main word last.

    The main word is the last one of a noun phrase and the first one of a verb phrase.

    >>> _content("the wooden chairs", "objects"), _content("walk slowly", "behaviors")
    (['wooden', 'chair'], ['slowly', 'walk'])
    """
    parts = [part for part in clean_word(word).split() if part not in SMALL_WORDS]
    if kind == "behaviors":
        return parts[::-1]
    return [*parts[:-1], *(singular(part) for part in parts[-1:])]


def _by_shared_word(
    word: str, forms: Mapping[str, tuple[str, ...]], index: Mapping[str, list[str]], kind: str
) -> Iterator[Candidate]:
    """Return the roots of forms that share a word.

    A form with the same main word scores higher: a wooden chair is a chair, not a chair leg.
    """
    content = _content(word, kind)
    for part in dict.fromkeys(reversed(content)):
        # A bound on the work for words that many forms share.
        for form in index.get(part, ())[:50]:
            words = _content(form, kind)
            share = len(set(words) & set(content)) / max(len(words), len(content))
            same_head = words[-1] == content[-1]
            weight = _PART if words == content[-1:] else 0.6 + 0.3 * share if same_head else share
            for root in forms[form]:
                yield Candidate(root=root, score=weight, source="words", form=form)


def _by_meaning(
    words: Sequence[str], forms: Mapping[str, tuple[str, ...]], similarity: Similarity
) -> dict[str, list[Candidate]]:
    """Return the roots of the forms nearest in meaning, whatever their similarity."""
    names = list(forms)
    found: dict[str, list[Candidate]] = {}
    for word, row in zip(words, similarity(list(words), names), strict=True):
        near = sorted(range(len(names)), key=lambda i: -row[i])[:_CHOICES]
        found[word] = [
            Candidate(root=root, score=float(row[i]), source="embedding", form=names[i])
            for i in near
            for root in forms[names[i]]
        ]
    return found


def wordnet_candidates(
    graph: SynonymGraph, words: Iterable[str], wordnet: WordNet, *, kind: str
) -> dict[str, list[Candidate]]:
    """Return roots that are synonyms or hypernyms of a word in WordNet.

    If WordNet lacks a phrase, its main word is looked up: a ``golden spaniel`` is a dog.

    Args:
        graph: The graph that lacks the words.
        words: The words.
        wordnet: The database.
        kind: ``objects`` (nouns) or ``behaviors`` (verbs).

    Raises:
        GraphFormatError: WordNet's files are damaged.
    """
    return {word: list(_in_wordnet(graph, word, wordnet, kind)) for word in words}


def _in_wordnet(graph: SynonymGraph, word: str, wordnet: WordNet, kind: str) -> Iterator[Candidate]:
    weight, senses = 1.0, wordnet.senses(clean_word(word), kind)
    content = _content(word, kind)
    # A main word that the graph knows is proposed already, as a shared word.
    if not senses and len(content) > 1 and not graph.roots_of(content[-1]):
        weight, senses = _PART, wordnet.senses(content[-1], kind)
    for number, sense in enumerate(senses[:_SENSES]):
        for found in _upwards(graph, sense, wordnet, kind):
            score = found.score * weight * _RARER**number
            if score >= _WEAKEST:
                yield replace(found, score=score)


def _upwards(
    graph: SynonymGraph, sense: Synset, wordnet: WordNet, kind: str
) -> Iterator[Candidate]:
    """Return the roots of a sense and its hypernyms, up to the first word that the graph knows."""
    level, score = [sense], _SYNONYM
    for step in range(_STEPS_UP[kind] + 1):
        above: dict[Synset, None] = {}
        for synset in level:
            known = [(form, root) for form in synset.words for root in graph.roots_of(form)]
            for form, root in known:
                rarity = wordnet.rank(form, synset, kind)
                yield Candidate(
                    root=root, score=score * _RARER**rarity, source="wordnet", form=form
                )
            if not known:
                above |= dict.fromkeys(wordnet.kinds_of(synset, kind))
        level, score = list(above), _KIND * _STEP**step


def _by_choice(
    graph: SynonymGraph,
    found: Mapping[str, Sequence[Candidate]],
    near: Mapping[str, Sequence[Candidate]],
    choose: RootChooser,
) -> dict[str, Candidate]:
    """Return the roots that ``choose`` selects from the nearest roots and then the largest."""
    sizes = Counter(root for _, roots in graph.edges for root in roots)
    largest = sorted(graph.roots, key=lambda root: (-sizes[root], root))
    choices = {}
    for word, candidates in found.items():
        ranked = _ranked((*candidates, *near.get(word, ())))
        # The largest roots fill the list: a word without candidates would leave no choice.
        roots = dict.fromkeys((*(c.root for c in ranked), *largest))
        choices[word] = list(roots)[:_CHOICES]
    return {
        word: Candidate(root=root, score=_CHOSEN, source="llm")
        for word, root in choose(choices).items()
        # Language models may answer with a root that they were not given.
        if root in choices.get(word, ())
    }


_POS: Final = {"objects": "noun", "behaviors": "verb"}
# Debian and Arch, Fedora, MacPorts, Homebrew, and the authors' own archive.
_PLACES: Final = (
    *("/usr/share/wordnet", "/usr/local/share/wordnet", "/usr/share/wordnet/dict"),
    *("/usr/share/wordnet-3.0/dict", "/opt/local/share/WordNet-3.0"),
    *("/opt/homebrew/opt/wordnet/dict", "/usr/local/opt/wordnet/dict"),
    *("/usr/local/WordNet-3.0/dict", "/usr/local/WordNet-3.1/dict"),
)
# nltk's downloader leaves the database in its zip file.
_OF_NLTK: Final = ("wordnet", "wordnet.zip", "wordnet31", "wordnet31.zip")
_Folder: TypeAlias = "Path | zipfile.Path"
# The largest file, data.noun, has 15 MB.
_MAX_BYTES: Final = 64 << 20
# In WordNet 3.0 the verb break has the most senses, 59.
_MAX_SENSES: Final = 64
# Of a kind, and of a single instance of it, such as a name (wninput(5)).
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

    def __init__(self, folder: _Folder, name: str) -> None:
        self._folder, self._name = folder, name

    def offsets(self, lemma: str) -> tuple[int, ...]:
        """Return the offsets of a lemma's synsets, the commonest sense first; empty if unknown."""
        # An empty key would find the licence at the head of the file, whose lines begin with
        # blanks.
        if not lemma:
            return ()
        # Searched as bytes: only a few of the index's many lines are ever needed.
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
            source=str(self._folder.joinpath(f"{file}.{self._name}")),
            place=place,
        )

    @cached_property
    def _index(self) -> bytes:
        # The first line then follows a line feed as all others do.
        return b"\n" + _bytes_of(self._folder.joinpath(f"index.{self._name}"))

    @cached_property
    def _data(self) -> bytes:
        return _bytes_of(self._folder.joinpath(f"data.{self._name}"))

    @cached_property
    def _irregular(self) -> dict[str, tuple[str, ...]]:
        path = self._folder.joinpath(f"{self._name}.exc")
        text = _bytes_of(path).decode("latin-1") if path.is_file() else ""
        lines = (line.replace("_", " ").split() for line in text.splitlines())
        return {line[0]: tuple(line[1:]) for line in lines if line}


class WordNet:
    """A WordNet database in the layout of ``wndb(5)``.

    It has an index with one line for each lemma, a data file with one line for each synset at the
    byte offset that identifies it, and a list of irregular forms. The package does not contain or
    download a database; see :func:`find_wordnet`.

    Args:
        folder: The folder with ``index.noun``, ``data.noun`` and the files for verbs.
    """

    def __init__(self, folder: _Folder) -> None:
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
    """Return the database in a folder, or in nltk's zip file of one.

    Raises:
        GraphFormatError: The folder has no WordNet database.
    """
    if (found := _database(folder)) is None:
        raise GraphFormatError(
            "has no WordNet database; give a folder with index.noun and data.noun",
            source=str(folder),
        )
    return WordNet(found)


def find_wordnet(places: Iterable[str | Path] = _PLACES) -> WordNet | None:
    """Return the WordNet database of this machine, or None.

    Args:
        places: Folders to look in, before those of nltk.
    """
    found = next((base for base in map(_database, map(Path, places)) if base is not None), None)
    if found is None:
        # Imported only where the usual places have none, since its import takes seconds.
        from nltk import data

        of_nltk = (Path(path, "corpora", name) for path in data.path for name in _OF_NLTK)
        found = next((base for base in map(_database, of_nltk) if base is not None), None)
    return None if found is None else WordNet(found)


def _database(place: Path) -> _Folder | None:
    """Return the folder of a database, or that in a zip file; None if there is none."""
    folder: _Folder = place
    if place.suffix == ".zip" and place.is_file():
        try:
            folder = zipfile.Path(place, f"{place.stem}/")
        except zipfile.BadZipFile:
            return None
    # Verbs are looked for once behaviours are: objects can do without their files.
    needed = ("index.noun", "data.noun")
    return folder if all(folder.joinpath(name).is_file() for name in needed) else None


def _bytes_of(path: _Folder) -> bytes:
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

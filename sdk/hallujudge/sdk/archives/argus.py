"""Judged captions for ARGUS: the released folders of clips, or a record for each caption."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from hallujudge.metrics.argus import MODES, ArgusItem, JudgedLine
from hallujudge.metrics.framework.json_values import well_formed
from hallujudge.metrics.framework.metric import InputOption

from ..errors import ArchiveError
from .archive_keys import refuse_other_texts
from .bad_records import noted
from .inputs import DeclaredInputs, ItemSource, Reader, ReaderInput, Responses, uses
from .joins import refuse
from .json_files import named, read_json, shown
from .local_files import as_path
from .record_fields import fields_of
from .record_values import ID_FLAG, choose_key, id_under, not_a_text, structured
from .records import Record, no_records, read_records

_HUMAN = "human"
_CLIP_KEYS = ("clip", "clip_name", "id", "video")
_MODE_KEYS = ("mode", "analysis_mode")
_HUMAN_KEYS = ("human_caption",)
_MODEL_KEYS = ("response", "model_caption")
_LINE_KEYS = ("lines", "result_tuple")
_MODES = {**{mode: mode for mode in MODES}, "omissions": MODES[1]}
_TUPLE = 6
"""Parts of a judged line: number, text, evidence, kind, reasoning, verdict."""


def read_argus(given: ReaderInput) -> ItemSource:
    """Return captions with their judged lines.

    Responses are a folder with a folder for each clip, in which ``REF_human/TAR_MODEL.json`` and
    ``REF_MODEL/TAR_human.json`` are; one such file; or records with a clip and a mode. Of the
    options, ``model`` names one of several models, and ``captions_only`` says that lines need no
    verdicts.

    Raises:
        ArchiveError: A file or record can't be read, or an id is a duplicate.
    """
    if given.references is not None:
        raise ArchiveError("argus's files hold both captions; leave the references out")
    reader, responses = _Captions(given), given.responses
    if isinstance(responses, Path) and responses.is_dir():
        items = list(reader.of_folder(responses))
    else:
        items = list(reader.of_records(responses))
    if not items:
        raise no_records(responses, "caption")
    if twice := [each for each, count in Counter(i.id for i in items).items() if count > 1]:
        raise refuse("duplicate captions", twice, "Keep one of each clip and mode")
    return ItemSource(count=len(items), make=lambda: iter(items))


READERS: Mapping[str, Reader] = {"argus": read_argus}
"""Metric -> its archive reader."""
INPUTS: Mapping[str, DeclaredInputs] = {
    "argus": uses(
        "id_key",
        own=(
            InputOption(
                name="model", meaning="Model to score, if a folder has several.", kind="text"
            ),
            InputOption(
                name="captions_only",
                meaning="Lines need no verdicts, since a judge gives them.",
                kind="set",
            ),
        ),
    )
}
"""Metric -> what its reader takes."""
MAPPED_KEYS = frozenset(("mode", "human_caption", "lines"))
"""Keys that may be mapped, those of id and response apart."""


def folder_files(folder: Path) -> tuple[Path, ...]:
    """Return the files of judged captions in the folders of clips."""
    return tuple(sorted(folder.glob("*/REF_*/TAR_*.json")))


class _Captions:
    """Makes items of files and records."""

    def __init__(self, given: ReaderInput) -> None:
        self._options = given.options
        self._group_by = given.group_by

    def of_folder(self, folder: Path) -> Iterator[ArgusItem]:
        """Yield the captions of a folder; a missing file makes one without a response."""
        model = self._model(folder)
        for clip in sorted({file.parent.parent for file in folder_files(folder)}):
            # The model's caption is judged by the person's for hallucinations; the other way round,
            # for omissions.
            for mode, target, reference in (
                (MODES[0], model, _HUMAN),
                (MODES[1], _HUMAN, model),
            ):
                file = clip / f"REF_{reference}" / f"TAR_{target}.json"
                if not file.is_file():
                    # The clip counts as unscored: a missing file must not make the mean better.
                    yield ArgusItem(
                        id=f"{clip.name}/{mode}",
                        group_id=clip.name,
                        mode=mode,
                        response=None,
                        source=None,
                        problem=f"there is no file {file.relative_to(folder)}",
                    )
                    continue
                yield self._item(_record_of(file), clip.name, mode)

    def _model(self, folder: Path) -> str:
        """Return the model whose files are read.

        Raises:
            ArchiveError: The folder has files of several models, or none of the named one.
        """
        models = sorted({name for file in folder_files(folder) for name in _models_of(file)})
        wanted = self._options.own.get("model")
        if wanted in models or (wanted is None and len(models) == 1):
            return str(wanted or models[0])
        problem = f"no files of the model {wanted!r}" if wanted else "files of several models"
        raise ArchiveError(
            f"{folder}: {problem}; name one of {named(models)} with InputOptions(own=dict(model=…))"
        )

    def of_records(self, responses: Responses) -> Iterator[ArgusItem]:
        """Yield the captions of records, or of one file of a clip."""
        own = None
        # The content names no clip: in the released folders, the folder above does.
        if isinstance(responses, (str, Path)) and Path(responses).parent.name.startswith("REF_"):
            own = Path(responses).parent.parent.name
            responses = [_record_of(as_path(responses)).values]
        keys: tuple[str, str] | None = None
        for record in read_records(responses):
            if keys is None:
                wanted = self._options.id_key
                place = own or choose_key(record, wanted, _CLIP_KEYS, "the clip", ID_FLAG)
                keys = place, choose_key(record, None, _MODE_KEYS, "the mode")
            place, mode_key = keys
            with noted(record.position, record.place):
                clip = own or id_under(record, place, "the clip")
                mode = id_under(record, mode_key, "the mode").strip().casefold()
                if mode not in _MODES:
                    raise ArchiveError(
                        f"{record.place}: the mode is {mode!r:.60}; give {' or '.join(MODES)}"
                    )
                yield self._item(record, clip, _MODES[mode])

    def _item(self, record: Record, clip: str, mode: str) -> ArgusItem:
        model_keys = (self._options.text_key,) if self._options.text_key else _MODEL_KEYS
        human = _caption(record, _HUMAN_KEYS, "the person's caption")
        model = _caption(record, model_keys, "the model's caption")
        chosen = next(filter(record.values.__contains__, model_keys))
        # A record with two captions of a model would be scored by the one that comes first.
        refuse_other_texts([record], chosen, _MODEL_KEYS, self._options)
        lines, problem = self._lines(record)
        return ArgusItem(
            id=f"{clip}/{mode}",
            group_id=clip,
            fields=fields_of(self._group_by, record.values),
            mode=mode,
            response=model if mode == MODES[0] else human,
            source=human if mode == MODES[0] else model,
            lines=lines,
            problem=problem,
        )

    def _lines(self, record: Record) -> tuple[tuple[JudgedLine, ...], str]:
        """Return the judged lines, or why their form is wrong; the script then refuses the clip."""
        if self._options.own.get("captions_only"):
            return (), ""
        key = choose_key(
            record,
            None,
            _LINE_KEYS,
            "the judged lines",
            "one of these names, or let a judge give verdicts, with "
            "InputOptions(own=dict(captions_only=True))",
        )
        # In a table, the list is a text within its cell.
        held = structured(record.values[key])
        if held is None:
            return (), ""
        if not isinstance(held, (list, tuple)):
            return (), f"{key} is {shown(held)}, not a list"
        lines = []
        for number, parts in enumerate(held, 1):
            if not isinstance(parts, (list, tuple)) or len(parts) != _TUPLE:
                return (), f"line {number} is {shown(parts)}; it needs {_TUPLE} parts"
            _, text, evidence, kind, _, verdict = parts
            if not isinstance(text, str) or not isinstance(evidence, str):
                return (), f"line {number} is {shown(parts)}; its text and evidence are texts"
            texts = (text, evidence, str(kind), str(verdict))
            lines.append(JudgedLine(*map(well_formed, texts)))
        return tuple(lines), ""


def _models_of(file: Path) -> Iterator[str]:
    """Yield the model of a file, which its own name or that of its folder has."""
    names = (file.stem.removeprefix("TAR_"), file.parent.name.removeprefix("REF_"))
    yield from (name for name in names if name != _HUMAN)


def _record_of(file: Path) -> Record:
    content = read_json(file)
    if not isinstance(content, Mapping):
        raise ArchiveError(f"{file}: {shown(content)} is not an object; give the judge's result")
    return Record(content, 0, str(file))


def _caption(record: Record, keys: tuple[str, ...], what: str) -> str | None:
    key = choose_key(record, None, keys, what)
    value = record.values[key]
    if value is not None and not isinstance(value, str):
        raise not_a_text(record, key)
    return None if value is None else well_formed(value)

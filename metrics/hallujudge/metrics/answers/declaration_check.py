"""The check of a declaration that is not part of Hallujudge, before anything is scored by it."""

from __future__ import annotations

import math
import re
import sys
import traceback
import types
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from inspect import signature
from itertools import chain
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

from ..errors import choose_from, meant
from ..framework.asking import AskingProtocol, is_prompt_text
from ..framework.papers import facts_of, paper_faults
from ..framework.results import ItemResult, Outcome
from .answer_scores import Count
from .closed_questions import ClosedQuestions, EachRecord, FileNames
from .declared_metrics import metric_of
from .uncounted_answers import decided

# Aliases that are text at run time, so that ``|`` can't be applied to them.
_ALIASES = dict.fromkeys(("Unfold", "AnswerParser", "SpecialItem"), Callable)
_WORDS: Mapping[Any, str] = {
    str: "a text",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    tuple: "a tuple, such as ('a', 'b') or ('a',)",
    Callable: "a function",
    types.NoneType: "None",
}
_BASE = "write the {} of a class that base names"
_NAMES = "give keys.values the field with FileNames({…}), name in a file -> value"
_FILE = "write it in a file NAME.toml beside the module, with the benchmark's name"
_TABLE = f"{_FILE}, in the table metrics.NAME"
# A field that declarations had -> what says the same now.
_INSTEAD = {
    "adds": _BASE.format("methods score_answers and counts_bundle"),
    **dict.fromkeys(("check", "labels_chosen"), _BASE.format("method problem")),
    "answers": "give the table the form 'answers'",
    "asks": "give the table the form 'asked'",
    "only_with": "give the table the form 'answers' or 'own'",
    "cut": _BASE.format("method may_lack"),
    "choices": "give the answers of trial their options",
    **dict.fromkeys(("every", "ids"), "let unfold give each record the id of its bundle"),
    "conditions": _BASE.format("method conditions"),
    "listed": _BASE.format("method listed"),
    "derived": _BASE.format("method derived_fields"),
    "bounds": "leave it out: the trial item says it",
    "each_record": "write EachRecord, as in unfold=EachRecord(change)",
    "each": "each answer of a bundle is judged, unless that is partial",
    "empty": _BASE.format("method counts_bundle"),
    "media": "let the method shown of a class that base names return it",
    "family": "leave it out: its name begins with that of its family",
    "incomplete": "give a variant missing='wrong in part'",
    "option": "a judge is chosen by the one of options that has judges as values",
    **dict.fromkeys(("inside", "whole"), "let unfold yield a record for each answer"),
    **dict.fromkeys(("counted", "lacking", "noun", "reference", "rests_on"), "leave it out"),
    "kept": "give an answer of trial the field",
    "papers": _FILE,
    **dict.fromkeys(("headline", "ranking_source"), _TABLE),
    "main_score": "write it in ranked_by, as in ranked_by=('accuracy',), after those before it",
    "names": "let unfold yield a record for each answer, with its name",
    "partial": "give places a name that trial lacks: a bundle counts without it",
    "presets": "leave it out",
    "prompt_by": "the values of a field in places choose the prompt",
    **dict.fromkeys(
        ("Asking", "protocols"),
        "give asking the protocols themselves, as asking=plain('{{question}}')",
    ),
    "questions_name": "give question_files the name",
    "required": "name the answer first in places",
    "lists": "name its fields in optional, and let unfold or complete call with_lists",
    "question": "leave it out: its usual keys are read, and users map others",
    "own_media": "give keys media=(), or name a key of the id in it too",
    "usual": "leave it out: a table's file is found beside answers as NAME.json",
    "same": "leave it out: records of a bundle agree in the fields of group_by and places",
    "score": "write the attribute judged of a class that base names",
    "verdict": "name the field judgement, or in seen and in the optional of keys",
    "asked": "let unfold give each record its question",
    "columns": _BASE.format("method held_answers, attribute judged, or method own_table"),
    **dict.fromkeys(("kind", "named"), "leave it out"),
    "drops_unknown": _BASE.format("attribute drops_unknown"),
    "known": "give places the values of the field in name",
    "label_sets": "leave it out: only POPE has them",
    "joins_by_text": "leave it out",
    "confidence": _BASE.format("methods fault and problem"),
    **dict.fromkeys(
        ("audio", "is_shown", "options", "slots"),
        "let the method shown of a class that base names return it",
    ),
    "special": _BASE.format("methods is_question and item_maker"),
    "task": _BASE.format("method task"),
    "input_keys": "leave it out: users map their key to the field",
    "label_only_with": "let unfold leave that key out",
    "leaves_out": _BASE.format("method leaves_out"),
    **dict.fromkeys(
        ("note", "notes"), "give each variant notes, a function that returns sentences"
    ),
    **dict.fromkeys(("letters", "size"), _BASE.format("method remarks")),
    "variant_names": "leave it out: commands have one for all benchmarks",
    **dict.fromkeys(("names_are_ids", "parses_kept"), _BASE.format("attribute outcomes_repeat")),
    **dict.fromkeys(("parser_option", "parsers"), _BASE.format("method choosable_parsers")),
    "repeated_by": _BASE.format("property repeated_by"),
    **dict.fromkeys(("max_tokens", "of_media", "response"), "give asking a value of OwnAsking"),
    "place_field": "let unfold give each record its place",
    "summary": "write it in title, as in title='NAME: what it measures.'",
    "shown": _BASE.format("method shown"),
    "soft": _BASE.format("attribute soft_scores"),
    **dict.fromkeys(("named_files", "set_files", "split_files"), _NAMES),
    "split_fields": _BASE.format("attribute split_fields"),
    "trial_score": _BASE.format("method trial_value"),
    "worst": _BASE.format("method ends"),
}
# What slots of a judge's prompts may hold of an answer, beside its fields.
_OF_ANSWERS = ("question", "response", "label")
_DECIMALS = 9
_OURS = "hallujudge.metrics."
_DECLARING = (ClosedQuestions.__module__, AskingProtocol.__module__)
_UNEXPECTED = re.compile(
    r"(?:nexpected keyword argument|has no field|cannot import name|^name) '(\w+)'"
)
_SLOT = re.compile(r"\{\{([a-z_]+)\}\}")


def declaration_fault(declared: ClosedQuestions) -> str:
    """Return what is wrong with a declaration and the next step; empty if nothing is found."""
    faults = chain(
        _type_faults(declared),
        _paper_faults(declared),
        _name_faults(declared),
        _field_faults(declared),
        _signature_faults(declared),
        _count_faults(declared),
        _judge_faults(declared),
    )
    if fault := next(faults, ""):
        return fault
    # Functions of the declaration may raise anything.
    try:
        return _trial_fault(declared)
    except Exception as err:
        return (
            f"its trial item can't be scored ({type(err).__name__}: {err}); correct its functions"
        )


def loading_fault(error: BaseException) -> str:
    """Return what is wrong with a module that can't be imported, where, and the next step."""
    kinds = (TypeError, ImportError, NameError)
    found = _UNEXPECTED.search(str(error)) if isinstance(error, kinds) else None
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if found is None or not frames:
        return f"{type(error).__name__}: {error}. Correct it"
    name = found[1]
    # The line of the module: what lacks a parameter, or a name, has no frame of its own.
    line = f"line {traceback.extract_tb(error.__traceback__)[-1].lineno}"
    if instead := _INSTEAD.get(name):
        return f"{line}: declarations have no field {name!r}: {instead}"
    near = meant(name, _names_for(error, frames[-1].f_globals))
    step = f"; did you mean {near!r}?" if near else ". Correct it"
    return f"{line}: {type(error).__name__}: {error}{step}"


def _names_for(error: BaseException, held: Mapping[str, object]) -> Iterable[str]:
    """Return the names that a module could have written, by what it holds so far."""
    if isinstance(error, NameError):
        return held
    if isinstance(error, ImportError):
        return vars(sys.modules[error.name]) if error.name in sys.modules else ()
    ours = [each for each in held.values() if getattr(each, "__module__", "").startswith(_OURS)]
    return [name for each in ours if callable(each) for name in _parameters(each)]


def _parameters(function: Callable[..., object]) -> Iterable[str]:
    # What is written in C, and special forms of typing, may not say what they take.
    with suppress(ValueError, TypeError):
        return signature(function).parameters
    return ()


def _type_faults(value: Any, place: str = "") -> Iterator[str]:
    """Yield the fields whose values have another type than the declaration's classes say."""
    hints = get_type_hints(type(value), localns=_ALIASES)
    for field in value.__struct_fields__:
        name, held = f"{place}{field}", getattr(value, field)
        # msgspec checks types where it decodes, and not where a value is made.
        if not _is_of(held, hints[field]):
            near = meant(held, _literals(hints[field])) if isinstance(held, str) else ""
            give = f"did you mean {near!r}? Give" if near else "give"
            yield f"{name} is {held!r:.60}; {give} {_words(hints[field])}"
            continue
        # Variants, steps of asking and the like are declarations too.
        parts = held if type(held) is tuple else (held,)
        for part in parts:
            if isinstance(part, Struct) and type(part).__module__ in _DECLARING:
                yield from _type_faults(part, f"{name}.")


def _is_of(value: Any, hint: Any) -> bool:
    """Return whether a value has the type of a hint; what functions take and return is not seen."""
    origin, arguments = get_origin(hint), get_args(hint)
    # Type checkers take a whole number for a float, and isinstance() does not.
    if hint is Any or (hint is float and isinstance(value, int)):
        return True
    if origin in (Union, types.UnionType):
        return any(_is_of(value, each) for each in arguments)
    if origin is Literal:
        return value in arguments
    if not isinstance(value, origin or hint):
        return False
    if origin is tuple:
        kinds = arguments[:1] * len(value) if arguments[-1] is ... else arguments
        return len(value) == len(kinds) and all(map(_is_of, value, kinds))
    if isinstance(value, Mapping) and len(arguments) == len(("key", "value")):
        return all(_is_of(k, arguments[0]) and _is_of(v, arguments[1]) for k, v in value.items())
    return True


def _literals(hint: Any) -> list[str]:
    """Return the texts that a hint lists."""
    parts = get_args(hint)
    if get_origin(hint) is Literal:
        return [part for part in parts if isinstance(part, str)]
    return [text for part in parts for text in _literals(part)]


def _words(hint: Any) -> str:
    """Return what a field takes."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(map(_words, arguments))
    if origin is Literal:
        return " or ".join(map(repr, arguments))
    kind = origin or hint
    return _WORDS.get(kind) or f"a value of {kind.__name__}"


def _paper_faults(declared: ClosedQuestions) -> Iterator[str]:
    """Yield why the file of its paper can't be read, or what in it would be ignored."""
    file = f"{declared.name.replace('-', '_')}.toml"
    try:
        yield from (f"{file}: {fault}" for fault in paper_faults(declared.name))
        facts_of(declared.name)
    # A file from outside may hold anything.
    except Exception as err:
        why = f"{type(err).__name__}: {err}"
        yield f"{file} can't be read ({why}); give it the title, authors and year of a paper"


def _name_faults(declared: ClosedQuestions) -> Iterator[str]:
    """Yield what is declared twice, or not at all."""
    scores = [score.definition.name for score in declared.scores]
    for noun, names in (
        ("variants", [variant.name for variant in declared.variants]),
        ("scores", scores),
    ):
        if not names:
            yield f"it has no {noun}; declare one"
        for name in _repeated(names):
            yield f"{noun} has {name!r} twice; give each another name"
    if not declared.ranked_by:
        yield "ranked_by is empty; name the score that ranks models"
    for field, wanted in (
        ("ranked_by", declared.ranked_by),
        ("headline", facts_of(declared.name).headline),
    ):
        for name in wanted:
            if name not in scores:
                yield f"{field} is {name!r}, which is not a score; {choose_from(name, scores)}"
    undirected = {s.definition.name for s in declared.scores if s.definition.direction == "neither"}
    for name in undirected.intersection(declared.ranked_by):
        yield f"ranked_by is {name!r}, which has no better end; name another score"
    if not declared.trial.answers:
        yield "trial has no answer; give an item with right answers"
    for answer in declared.trial.answers:
        if declared.labels and answer.label not in declared.labels:
            known = choose_from(answer.label, declared.labels)
            yield f"the label of trial is {answer.label!r}, which is not a label; {known}"
        if declared.names and answer.name not in declared.names:
            known = choose_from(answer.name, declared.names)
            yield f"an answer of trial has the name {answer.name!r}, which is not a name; {known}"


def _field_faults(declared: ClosedQuestions) -> Iterator[str]:
    """Yield where a field is named that keys do not have: nothing would ever be under it."""
    fields, bundle = declared.keys.fields, declared.bundle
    named = {
        "bundle.by": bundle.by,
        "bundle.name": bundle.name,
        "keys.optional": declared.keys.optional,
        "places": declared.places,
    }
    # Names of files may be all that says a set.
    of_files = {n for n, held in declared.keys.values.items() if isinstance(held, FileNames)}
    named["keys.values"] = [n for n in declared.keys.values if n not in ("label", *of_files)]
    if not _makes_fields(declared):
        named |= {"seen": declared.seen, "trial": declared.of_answers}
    if declared.base is None:
        named["group_by"] = [name for name in declared.group_by if name not in of_files]
    for place, names in named.items():
        for name in names:
            if name not in fields:
                known = choose_from(name, fields)
                yield f"{place} names {name!r}, which is not a field of keys.fields; {known}"
    for name, keys in fields.items():
        if not keys:
            yield f"keys.fields has no key for {name!r}; give one at least, as in ({name!r},)"


def _signature_faults(declared: ClosedQuestions) -> Iterator[str]:
    """Yield which function can't be called with what it will be given."""
    called: list[tuple[str, Callable[..., object], int]] = [
        (f"the parse of variant {v.name}", v.parse, 1) for v in declared.variants
    ]
    called += [(f"the notes of variant {v.name}", v.notes, 1) for v in declared.variants if v.notes]
    called += [("complete", declared.complete, 2)] if declared.complete else []
    unfold = declared.unfold
    if isinstance(unfold, EachRecord):
        called.append(("the function of EachRecord", unfold.change, 3))
    elif unfold is not None:
        called.append(("unfold", unfold, 2))
    for place, function, count in called:
        # What is written in C may not say what it takes.
        with suppress(ValueError):
            try:
                signature(function).bind(*[None] * count)
            except TypeError as err:
                yield f"{place} is called with {count} values: {err}; let it take as many"


def _count_faults(declared: ClosedQuestions) -> Iterator[str]:
    """Yield the names that two different counts have: both would be one column."""
    scores = (*declared.scores, *(each for v in declared.variants for each in v.scores))
    answers = declared.trial.answers
    decided_so = [[decided(a, a.label, right=right) for a in answers] for right in (True, False)]
    bundles = [*decided_so, *([each] for bundle in decided_so for each in bundle)]
    known: dict[str, Count] = {}
    for each in (each for score in scores for each in score.counts):
        first = known.setdefault(each.name, each)
        with suppress(Exception):  # what its own functions raise, its trial says
            if any(first.of(bundle) != each.of(bundle) for bundle in bundles):
                yield f"two different counts are named {each.name!r}; give one another name"


def _judge_faults(declared: ClosedQuestions) -> Iterator[str]:
    """Yield what is wrong with the option and the prompts of a judge."""
    judged = declared.judged
    if judged is None:
        return
    if not declared.judge_option:
        yield "options has none with judges, which judged needs; add a verdicts_option(…)"
    if not declared.prompt_by and set(judged.prompts) != {""}:
        yield (
            "judged.prompts needs one prompt under the key '', or the values of a field in places"
        )
    known = {*_OF_ANSWERS, *declared.keys.fields}
    for slot, of in judged.slots.items():
        if isinstance(of, str) and of not in known and not _makes_fields(declared):
            what = choose_from(of, [*_OF_ANSWERS, *declared.keys.fields])
            yield f"judged.slots has {of!r} for {slot!r}; {what}, or give a function"
    for prompt in filter(is_prompt_text, judged.prompts.values()):
        found = set(_SLOT.findall(prompt))
        if odd := sorted(found ^ set(judged.slots)):
            what = "has" if odd[0] in found else "lacks"
            slots = ", ".join(f"{{{{{slot}}}}}" for slot in judged.slots)
            yield f"a prompt of judged {what} the slot {{{{{odd[0]}}}}}; write {slots}"


def _makes_fields(declared: ClosedQuestions) -> bool:
    """Return whether a function of the declaration may give answers fields that no key has."""
    return declared.complete is not None or declared.base is not None


def _repeated(names: Iterable[str]) -> Iterator[str]:
    return (name for name, count in Counter(names).items() if count > 1)


def _trial_fault(declared: ClosedQuestions) -> str:
    """Return how the trial item's main score differs from what it should be."""
    metric = metric_of(declared)()
    for variant in declared.variants:
        for answer in declared.trial.answers:
            variant.parse(answer)
    if declared.base is not None:
        # Its own pipeline may score the trial, with options.
        return ""
    made = metric.score(declared.trial)
    result = ItemResult(
        id=declared.trial.id,
        group_id="",
        outcome=Outcome.SCORED,
        statistics=made.statistics,
        scores=made.scores,
    )
    main = next(s for s in metric.score_definitions if s.name == declared.main_score)
    [found] = metric.item_values(main, [result])
    wanted = metric.trial_value(main)
    if found is None or not math.isclose(found, wanted, abs_tol=10**-_DECIMALS):
        return (
            f"{main.name} of trial is {found}, not {wanted}; give a trial item with right answers "
            "and the first label, or its value in the method trial_value of a class that base names"
        )
    return ""

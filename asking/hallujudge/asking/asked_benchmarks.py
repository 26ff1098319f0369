"""What is asked: a benchmark's protocols and their prompts, which a user's files may replace."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module

from msgspec.structs import replace

from hallujudge.judge_service.llm.prompt_templates import (
    ASKED,
    PaperPrompt,
    Template,
    own_template,
    paper_prompt,
    presets_of,
)
from hallujudge.metrics.answers.closed_questions import ClosedQuestions
from hallujudge.metrics.answers.declared_metrics import metric_of
from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.families import benchmark_named, benchmarks_of, families, has_module
from hallujudge.metrics.framework.asking import (
    CHOOSING,
    ONE_LETTER,
    YES_OR_NO,
    AskingProtocol,
    OwnAsking,
    plain,
)
from hallujudge.sdk.archives.json_files import named
from hallujudge.sdk.errors import InvalidInputError, NotFoundError

_SLOT = re.compile(r"\{\{([a-z_]+)\}\}")
# Labels that are all letters are those of choices.
_LETTER = re.compile("[A-Z]")
OPTIONAL_SLOTS = frozenset({"instruction", CHOOSING})
"""Slots that a user's prompt may leave out, and that may be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """What is asked: a benchmark, by one of its protocols, with its prompts."""

    name: str
    """The metric's name."""
    declared: ClosedQuestions | None
    """Its declaration, if it is one of closed questions."""
    asking: OwnAsking
    """What asking needs."""
    protocol: AskingProtocol
    """The chosen protocol."""
    templates: Mapping[str, Template]
    """Step -> its prompt."""
    reads: str = ""
    """Form of the replies; empty for a plain one."""

    @property
    def conditions(self) -> Callable[[Mapping[str, object]], tuple[str, ...]] | None:
        """Returns the conditions of a record; None if each question is asked once."""
        if self.declared is None:
            return None
        metric = metric_of(self.declared)
        return metric.conditions if metric.overrides("conditions") else None

    @property
    def condition_field(self) -> str:
        """The field of the archive that names the condition; empty without conditions."""
        if self.declared is None or self.conditions is None:
            return ""
        return self.declared.bundle.name[0]

    @property
    def base_condition(self) -> str:
        """The condition of the files as they are; empty without conditions.

        They lie in the folder itself, or in one of its name; others in folders of their names.
        """
        if self.declared is None or self.conditions is None:
            return ""
        return next(iter(self.declared.names))

    @property
    def prompt_hashes(self) -> str:
        """The beginnings of the prompts' hashes, for signatures."""
        # As many digits as hashes of declared prompts have.
        return "+".join(template.digest[:12] for template in self.templates.values())

    @property
    def needs_question(self) -> bool:
        """Whether a prompt has the question."""
        return any("question" in self.slots_of(step) for step in self.templates)

    def slots_of(self, step: str) -> list[str]:
        """Return the names of the slots of a step's prompt, in order."""
        parts = self.templates[step].parts
        return [name for _, text in parts for name in _SLOT.findall(text)]


def asked_metrics() -> tuple[str, ...]:
    """Return the names of all metrics whose questions can be asked."""
    found = []
    for family in families():
        found += [declared.name for declared in benchmarks_of(family)]
        found += list(_declared_apart(family))
    return tuple(found)


def benchmark_of(
    name: str, protocol: str = "", prompts: Mapping[str, str] | None = None, preset: str = ""
) -> Benchmark:
    """Return what is asked.

    Args:
        name: The metric's name.
        protocol: Name of a protocol; empty for the default, or that of the preset.
        prompts: Step -> text that replaces its prompt.
        preset: Name of a paper's printed prompt, which replaces that of the answer.

    Raises:
        NotFoundError: There is no such metric.
        InvalidInputError: There is no such protocol or step, or a prompt has other slots.
    """
    declared, asking = _found(name)
    protocols = asking.protocols or plain(_default_prompt(declared))
    printed = _printed(preset, name, protocol, prompts) if preset else None
    protocol = protocol or (printed.protocol if printed else "")
    chosen = next((p for p in protocols if not protocol or p.name == protocol), None)
    if chosen is None:
        known = choose_from(protocol, [p.name for p in protocols])
        raise InvalidInputError(f"{name} has no protocol {protocol!r}; {known}")
    texts = {step.name: step.prompt for step in chosen.steps}
    prompts = prompts or {}
    if unknown := prompts.keys() - texts.keys():
        raise InvalidInputError(
            f"the protocol {chosen.name} of {name} has no step {named(sorted(unknown))}; it has "
            f"{', '.join(texts)}"
        )
    templates = {
        step: _template(f"{name}, {step}", text, prompts.get(step)) for step, text in texts.items()
    }
    if printed is not None:
        templates[ASKED] = printed.template
    return Benchmark(
        name=name,
        declared=declared,
        asking=asking,
        protocol=chosen,
        templates=templates,
        reads=printed.reads if printed else "",
    )


def _printed(
    preset: str, name: str, protocol: str, prompts: Mapping[str, str] | None
) -> PaperPrompt:
    """Return the printed prompt of a preset, if nothing else is given that it contradicts.

    Raises:
        InvalidInputError: There is no such preset, or its prompt or protocol is given too.
    """
    printed = paper_prompt(preset, name, ASKED)
    if prompts and ASKED in prompts:
        raise InvalidInputError(
            f"the option prompt_preset is {preset!r}, and a prompt of the step {ASKED} is given "
            "too; leave one of them out"
        )
    # A preset that names no protocol is one of the default protocol.
    if protocol and protocol != (printed.protocol or protocols_of(name)[0].name):
        raise InvalidInputError(
            f"the option prompt_preset is {preset!r}, whose protocol is not {protocol}; leave the "
            "protocol out"
        )
    return printed


def protocols_of(name: str) -> tuple[AskingProtocol, ...]:
    """Return the ways to ask a benchmark's questions, the default first.

    Raises:
        NotFoundError: There is no such metric.
    """
    declared, asking = _found(name)
    return asking.protocols or plain(_default_prompt(declared))


def _found(name: str) -> tuple[ClosedQuestions | None, OwnAsking]:
    declared = benchmark_named(name)
    if declared is not None:
        how = declared.asking
        if not isinstance(how, OwnAsking):
            how = OwnAsking(protocols=how, shown=metric_of(declared).shown)
        return declared, how
    # Names of metrics have hyphens, those of modules underscores.
    family = name.replace("-", "_")
    if family in families() and name in (known := _declared_apart(family)):
        return None, known[name]
    raise NotFoundError(
        f"benchmark {name!r} does not exist, or has no questions; "
        + choose_from(name, asked_metrics()),
        reason="METRIC_UNKNOWN",
        metadata={"metric": name},
    )


def _declared_apart(family: str) -> Mapping[str, OwnAsking]:
    """Return metric -> how its questions are asked, of a family that is not declared."""
    # Benchmarks from outside have no module here.
    if not has_module("hallujudge.metrics", family):
        return {}
    known: Mapping[str, OwnAsking] = getattr(
        import_module(f"hallujudge.metrics.{family}"), "ASKING", {}
    )
    return known


def _default_prompt(declared: ClosedQuestions | None) -> str:
    """Return the prompt of a benchmark that declares none, by the labels of its questions."""
    if declared is None:
        return "{{question}}"
    labels = declared.labels
    if set(labels) == {"yes", "no"}:
        return YES_OR_NO
    if declared.choices or (labels and all(map(_LETTER.fullmatch, labels))):
        return ONE_LETTER
    if labels:
        return f"{{{{question}}}}\nAnswer with one of these words: {', '.join(labels)}."
    return "{{question}}"


def _template(what: str, text: str, own: str | None) -> Template:
    slots = set(_SLOT.findall(text))
    if own is None:
        return replace(own_template(text, sorted(slots)), name=what.replace(", ", "-"), version="1")
    return own_prompt(f"the prompt of {what}", own, sorted(slots), OPTIONAL_SLOTS)


def own_prompt(what: str, own: str, slots: Iterable[str], optional: Container[str]) -> Template:
    """Return a user's own prompt.

    Args:
        what: What messages call it.
        own: Its text.
        slots: The slots of the prompt that it replaces.
        optional: Those of them that it may leave out.

    Raises:
        InvalidInputError: It has other slots.
    """
    given = _SLOT.findall(own)
    # Optional slots are wanted if the prompt has them, so that they count as its own.
    wanted = [slot for slot in slots if slot not in optional or slot in given]
    try:
        return own_template(own, wanted)
    except InvalidInputError as err:
        raise InvalidInputError(f"{what}: {err}") from err


def preset_names(benchmark: str) -> tuple[str, ...]:
    """Return the names of the prompts that papers print for a benchmark's questions."""
    return presets_of(benchmark, ASKED)


def prompts_text(benchmark: str) -> str:
    """Return the protocols of a benchmark with their prompts."""
    lines = []
    for protocol in protocols_of(benchmark):
        made = benchmark_of(benchmark, protocol.name)
        lines.append(f"{protocol.name}: {protocol.meaning}")
        for step, template in made.templates.items():
            blind = any(s.name == step and not s.shows for s in protocol.steps)
            lines.append(f"  {step}{' (without the image)' if blind else ''}:")
            lines += [f"    {line}" for _, text in template.parts for line in text.splitlines()]
    for name in preset_names(benchmark):
        printed = paper_prompt(name, benchmark, ASKED)
        lines.append(f"--prompt-preset {name}: {printed.source}")
        lines += [f"    {line}" for line in printed.text.strip().splitlines()]
    return "\n".join(lines) + "\n"

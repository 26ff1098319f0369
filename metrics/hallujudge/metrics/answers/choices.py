"""Parsers of choices among options: a letter, ``(B)``, ``Answer: B``, or an option's text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import NamedTuple, TypeAlias

from .answer_text import (
    MAX_KEPT_CHARS,
    NEGATIONS,
    UNSPACED,
    corrected_choice,
    folded,
    is_number,
    numbers_in,
    plain,
    says_it_is_unsure,
    spaced,
    words_of,
)
from .closed_questions import Answer, AnswerParser, Parsed
from .yes_no import YES_NO_PARSERS


class ParsedChoice(NamedTuple):
    """The parsed choice of an answer."""

    choice: str | None
    """The letter (or, for a free answer, the words); None if the answer could not be parsed."""
    how: str
    """The rule that parsed the answer, or the reason why none did."""


_Rule: TypeAlias = "Callable[[str, _Options], list[str]]"
_ALPHABET = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")

_BARE = re.compile(r"[\s\"'(\[{<]*([A-Za-z])[\s\"')\]}>.,:;!]*")
# Without a bracket or a mark a small letter is a word, as in "a dog".
_LEADING = re.compile(
    r"[\"'\s]*(?:[(\[]\s*([A-Za-z])\s*[)\]]|([A-Za-z])\s*[).:]|([A-Z])\s*(?:[,;-]\s|\n))\s*"
)
_NEXT = re.compile(r"[(\[]?([A-Z])(?![\w'])")
# "B is not right": a sentence about another option, which a list of letters is not.
_RULED_OUT = re.compile(
    r"\s+(?:(?:is|was|would be|can|could|does|has)\s+)?"
    r"(?:not|no|never|incorrect|wrong|false|isn't|wasn't|can't|cannot|doesn't)\b|\s*[不错錯]"
)
# "A" and "I" are also words. After "answer", or alone, they count as letters only where a word
# can't follow: at the end of a clause, or before "is" and "because".
_CLAUSE_END = r"(?=\s*(?:[.,;:!?)\]}\"'<$]|$)|\s+(?:is|because|since|or|and)\b|\s*[\n/])"
_CLAUSE_END = rf"(?:{_CLAUSE_END}|(?=\s*[{UNSPACED}]))"
_NOT_GIVEN = r"(?!N/A\b)"  # No letter is chosen in it.
_LETTER_NOT_WORD = rf"(?:[B-HJ-Z]|[AI]{_CLAUSE_END})"


def _statement(begun: str, letter: str) -> str:
    """Return a pattern for ``answer: B`` and similar; a second letter may follow "or"."""
    return (
        rf"(?<![\w/])(?i:{begun})\b"
        r"(?:\s+(?:is|would be|should be|must be))?\s*+[:=>-]?\s*+"
        # No apostrophe may follow the letter: "I'd" is a word.
        rf"(?i:option\s+|choice\s+|caption\s+|letter\s+)?[\"'(\[]*{_NOT_GIVEN}({letter})\b(?!')[\"')\]]*"
        rf"(?:\s*(?:or|and|/|,)\s+(?i:option\s+)?[\"'(\[]*({letter})\b(?!'))?"
    )


_NOUNS = "option|choice|caption|letter"
# What an answer that discusses several options says of the one that it chooses.
_ANSWERS = (
    rf"answers?|(?:correct|right|best|final) (?:{_NOUNS})"
    "|I(?:'d| would|'ll| will)? (?:choose|pick|select|go with)"
)
_ANSWERED = re.compile(_statement(_ANSWERS, _LETTER_NOT_WORD))
_IS_RIGHT = re.compile(
    rf"(?<![\w'’])({_LETTER_NOT_WORD})[)\]]? (?:is|would be) the (?:correct|right|best)\b"
)
# After "option" an I is mostly the pronoun, as in "the option I chose", and A is no article.
_STATED = re.compile(f"{_ANSWERED.pattern}|{_statement(_NOUNS, '[A-HJ-Z]')}")
# Each statement above has one of these words. Most answers have none, which is found sooner, and
# in small letters in a seventh of the time that it takes to ignore case.
_STATES = re.compile(
    rf"answer|{_NOUNS}|respuesta|resposta|risposta|antwort"
    "|correct|right|best|final|choose|pick|select|go with"
)
# What may stand before the letter in a last line of its own.
_SO = re.compile(
    r"\W*(?:(?:so|therefore|thus|hence)\b[\s,:]*)?(?:(?i:it's|it is)\s+)?", re.IGNORECASE
)
_IS_WRONG = re.compile(
    r"\s+(?:(?:is|was|would be|can|could|does|has)\s+(?:not|never|incorrect|wrong|false)"
    r"|isn't|wasn't|can't|cannot|doesn't)\b"
    r"|\s*(?:选项|選項)?\s*(?:是|并|並)?\s*(?:错|錯|不(?!过|過)|誤|間違|틀)"
)
# "B rather than A" passes A over.
_PASSED_OVER = re.compile(
    r"(?:rather than|instead of|as opposed to)\s+(?:(?:option|choice)\s+)?[\"'(\[]*$", re.IGNORECASE
)
# A line of a list of options: "A. two", "- (B) three".
_LISTED = re.compile(r"^\W{0,20}([A-Z])\W{1,20}(\S.*)$", re.MULTILINE)
# "The answer is", "choose" and "correct" in Chinese, Japanese and Korean, before a letter.
_STATED_UNSPACED = re.compile(
    r"(?:答案|答え|解答|回答|正解|正确选项|正確選項|选项|選項|选择|選擇|选|選|정답|답)"
    r"(?:应该是|應該是|应为|應為|是|为|為|は|은|는)?\s*+[:=-]?\s*+[\"'(\[]*([A-Z])(?![\w'])"
    r"(?:[\"')\]]*\s*(?:还是|還是|或者|或|和|与|與|及|か|와|과|/|,)\s*[\"'(\[]*([A-Z])(?![\w']))?"
)
# "La respuesta correcta es B", and "the answer is" in Chinese and others.
_ANSWERED_ABROAD = re.compile(
    r"(?i:respuesta|réponse|resposta|risposta|antwort|ответ|答案|正解|정답)"
    r"(?i:\s+(?:correct[ae]|finale?))?\s*+(?i:est|es|é|è|ist|lautet|是|为|為|は|은|는)?"
    rf"\s*+:?\s*+(?i:la\s+|a\s+)?[\"'(\[]*({_LETTER_NOT_WORD})(?![\w'])"
)
_STATED_ANY_CASE = re.compile(
    r"(?:the\s+)?(?:(?:correct|right|best|final)\s+)?(?:answer|option|choice)"
    r"\s*+(?:is|:|)\s*+:?\s*+[\"'(\[]*([a-z])\W*"
)
# In brackets, those of a formula too, or in a quote of Python.
_BRACKETED = re.compile(r"[(\[{]\s*([A-Z])\s*\\?[)\]}]|(?<!\w)'([A-Z])'")
# A lone I is the pronoun.
_LONE = re.compile(rf"(?<![\w'’])(?<!N/)([B-HJ-Z]|A{_CLAUSE_END})(?![\w'’])")

# "A or B" names two options, so that neither is chosen.
_EITHER = re.compile(rf"(?<![\w']){_NOT_GIVEN}([A-Z])\s*(?:\bor\b|\band\b|/|&)\s*([A-Z])(?![\w'])")


def read_choice(response: str, options: Mapping[str, str] | None = None) -> ParsedChoice:
    """Return the option that an answer chose.

    In order: the answer is a letter and nothing else; it concludes with one after it discussed
    several (``A: no. B: yes. Answer: B``); it begins with one (``B. opening the door``, ``(b) …``);
    it names one (``option B is …``); it is the text of an option; one letter is in brackets; it
    contains the text of exactly one option; one lone capital. If a rule finds two different
    options, the answer is unparsed. What follows a "wait" counts, if a letter does.

    Args:
        response: What the model wrote.
        options: Letter -> text. None or empty if unknown; then any letter is an option.
    """
    frozen = tuple(options.items()) if options else ()
    if len(response) > MAX_KEPT_CHARS:
        return _read(response, frozen)
    return _kept(response, frozen)


def _read(response: str, options: tuple[tuple[str, str], ...]) -> ParsedChoice:
    text = spaced(plain(response))
    if not text:
        return ParsedChoice(None, "empty")
    table = _prepared(options)
    if (after := corrected_choice(text)) and (read := _first_of(_LETTER_RULES, after, table)):
        return read
    if read := _first_of(_RULES, text, table):
        return read
    return ParsedChoice(None, "unsure" if says_it_is_unsure(text) else "no option found")


def _first_of(rules: Iterable[_Rule], text: str, options: _Options) -> ParsedChoice | None:
    """Return what the first rule that finds anything decides, also that it is ambiguous."""
    for rule in rules:
        found = rule(text, options)
        if len(found) == 1:
            return ParsedChoice(found[0], rule.__name__.strip("_").replace("_", "-"))
        if found:
            return ParsedChoice(None, f"ambiguous: {', '.join(found)}")
    return None


_kept = lru_cache(maxsize=1 << 15)(_read)


def is_an_option(label: str, options: Mapping[str, str]) -> bool:
    """Return whether a label chooses one of the options, as an answer may do."""
    # Nearly all labels are such a letter, which every rule reads.
    plain_letter = label in _ALPHABET and label in options
    return plain_letter or read_choice(label, options).choice is not None


_IS_VERDICT = re.compile(r"(?:yes|no|not|true|false|(?:in)?correct|right|wrong)\b").match


class _Options:
    """Options, prepared for the rules."""

    def __init__(self, options: tuple[tuple[str, str], ...]) -> None:
        self._letters = {letter.upper(): letter for letter, _ in options} or dict(
            zip(_ALPHABET, _ALPHABET, strict=True)
        )
        words = {letter: folded(spaced(text)) for letter, text in options}
        self.texts = {letter: text for letter, text in words.items() if text}
        # A list of verdicts can't be told from one of options that say yes or no themselves.
        self.may_be_judged = bool(self.texts) and not any(map(_IS_VERDICT, self.texts.values()))

    def known(self, letters: Iterable[str]) -> list[str]:
        """Return the distinct letters that are options, in order."""
        return list(
            dict.fromkeys(self._letters[x.upper()] for x in letters if x.upper() in self._letters)
        )


# A question has one list of options for all answers to it.
_prepared = lru_cache(maxsize=1 << 10)(_Options)


def _bare(text: str, options: _Options) -> list[str]:
    match = _BARE.fullmatch(text)
    return options.known(match.groups()) if match else []


def _concluded(text: str, options: _Options) -> list[str]:
    """Return the options that an answer concludes with, and the one that it begins with.

    A list of the options may begin with any of them.
    """
    if "\n" not in text and not _STATES.search(text.lower()):
        return []
    named = (_letters_of(each, text) for each in (_ANSWERED, _IS_RIGHT, _ANSWERED_ABROAD))
    answered = _last_line(text) or chain.from_iterable(named)
    said = options.known(answered) or _answered_by_text(text, options)
    begun = _leading(text, options) if said and _LEADING.match(text) else []
    return said if {*begun} <= {*_listed(text, options)} else options.known([*begun, *said])


def _answered_by_text(text: str, options: _Options) -> list[str]:
    """Return the option whose text the last "answer:" has: "Answer: a blue bus"."""
    said = folded(answers[-1]) if (answers := _ALL_ANSWERED.findall(text)) else ""
    return [letter for letter, option in options.texts.items() if option == said]


def _last_line(text: str) -> list[str]:
    """Return the letter that the last of several lines is."""
    _, several, line = text.rpartition("\n")
    line = line[found.end() :] if several and (found := _SO.match(line)) else ""
    # A small letter may be a bullet of a list.
    return [found[1]] if (found := _BARE.fullmatch(line)) and found[1].isupper() else []


def _letters_of(pattern: re.Pattern[str], text: str) -> list[str]:
    """Return the letters that statements name, but for those that are denied."""
    return [
        letter
        for match in pattern.finditer(text)
        if not (_ruled_out(text[: match.start()]) or _IS_WRONG.match(text, match.end()))
        for letter in match.groups()
        if letter
    ]


def _ruled_out(before: str) -> bool:
    """Return whether what comes before a letter denies it, or passes it over."""
    return _PASSED_OVER.search(before[-40:]) is not None or _denied(before)


def _listed(text: str, options: _Options) -> list[str]:
    """Return the options that are lines of a list; none of a line alone."""
    found = options.known(match[1] for match in _LISTED.finditer(text))
    return found if len(found) > 1 else []


def _leading(text: str, options: _Options) -> list[str]:
    match = _LEADING.match(text)
    if not match:
        return []
    letters = options.known(letter for letter in match.groups() if letter)
    if options.may_be_judged and _NOT_IT.match(text, match.end()):
        return []
    next_letter = _NEXT.match(text, match.end())
    if next_letter and not _RULED_OUT.match(text, next_letter.end()):
        return options.known([*letters, next_letter[1]])  # "A, B": a list, not a choice.
    listed = _LISTED.finditer(text) if "\n" in text else ()
    restated = [m[1] for m in listed if options.texts.get(m[1]) == folded(m[2])]
    if len(restated) > 1:
        return restated  # The question's options, of which none is chosen yet.
    rest = folded(text[match.end() :])
    # "A. <the text of B>" names two options.
    others = [letter for letter, option in options.texts.items() if option == rest]
    return list(dict.fromkeys([*letters, *others])) if letters and others else letters


# What a list says of each option: "A: no. B: yes, it's blue."
_NOT_IT = re.compile(
    r"(?:no|not [\w ]+|incorrect|wrong|false|[✗✘×❌])(?=\s*(?:[.,;:|\n–—-]|$))", re.IGNORECASE
)
_IT_IS = re.compile(r"(?:yes|correct|right|true|[✓✔✅])(?=\s*(?:[.,;:|!\n–—-]|$))", re.IGNORECASE)
_JUDGED = re.compile(r"yes|correct|right|true|[✓✔✅]", re.IGNORECASE)
_HEAD = re.compile(
    r"(?:^|[.;|\n])[\s|(*-]{0,9}(?:[Oo]ption\s+)?([A-Z])\s*[).:|-]+\s*", re.MULTILINE
)


def _affirmed(text: str, options: _Options) -> list[str]:
    """Return those of several options, each with a verdict such as no, of which a text says yes."""
    if not options.may_be_judged or _JUDGED.search(text) is None:
        return []
    heads = [(head[1], head.end()) for head in _HEAD.finditer(text)]
    yes = options.known(letter for letter, at in heads if _IT_IS.match(text, at))
    no = options.known(letter for letter, at in heads if _NOT_IT.match(text, at))
    # One verdict alone may be the beginning of an answer: "B. Correct, it is blue."
    return yes if len({*yes, *no}) > 1 and not {*yes}.intersection(no) else []


def _stated(text: str, options: _Options) -> list[str]:
    if text.isascii() and not _STATES.search(text.lower()):
        return []
    named = (_letters_of(each, text) for each in (_STATED, _STATED_UNSPACED, _ANSWERED_ABROAD))
    if found := options.known(chain.from_iterable(named)):
        return found
    # A small "a" within a sentence is the article, so that nothing else may stand beside it.
    match = _STATED_ANY_CASE.fullmatch(text.lower())
    return options.known(match.groups()) if match else []


def _whole_text(text: str, options: _Options) -> list[str]:
    words = folded(text)
    return [letter for letter, option in options.texts.items() if option == words]


def _bracketed(text: str, options: _Options) -> list[str]:
    return options.known(chain.from_iterable(_BRACKETED.findall(text)))


def _contained(text: str, options: _Options) -> list[str]:
    padded = f" {folded(text)} "
    longest = _longest_in(padded, options.texts)
    # "It is not the left one" names an option in order to rule it out.
    if len(longest) == 1 and _turned(padded, options.texts[longest[0]]):
        return []
    return longest


def _number(text: str, options: _Options) -> list[str]:
    """Return the options that the numbers of a text name, where all options are numbers."""
    worth = {letter: numbers_in(option) for letter, option in options.texts.items()}
    said = numbers_in(text) if all(map(is_number, options.texts.values())) else set[float]()
    return [letter for letter, numbers in worth.items() if numbers & said]


def _longest_in(padded: str, texts: Mapping[str, str]) -> list[str]:
    """Return the letters of the texts that another one contains, which are all folded."""
    found = {letter: f" {x} " for letter, x in texts.items() if x and f" {x} " in padded}
    longer = [*found.values()]
    # "left" is part of "top left": prefer the longer option.
    return [a for a, one in found.items() if not any(one in b and one != b for b in longer)]


def _turned(padded: str, option: str) -> bool:
    """Return whether a negation shortly precedes the option's text, outside of it."""
    return _denied(padded.partition(f" {option} ")[0])


# A negation does not reach beyond these: "It's not A; it's B", "not A but B", "A? No, B".
_NEW_CLAUSE = re.compile(r"[;.!?\n]|\bbut\b|\bno,|,(?=\s*(?:it|the)\b)", re.IGNORECASE)
_DENIED_UNSPACED = re.compile(r"(?:不是|不选|不選|并非|並非|而非|排除|不)\s*$")


def _denied(before: str) -> bool:
    """Return whether the last four words of a clause contain a negation."""
    # Enough for four words; a response may be a page long, and has many letters.
    clause = _NEW_CLAUSE.split(before[-80:])[-1]
    if _DENIED_UNSPACED.search(clause):
        return True
    words = words_of(clause)[-4:]
    return any(word in NEGATIONS or word == "no" or word.endswith("n't") for word in words)


def _lone(text: str, options: _Options) -> list[str]:
    lone = [match[1] for match in _LONE.finditer(text) if not _ruled_out(text[: match.start()])]
    either = [
        letter
        for match in _EITHER.finditer(text)
        if not _denied(text[: match.start()])
        for letter in match.groups()
    ]
    return options.known([*either, *lone])


_LETTER_RULES = (_bare, _concluded, _affirmed, _leading, _stated, _lone)
# The surest rule first.
_RULES = (
    *(_bare, _concluded, _affirmed, _leading, _stated),
    *(_whole_text, _bracketed, _contained, _number, _lone),
)

_AROUND_LETTERS = frozenset(
    ("and", "answer", "answers", "are", "choice", "choices", "is", "option", "options", "or", "the")
)
_ALL_ANSWERED = re.compile(r"\banswers?(?: is| are)?\s*:\s*(.+)", re.IGNORECASE)
_NOT_BEFORE = re.compile(rf"\b(?:not|n't)\W*$|{_DENIED_UNSPACED.pattern}")


def all_chosen(letters: str, how: str) -> AnswerParser:
    """Return the parser of questions of which several options may be right, and all must be chosen.

    Letters alone or joined, such as ``A, C`` and ``AC``, are chosen. Without any, so are the
    options whose texts the answer contains. The label is the letters of the right options.

    Args:
        letters: The letters that questions may have, such as ``ABCD``.
        how: Name of the parser.
    """
    own = re.compile(f"[{letters}]")
    only = re.compile(f"[{letters}]{{1,{len(letters)}}}|[{letters.lower()}]")
    sure, words = ("".join(x for x in letters if (x in "AI") is word) for word in (False, True))
    # An "A" before another word is an article, and "B-roll" is a word.
    as_words = rf"|[{words}](?!\s+[a-z])" if words else ""
    alone = re.compile(rf"(?<![\w'-])(?:[{sure}]{as_words})(?![\w'-])")

    def named(text: str) -> set[str]:
        said = [word for word in re.findall(r"\w+", text) if word.lower() not in _AROUND_LETTERS]
        if said and all(map(only.fullmatch, said)):
            return set("".join(said).upper())
        return {m[0] for m in alone.finditer(text) if not _NOT_BEFORE.search(text[: m.start()])}

    def parse(answer: Answer) -> Parsed:
        text = spaced(plain(answer.response or ""))
        # The last line that says so, after the options were discussed.
        answered = _ALL_ANSWERED.findall(text)
        chosen = (named(answered[-1]) if answered else set()) or named(text)
        if not chosen:
            texts = {letter: folded(option) for letter, option in answer.options.items()}
            chosen = set(_longest_in(f" {folded(text)} ", texts))
        right = bool(chosen) and chosen == set(own.findall(answer.label))
        return Parsed(", ".join(sorted(chosen)) or None, right, how)

    return parse


def read_free_answer(response: str, label: str) -> ParsedChoice:
    """Parse an answer without known options by comparing it with its label.

    An answer that contains the words of the label counts as the label; any other answer counts as
    its own words. Empty answers, answers that express uncertainty, and letters of options are
    unparsed.
    """
    words = folded(response)
    if not words:
        return ParsedChoice(None, "empty")
    if says_it_is_unsure(response):
        return ParsedChoice(None, "unsure")
    wanted = folded(label)
    # Without options the letter has no meaning.
    if words != wanted and _is_letter_alone(words):
        return ParsedChoice(None, "a letter, but the options are unknown")
    padded = f" {words} "
    if words == wanted or (f" {wanted} " in padded and not _turned(padded, wanted)):
        return ParsedChoice(wanted, "free-text")
    # Evidence keeps the parsed answer, and a response may be a page long.
    return ParsedChoice(" ".join(words_of(words)[:64]), "free-text")


_AROUND_LETTER = frozenset(
    {"the", "my", "correct", "best", "final", "answer", "option", "choice", "letter", "is"}
)


def _is_letter_alone(words: str) -> bool:
    rest = [word for word in words.split() if word not in _AROUND_LETTER]
    return len(rest) == 1 and len(rest[0]) == 1 and rest[0].isascii() and rest[0].isalpha()


_LETTER = re.compile(r"[\s(\[]*([A-Za-z])[\s)\].:]*")
# "B. opening the door"; few questions have more than eight options, and "J. K. Rowling" is a name.
_LETTER_AND_TEXT = re.compile(r"\s*[(\[]?([A-Ha-h])[)\].:]\s+(\S.*)", re.DOTALL)


def parse_as_labelled(answer: Answer) -> Parsed:
    """Parse an answer by its options or, without any, in the way that its label is written.

    A label is a letter, ``yes`` or ``no`` (by the strict parser), or free text. One such as
    ``B. opening the door`` matches its letter and its text.
    """
    # In one order, so that equal options are one key of the cache.
    options = tuple(sorted(answer.options.items()))
    return _parsed_as_labelled(answer.response or "", answer.label, options)


@lru_cache(maxsize=1 << 15)
def _parsed_as_labelled(response: str, label: str, options: tuple[tuple[str, str], ...]) -> Parsed:
    reading, wanted = _read_as_labelled(response, label, dict(options))
    right = reading.choice is not None and reading.choice == wanted
    return Parsed(reading.choice, right, reading.how, says_it_is_unsure(response))


def _read_as_labelled(
    response: str, label: str, options: Mapping[str, str]
) -> tuple[ParsedChoice, str | None]:
    """Return what an answer chooses, and what its label does."""
    if options:
        return read_choice(response, options), read_choice(label, options).choice
    if letter := _LETTER.fullmatch(label):
        return read_choice(response), letter[1].upper()
    if (word := label.strip().casefold()) in ("yes", "no"):
        return ParsedChoice(YES_NO_PARSERS["strict"](response), "strict"), word
    if lettered := _LETTER_AND_TEXT.fullmatch(label):
        reading = read_choice(response)
        if reading.choice is not None:
            return reading, lettered[1].upper()
        label = lettered[2]
    return read_free_answer(response, label), read_free_answer(label, label).choice

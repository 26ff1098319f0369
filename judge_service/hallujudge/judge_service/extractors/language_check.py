"""Detection of responses that are not English, which the rules and graphs cannot read.

A caption in Chinese has no English object word, so that it would appear free of hallucination. The
rule is fixed and small, so that a response always gets the same outcome, and it accepts short or
unusual English. docs/decisions/languages.md has the measurements.

0. A response in ASCII with the word "the" is English. This makes the check cheap.
1. A response whose letters are mostly not Latin is not English. A Chinese, Japanese or Korean
   letter is a syllable or a word, and counts as three.
2. A response with more function words of another language than of English is not English. It needs
   at least two of them, or one if it has three to six words and no English function word.
3. A response of at least twelve words without an English function word is not English, unless it
   is a list (a comma for every third word).
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# The beginning of a response is enough to recognise its language.
_READ_CHARS: Final = 4_000
# Letters with an inner apostrophe, such as "there's".
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
# The letters of Chinese, Japanese and Korean begin here.
_SYLLABLES: Final = "\u2e80"
_SYLLABLE_LETTERS: Final = 3
_SHORT: Final = range(3, 7)
_LONG: Final = 12


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ENGLISH: Final = _words(
    """
    a about above across after all also am an and another any appears are around as at
    background be because been before behind being below beside between both but by can could
    do does down each for from front has have having he her here him his how i image in inside
    into is it it's its just left like looks many may more most near next no not of off on one
    only onto or other out outside over picture right scene seems several she shows sits
    sitting so some standing stands such than that the their them then there there's these
    they this those three through to top toward towards two under up very was we were what
    when where which while who will with without would you your
    """
)
# English nouns and loan words that are function words of other languages ("a bear den", "a van").
_ALSO_ENGLISH: Final = _words(
    """
    ada al bag con dan de del den di dos era es far hay he hun la los men met non om pan per
    pod sin van we
    """
)
# Function words of other languages. ``_own`` removes those that are English words too ("die").
_OTHERS: Final = {
    "German": """auf auch aus bei bis das dem den der des doch ein eine einem einen einer eines es
        für ich ist mit nach nicht noch oder sich sie sind über und unter vom von vor wie wir wird
        zu zum zur zwei zwischen""",
    "French": """au aussi aux avec ce ces cette dans de des deux du elle en est et il ils la le les
        leur mais ne nous où par pas pour près qui que sa ses son sont sous sur très une un vers
        vous être""",
    "Spanish": """al con cerca como de del desde dos el en entre es esta este está están hay junto
        la las lo los más muy para pero por que se sobre su sus también un una unas unos y""",
    "Portuguese": """ao as com como da das de do dois dos e em entre está estão há mais mas muito na
        nas nos não o os para pela pelo por que se sobre sua seu também um uma""",
    "Italian": """accanto al alla anche che con da dei del della delle di due e gli il la le lo ma
        nel nella non per più questa questo sono sopra su sul sulla tra un una uno è""",
    "Dutch": """aan bij de dat deze die dit een en er geen het hij hun ik is met naar naast niet
        ook om onder op te tussen uit van voor wordt zijn zit""",
    "Swedish": """av bakom den det en ett och på som är med för till från har inte eller hon han
        sitter står under över två""",
    "Danish": """af bag den det en et og på som er med til fra har ikke eller hun han sidder står
        over under to ved""",
    "Polish": """i jest na nie od oraz po pod przed przez się są to w we z za ze że dwa dwie który
        która które obok""",
    "Turkish": """bir bu da de ile için ve var çok olan üzerinde yanında olarak iki gibi daha""",
    "Indonesian": """ada adalah dan dari dengan di ini itu pada sebuah seorang yang untuk dalam
        sedang tidak dua""",
    "Vietnamese": """bên các có của cho đang đó được là một người những này trên trong và với
        không hai""",
    "Romanian": """al cu de din este în la o pe pentru și sunt un una care mai lângă două nu""",
    "Czech": """a i je jsou na nebo pod se s v vedle z za že který která dva dvě není u""",
    "Finnish": """ja on ei että se joka ovat kanssa vieressä päällä kaksi hän mutta myös""",
    "Hungarian": """a az és egy van nem hogy mellett két mint is ez rajta előtt""",
}


def _own(words: str) -> frozenset[str]:
    known = _ENGLISH | _ALSO_ENGLISH
    return frozenset(word for word in words.split() if word not in known and len(word) > 1)


_WORDS: Final = {language: _own(words) for language, words in _OTHERS.items()}
_FOREIGN: Final = frozenset().union(*_WORDS.values())


def language_problem(text: str) -> str | None:
    """Return why a text is not English, or None if it may be.

    Args:
        text: A response, of which the first 4,000 characters are examined.
    """
    read = text[:_READ_CHARS]
    if " the " in read and read.isascii():
        return None
    if not read.isascii() and (script := _other_script(read)):
        return f"most of its letters are not Latin (such as {script!r})"
    words = _WORD.findall(read.lower())
    # Nearly all responses end here.
    if _FOREIGN.isdisjoint(words) and not _ENGLISH.isdisjoint(words):
        return None
    english = sum(word in _ENGLISH for word in words)
    foreign = [word for word in words if word in _FOREIGN]
    if len(foreign) > english and (found := _language_of(foreign, english, len(words))):
        return f"its function words are {found}"
    if len(words) >= _LONG and not english and read.count(",") * 3 < len(words):
        return f"none of its {len(words)} words is an English function word"
    return None


def _other_script(text: str) -> str:
    """Return a letter of another script if most letters are; numbers and signs do not count."""
    letters = [character for character in text if character.isalpha()]
    others = [c for c in letters if not c.isascii() and "LATIN" not in unicodedata.name(c, "")]
    weight = sum(_SYLLABLE_LETTERS if letter >= _SYLLABLES else 1 for letter in others)
    return others[0] if weight > len(letters) - len(others) else ""


def _language_of(foreign: list[str], english: int, words: int) -> str:
    counts = {language: sum(word in own for word in foreign) for language, own in _WORDS.items()}
    language, count = max(counts.items(), key=lambda item: item[1])
    enough = count >= 2 or (not english and words in _SHORT)
    return language if count > english and enough else ""

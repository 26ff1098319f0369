"""Word lists of the rules: the closed classes of English, and small lists of nouns and verbs.

All lists were compiled by hand for Hallujudge.
"""

from __future__ import annotations

# The line of each word list and number in docs/explanation/rule-extractor-quality.md, "What each
# word list is for", says how many texts have other claims without it.


def listed(words: str, separator: str | None = None) -> frozenset[str]:
    """Return the words of a text as a set; such a list is easier to read than a literal."""
    return frozenset(words.split(separator))


def paired(words: str) -> dict[str, str]:
    """Return the pairs of a text such as "men:man feet:foot" as a mapping."""
    return dict([pair.split(":") for pair in words.split()])


# Tags: D determiner, S possessive, P pronoun, J number, M modal, B be, H have, O do, I preposition,
# T to, C coordinator, Q subordinator, W relative or question word, X existential there, R adverb,
# K interjection, F negation; open classes N noun, A adjective, V verb (base, -s, past), G -ing,
# E participle; Z possessive ending; "," and "." and ":" are their own tags.
_BY_TAG = {
    "D": "a an the this these those some any each every no another both all several many few most "
    "either neither such various numerous multiple much certain",
    "S": "my your his its our their whose her",
    "P": "i you he she it we they him them me us himself herself itself themselves myself yourself "
    "ourselves someone everyone anyone somebody everybody nobody something everything anything "
    "nothing oneself theirs hers ours mine yours others none",
    "J": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty "
    "ninety hundred thousand million dozen",
    "M": "can could may might must shall should will would 'll 'd ca wo",
    "B": "be is are was were am been being 're 'm",
    "H": "have has had having 've",
    "O": "do does did",
    "I": "of in on at by with from into onto upon over under above below behind beside besides "
    "between among amongst against across around along through throughout toward towards near "
    "inside outside within without about beneath underneath off up down out past via per during "
    "despite like unlike beyond amid amidst atop alongside opposite underneath for concerning "
    "regarding including excluding considering given versus minus except",
    "T": "to",
    "C": "and or nor but & plus",
    "Q": "because if when while although as since until till before after though whereas unless "
    "so whether once whenever wherever than",
    "W": "who which that what where whom how why whoever whatever",
    "X": "there",
    "R": "also very too quite rather just only even then now here again already still soon maybe "
    "perhaps almost always often sometimes usually away back forward backward backwards "
    "forwards together apart aside ahead nearby upward upwards downward downwards inward inwards "
    "outward outwards upright aloft indoors outdoors overhead underwater upstairs downstairs ago "
    "instead else however therefore thus meanwhile moreover furthermore otherwise afterwards "
    "afterward later finally initially eventually yet today tomorrow yesterday tonight "
    "sideways abroad around-the-clock further more less least well far enough alone twice "
    "closely first",
    "K": "yes yeah okay ok oh please",
    "F": "not n't never nowhere hardly scarcely",
}

CLOSED: dict[str, str] = {word: tag for tag, words in _BY_TAG.items() for word in words.split()}
"""Word to tag, for words whose class the rules never ask WordNet about."""

MULTIWORD: dict[str, str] = {
    phrase: tag
    for tag, phrases in {
        "I": "in front of|next to|on top of|close to|to the left of|to the right of|on the left of|"
        "on the right of|on the left side of|on the right side of|at the left of|at the right of|"
        "to the side of|in the middle of|in the center of|in the centre of|at the bottom of|"
        "at the top of|at the end of|at the front of|at the back of|on the edge of|"
        "at the edge of|on the side of|on either side of|on both sides of|because of|due to|"
        "according to|out of|away from|along with|together with|inside of|outside of|"
        "in between|across from|ahead of|such as|instead of|in place of|in addition to|based on|"
        "judging by|judging from|adjacent to|prior to|by means of|as part of|on behalf of|"
        "in terms of|in relation to|in accordance with|in line with|as opposed to|rather than|"
        "apart from|aside from|with respect to|in response to|up to|from behind|from under|"
        "from above|in case of|regardless of|depending on|owing to|thanks to|in search of|"
        "at the side of|by the side of|on the back of|on the front of|in the back of|"
        "in the front of|at the foot of|in the corner of|at the corner of|on the other side of|"
        "face to face with|in the midst of|closer to|nearer to|farther from|further from|far from|"
        "farther away from|further away from|far away from|to the left side of|"
        "to the right side of|"
        "at the left side of|at the right side of|as a result of|for the purpose of|full of|down on"
        "|up and down|out from|in contrast to|in comparison to|in comparison with",
        "C": "as well as|but also|and also|or even|and then|and possibly|or possibly|"
        "and likely|or perhaps|and perhaps",
        "Q": "even though|even if|as if|as though|so that|in order to have|as long as|as soon as|"
        "given that|now that|in that|such that|provided that|by the time",
        "T": "in order to|so as to|as to|used to",
        "R": "at first|at last|in the end|at the end|at the beginning|in the beginning|"
        "at the same time|at one point|of course|for example|for instance|in general|in fact|"
        "at least|at most|as well|most likely|more than|less than|upside down|side by side|"
        "hand in hand|face to face|face down|face up|at once|in total|in turn|right away|"
        "a little|a bit|a lot|sort of|kind of|each other's|not only|not just|"
        "not merely|not simply|after a while|"
        "for a while|all over|once again|once more|the other way|to the left|to the right|"
        "in this case|in that case|in case|in place|at times|in particular|such that|in return|"
        "one by one|step by step|little by little|one day|every day|the next day|as a result|"
        "in unison|at all|on board|back and forth|"
        "over and over|from time to time|at that moment|at this time|at this point|by chance|"
        "in addition|in contrast|by contrast|in comparison|by comparison|in conclusion|in summary|"
        "in short|in essence|in reality|in other words|in any case|in the meantime|"
        "on the other hand|on the one hand|on the contrary|on the whole|at the moment|"
        "at this moment|for this reason|for that reason|as usual|to summarize|with that said|"
        "you provided|you have provided|you shared|you have shared|you uploaded",
        "F": "no longer",
        "D": "a lot of|lots of|plenty of|a great deal of|a little bit of",
        "P": "each other|one another|no one",
    }.items()
    for phrase in phrases.split("|")
}
"""Phrases that count as one word."""

PARTICLES = listed(
    "up down out off over on in away back around along forward together apart aside through by "
    "backward upright past about across"
)
"""Words that may belong to a verb."""

ALWAYS_ADVERB_PARTICLES = listed("away back forward backward apart aside")
"""Particles that are not prepositions."""

SPLIT_ON = listed("put try turn switch pull get")
"""Verbs that take ``on`` and ``off`` as particles even before a noun phrase."""

ABBREVIATIONS = listed(
    "mr mrs ms dr prof st vs etc e.g i.e approx no fig jr sr u.s a.m p.m inc ltd dept est"
)
"""Words whose full stop does not end a sentence."""

PLURAL_ONLY = listed(
    "glasses sunglasses eyeglasses pants trousers jeans shorts scissors pliers tweezers binoculars "
    "goggles pajamas pyjamas tights leggings headphones earphones clothes overalls shears tongs "
    "stairs goods surroundings woods"
)
"""Nouns that stay in the plural, because their singular means something else or does not exist."""

PERSON_WORDS = listed(
    "man woman boy girl person child kid baby guy lady gentleman mother father son daughter "
    "brother sister husband wife player rider driver skier surfer chef worker toddler"
)
"""Nouns to which personal pronouns may refer, in addition to WordNet's nouns for persons."""

MALE = listed(
    "man boy guy gentleman father dad son brother husband king prince groom uncle grandfather "
    "policeman fisherman businessman cowboy waiter actor"
)
"""Nouns to which ``he`` may refer but not ``she``."""

FEMALE = listed(
    "woman girl lady mother mom daughter sister wife queen princess bride aunt grandmother "
    "policewoman businesswoman waitress actress"
)
"""Nouns to which ``she`` may refer but not ``he``."""

MEASURE_NOUNS = listed(
    "group pair couple set number variety series kind type sort piece slice bunch range row "
    "stack pile crowd collection bit half majority plenty dozen total amount handful abundance "
    "assortment part portion list sequence presence pack host mix mixture array line multitude "
    "herd flock team cluster combination form"
)
"""Nouns that only measure the noun after ``of``."""

MEDIUM_NOUNS = listed(
    "image images picture pictures photo photos photograph photographs scene scenes video videos "
    "frame frames sequence series collage panel panels storyboard comic comics strip episode "
    "snapshot snapshots clip clips footage shot shots still stills illustration depiction "
    "description caption drawing story sketch"
)
"""Nouns for the image itself, which are not objects in it."""

PRESENTING_VERBS = listed(
    "show depict capture feature display portray present illustrate contain include see observe "
    "showcase describe document highlight reveal focus record begin start end"
)
"""Verbs for what an image or its viewer does: "the image shows a dog"."""

RAISING = listed(
    "seem appear begin start continue proceed keep tend happen need have manage want intend"
)
"""Verbs whose subject is also that of the verb after them."""

COPULAS = listed("be seem appear look become remain feel stay sound get grow turn")
"""Verbs after which an adjective describes the subject."""

STATE_VERBS = listed(
    "be have seem appear contain include indicate suggest consist belong involve need "
    "depict represent remain become"
    "resemble imply mention evidence know situate coincide relate do mean"
)
"""Verbs that are not behaviours."""

LIGHT_VERBS = listed("take have make give do")
"""Verbs whose noun may carry the meaning, as in "take a walk"."""

EVENTIVE_KEEP = listed(
    "picture photo photograph selfie place part care hand water dog cat bag book ball pizza cake "
    "table chair phone paper face arm leg head shape color box toy model list way position "
    "can cup bottle plate knife fork spoon bus taxi train boat seat line note top back side room "
    "look-out stand hold light fish fire card file point show garden trail track wheel"
)
"""Nouns that are also verbs, but do not carry the meaning of a light verb."""

EVIDENCE_PREPOSITIONS = listed(
    "due to|because of|based on|given|considering|judging by|judging from|according to|such as|"
    "like|unlike|including|excluding|despite|regarding|concerning|thanks to|owing to|"
    "instead of|rather than|as opposed to|in place of|besides|except|in addition to|as part of|"
    "per|apart from|as a result of|in terms of|depending on|for the purpose of|in response to",
    "|",
)
"""Prepositions that introduce a reason or an example instead of a place."""

PAST_ONLY = listed(
    "took ate saw wore went ran gave drove rode threw fell grew flew drew knew began sang swam "
    "drank rang sank wrote spoke broke chose froze stole woke shook forgot hid became came blew "
    "sprang rose arose tore forsook mistook overtook undertook withdrew"
)
"""Past forms that are not participles."""

PARTICIPLE_ONLY = listed(
    "taken eaten seen worn gone given driven ridden thrown fallen grown flown drawn known begun "
    "sung swum drunk written spoken broken chosen frozen stolen woken shaken forgotten bitten "
    "hidden done shown torn blown risen sprung overtaken withdrawn beaten sewn woven"
)
"""Participles that are not past forms."""

TANGIBLE_EXTRA = listed(
    "person people man woman boy girl animal plant object food thing item family crowd audience "
    "couple team group water snow ice rain cloud sky sun moon fire smoke shadow ground floor "
    "field park beach forest area yard garden street road path lane corner court meal "
    "dinner lunch breakfast drink picnic-basket light wave puddle sunlight bubble foam steam dust "
    "ball toy cube block robot drone rainbow flame sand hole crumb band choir orchestra herd flock "
    "couple crew class money coin neighbor kid surroundings "
    "book newspaper magazine letter map sign poster card ticket note label flag menu notebook "
    "document case parking_lot lot graffiti mountain hill slope river lake ocean sea city town "
    "village liquid step page socket "
    "liquor seesaw soup wind hair snowflake star peg rope"
)
"""Nouns that are tangible for the rules, although their commonest sense in WordNet is not."""

UNTANGIBLE = listed(
    "blue grey gray silver black white red green brown purple pink beige yellow "
    "subject image picture photo photograph "
    "scene video frame sequence series background foreground view "
    "collage panel storyboard side left right top bottom middle center centre front back end part "
    "way time day night morning evening moment beginning place position direction distance "
    "setting environment atmosphere location situation action activity movement motion game sport "
    "event interaction conversation pose posture stance expression performance race trick fun "
    "one other another others each lot kind type sort piece pair variety number half row series "
    "bit attempt turn point step-up return care dinner-time use purpose thing addition set "
    "manner style color colour shape size pattern work play match fight walk ride dance "
    "birthday holiday season weather winter summer autumn spring speed balance sound noise music "
    "song love life help attention focus name word number reason role support safety process "
    "presence contrast edge direction-sign stop-motion second minute hour week month year "
    "rest space spot level stage-name piece state mood trip journey visit vacation party fall "
    "first last next morning-time instance series start finish sight face-off look glance joy "
    "meantime while midst total amount surprise fear anger"
)
"""Nouns that are not tangible for the rules, although their commonest sense in WordNet is."""

FEELINGS = listed(
    "excited delighted frightened shocked surprised amused pleased interested bored tired scared "
    "annoyed confused relaxed satisfied disappointed worried thrilled startled concerned amazed"
)
"""Participles for moods, which are adjectives after "be"."""

NEW_VERBS = listed(
    "showcase snowboard skateboard rollerblade multitask kayak photobomb livestream sync text "
    "wakeboard kitesurf unbox selfie google"
)
"""Verbs that WordNet 3.0 does not have."""

"""Tokens per claim of the LLM judge, compared with Tri-HE's released GPT-4 judge.

    python benchmarks/bench_llm_tokens.py [--references tri-he.json] [--claims claims.jsonl]
        [--tokenizer tokenizer.model] [--published-script gpt4_judge.py]

Every prompt of Hallujudge is built as it is sent, for the golden claims; so are those of the
released script, from its own instruction where --published-script names it, else from words of
that size.
Tokens are counted, not guessed: --tokenizer takes Llama 3's ``tokenizer.model`` (Meta ships it in
the PyPI package ``llama-models``; needs ``regex``, which nltk brings), or a folder with a
``tokenizer.json``. Without it, words and signs are counted.

Counted are the texts of the messages and of the answers, and one end token for each answer; the few
tokens of a chat template around two messages are alike on both sides and left out. Shared are
tokens that an earlier prompt began with too, in whole blocks of 16, as vLLM's prefix cache has it.

No model runs here. Ours can only write what its constraint allows: that is counted exactly. What
the published judge writes is its model's choice, in three forms:

* shortest: the least that the released script reads as a verdict, "My answer is 'no'";
* demanded: what its prompt asks for, the second sentence behind every "no";
* reasoned: assumed, not measured. Each task is named and gets one sentence of reasons before the
  demanded one. The prompt neither asks for that nor limits tokens, and the script would read it.

The golden claims' verdicts are the matcher's. Every "no" is counted as an error of object2.
"""

from __future__ import annotations

import ast
import base64
import json
import re
from collections.abc import Callable, Hashable, Sequence
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

import needs
from arguments import Arguments

from hallujudge.judge_service.judges import JudgeRequestItem
from hallujudge.judge_service.judges.llm_judge import LlmJudge
from hallujudge.judge_service.llm.chat_settings import ChatSettings
from hallujudge.judge_service.llm.client import ChatClient
from hallujudge.judge_service.llm.http import Endpoint
from hallujudge.metrics.framework.claims import ClaimParts, Triplet, TripletError, triplet_of

BLOCK = 16
TARGET = 20

Tokenize: TypeAlias = Callable[[str], Sequence[Hashable]]


class Golden(NamedTuple):
    """An answer's claims."""

    item: JudgeRequestItem
    triplets: list[str]
    """The scene graph as its file has it."""
    verdicts: list[str]
    """``yes`` or ``no`` for each claim."""


class Prompts(NamedTuple):
    """The prompts for all claims."""

    calls: int
    tokens: int
    shared: int


def main() -> None:
    """Counts and prints."""
    parser = Arguments(__doc__)
    parser.add_argument("--references", type=Path, help="default: the golden tri-he.json")
    parser.add_argument("--claims", type=Path, help="default: the golden claims")
    parser.add_argument(
        "--tokenizer", type=Path, help="tokenizer.model, or a tokenizer.json's folder"
    )
    parser.add_argument("--published-script", type=Path, help="the released gpt4_judge.py")
    parser.size("--answers", None, smoke=10, help="the first ones")
    given = parser.given()
    goldens = goldens_of(
        given.references or needs.goldens("tri_he") / "tri-he.json",
        given.claims or needs.goldens("tri_he") / "matcher_claims.jsonl",
    )[: given.answers]
    tokenize = tokenizer_of(given.tokenizer)
    total = sum(len(golden.verdicts) for golden in goldens)
    how = f"tokens of {given.tokenizer.name}" if given.tokenizer else "words and signs"
    print(f"{total} claims of {len(goldens)} answers; {how}; for each claim:")
    asked = prompts_of(published_prompts(goldens, instruction_of(given.published_script)), tokenize)
    print(shown("published", asked, total))
    written = {name: published_tokens(goldens, tokenize, form) for name, form in REPLIES.items()}
    for name, generated in written.items():
        print(f"  {name:36} generated {generated / total:6.2f}")
    for size in (1, 100):
        for constraint in ("structured_outputs", "json_schema"):
            asked, generated = ours(goldens, tokenize, size, constraint)
            name = f"ours, {'one claim' if size == 1 else 'an answer'} a call, {constraint}"
            print(f"{shown(name, asked, total)}  generated {generated / total:6.2f}")
            times = ", ".join(f"{name} {n / generated:.1f}" for name, n in written.items())
            print(f"  times fewer generated than: {times}")
            print(f"  {TARGET} times fewer than replies of {TARGET * generated / total:.0f} tokens")


def shown(name: str, asked: Prompts, claims: int) -> str:
    """Return a line about the prompts."""
    return (
        f"{name:42} calls {asked.calls / claims:.3f}  prompt {asked.tokens / claims:7.1f}  "
        f"of it shared {asked.shared / asked.tokens:6.1%}"
    )


def goldens_of(references: Path, claims: Path) -> list[Golden]:
    """The golden claims with their scene graphs, and the matcher's verdicts on them."""
    scenes = json.loads(references.read_text())
    goldens = []
    for line in claims.read_text().splitlines():
        entry = json.loads(line)
        scene = scenes[entry["image_id"]]
        item = JudgeRequestItem(
            id=entry["image_id"],
            claims=tuple(Triplet(*claim) for claim in entry["claims"]),
            reference_triplets=tuple(filter(None, map(read, scene["triplets"]))),
            reference_objects=tuple(scene["all_object"]),
        )
        goldens.append(Golden(item, scene["triplets"], entry["verdicts"]))
    return goldens


def read(text: str) -> Triplet | None:
    """Return a reference triplet; None if the text is not one."""
    try:
        return triplet_of(text)
    except TripletError:
        return None


# The rule of Llama 3 and cl100k for boundaries that no token crosses.
PIECES = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def tokenizer_of(path: Path | None) -> Tokenize:
    """Splits texts into a model's tokens, or into words and signs."""
    if path is None:
        return re.compile(r"\w+|[^\w\s]").findall
    needs.packages("tokenizers" if path.is_dir() else "regex")
    if path.is_dir():
        tokenizer = import_module("tokenizers").Tokenizer.from_file(str(path / "tokenizer.json"))
        return lambda text: list(tokenizer.encode(text, add_special_tokens=False).ids)
    lines = (line.split() for line in path.read_bytes().splitlines())
    merged = byte_pairs({base64.b64decode(token): int(rank) for token, rank in lines})
    pieces = import_module("regex").compile(PIECES)
    return lambda text: [token for piece in pieces.findall(text) for token in merged(piece)]


def byte_pairs(ranks: dict[bytes, int]) -> Callable[[str], tuple[int, ...]]:
    """Byte-pair encoding of one piece: neighbours are joined, the lowest rank first."""

    @cache
    def merged(piece: str) -> tuple[int, ...]:
        parts = [bytes([byte]) for byte in piece.encode()]
        if piece.encode() in ranks:
            return (ranks[piece.encode()],)
        while len(parts) > 1:
            joined = [ranks.get(a + b, len(ranks)) for a, b in pairwise(parts)]
            at = joined.index(min(joined))
            if joined[at] == len(ranks):
                break
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return tuple(ranks[part] for part in parts)

    return merged


# Tokens of the released instruction before and behind what is filled in, by Llama 3's tokenizer.
HEAD_TOKENS, TAIL_TOKENS = 329, 62


def instruction_of(script: Path | None) -> str:
    """The released judge's prompt with slots for references, objects and claim."""
    if script is None:
        return f"{'word ' * HEAD_TOKENS}\n{{}}\n{{}}\n{{}}\n{'word ' * TAIL_TOKENS}"
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "evaluate_instruction":
            return str(ast.literal_eval(node.value))
    raise SystemExit(f"{script} sets no evaluate_instruction; name the released gpt4_judge.py")


def published_prompts(goldens: Sequence[Golden], instruction: str) -> list[str]:
    """One prompt a claim, as the released script fills it in, below its system message."""
    prompts = []
    for golden in goldens:
        scene = [tuple(text.strip("()").split(", ")) for text in golden.triplets]
        objects = list(golden.item.reference_objects)
        for claim in golden.item.claims:
            filled = instruction.format(scene, objects, tuple(claim))
            prompts.append(f"You are a helpful assistant.\n{filled}")
    return prompts


def shortest(_claim: ClaimParts, verdict: str) -> str:
    """Return the reply that the released script accepts as a verdict."""
    return f"My answer is '{verdict}'"


def demanded(claim: ClaimParts, verdict: str) -> str:
    """Return the output that the released prompt requests."""
    first = f"{shortest(claim, verdict)}."
    return first if verdict == "yes" else f"{first} The error is related to 'object2'."


def reasoned(claim: ClaimParts, verdict: str) -> str:
    """Assumed: a sentence of reasons for each task before its answer."""
    told = f"Task 1: The claim triplet {tuple(claim)} "
    if verdict == "yes":
        why = "is directly supported by a triplet in the reference. "
        return f"{told}{why}{demanded(claim, verdict)}"
    why = (
        "is not directly supported by any single triplet in the reference, and it can't be "
        "logically inferred from the reference triplets and the list of objects. "
    )
    second = f'Task 2: The object "{claim[-1]}" is not in the reference. '
    return f"{told}{why}My answer is 'no'.\n\n{second}The error is related to 'object2'."


REPLIES: dict[str, Callable[[ClaimParts, str], str]] = {
    "shortest": shortest,
    "demanded": demanded,
    "reasoned": reasoned,
}


def published_tokens(
    goldens: Sequence[Golden], tokenize: Tokenize, form: Callable[[ClaimParts, str], str]
) -> int:
    """Tokens of all replies, one end token each."""
    return sum(
        len(tokenize(form(claim, verdict))) + 1
        for golden in goldens
        for claim, verdict in zip(golden.item.claims, golden.verdicts, strict=True)
    )


def ours(
    goldens: Sequence[Golden], tokenize: Tokenize, size: int, constraint: str
) -> tuple[Prompts, int]:
    """Our prompts as they are sent, and tokens of the answers that the constraint allows."""
    settings = ChatSettings(endpoint=Endpoint(url="http://localhost/v1"), model="m")
    judge = LlmJudge("llm", ChatClient(settings), claims_per_call=size)
    asked: dict[str, str] = {}
    generated = 0
    for golden in goldens:
        for question in judge.questions(golden.item):
            if (key := judge.key_of(question)) in asked:
                continue
            asked[key] = "\n".join(message["content"] for message in question.messages)
            words = [WORDS[golden.verdicts[index]] for index in question.claims]
            generated += len(tokenize(answer(words, question.keyed, constraint))) + 1
    return prompts_of(list(asked.values()), tokenize), generated


WORDS = {"yes": "supported", "no": "object2"}


def answer(words: Sequence[str], keyed: bool, constraint: str) -> str:
    """Return the output of a constrained model."""
    if keyed:
        entries = {str(number): word for number, word in enumerate(words, start=1)}
        return json.dumps(entries, separators=(",", ":"))
    if constraint == "json_schema":
        return json.dumps({"verdict": words[0]}, separators=(",", ":"))
    return words[0]


def prompts_of(prompts: Sequence[str], tokenize: Tokenize) -> Prompts:
    """Tokens of all prompts, and those in blocks that an earlier prompt began with too."""
    seen: set[int] = set()
    total = shared = 0
    for prompt in prompts:
        tokens = tokenize(prompt)
        total += len(tokens)
        chain, known = 0, True
        for end in range(BLOCK, len(tokens) + 1, BLOCK):
            chain = hash((chain, tuple(tokens[end - BLOCK : end])))
            known = known and chain in seen
            shared += BLOCK * known
            seen.add(chain)
    return Prompts(len(prompts), total, shared)


if __name__ == "__main__":
    main()

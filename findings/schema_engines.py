"""Three engines that hold a model's reply to a JSON Schema; the findings schema_*.sh ask them."""

import json
import re

import llguidance
import outlines_core
import xgrammar

BYTES = [bytes([n]) for n in range(256)] + [b"</s>"]
END = 256


class ByteTokenizer:
    """A token for each byte."""

    eos_token_id, bos_token_id, tokens, special_token_ids = END, None, BYTES, [END]

    def __call__(self, text):
        """Return the tokens of a text."""
        return list(text if isinstance(text, bytes) else text.encode())


COMPILER = xgrammar.GrammarCompiler(xgrammar.TokenizerInfo(BYTES, stop_token_ids=[END]))
TOKENIZER = llguidance.LLTokenizer(llguidance.TokenizerWrapper(ByteTokenizer()))


def by_xgrammar(schema, text):
    """Return whether xgrammar lets a model write the text."""
    matcher = xgrammar.GrammarMatcher(COMPILER.compile_json_schema(json.dumps(schema)))
    return all(map(matcher.accept_token, text.encode())) and matcher.accept_token(END)


def by_llguidance(schema, text):
    """Return whether llguidance does, or None if it refuses the schema."""
    matcher = llguidance.LLMatcher(TOKENIZER, llguidance.LLMatcher.grammar_from_json_schema(schema))
    if matcher.is_error():
        return None
    return all(map(matcher.consume_token, text.encode())) and matcher.is_accepting()


def by_outlines(schema, text):
    """Return whether the regular expression of outlines-core matches the text."""
    pattern = outlines_core.json_schema.build_regex_from_schema(json.dumps(schema))
    return re.fullmatch(pattern, text) is not None


def accepted(schema, text):
    """Return what xgrammar, llguidance and outlines-core say."""
    return [by_xgrammar(schema, text), by_llguidance(schema, text), by_outlines(schema, text)]

"""Ask xgrammar which texts a model may write under a JSON schema.

    python ask_xgrammar.py FILE

Run as a program by a Python that has xgrammar, which vLLM brings. FILE has pairs of a schema and
texts; prints a list of true and false for each.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

_BYTES = [bytes([number]) for number in range(256)]
_END = len(_BYTES)


def accepted(schema: str, text: str) -> bool:
    """Return whether a model may write a text as its whole answer."""
    import xgrammar

    tokens: Any = xgrammar.TokenizerInfo([*_BYTES, b"</s>"], stop_token_ids=[_END])
    compiler = xgrammar.GrammarCompiler(tokens)
    matcher = xgrammar.GrammarMatcher(compiler.compile_json_schema(schema))
    return all(map(matcher.accept_token, text.encode())) and matcher.accept_token(_END)


def main() -> None:
    """Print what is accepted."""
    asked = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps([[accepted(schema, text) for text in texts] for schema, texts in asked]))


if __name__ == "__main__":
    main()

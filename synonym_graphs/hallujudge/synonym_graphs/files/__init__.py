"""Graph files: loading, parsing, validation, and the released pickles."""

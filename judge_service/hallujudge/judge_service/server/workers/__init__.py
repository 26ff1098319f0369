"""Worker processes: scoring that only needs a processor."""

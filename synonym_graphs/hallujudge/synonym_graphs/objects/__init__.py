"""The object matcher: which objects a caption mentions, as CHAIR reads it."""

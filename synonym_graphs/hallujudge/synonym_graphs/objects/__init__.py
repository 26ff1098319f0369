"""The object matcher: finds the objects that a caption mentions, as CHAIR defines them."""

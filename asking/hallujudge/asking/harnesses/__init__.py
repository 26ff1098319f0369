"""Benchmarks as tasks of harnesses that ask a model themselves."""

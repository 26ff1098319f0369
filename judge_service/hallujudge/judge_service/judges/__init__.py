"""Judges: claims in, verdicts out.

Importing a judge imports no client library and opens no connection.
"""

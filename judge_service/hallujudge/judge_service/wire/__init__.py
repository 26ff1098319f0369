"""Conversion between values and messages. Public: the SDK uses it too."""

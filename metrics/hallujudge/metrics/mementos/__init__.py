"""Mementos: objects and behaviours in image sequences."""

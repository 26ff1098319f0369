"""Matching of keyword lists by a synonym graph, as Mementos does."""

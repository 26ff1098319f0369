"""Extractors: texts in, claims, keywords or nouns out, with the place of each in the text.

The rule extractors need no download and no model: a tokeniser, a tagger and pattern rules over a
packed WordNet lexicon. Importing this package reads nothing; the lexicon is read on first use.
"""

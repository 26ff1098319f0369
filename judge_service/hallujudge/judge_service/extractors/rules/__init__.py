"""The rule extractors: tagger, chunker, triplets, keywords."""

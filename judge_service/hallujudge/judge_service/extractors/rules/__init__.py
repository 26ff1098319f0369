"""The rule-based extractors of triplets and keywords, with their tagger and chunker."""

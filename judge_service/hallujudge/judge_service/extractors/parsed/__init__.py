"""The extractor of triplets that reads the dependency trees of a spaCy pipeline."""

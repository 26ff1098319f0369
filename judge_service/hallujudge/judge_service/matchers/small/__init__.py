"""Small judges: sentence-pair classifiers that say whether a text supports a claim."""

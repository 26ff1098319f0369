"""Matchers: judges that compare claims with references by a local model.

Protocol ``published`` gives the verdicts of Tri-HE's released NLI judge, the others those of small
judges: sentence-pair classifiers. Importing a matcher loads no model and no model library.
"""

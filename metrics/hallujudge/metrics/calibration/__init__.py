"""Scores corrected by human labels: Rogan and Gladen's estimator, prediction-powered inference."""

"""Tri-HE: claims checked against scene graphs."""

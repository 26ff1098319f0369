"""Commands of ``hallujudge build`` by family: archives made from what judges or people chose."""

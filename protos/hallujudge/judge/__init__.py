"""Wire packages of Hallujudge."""

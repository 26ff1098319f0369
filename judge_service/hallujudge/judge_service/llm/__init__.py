"""The chat client and everything around one call: retries, limits, budget, cache, cost."""

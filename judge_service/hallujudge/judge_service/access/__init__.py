"""Who calls, and what each caller may use: keys, scopes, limits, spending, memory."""

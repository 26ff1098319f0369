"""Commands of ``hallujudge build`` by family: questions, references, and degraded videos."""

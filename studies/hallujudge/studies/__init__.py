"""What papers do with finished runs: analyses, audits, tables, leaderboards; tools for graphs.

Public names are those of ``hallujudge.sdk.analysis``, ``hallujudge.sdk.audit``,
``hallujudge.sdk.comparison`` and ``hallujudge.synonym_graphs.tools``.
"""

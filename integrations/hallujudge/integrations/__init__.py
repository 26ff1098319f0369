"""What other programs call, or are called: harnesses, pytest, trackers, shared formats, and Ray.

Public names are those of ``hallujudge.sdk.harness_adapters``, ``hallujudge.sdk.harness_scores`` and
``hallujudge.sdk.pytest_plugin``.
"""

"""The pipelines of metric families; each module lists its metrics in ``ENTRIES``."""

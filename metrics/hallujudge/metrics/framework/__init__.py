"""Common parts of all metrics: items, results, tallies, intervals, signatures, reports."""

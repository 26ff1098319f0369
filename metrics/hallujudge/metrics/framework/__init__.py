"""What every metric is made of: items, results, tallies, intervals, signatures, reports."""

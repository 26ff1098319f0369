"""Labels that people give: what to label next, scores corrected by labels, cards of judges.

Its public names are those of ``hallujudge.sdk.calibration``.
"""

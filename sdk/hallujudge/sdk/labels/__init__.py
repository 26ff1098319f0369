"""Human labels, plans of what to label next, and the verdicts that labels are compared with."""

"""VideoHallucer: pairs of a basic and a hallucinated question about videos."""

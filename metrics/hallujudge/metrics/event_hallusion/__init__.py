"""EventHallusion: questions about events in videos, and judged descriptions."""

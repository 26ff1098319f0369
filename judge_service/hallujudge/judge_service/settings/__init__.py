"""Settings: argument > environment > file > default."""

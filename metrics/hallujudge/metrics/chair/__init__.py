"""CHAIR: objects that captions mention and images lack."""

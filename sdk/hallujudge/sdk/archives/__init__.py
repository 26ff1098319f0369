"""Archives of old outputs: files that other tools wrote, read in a stream and joined by id."""

from .inputs import InputOptions, ItemSource, References, Responses
from .readers import read_items

__all__ = ["InputOptions", "ItemSource", "References", "Responses", "read_items"]

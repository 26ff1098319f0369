"""Archive readers: read files that other tools wrote as a stream and join them by id."""

from .inputs import InputOptions, ItemSource, References, Responses
from .readers import read_items

__all__ = ["InputOptions", "ItemSource", "References", "Responses", "read_items"]

"""When an item is blamed for the deaths of the process that scores it.

Processes die for other reasons too. What was in flight at a death is therefore scored again in
groups of half as many, until one item is alone when the process dies. How often that happens by
chance is known from the other items that were scored alone. An item is blamed when its deaths
would be a rare chance.
"""

from __future__ import annotations

# Once may be chance, however many others survive.
_LEAST_DEATHS = 2
# By chance, one of so many items that are alone at a death is blamed.
_ONE_OF = 64


def half(count: int) -> int:
    """Return how many of so many items that died together are scored together again."""
    return max(1, (count + 1) // 2)


def is_proven(deaths: int, *, other_deaths: int, survivors: int) -> bool:
    """Return whether an item's deaths are hardly by chance.

    Two deaths are enough where six others survived alone, six where there is no other item.

    Args:
        deaths: How often the process died while it scored the item alone.
        other_deaths: How often it did with other items.
        survivors: Other items that it scored alone, and survived.
    """
    # Laplace's rule of succession: the chance that an innocent item is alone at a death.
    chance = (other_deaths + 1) / (other_deaths + survivors + 2)
    return deaths >= _LEAST_DEATHS and chance**deaths * _ONE_OF <= 1

"""numpy as ``np``, loaded when something of it is first used, and the types of arrays.

Loading numpy takes a tenth of a second, a third of what most commands take in all. Every command
has the metrics' declarations, but only those that score or compare have arrays. So metrics import
``np`` from here, at the top like everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:

    class _Numpy:
        """Stands for numpy; what was asked of it is kept, so that later uses cost nothing more."""

        def __getattr__(self, name: str) -> object:
            import numpy

            found = getattr(numpy, name)
            setattr(self, name, found)
            return found

    np = _Numpy()

FloatArray: TypeAlias = "NDArray[np.float64]"
"""An array of numbers."""
Float32Array: TypeAlias = "NDArray[np.float32]"
"""An array of numbers, as models have them."""
BoolArray: TypeAlias = "NDArray[np.bool_]"
"""An array of truth values."""

__all__ = ["BoolArray", "Float32Array", "FloatArray", "np"]

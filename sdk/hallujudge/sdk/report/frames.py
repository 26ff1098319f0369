"""Tables as pandas DataFrames and Parquet files: the extra ``tables``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ..errors import MissingExtraError

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["frame"]


def frame(records: Iterable[Mapping[str, object]], doing: str = "to_pandas()") -> DataFrame:
    """Return records as a DataFrame.

    Args:
        records: One mapping for each row.
        doing: What needs pandas, for the error.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    try:
        from pandas import DataFrame
    except ImportError as err:
        raise MissingExtraError.of(doing, "tables") from err
    return DataFrame(list(records))

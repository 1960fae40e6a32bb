"""Tables of results: rows by the names of their columns, for notebooks, pandas and polars."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _native

if TYPE_CHECKING:
    import pandas
    import polars

_SHOWN_ROWS = 60
"""Rows that a notebook shows of a table."""
_DTYPES = {"UInt64": "UInt64", "Float64": "float64"}
"""Types of pandas for numbers; its first one has missing values of whole numbers."""


class Rows:
    """Rows of a table, which are Arrow data without a copy.

    >>> rows["mean_ms"]              # a column, as a list
    >>> [row["scheme"] for row in rows]
    """

    @property
    def _data(self) -> _native.Table:
        raise NotImplementedError

    @property
    def columns(self) -> list[str]:
        """Names of the columns, units included: docs/data.md describes each."""
        return self._data.columns

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._data)

    def __getitem__(self, column: str) -> list[Any]:
        """The values of a column, None where nothing was measured."""
        names = self.columns
        if column not in names:
            raise KeyError(f"found {column!r}, expected one of {', '.join(names)}")
        return self._data.column(names.index(column))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Rows, each with its values by the names of their columns."""
        names = self.columns
        for values in zip(*(self._data.column(at) for at in range(len(names)))):
            yield dict(zip(names, values))

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a DataFrame of pandas; whole numbers are of its type with missing values."""
        try:
            import pandas
        except ImportError:
            raise ImportError("to_pandas: found no pandas, expected that of `pip install pandas`") from None
        kinds = zip(self.columns, self._data.kinds)
        return pandas.DataFrame({name: pandas.Series(self[name], dtype=_DTYPES.get(kind, "str")) for name, kind in kinds})

    def to_polars(self) -> polars.DataFrame:
        """The rows as a DataFrame of polars."""
        try:
            import polars
        except ImportError:
            raise ImportError("to_polars: found no polars, expected that of `pip install polars`") from None
        return polars.DataFrame(self._data)

    def _repr_html_(self) -> str:
        """The rows for a notebook, without columns in which nothing was measured."""

        def cell(value: object) -> str:
            text = "" if value is None else f"{value:.5g}" if isinstance(value, float) else str(value)
            return f"<td>{html.escape(text)}</td>"

        columns = {name: self[name] for name in self.columns}
        shown = {name: values for name, values in columns.items() if any(value is not None for value in values)}
        head = "".join(f"<th>{html.escape(name)}</th>" for name in shown)
        rows = zip(*(values[:_SHOWN_ROWS] for values in shown.values()))
        body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
        more = f"<p>{_SHOWN_ROWS} of {len(self)} rows</p>" if len(self) > _SHOWN_ROWS else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows, for the Arrow PyCapsule interface."""
        return self._data.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The schema, for the Arrow PyCapsule interface."""
        return self._data.__arrow_c_schema__()


class Table(Rows):
    """A table of results that pyarrow, pandas, polars and DuckDB read without a copy."""

    def __init__(self, data: _native.Table) -> None:
        self._table = data

    @property
    def _data(self) -> _native.Table:
        return self._table

    @property
    def metadata(self) -> dict[str, str]:
        """Metadata of the schema: `headstart` (version), `command` and `conditions` (JSON)."""
        return self._data.metadata

    def __repr__(self) -> str:
        return f"<headstart.Table, {len(self)} rows: {', '.join(self.columns)}>"

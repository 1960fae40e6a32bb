"""Tables of results: rows by the names of their columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import _native


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

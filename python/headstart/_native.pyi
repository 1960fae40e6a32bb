"""The compiled part of the package."""

from collections.abc import Callable, Sequence

__version__: str

class Table:
    """A table of results that pyarrow, pandas, polars and DuckDB read without a copy."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns, units included: docs/data.md describes each."""

    @property
    def metadata(self) -> dict[str, str]:
        """Metadata of the schema: `headstart` (version), `command` and `conditions` (JSON)."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table as a stream of one batch, for the Arrow PyCapsule interface."""

    def __arrow_c_schema__(self) -> object:
        """The schema, for the Arrow PyCapsule interface."""

    def __len__(self) -> int:
        """Number of rows."""

def run(
    name: str,
    options: Sequence[str],
    report: Callable[[str, int, int, float], object] | None,
) -> tuple[list[tuple[str, Table]], str, str | None, list[str]]:
    """Runs a command with options as words.

    Returns its tables by name, the command line, the document of `--format json` and notes.
    """

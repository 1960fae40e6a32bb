"""The compiled part of the package."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, final

from ._scheme import Scheme

__all__ = [
    "Ack",
    "Allowance",
    "BlockFolder",
    "Blocks",
    "Congestion",
    "FlightPlan",
    "HandOver",
    "Prior",
    "Record",
    "Table",
    "Timeout",
    "__version__",
    "block",
    "check_bounds",
    "check_case",
    "command",
    "library",
    "replay",
    "run",
    "table_of",
    "told",
]

__version__: str

@final
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

    def column(self, at: int) -> list[Any]:
        """The column at this place: its values, None where nothing was measured."""

    @property
    def kinds(self) -> list[str]:
        """The kinds of the columns: `Utf8`, `UInt64` or `Float64`."""

    def __len__(self) -> int:
        """Number of rows."""

    def __reduce__(self) -> tuple[object, tuple[list[tuple[str, tuple[str, list[str]]]], dict[str, str]]]:
        """For pickle."""

@final
class Blocks:
    """A sweep that is divided into blocks of points."""

    def __new__(cls, options: Sequence[str], classes: Sequence[type[Scheme]]) -> Blocks:
        """Divides the sweep with options as words."""

    @property
    def options(self) -> list[str]:
        """Options for `block`, those of a plan included."""

    @property
    def cost(self) -> tuple[float, float]:
        """Expected runs and seconds of processor time of all."""

    def __len__(self) -> int:
        """Number of blocks."""

    def numbers(self, block: int) -> tuple[int, int]:
        """Numbers of the first point of a block and of the one behind its last."""

    def check(self, keys: dict[int, str]) -> None:
        """Checks the keys that `block` returned."""

    def folder(self, path: str | PathLike[str]) -> BlockFolder:
        """The folder of their files, held until it is dropped."""

    def run_left(
        self,
        folder: BlockFolder,
        report: Callable[[str, int, int, float], object] | None = None,
        classes: Sequence[type[Scheme]] = ...,
    ) -> None:
        """Runs what is left of all blocks and writes it to the folder."""

@final
class BlockFolder:
    """A folder of blocks."""

    def forget(self) -> None:
        """Leaves the folder to the process that this one was forked from."""

    def has(self, number: int) -> bool:
        """True if the block is finished."""

    def write(self, number: int, points: bytes, seeds: bytes) -> None:
        """Writes the files of a block."""

@final
class Prior:
    """Everything known when the connection is established."""

    @property
    def now_s(self) -> float:
        """Time of establishment, in seconds."""

    @property
    def mss_bytes(self) -> int:
        """Payload bytes of a full packet."""

    @property
    def handshake_rtt_s(self) -> float:
        """Round-trip time of the handshake, in seconds."""

    @property
    def handshake_retransmitted(self) -> bool:
        """A packet of the handshake was sent again, so that its RTT may be ambiguous."""

    @property
    def flow_size_bytes(self) -> int | None:
        """Bytes that the application has ready or announces; None if unknown."""

    @property
    def receive_window_bytes(self) -> int:
        """The window that the receiver advertised, in bytes."""

    @property
    def sendable_bytes(self) -> int:
        """The most that can usefully be sent at once, in bytes."""

    @property
    def history(self) -> Record | None:
        """The path record of earlier connections to this peer; None if there is none."""

    @property
    def hint_bytes_per_s(self) -> int | None:
        """The peer's hint of its downlink's rate, in bytes per second; None if it sent none."""

    @property
    def granted_bytes_per_s(self) -> int | None:
        """The rate that all routers granted, in bytes per second; None if there is none."""

@final
class Record:
    """A path record of an earlier connection."""

    @property
    def saved_at_s(self) -> float:
        """Time of recording, in seconds."""

    @property
    def bottleneck_bytes_per_s(self) -> int:
        """The maximum delivery rate, in bytes per second."""

    @property
    def min_rtt_s(self) -> float:
        """The minimum RTT, in seconds."""

    @property
    def window_bytes(self) -> int:
        """The congestion window at the end, in bytes."""

    @property
    def ssthresh_bytes(self) -> int | None:
        """The slow start threshold at the end, in bytes; None if none was set."""

    @property
    def is_lossy(self) -> bool:
        """A packet of that connection's first flight was lost."""

    @property
    def handshake_excess_s(self) -> float:
        """The part of the handshake's RTT that is not the path's, in seconds; zero if not estimated."""

    @property
    def live(self) -> int:
        """Other open connections that began from the record."""

@final
class Ack:
    """Data was newly acknowledged."""

    @property
    def now_s(self) -> float:
        """Time of arrival, in seconds."""

    @property
    def newest_sent_at_s(self) -> float:
        """Sending time of the newest transmission that it covers, in seconds."""

    @property
    def newly_acked_bytes(self) -> int:
        """Bytes acknowledged for the first time."""

    @property
    def first_flight_acked_bytes(self) -> int:
        """Bytes of these that were in the first flight and arrived by their original transmission."""

    @property
    def rtt_sample_s(self) -> float | None:
        """The RTT of the newest packet covered, in seconds; None if ambiguous."""

    @property
    def smoothed_rtt_s(self) -> float:
        """The smoothed RTT, in seconds."""

    @property
    def rtt_variation_s(self) -> float:
        """The mean deviation of the RTT, in seconds."""

    @property
    def min_rtt_s(self) -> float:
        """The minimum RTT, in seconds."""

    @property
    def in_flight_bytes(self) -> int:
        """Bytes in flight after it."""

    @property
    def delivered_bytes(self) -> int:
        """Bytes delivered since the connection began."""

    @property
    def rate_bytes_per_s(self) -> int | None:
        """Delivery rate over about the last round trip, in bytes per second; None without a sample."""

    @property
    def rate_is_app_limited(self) -> bool:
        """The application limited that rate: the path may carry more."""

    @property
    def is_window_limited(self) -> bool:
        """The window was the limit when the data was sent: it may grow."""

    @property
    def in_recovery(self) -> bool:
        """Loss recovery goes on."""

    @property
    def marked_bytes(self) -> int:
        """Bytes that arrived with a CE mark, where the receiver counts them."""

@final
class Congestion:
    """Data was declared lost, or CE-marked."""

    @property
    def now_s(self) -> float:
        """Time of detection, in seconds."""

    @property
    def is_loss(self) -> bool:
        """Packets were lost; else one was CE-marked."""

    @property
    def opens_episode(self) -> bool:
        """The first of its round trip."""

    @property
    def lost_bytes(self) -> int:
        """Bytes newly declared lost; 0 for a mark."""

    @property
    def first_flight_lost_bytes(self) -> int:
        """Bytes of these that were in the first flight, original transmissions only."""

    @property
    def newest_lost_sent_at_s(self) -> float:
        """Sending time of the newest packet declared lost, in seconds."""

    @property
    def prior_in_flight_bytes(self) -> int:
        """Bytes in flight before."""

    @property
    def in_flight_bytes(self) -> int:
        """Bytes in flight now."""

    @property
    def delivered_bytes(self) -> int:
        """Bytes delivered since the connection began."""

    @property
    def first_flight_delivered_bytes(self) -> int:
        """Bytes of the first flight delivered by their original transmissions."""

    @property
    def smoothed_rtt_s(self) -> float:
        """The smoothed RTT, in seconds."""

    @property
    def min_rtt_s(self) -> float:
        """The minimum RTT, in seconds."""

@final
class Timeout:
    """The retransmission timer expired."""

    @property
    def now_s(self) -> float:
        """Time of expiry, in seconds."""

    @property
    def prior_in_flight_bytes(self) -> int:
        """Bytes in flight before."""

    @property
    def delivered_bytes(self) -> int:
        """Bytes delivered since the connection began."""

    @property
    def consecutive(self) -> int:
        """Consecutive expiries, this one included."""

@final
class Allowance:
    """Limits on sending: window and pace."""

    def __new__(cls, window_bytes: int, pace_bytes_per_s: float | None = None) -> Allowance:
        """A window of at least a segment, and a pace of at least 1 byte per second."""

    @property
    def window_bytes(self) -> int:
        """Limit on bytes in flight."""

    @property
    def pace_bytes_per_s(self) -> int | None:
        """Limit on the sending rate, in bytes per second; None: the transport's own pacing."""

@final
class FlightPlan:
    """The first flight: a burst, the rest at a pace."""

    def __new__(
        cls, flight_bytes: int, *, burst_bytes: int | None = None, pace_bytes_per_s: float | None = None
    ) -> FlightPlan:
        """A flight whose first `burst_bytes` (by default all) leave at once, the rest at the pace."""

    @property
    def flight_bytes(self) -> int:
        """Bytes of the first flight, the burst included, and the window until an event changes it."""

    @property
    def burst_bytes(self) -> int:
        """Bytes that may leave back to back."""

    @property
    def pace_bytes_per_s(self) -> int | None:
        """The pace of the rest, in bytes per second; None: the transport's own pacing."""

@final
class HandOver:
    """State that the base controller inherits."""

    @staticmethod
    def to_be_cut(window_bytes: int) -> HandOver:
        """Congestion ended the start: the base controller makes its usual cut of the window."""

    @staticmethod
    def growing(window_bytes: int) -> HandOver:
        """Slow start continues from the window, without a threshold."""

    @staticmethod
    def avoiding(window_bytes: int) -> HandOver:
        """Congestion avoidance continues from exactly the window."""

    @property
    def window_bytes(self) -> int:
        """The congestion window to continue from, in bytes."""

    @property
    def ssthresh_bytes(self) -> int | None:
        """Slow start up to here, in bytes; None: no limit is known."""

    @property
    def cut(self) -> bool:
        """The base controller still has to answer the congestion."""

def block(
    options: Sequence[str], first: int, end: int, classes: Sequence[type[Scheme]], parquet: bool
) -> tuple[list[bytes], dict[int, str], float, float]:
    """Runs the points of a `Blocks` from `first` to the one before `end`.

    Returns the tables, as Parquet or as `run` takes them, the keys of some points, and the runs and
    seconds of processor time that were expected.
    """

def check_bounds(scheme: type[Scheme]) -> str | None:
    """Runs a flow alone on each of two paths. Returns the first bound that does not hold."""

def check_case(scheme: type[Scheme], seed: int) -> tuple[str, str] | None:
    """Runs the case that this seed draws. Returns the first property that does not hold, and the case."""

def command(words: Sequence[str], library: str) -> int:
    """Runs the command with words, the program's first; `library` is this file. Returns its exit code."""

def library(path: str) -> None:
    """Takes this library's file for the program, by which results of another build are told apart."""

def replay(scheme: type[Scheme], vectors: str) -> tuple[int, str | None]:
    """Plays conformance vectors; returns the number of answers compared, or the line that differs."""

def run(
    name: str,
    options: Sequence[str],
    report: Callable[[str, int, int, float], object] | None = None,
    classes: Sequence[type[Scheme]] = ...,
    blocks: Sequence[bytes] = ...,
    keep_flows: bool = False,
) -> tuple[list[tuple[str, Table]], str, str | None, list[str]]:
    """Runs a command with options as words, in which the names of classes are schemes as well.

    A sweep takes the rows of `blocks` in place of runs. With `keep_flows` a race has the table
    `flows`. Returns the command's tables by name, its line, the document of `--format json` and
    notes.
    """

def table_of(columns: list[tuple[str, tuple[str, list[str]]]], metadata: dict[str, str]) -> Table:
    """The table of these parts, as pickle has them."""

def told(class_: str, fields: tuple[object, ...], /) -> Prior | Record | Ack | Congestion | Timeout:
    """The object of these fields, as pickle has them."""

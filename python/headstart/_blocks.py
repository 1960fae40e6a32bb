"""The points of a sweep as tasks of an executor, each a block of them."""

from __future__ import annotations

import functools
import hashlib
import os
import pathlib
import queue
import zlib
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing
from os import PathLike
from typing import TypeVar
from weakref import WeakSet

from . import _native
from ._native import BlockFolder, Blocks
from ._progress import Progress
from ._scheme import Scheme

# Blocks that an executor has at once: two for each of a thousand workers.
WINDOW = 2048
# Blocks that are kept at once: a disk writes several in the time of one.
WRITERS = 8

# Folders that this process holds. A worker that is forked of it would hold them after its death.
_held: WeakSet[BlockFolder] = WeakSet()


def _forget() -> None:
    for folder in _held:
        folder.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_Rows = tuple[int, Sequence[bytes], dict[int, str], float, float]
"""The number of a block, its tables, keys of points, and the expected runs and seconds of processor time."""


@functools.cache
def _program() -> str:
    """Identifies this build of the package: another one may have other results."""
    return f"{_native.__version__} {hashlib.sha256(pathlib.Path(_native.__file__).read_bytes()).hexdigest()}"


def _block(
    program: str, options: list[str], classes: list[type[Scheme]], number: int, points: tuple[int, int], is_kept: bool
) -> _Rows:
    """Runs one block, in the process of a worker."""
    if (this := _program()) != program:
        raise ValueError(f"executor: found a worker with another build of headstart ({this}), expected {program}")
    tables, keys, runs, seconds = _native.block(options, *points, classes, is_kept)
    # Parquet is compressed already.
    return number, tables if is_kept else [zlib.compress(tables[0], level=1)], keys, runs, seconds


def _each(submit: Callable[[_Item], Future[_Result]], items: Iterable[_Item], window: int) -> Generator[_Result, None, None]:
    """Results in the order in which they come, of which at most `window` are waited for."""
    ended: queue.SimpleQueue[Future[_Result]] = queue.SimpleQueue()
    running: set[Future[_Result]] = set()
    left = iter(items)

    def begin() -> None:
        for item in left:
            future = submit(item)
            running.add(future)
            future.add_done_callback(ended.put)
            return

    try:
        for _ in range(window):
            begin()
        while running:
            future = ended.get()
            running.remove(future)
            yield future.result()
            begin()
    finally:
        for future in running:
            future.cancel()


def _run(
    executor: Executor,
    blocks: Blocks,
    classes: Sequence[type[Scheme]],
    report: Progress | None,
    numbers: Iterable[int],
    is_kept: bool,
    keep: Callable[[int, Sequence[bytes]], object],
) -> None:
    """Runs these blocks, each as one call of the executor, and keeps the tables of each."""
    program, options, types = _program(), blocks.options, list(classes)
    (runs, seconds), finished, done = blocks.cost, 0.0, 0.0

    def run(number: int) -> Future[_Rows]:
        return executor.submit(_block, program, options, types, number, blocks.numbers(number), is_kept)

    def kept(rows: _Rows) -> tuple[float, float]:
        number, tables, keys, some, cost = rows
        blocks.check(keys)
        keep(number, tables)
        return some, cost

    results = _each(run, numbers, WINDOW)
    with ThreadPoolExecutor(WRITERS) as writers, closing(results):
        for some, cost in _each(lambda rows: writers.submit(kept, rows), results, WRITERS):
            finished, done = finished + some, done + cost
            if report:
                report("sweeping", round(finished), round(runs), done / max(seconds, done))


def run_blocks(
    executor: Executor, words: Sequence[str], classes: Sequence[type[Scheme]], report: Progress | None
) -> list[bytes]:
    """Runs all blocks of a sweep and returns their rows in order."""
    blocks = Blocks(words, classes)
    rows: dict[int, bytes] = {}

    def keep(number: int, tables: Sequence[bytes]) -> None:
        rows[number] = zlib.decompress(tables[0])

    _run(executor, blocks, classes, report, range(len(blocks)), False, keep)
    return [rows[number] for number in sorted(rows)]


def write_blocks(
    out: str | PathLike[str],
    executor: Executor | None,
    words: Sequence[str],
    classes: Sequence[type[Scheme]],
    report: Progress | None,
) -> None:
    """Runs the blocks that the folder does not have, and writes them."""
    blocks = Blocks(words, classes)
    folder = blocks.folder(out)
    _held.add(folder)
    if executor is None:
        blocks.run_left(folder, report, classes)
        return
    left = (number for number in range(len(blocks)) if not folder.has(number))
    _run(executor, blocks, classes, report, left, True, lambda number, tables: folder.write(number, *tables))

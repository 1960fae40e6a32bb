"""The points of a sweep as tasks of an executor."""

from __future__ import annotations

import functools
import hashlib
import pathlib
import zlib
from collections.abc import Sequence
from concurrent.futures import Executor, as_completed

from . import _native
from ._progress import Progress
from ._scheme import Scheme


@functools.cache
def _program() -> str:
    """Identifies this build of the package: another one may have other results."""
    return f"{_native.__version__} {hashlib.sha256(pathlib.Path(_native.__file__).read_bytes()).hexdigest()}"


def _point(program: str, options: list[str], classes: Sequence[type[Scheme]]) -> bytes:
    """Runs one point, in the process of a worker.

    Returns lines of a key and its result. As one piece they cost a cluster a fraction of what many
    texts do.
    """
    if (this := _program()) != program:
        raise ValueError(f"executor: found a worker with another build of headstart ({this}), expected {program}")
    lines = "\n".join(f"{key} {result}" for key, result in _native.point(options, classes))
    return zlib.compress(lines.encode(), level=1)


def _results(lines: bytes) -> dict[str, str]:
    """The results that `_point` returned, by key."""
    found = {}
    for line in zlib.decompress(lines).decode().split("\n"):
        key, _, result = line.partition(" ")
        found[key] = result
    return found


def run_points(
    executor: Executor, words: list[str], classes: Sequence[type[Scheme]], report: Progress | None
) -> list[tuple[str, str]]:
    """Runs all points of a sweep, each as one call of the executor.

    Returns the results of the runs by their keys.
    """
    points = _native.points(words, classes)
    runs, seconds = sum(len(keys) for _, keys, _ in points), sum(cost for *_, cost in points)
    program = _program()
    futures = {executor.submit(_point, program, options, classes): (options, keys, cost) for options, keys, cost in points}
    stored: dict[str, str] = {}
    finished, done = 0, 0.0
    try:
        for future in as_completed(futures):
            options, keys, cost = futures.pop(future)
            found = _results(future.result())
            if found.keys() != set(keys):
                raise ValueError(
                    f"executor: found results of other runs than those of {' '.join(options)},"
                    " expected the same input files for every worker"
                )
            stored.update(found)
            finished, done = finished + len(keys), done + cost
            if report:
                report("sweeping", finished, runs, done / max(seconds, done))
    finally:
        for future in futures:
            future.cancel()
    return list(stored.items())

"""Progress of runs, to a function or as a bar of tqdm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, int, int, float], object]
"""Takes what is being done, finished runs, all runs, and the share of the work done (0 to 1)."""


@contextmanager
def reported(progress: bool | Progress) -> Iterator[Progress | None]:
    """The function that takes reports; of a bar that ends with the block if `progress` is True."""
    if not isinstance(progress, bool):
        yield progress
        return
    if not progress:
        yield None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise ValueError("progress: found True without tqdm, expected `pip install tqdm`") from None
    with tqdm(total=1.0, bar_format="{desc} {percentage:3.0f}% {bar} {elapsed}<{remaining}") as bar:

        def report(title: str, finished: int, runs: int, share: float) -> None:
            bar.set_description(f"{title}: {finished} of {runs} runs", refresh=False)
            bar.n = share
            bar.refresh()

        yield report

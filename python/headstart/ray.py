"""Ray as an executor of `sweep`: needs `pip install '.[ray]'`, and `ray.init()` before."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import ray


def _call(function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return function(*arguments, **named)


class RayExecutor(Executor):
    """Runs each call as a task of Ray, which repeats it elsewhere if its worker dies.

    `options` are those of `ray.remote`, such as `num_cpus` and `max_retries` (by default 1 and 3).

    >>> ray.init()
    >>> headstart.sweep(executor=headstart.ray.RayExecutor(), load_share=[0.05, 0.25])
    """

    def __init__(self, **options: Any) -> None:
        self._task = ray.remote(**options)(_call) if options else ray.remote(_call)

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """The call as a task."""
        task = self._task.remote(function, arguments, named)
        future: Future[Any] = task.future()
        # A task that has begun is stopped as well.
        future.add_done_callback(lambda ended: ray.cancel(task, force=True) if ended.cancelled() else None)
        return future

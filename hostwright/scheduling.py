"""Run named pieces of work side by side, each after those that it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from hostwright.errors import HostwrightError


def run_in_order(
    needs: Mapping[str, Sequence[str]],
    work: Callable[[str], None],
    *,
    skipped: Callable[[str, str], None],
) -> list[HostwrightError]:
    """Call ``work(name)`` for each name as soon as its needs are done; return the failures in the order of happening.

    Needs that are not names of this mapping count as done. What needs something that failed is not tried:
    ``skipped(name, failed)`` is called instead. Errors that are not ours are raised at once, when all work has ended.
    """
    todo = {name: set(before) & set(needs) for name, before in needs.items()}
    lost: dict[str, str] = {}
    failures: list[HostwrightError] = []
    running: dict[Future[None], str] = {}
    with ThreadPoolExecutor(max_workers=max(1, len(needs)), thread_name_prefix="role") as pool:
        while todo or running:
            for name in [name for name, before in todo.items() if before & set(lost)]:
                lost[name] = lost[min(todo.pop(name) & set(lost))]
                skipped(name, lost[name])
            for name in [name for name, before in todo.items() if not before]:
                del todo[name]
                running[pool.submit(work, name)] = name
            if not running:
                continue
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                name = running.pop(future)
                error = future.exception()
                if isinstance(error, HostwrightError):
                    failures.append(error)
                    lost[name] = name
                elif error is not None:
                    raise error
                else:
                    for before in todo.values():
                        before.discard(name)
    return failures

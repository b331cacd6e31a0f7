"""Run named pieces of work side by side, each after those that it needs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue

from hostwright.errors import HostwrightError


def run_in_order(
    needs: Mapping[str, Sequence[str]],
    work: Callable[[str], None],
    *,
    skipped: Callable[[str, str], None] = lambda _name, _failed: None,
) -> list[HostwrightError]:
    """Call ``work(name)`` for each name as soon as its needs are done; return the failures in the order of happening.

    Needs that are not names of this mapping count as done. What needs something that failed is not tried:
    ``skipped(name, failed)`` is called instead. An error that is not ours lets nothing more begin, and is raised when
    all work has ended. The threads are daemons: work that hangs for ever does not keep the process from its end.
    """
    todo = {name: set(before) & set(needs) for name, before in needs.items()}
    lost: dict[str, str] = {}
    failures: list[HostwrightError] = []
    running: set[str] = set()
    bug: BaseException | None = None
    ended: SimpleQueue[tuple[str, BaseException | None]] = SimpleQueue()

    def run(name: str) -> None:
        try:
            work(name)
        except BaseException as error:  # noqa: BLE001 - judged by the caller's thread
            ended.put((name, error))
        else:
            ended.put((name, None))

    while todo or running:
        for name in [name for name, before in todo.items() if before & set(lost)]:
            lost[name] = lost[min(todo.pop(name) & set(lost))]
            skipped(name, lost[name])
        for name in [name for name, before in todo.items() if not before]:
            del todo[name]
            running.add(name)
            threading.Thread(target=run, args=(name,), name=f"role-{name}", daemon=True).start()
        if not running:
            continue
        name, error = ended.get()
        running.remove(name)
        if isinstance(error, HostwrightError):
            failures.append(error)
            lost[name] = name
        elif error is not None:
            bug = bug or error
            todo.clear()
        else:
            for before in todo.values():
                before.discard(name)
    if bug is not None:
        raise bug
    return failures

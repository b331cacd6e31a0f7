"""Runs for tests, and their jobs on hosts without an inventory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from hostwright.apply.events import Event
from hostwright.apply.run import Run
from hostwright.common.errors import Examination, Finding
from hostwright.common.input.yamlfile import Origin
from hostwright.common.request import Request
from hostwright.inventory import Host, Value
from hostwright.plan.desired import Desired
from hostwright.plan.host.release import RunStamp
from hostwright.plan.targets import Knowledge, TargetHost, Targets
from hostwright.stack.stack import Artifact
from hostwright.transport import Options
from hostwright.transport.root.rootshell import RootShell

Examine = Callable[[RootShell, tuple[str, ...]], Examination]


class Knows(Knowledge):
    """Knowledge of failures that a test sets."""

    def __init__(self, explain: Callable[[str], Finding | None], examine: Examine | None):
        self._explain, self._examine = explain, examine

    def explain(self, _roster: Any, output: str) -> Finding | None:
        return self._explain(output)

    def examine(self, _target: Any, shell: RootShell, units: Any = (), _clean: Any = str) -> Examination | None:
        return self._examine(shell, units) if self._examine else None


def run_of(
    connect: Callable[[], Any] | None = None,
    emit: Callable[[Event], None] = lambda _: None,
    *,
    verb: str = "provision",
    request: Request | None = None,
    targets: tuple[TargetHost, ...] = (),
    locate: Callable[[Artifact], Path] = lambda _: Path("/dev/null"),
    explain: Callable[[str], Finding | None] = lambda _: None,
    examine: Examine | None = None,
    path: Path = Path("inventory"),
    **more: Any,
) -> Run:
    """A run without a record. ``connect`` opens the shells of its hosts."""
    roster = SimpleNamespace(knowledge=Knows(explain, examine), store=SimpleNamespace(locate=locate), path=path)
    connections = SimpleNamespace(connect=lambda _: connect() if connect else None, secrets=())
    run = Run(
        verb, cast("Any", roster), Targets(targets), cast("Any", connections), request or Request(),
        stamp=RunStamp("run", "ada@desk"), emit=emit, **more,
    )  # fmt: skip
    run.keep = lambda _: ""  # type: ignore[method-assign]
    return run


def target_of(desired: Desired, variables: Mapping[str, Any] | None = None, **host: Any) -> TargetHost:
    """A target host with this desired state, and these variables in the inventory."""
    values = {name: Value(value, Origin("hosts.yml", 1, 1), "host") for name, value in (variables or {}).items()}
    return TargetHost(Host(desired.host, vars=values, **host), desired.stack, (), {}, Options())

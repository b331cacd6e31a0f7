"""Reads the whole record of a run from its journal, host by host, even if the file is damaged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hostwright.apply.journal.header import RunHeader
from hostwright.apply.journal.records import RUN_BEGAN, RUN_ENDED
from hostwright.apply.journal.results import HOST_ENDED, parsed, results_of
from hostwright.common.input.adapter import adapter
from hostwright.common.places import JOURNAL
from hostwright.plan.model import StepResult


@dataclass(frozen=True, slots=True)
class RoleRun:
    """The job of one role on one host, from the journal.

    ``began_s`` is in seconds after the start of the run. ``status`` is ``None`` if the job's end was not recorded.
    ``attached`` names the earlier run that started the job, if any.
    """

    role: str
    began_s: float
    planned: int = 0
    job: str = ""
    attached: str = ""
    status: int | None = None
    duration_s: float = 0.0
    steps: tuple[StepResult, ...] = ()


@dataclass(frozen=True, slots=True)
class HostRun:
    """The part of a run's record that is about one host.

    ``plans`` has one plan for each time that the host was probed; ``facts`` are the paths of the fact files. ``said``
    has the other records in order: retries, reboots, notes, silences, deliveries.
    """

    host: str
    result: str
    sentence: str = ""
    plans: tuple[Mapping[str, Any], ...] = ()
    facts: tuple[Path, ...] = ()
    roles: tuple[RoleRun, ...] = ()
    said: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The whole record of a run.

    ``said`` has the records that belong to no host. ``damaged`` is the number of invalid lines, without a truncated
    last line.
    """

    run: str
    header: RunHeader
    hosts: tuple[HostRun, ...]
    said: tuple[Mapping[str, Any], ...] = ()
    damaged: int = 0


@dataclass(slots=True)
class _Draft:
    ended: bool = False
    result: str = ""
    sentence: str = ""
    plans: list[Mapping[str, Any]] = field(default_factory=list)
    facts: dict[Path, None] = field(default_factory=dict)
    roles: list[RoleRun] = field(default_factory=list)
    said: list[Mapping[str, Any]] = field(default_factory=list)


def read_run(folder: Path, header: RunHeader, *, running: bool = False) -> RecordedRun:
    """Return the whole record of the run in ``folder``. Damaged lines of the journal are counted and skipped.

    ``running`` means that the run is in progress.
    """
    drafts: dict[str, _Draft] = {}
    others: list[Mapping[str, Any]] = []
    damaged = 0
    for record in _records(folder / JOURNAL):
        host = record.get("host", "") if record else None
        if record is None or not isinstance(host, str):
            damaged += 1
        elif host:
            damaged += not _note(drafts.setdefault(host, _Draft()), record, folder)
        elif record["kind"] not in (RUN_BEGAN, RUN_ENDED):
            others.append(record)
    ended = {host: draft.result for host, draft in drafts.items() if draft.ended}
    results = results_of(header.hosts, drafts, ended, running=running)
    hosts = tuple(_host(host, result, drafts.get(host, _Draft())) for host, result in results.items())
    return RecordedRun(folder.name, header, hosts, tuple(others), damaged)


def _records(journal: Path) -> Iterator[dict[str, Any] | None]:
    try:
        with journal.open("rb") as file:
            for line in file:
                record = parsed(line)
                if line.strip() and (record is not None or line.endswith(b"\n")):
                    yield record
    except OSError:
        return


def _note(draft: _Draft, record: Mapping[str, Any], folder: Path) -> bool:
    match record:
        case {"kind": "observed", "plan": dict(plan)}:
            draft.plans.append(plan)
            name = record.get("facts")
            if isinstance(name, str) and name and ".." not in Path(name).parts and not Path(name).is_absolute():
                draft.facts[folder / name] = None
        case {"kind": "role started", "role": str(role), "steps": int(steps), "t": float() | int() as t}:
            draft.roles.append(RoleRun(role, float(t), steps, str(record.get("job", ""))))
        case {"kind": "attached", "role": str(role), "t": float() | int() as t}:
            draft.roles.append(_attached(role, float(t), record))
        case {"kind": "role finished", "role": str(role), "status": int(status), "steps": list(steps)}:
            return _finish(draft, role, status, record, steps)
        case {"kind": kind, "result": str(result)} if kind == HOST_ENDED:
            draft.ended, draft.result, draft.sentence = True, result, str(record.get("sentence", ""))
        case {"kind": "observed" | "role started" | "attached" | "role finished" | "host ended"}:
            return False
        case _:
            draft.said.append(record)
    return True


def _attached(role: str, t: float, record: Mapping[str, Any]) -> RoleRun:
    steps = record.get("steps")
    planned = len(steps) if isinstance(steps, list) else steps if isinstance(steps, int) else 0
    whose = " of ".join(text for name in ("run", "operator") if (text := str(record.get(name, ""))))
    return RoleRun(role, t, planned, str(record.get("job", "")), whose or "an earlier run")


def _finish(draft: _Draft, role: str, status: int, record: Mapping[str, Any], rows: Sequence[Any]) -> bool:
    steps = tuple(step for row in rows if (step := _step(row)))
    place = next((i for i in reversed(range(len(draft.roles))) if _open(draft.roles[i], role)), None)
    seconds, t = (float(n) if isinstance(n := record.get(name), (int, float)) else 0.0 for name in ("duration_s", "t"))
    begun = draft.roles.pop(place) if place is not None else RoleRun(role, max(0.0, t - seconds), len(steps))
    ended = replace(begun, status=status, duration_s=seconds, steps=steps)
    draft.roles.insert(len(draft.roles) if place is None else place, ended)
    return len(steps) == len(rows)


def _open(run: RoleRun, role: str) -> bool:
    return run.role == role and run.status is None


def _step(row: Any) -> StepResult | None:
    try:
        return adapter(StepResult).validate_python(row)
    except ValidationError:
        return None


def _host(host: str, result: str, draft: _Draft) -> HostRun:
    return HostRun(
        host, result, draft.sentence, tuple(draft.plans), tuple(draft.facts), tuple(draft.roles), tuple(draft.said)
    )

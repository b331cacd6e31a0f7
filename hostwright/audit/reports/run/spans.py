"""The activities that took time on a host of a recorded run: layers, file transfers, waits, reboots, phases.

Times are in seconds after the start of the run. The steps of a layer follow one another. All functions are pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hostwright.apply.events import whence
from hostwright.apply.journal.runs import HostRun, RoleRun
from hostwright.common.text import shown_bytes, shown_seconds

Kind = Literal["ok", "failed", "open", "sent", "reboot", "silent", "phase"]
MOST_SOURCES = 4  #: maximum number of sources to list for a file
_OTHERS: Mapping[str, Kind] = {"delivering": "sent", "rebooted": "reboot", "silent": "silent", "phase": "phase"}


@dataclass(frozen=True, slots=True)
class Stretch:
    """One step of a layer: its purpose, start time, wait for a lock, and duration."""

    what: str
    began_s: float
    waited_s: float
    lasted_s: float

    @property
    def end_s(self) -> float:
        """The end of the step in seconds after the start of the run."""
        return self.began_s + self.lasted_s


@dataclass(frozen=True, slots=True)
class RunSpan:
    """One activity that took time on a host. ``role`` is the layer of the activity, or empty."""

    kind: Kind
    what: str
    began_s: float
    lasted_s: float
    detail: str = ""
    role: str = ""
    steps: tuple[Stretch, ...] = ()

    @property
    def end_s(self) -> float:
        """The end of the activity in seconds after the start of the run."""
        return self.began_s + self.lasted_s


def spans_of(host_run: HostRun, whole_s: float) -> list[RunSpan]:
    """Return all activities that took time on a host in a run of ``whole_s`` seconds, by start time."""
    others = (span for record in host_run.said if (span := _of_record(record)))
    return sorted([*(_of_role(role, whole_s) for role in host_run.roles), *others], key=lambda span: span.began_s)


def needs_of(host_run: HostRun) -> dict[str, frozenset[str]]:
    """Return layer → other layers that had to end before this layer could begin on the host, according to the recorded
    plans.
    """
    needs: dict[str, frozenset[str]] = {}
    for plan in host_run.plans:
        roles = plan.get("roles")
        for role in roles if isinstance(roles, list | tuple) else ():
            match role:
                case {"role": str(name), "needs": list() | tuple() as before}:
                    needs[name] = needs.get(name, frozenset()) | {str(need) for need in before}
    return needs


def _of_role(role: RoleRun, whole_s: float) -> RunSpan:
    done = f"{len(role.steps)} of {role.planned} steps"
    began_s = max(0.0, role.began_s)  # Damaged records may contain negative times.
    steps = tuple(_steps(role, began_s))
    waited_s = sum(step.waited_s for step in role.steps)
    waits = f", including {shown_seconds(waited_s)} of waiting for a lock of the host" if waited_s >= 0.1 else ""
    if role.status is None:
        lasted_s = max(0.0, whole_s - began_s)
        return RunSpan("open", role.role, began_s, lasted_s, f"{done}, no end recorded", role.role, steps)
    if role.status:
        text = f"{done}, failed with status {role.status}{waits}"
        return RunSpan("failed", role.role, began_s, role.duration_s, text, role.role, steps)
    return RunSpan("ok", role.role, began_s, role.duration_s, f"{done}{waits}", role.role, steps)


def _steps(role: RoleRun, began_s: float) -> Iterator[Stretch]:
    at_s = began_s
    for step in role.steps:
        lasted_s = max(0.0, step.duration_s)
        yield Stretch(step.what, at_s, min(max(0.0, step.waited_s), lasted_s), lasted_s)
        at_s += lasted_s


def _of_record(record: Mapping[str, Any]) -> RunSpan | None:
    kind = _OTHERS.get(str(record["kind"]))
    seconds, at = number(record, "seconds"), number(record, "t")
    if kind is None or seconds <= 0:
        return None
    what = {"sent": str(record.get("artifact", "")), "phase": str(record.get("phase", ""))}.get(kind, kind)
    text = str(record.get("reason", "") or record.get("what", ""))
    if kind == "sent":
        size = shown_bytes(int(number(record, "total_bytes")))
        text = f"a file of {record.get('role', '')}, {size}{sources_of(record)}"
    return RunSpan(kind, what, max(0.0, at - seconds), seconds, text, str(record.get("role", "")))


def sources_of(record: Mapping[str, Any]) -> str:
    """Return the sources of the transferred file in ``record``: ``, from gpu03 and from this machine``.

    The source of the largest part comes first. Empty if the record has no sources.
    """
    sent = record.get("sent")
    if not isinstance(sent, dict):
        return ""
    parts = sorted(sent.items(), key=lambda part: -part[1] if isinstance(part[1], int) else 0)
    text = " and ".join(whence(str(source)) for source, _ in parts[:MOST_SOURCES])
    return f", {text}" if text else ""


def number(record: Mapping[str, Any], field: str) -> float:
    """Return the number in ``field`` of ``record``; 0 if the field is missing or not a number."""
    value = record.get(field)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0

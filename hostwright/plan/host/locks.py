"""Locks on hosts: their records, probes that read them, scripts that change them, and error texts about them.

A *run's* lock is ``flock`` on ``/run/hostwright/run.lock``, held by ``hostwright.apply.locking.runlock``. The lock ends
when the run ends, for any reason. The file ``run.json`` next to it describes the lock's holder.

An *operator's* lock is the file ``/var/lib/hostwright/lock.json``, which outlives reboots and expires. The lock's times
come from the clocks of controllers, because the clock of a host under repair may be wrong.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, Field, ValidationError

from hostwright.common.command import Command
from hostwright.common.durations import seconds
from hostwright.common.errors import InputError
from hostwright.common.input.adapter import adapter
from hostwright.common.operator import machine_id, operator, pid_alive, process_start
from hostwright.common.quoting import sh_file
from hostwright.plan.model import Answer, Facts, Probe

RUN_DIR = "/run/hostwright"
STATE_DIR = "/var/lib/hostwright"
#: seconds from the controller's last heartbeat to the end of the run's lock
LAPSES_S = 15
STALE_S = 8.0  #: seconds without a heartbeat after which a run's lock is treated as expiring soon
MOVED_STATUS = 75  #: exit status (EX_TEMPFAIL) of a script that found a different lock than expected
DEFAULT_FOR = "8h"  #: default duration of an operator's lock
#: maximum number of bytes to read of a lock's record. The longest valid record has a quarter of this size.
RECORD_CAP_BYTES = 8 * 1024

#: type of a line of text without control characters
_Line = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^\P{C}*$")]


@dataclass(frozen=True, slots=True)
class Holder:
    """The record of a run's lock on a host: who holds the lock, for which run, and since when.

    ``machine``, ``pid`` and ``started`` identify the controller's process.
    """

    owner: _Line  #: owner of the lock, as ``user@machine``
    run: _Line
    host: _Line  #: name of the locked host in the owner's inventory
    machine: _Line
    pid: Annotated[int, Field(ge=1)]
    started: Annotated[str, Field(max_length=100)]
    since: AwareDatetime  #: start time of the lock by the controller's clock
    lapses_s: Annotated[float, Field(gt=0)] = LAPSES_S
    schema: Literal[1] = 1

    def to_json(self) -> str:
        """Return the record as one line of JSON."""
        return adapter(Holder).dump_json(self).decode()

    def __str__(self) -> str:
        return f"in use by {self.owner} since {moment(self.since)} (run {self.run})"


@dataclass(frozen=True, slots=True)
class OperatorLock:
    """The record of an operator's lock, which forbids changes to a host: owner, reason, and expiry."""

    owner: _Line
    reason: _Line
    host: _Line  #: name of the locked host in the owner's inventory
    since: AwareDatetime
    until: AwareDatetime
    schema: Literal[1] = 1

    def to_json(self) -> str:
        """Return the record as one line of JSON."""
        return adapter(OperatorLock).dump_json(self).decode()

    def expired(self, now: datetime) -> bool:
        """Whether the lock has expired at the time ``now``."""
        return now >= self.until

    def __str__(self) -> str:
        if self is UNREADABLE:
            return f"locked, but its lock file {STATE_DIR}/lock.json cannot be read"
        return f"locked by {self.owner} since {moment(self.since)} until {moment(self.until)}: {self.reason}"


#: lock in place of a lock file that is damaged or from a newer Hostwright, so that the host counts as locked
UNREADABLE: Final = OperatorLock("", "", "", datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))

#: probe that prints "there" and the content of the lock file; without access to the folder, only "there"
LOCK = Probe(
    f"if [ -d {STATE_DIR} ] && {{ [ ! -x {STATE_DIR} ] || [ -e {STATE_DIR}/lock.json ]; }}\n"
    f"then echo there; cat {STATE_DIR}/lock.json; fi",
    cap_bytes=RECORD_CAP_BYTES,
    shared=True,
)

#: shell command that prints the start time of the process ``$pid`` (field 22 of its stat file)
START_OF = "sed 's/.*) //' \"/proc/$pid/stat\" 2>/dev/null | cut -d' ' -f20"

#: probe that prints the record of a run's lock, and the seconds since the last heartbeat
RUN_LOCK = Probe(
    f"if [ -e {RUN_DIR}/run.pid ] && read -r pid started <{RUN_DIR}/run.pid"
    f' && [ -n "$started" ] && [ "$({START_OF})" = "$started" ]; then '
    f"echo heard $(( $(date +%s) - $(stat -c %Y {RUN_DIR}/run.json) )); cat {RUN_DIR}/run.json; fi",
    cap_bytes=RECORD_CAP_BYTES,
    shared=True,
)


def holder(run: str, host: str, now: datetime, owner: str = "") -> Holder:
    """Return the record of this process's lock on ``host`` for ``run``. ``owner`` is by default the process's user."""
    pid = os.getpid()
    return Holder(owner or operator(), run, host, machine_id(), pid, process_start(pid), now.replace(microsecond=0))


def operator_lock(facts: Facts) -> OperatorLock | None:
    """The operator's lock on a host, expired or not; ``UNREADABLE`` if its file is invalid, ``None`` without a lock."""
    text = _lock_text(facts[LOCK])
    if text is None:
        return None
    try:
        return adapter(OperatorLock).validate_json(text, strict=True)
    except ValidationError:
        return UNREADABLE


def run_lock(facts: Facts) -> Holder | None:
    """The record of the run's lock on the host; ``None`` without a lock, or if the record is invalid."""
    return read_holder(facts[RUN_LOCK].text.rpartition("heard")[2].partition("\n")[2])


def living(facts: Facts, ours: Holder) -> Holder | None:
    """The record of another run's lock on the host; ``None`` without such a lock, or if the lock will soon expire.

    ``ours`` is the record of this run.
    """
    held = run_lock(facts)
    age = facts[RUN_LOCK].text.partition("heard ")[2].partition("\n")[0]
    age_s = float(age) if re.fullmatch(r"-?[0-9]{1,15}", age) else 0.0
    return None if held is None or lapsing(held, age_s, ours) else held


def read_holder(text: str) -> Holder | None:
    """Parse the record of a run's lock; return ``None`` if it is invalid."""
    try:
        return adapter(Holder).validate_json(text, strict=True)
    except ValidationError:
        return None


def lapsing(held: Holder | None, age_s: float, ours: Holder) -> bool:
    """Whether the run's lock ``held`` will soon expire, because its controller was killed or sends no heartbeats.

    ``age_s`` is the number of seconds since the last heartbeat. A lock of the run in ``ours`` counts as expiring.
    ``held`` is ``None`` while the record is being written or removed.
    """
    if held is None or age_s > STALE_S or held.run == ours.run:
        return True
    return held.machine == ours.machine and not pid_alive(held.pid, held.started)


def held_by(held: Holder | None) -> str:
    """The error text about a host with the lock ``held`` of another run; ``None`` stands for an unreadable record."""
    if held is None:
        return "in use by another run, whose record is not readable yet; try again in a moment"
    machine = held.owner.rpartition("@")[2]
    return (
        f"{held}; wait until that run ends ({Command('runs.follow')} shows its progress), or end its process "
        f"{held.pid} on {machine}"
    )


def refusal(facts: Facts, now: datetime) -> str:
    """The error text if an operator's lock forbids changes to a host at the time ``now``; else empty.

    The lock also forbids changes by its own owner, such as in cron jobs.
    """
    lock = operator_lock(facts)
    if lock is None or lock.expired(now):
        return ""
    if lock is UNREADABLE:
        return f"{lock}; check the file, and remove the lock with {Command('unlock', force=True)}"
    unlock = Command("unlock", hosts=lock.host)
    return f"{lock}. To work on it, remove the lock: {unlock} (another operator's lock: --force)"


def forbids(lock: OperatorLock | None, who: str, now: datetime) -> str:
    """The error text if the operator ``who`` needs ``--force`` to replace or remove the unexpired ``lock``; else
    empty.
    """
    if lock is None or lock.expired(now) or lock.owner == who:
        return ""
    return f"{lock}. The lock is not yours; contact its owner, or pass --force"


def lock_script(lock: OperatorLock, facts: Facts, *, force: bool = False) -> str:
    """Return a shell program for root that writes the operator's lock ``lock`` to a host, atomically and durably.

    If the host's lock differs from the one in ``facts``, the program changes nothing and exits with ``MOVED_STATUS``,
    unless ``force`` is set.
    """
    return _change_script(lock.to_json(), "" if force else _seen(facts))


def unlock_script(facts: Facts, *, force: bool = False) -> str:
    """Return a shell program for root that removes the operator's lock from a host.

    If the host's lock differs from the one in ``facts``, the program changes nothing and exits with ``MOVED_STATUS``,
    unless ``force`` is set.
    """
    return _change_script("", "" if force else _seen(facts))


def _change_script(text: str, seen: str) -> str:
    return sh_file(__file__, "lock.sh", state=STATE_DIR, run=RUN_DIR, moved=MOVED_STATUS, seen=seen, text=text)


def _seen(facts: Facts) -> str:
    text = _lock_text(facts[LOCK])
    return "absent" if text is None else hashlib.sha256(text.encode()).hexdigest()


def _lock_text(answer: Answer) -> str | None:
    mark, _, text = answer.text.partition("\n")
    return text if mark else None


def moment(time: datetime) -> str:
    """Return ``time`` as text in UTC, for messages."""
    try:
        return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    # The time of a host at the end of the year 9999 may be in the year 10000 in UTC.
    except OverflowError:
        return time.isoformat()


def read_duration(text: str, where: str = "--for") -> timedelta:
    """Parse a duration such as ``3d``, ``12h``, ``90m``, ``2w`` or ``1d12h``.

    Raises ``InputError`` with the position ``where`` for any other text, also for a number without a unit.
    """
    try:
        if text.strip().isdecimal():
            raise ValueError
        return timedelta(seconds=seconds(text))
    except ValueError as error:
        raise InputError(f"found {text!r:.60}, expected a duration such as 90m, 12h, 3d, 2w or 1d12h", where) from error

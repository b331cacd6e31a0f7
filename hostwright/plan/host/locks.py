"""Locks on hosts: records, probes that read them, scripts that change them, and the rules that apply.

A *run's* lock is ``flock`` on ``/run/hostwright/run.lock``, held by ``hostwright.apply.locking.runlock``: it ends with
the run, however the run ends. ``run.json`` next to it only describes the holder.

An *operator's* lock is the file ``/var/lib/hostwright/lock.json``, which outlives reboots and expires. Times are those
of the controllers, because the clock of a host under repair may be wrong by a year.
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
LAPSES_S = 15  #: a run's lock ends this long after the last heartbeat of its controller (network cut, closed lid)
STALE_S = 8.0  #: two missing heartbeats: the lock will soon expire
MOVED_STATUS = 75  #: exit status (EX_TEMPFAIL) of a script if the lock has changed since it was read
DEFAULT_FOR = "8h"  #: a working day, so that a forgotten lock expires overnight
RECORD_CAP_BYTES = 8 * 1024  #: four times the longest record of Hostwright

#: One line without control characters. Hostwright writes no other records.
_Line = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^\P{C}*$")]


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of a run's lock. ``machine``, ``pid`` and ``started`` identify the controller's process, so that
    another run on the same machine can test whether it lives.
    """

    owner: _Line  #: user@machine
    run: _Line
    host: _Line  #: name in the owner's inventory
    machine: _Line
    pid: Annotated[int, Field(ge=1)]
    started: Annotated[str, Field(max_length=100)]
    since: AwareDatetime  #: by the controller's clock
    lapses_s: Annotated[float, Field(gt=0)] = LAPSES_S
    schema: Literal[1] = 1

    def to_json(self) -> str:
        """The record as one line of JSON."""
        return adapter(Holder).dump_json(self).decode()

    def __str__(self) -> str:
        return f"in use by {self.owner} since {moment(self.since)} (run {self.run})"


@dataclass(frozen=True, slots=True)
class OperatorLock:
    """A lock against changes to a host: owner, reason, and expiry."""

    owner: _Line
    reason: _Line
    host: _Line  #: name in the owner's inventory
    since: AwareDatetime
    until: AwareDatetime
    schema: Literal[1] = 1

    def to_json(self) -> str:
        """The record as one line of JSON."""
        return adapter(OperatorLock).dump_json(self).decode()

    def expired(self, now: datetime) -> bool:
        """Whether the lock has expired."""
        return now >= self.until

    def __str__(self) -> str:
        if self is UNREADABLE:
            return f"locked, but its lock file {STATE_DIR}/lock.json cannot be read"
        return f"locked by {self.owner} since {moment(self.since)} until {moment(self.until)}: {self.reason}"


#: The lock returned for a lock file that is damaged or of a later version. The host then counts as locked.
UNREADABLE: Final = OperatorLock(
    "", "", "", datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
)  #: compared by identity

#: Prints "there" and the content of the lock file; if the folder is not accessible, a lock may exist, so only "there".
LOCK = Probe(
    f"if [ -d {STATE_DIR} ] && {{ [ ! -x {STATE_DIR} ] || [ -e {STATE_DIR}/lock.json ]; }}\n"
    f"then echo there; cat {STATE_DIR}/lock.json; fi",
    cap_bytes=RECORD_CAP_BYTES,
    shared=True,
)

#: Start time of a process: field 22 of proc(5), counted after the program's name, which may contain any character.
START_OF = "sed 's/.*) //' \"/proc/$pid/stat\" 2>/dev/null | cut -d' ' -f20"

#: Prints, while a run's lock is held, the seconds since the controller's last heartbeat (by the host's clock), and the
#: lock's record. Testing the holding process has no side effects. A trial ``flock``, even a shared one,
#: could make a run fail that begins at that moment, and it needs root: other users have no access to the lock file,
#: because they could block every run with flock(2). In a container, ``/proc/locks`` does not list a lock whose flock(1)
#: has ended. With ``hidepid``, a login user's probe prints nothing, but the lock still works.
RUN_LOCK = Probe(
    f"if [ -e {RUN_DIR}/run.pid ] && read -r pid started <{RUN_DIR}/run.pid"
    f' && [ -n "$started" ] && [ "$({START_OF})" = "$started" ]; then '
    f"echo heard $(( $(date +%s) - $(stat -c %Y {RUN_DIR}/run.json) )); cat {RUN_DIR}/run.json; fi",
    cap_bytes=RECORD_CAP_BYTES,
    shared=True,
)


def holder(run: str, host: str, now: datetime, owner: str = "") -> Holder:
    """Return this process as the holder of a host's lock, in the name of ``owner`` (default: the user who runs it)."""
    pid = os.getpid()
    return Holder(owner or operator(), run, host, machine_id(), pid, process_start(pid), now.replace(microsecond=0))


def operator_lock(facts: Facts) -> OperatorLock | None:
    """The operator's lock on a host, expired or not; ``UNREADABLE`` if its file is invalid; ``None`` without a lock."""
    text = _lock_text(facts[LOCK])
    if text is None:
        return None
    try:
        return adapter(OperatorLock).validate_json(text, strict=True)
    except ValidationError:
        return UNREADABLE


def run_lock(facts: Facts) -> Holder | None:
    """The holder of the run's lock on the host; ``None`` if no run holds it, or its record is invalid."""
    return read_holder(facts[RUN_LOCK].text.rpartition("heard")[2].partition("\n")[2])


def living(facts: Facts, ours: Holder) -> Holder | None:
    """The holder of another run's lock on the host, if that run still sends heartbeats; else ``None``.

    A run without heartbeats, or whose process on this machine is dead, no longer owns the host.
    """
    held = run_lock(facts)
    age = facts[RUN_LOCK].text.partition("heard ")[2].partition("\n")[0]
    age_s = float(age) if re.fullmatch(r"-?[0-9]{1,15}", age) else 0.0
    return None if held is None or lapsing(held, age_s, ours) else held


def read_holder(text: str) -> Holder | None:
    """Parse the record of a run's lock; ``None`` if it is invalid."""
    try:
        return adapter(Holder).validate_json(text, strict=True)
    except ValidationError:
        return None


def lapsing(held: Holder | None, age_s: float, ours: Holder) -> bool:
    """Whether a run's lock will soon expire, because its controller was killed or sends no heartbeats.

    ``age_s`` are the seconds since the last heartbeat. A lock of our own run also lapses: it remains from a lost
    connection or a lost worker, because a run uses one connection and one worker per host at a time. ``held`` is
    ``None`` for an unreadable record, which is being written or removed.
    """
    if held is None or age_s > STALE_S or held.run == ours.run:
        return True
    return held.machine == ours.machine and not pid_alive(held.pid, held.started)


def held_by(held: Holder | None) -> str:
    """The error text for an operator or a run that needs a host locked by another run."""
    if held is None:
        return "in use by another run, whose record is not readable yet; try again in a moment"
    machine = held.owner.rpartition("@")[2]
    return (
        f"{held}; wait until that run ends ({Command('runs.follow')} shows its progress), or end its process "
        f"{held.pid} on {machine}"
    )


def refusal(facts: Facts, now: datetime) -> str:
    """The error text if an operator's lock forbids changes to a host; empty if changes are allowed.

    The owner of the lock is refused, too: a host that awaits repair or measurement must be safe from its owner's own
    ``--hosts all`` and cron jobs. The owner can remove the lock with one command.
    """
    lock = operator_lock(facts)
    if lock is None or lock.expired(now):
        return ""
    if lock is UNREADABLE:
        return f"{lock}; check the file, and remove the lock with {Command('unlock', force=True)}"
    unlock = Command("unlock", hosts=lock.host)
    return f"{lock}. To work on it, remove the lock: {unlock} (another operator's lock: --force)"


def forbids(lock: OperatorLock | None, who: str, now: datetime) -> str:
    """The error text if ``who`` needs ``--force`` to replace or remove a host's lock; empty if ``who`` does not."""
    if lock is None or lock.expired(now) or lock.owner == who:
        return ""
    return f"{lock}. The lock is not yours; contact its owner, or pass --force"


def lock_script(lock: OperatorLock, facts: Facts, *, force: bool = False) -> str:
    """A root program that puts a lock on a host, atomically and durably.

    If the host's lock differs from the one in ``facts``, it changes nothing and exits with ``MOVED_STATUS``, so that of
    two operators at once only the first succeeds. ``force`` skips this check.
    """
    return _change_script(lock.to_json(), "" if force else _seen(facts))


def unlock_script(facts: Facts, *, force: bool = False) -> str:
    """A root program that removes the lock of a host if it is still the one in ``facts`` (see ``lock_script``)."""
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
    """A time in UTC for messages."""
    try:
        return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except OverflowError:  # a host may send the end of the year 9999 in any time zone
        return time.isoformat()


def read_duration(text: str, where: str = "--for") -> timedelta:
    """Parse a duration such as ``3d``, ``12h``, ``90m``, ``2w`` or ``1d12h``. Raises ``InputError`` for any other text.

    A number without a unit is rejected, because 3 hardly means seconds.
    """
    try:
        if text.strip().isdecimal():
            raise ValueError
        return timedelta(seconds=seconds(text))
    except ValueError as error:
        raise InputError(f"found {text!r:.60}, expected a duration such as 90m, 12h, 3d, 2w or 1d12h", where) from error
